#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_break.lua - take a lock away from its holder.
--
-- KEYS: the gate. ARGV: token or 0, owner. Answers 1, 0 (nobody holds the
-- lock), -1 (another).

--if cluster
--include native_touch.lua
--end
--include native_common.lua

open(KEYS[1])
local asked,owner=tonumber(ARGV[1]),ARGV[2]
local gate=call('GET',L)
if not gate then return 0 end
clock()
-- Is this the holder that is meant: by owner, or by token?
local function meant(record,first)
  if asked==0 then
    return string.match(record.texts,'^[^\n]*\n[^\n]*\n([^\n]*)')==owner
  end
  return asked>=first and asked<first+tonumber(record.reserve)
end
if gate.form~='~' then
  local first=tonumber(gate.token)
  if gate.bound=='>' then
    base()
    first=last-tonumber(gate.reserve)+1
  end
  if not meant(gate,first) then return -1 end
  call('DEL',L) push(gate,'b','')
  return 1
end
read(gate)
local broken=mode~='-' and -1 or 0
if mode=='x' then
  if meant(holder,own) or (own==0 and asked==last) then
    push(holder,'b','')
    mode='-' broken=1
    drop(holder)
  end
else
  for _,t in ipairs(call('ZRANGE',H,0,-1)) do
    local entry=call('HGET',R,t)
    if broken<1 and meant(entry.entry_record,tonumber(entry.entry_token)) then
      call('ZREM',H,t) call('HDEL',R,t) push(entry.entry_record,'b','')
      broken=1
    end
  end
end
grant(false)
store(0)
return broken
