#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_downgrade.lua - from exclusive to shared.
--
-- KEYS: the gate. ARGV: the record, already shared, and the token. Answers 1,
-- or 0 if it is not ours.

--if cluster
--include native_touch.lua
--end
--include native_common.lua

open(KEYS[1])
local record=ARGV[1]
local me=record.ticket
local gate=call('GET',L)
if not gate then return 0 end
clock()
if gate.form~='~' then
  if gate.ticket~=me then return 0 end
  base()
  if last<now then last=now end
  call('DEL',T)
else
  read(gate)
  if mode=='s' and call('ZSCORE',H,me) then return 1 end
  if mode~='x' or holder.ticket~=me then return 0 end
end
mode='-' till=0 own=0 holder=''
admit(record,tonumber(ARGV[2]))
grant(false)
store(lease(record))
return 1
