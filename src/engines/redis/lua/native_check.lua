#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_check.lua - is this the token of a holder?
--
-- KEYS: the gate. ARGV: token. Answers y, n (nobody holds the lock), c
-- (another token), or u and the ticket of the holder, which alone can tell.

--if cluster
--include native_touch.lua
--end
--include native_common.lua

open(KEYS[1])
local asked=tonumber(ARGV[1])
local gate=call('GET',L)
if not gate then return 'n' end
clock()
local first,most
if gate.form~='~' then
  first=tonumber(gate.token) most=tonumber(gate.reserve)
  if gate.bound=='>' then
    base()
    if asked>last or asked<=first then return 'c' end
    if asked==last and most==1 then return 'y' end
    return 'u'..gate.ticket
  end
else
  read(gate)
  if mode~='x' then
    local found='n'
    for _,t in ipairs(call('ZRANGEBYSCORE',H,ms+1,'+inf')) do
      if tonumber(sub(call('HGET',R,t),ENTRY_TOKEN))==asked then return 'y' end
      found='c'
    end
    return found
  end
  if till<=ms then return 'n' end
  first=own most=tonumber(holder.reserve)
  if own==0 then
    if asked>last or asked<=tonumber(holder.token) then return 'c' end
    return 'u'..holder.ticket
  end
  gate=holder
end
if asked<first or asked>=first+most then return 'c' end
return most==1 and 'y' or 'u'..gate.ticket
