-- SPDX-License-Identifier: MIT
--
-- redisson_rw_common.lua - the readers of an RReadWriteLock. A reader's own
-- lease is a key of its own; the hash lives as long as the longest of them.

--if cluster
-- Touch all keys before one is changed: see native_touch.lua.
for _,field in ipairs(call('HKEYS',k)) do
  if field~='mode' and string.sub(field,-6)~=':write' then
    call('EXISTS',b..':'..field..':rwlock_timeout:1')
  end
end
call('EXISTS',b..':'..me..':rwlock_timeout:1')
--end
local function lease(owner,n)
  return b..':'..owner..':rwlock_timeout:'..n
end

local function read(ms)
  call('SET',lease(me,1),'1','PX',ms)
  call('PEXPIRE',k,math.max(call('PTTL',k),tonumber(ms)))
end

-- A writer is gone, or a reader now. Message 1 wakes all threads that sleep in a
-- Redisson client, and is lost on one that has subscribed and does not sleep
-- yet; message 0 waits there for it.
local function tell_all()
  call(PUBLISH,'redisson_rwlock:'..b,'1')
  call(PUBLISH,'redisson_rwlock:'..b,'0')
end
