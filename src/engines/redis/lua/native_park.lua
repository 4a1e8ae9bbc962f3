#!lua
-- SPDX-License-Identifier: MIT
--
-- native_park.lua - release a lock, and wait for a condition of it.
--
-- KEYS: the gate. ARGV: the record of who will wait, whose last line is the
-- condition; the ticket that holds the lock. Answers: p (parked) | g token,
-- with a 1 behind it for the bearer of a wake-up | q watch | l (the ticket does
-- not hold it). The same ticket may ask again, and is told what became of it.
--
-- The server refuses the script as a whole when memory is short (no flag): the
-- caller keeps its lock.

--if cluster
do
  --include native_touch.lua
end
--end
--include native_common.lua

open(KEYS[1])
clock()
local record,hold=ARGV[1],ARGV[2]
local me=record.ticket
local gate=call('GET',L)
local slow=gate and gate.form=='~'
if slow then read(gate) end
if call('HGET',A,me) then
  park(record)
  return {'p'}
end
if slow and mode=='x' and holder.ticket==me then
  till=ms+lease(record)
  store(0)
  return {'g',fmt('%.0f',own),bears(holder) and 1 or 0}
end
if slow and call('HGET',R,me) then
  call('HSET',R,me,'w'..fmt('%013.0f',ms+ttl(record)))
  store(lease(record)+ttl(record))
  return {'q',watch(me)}
end
if slow and (mode~='x' or holder.ticket~=hold)
    or not slow and (not gate or gate.ticket~=hold) then
  return {'l'}
end
-- Those that died parked are in the way of nobody: now and then they go.
if call('RPUSH',P,record)%64==0 then wake('',0) end
park(record)
if slow then
  mode='-'
  grant(false) store(0)
else
  call('DEL',L)
end
return {'p'}
