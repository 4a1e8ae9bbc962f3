#!lua
-- SPDX-License-Identifier: MIT
--
-- native_signal.lua - wake those that wait for a condition of a lock.
--
-- KEYS: the gate. ARGV: the ticket that holds the lock, the condition, how many
-- at most. Answers how many were called, or -1 if the ticket does not hold the
-- lock. They stand in line from now on, and hear of it when they are granted.
--
-- The server refuses the script as a whole when memory is short (no flag).

--if cluster
do
  --include native_touch.lua
end
--end
--include native_common.lua

open(KEYS[1])
clock()
local me,cond,most=ARGV[1],ARGV[2],tonumber(ARGV[3])
local gate=call('GET',L)
if not gate then return -1 end
local slow=gate.form=='~'
if slow then
  read(gate)
  if mode~='x' or holder.ticket~=me then return -1 end
else
  if gate.ticket~=me then return -1 end
  base()
  if last<now then last=now end
  mode='x' till=ms+call('PTTL',L) holder=gate
  own=gate.bound=='=' and tonumber(gate.token) or 0
end
local n=wake(cond,most)
if n>0 then
  if not slow then call('DEL',T) end
  store(0)
end
return n
