#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_unpark.lua - who waits for a condition wants the lock now, without a
-- wake-up. If it has been called meanwhile it keeps its place and its wake-up.
--
-- KEYS: the gate. ARGV: the record. Answers as native_ask.lua, or l if there is
-- nothing of it.

--if cluster
do
  --include native_touch.lua
end
--end
--include native_common.lua

open(KEYS[1])
local record,wait,fast=ARGV[1],true,false
if call('HDEL',A,record.ticket)==1 then
  call('LREM',P,1,record)
else
  local gate=call('GET',L)
  local held=gate and gate.form=='~' and gate.slow_ticket==record.ticket
    or gate and gate.ticket==record.ticket
  if not held and not call('HGET',R,record.ticket) then return {'l'} end
end
--include native_ask.lua
