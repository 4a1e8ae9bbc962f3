#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_fair_release.lua - RFairLock: a holder or a waiter goes. If the lock
-- is free now, the first in line is told.
--include redisson_common.lua
--include redisson_fair_common.lua

local gone=call('LREM',q,0,me)+call('ZREM',z,me)
if call('HEXISTS',k,me)==1 then gone=gone+call('DEL',k) end
local held=call('EXISTS',k)
local head=first()
if held==0 and head then
  call(PUBLISH,'redisson_lock__channel:'..b..':'..head,'0')
end
return gone>0 and 1 or -held
