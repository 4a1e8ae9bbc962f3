-- SPDX-License-Identifier: MIT
--
-- redisson_fair_common.lua - the queue of an RFairLock.

--if cluster
-- Touch all keys before one is changed: see native_touch.lua.
for _,key in ipairs({'redisson_lock_queue:'..b,'redisson_lock_timeout:'..b}) do
  call('EXISTS',key)
end
--end
local q,z='redisson_lock_queue:'..b,'redisson_lock_timeout:'..b
local now=math.floor(clock()/1000)

-- The first in line, and until when it lives. Those before it that have not
-- proved their life in time go.
local function first()
  while true do
    local head=call('LINDEX',q,0)
    if not head then return nil end
    local score=tonumber(call('ZSCORE',z,head) or '0')
    if score>now then return head,score end
    call('LPOP',q) call('ZREM',z,head)
  end
end
