-- SPDX-License-Identifier: MIT
--
-- redisson_permits_common.lua - the permits of a semaphore, members of the
-- sorted set z by the end of their lease.
--
-- Redisson has that set for expirable permits only: those of an RSemaphore
-- that are ours are in a set that only we know. An exclusive holder has all
-- permits, numbered in the last two of 16 bytes.

--if cluster
-- Touch all keys before one is changed: see native_touch.lua.
call('EXISTS',z)
--end
local function permit(i)
  return me..string.char(math.floor(i/256),i%256)
end

local function give(n)
  call(PUBLISH,'redisson_sc:'..b,call('INCRBY',k,n))
end
