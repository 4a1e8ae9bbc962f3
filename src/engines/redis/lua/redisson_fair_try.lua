#!lua
-- SPDX-License-Identifier: MIT
--
-- redisson_fair_try.lua - RFairLock: take the lock, or a place in its queue.
--include redisson_common.lua
--include redisson_fair_common.lua

local head,score=first()
local held=call('EXISTS',k)==1
if call('HEXISTS',k,me)==1 or (not held and (not head or head==me)) then
  call('LREM',q,0,me) call('ZREM',z,me)
  if not held then call('HINCRBY',k,me,1) end
  call('PEXPIRE',k,ARGV[2])
  return {'g','0'}
end
local left=held and call('PTTL',k) or score-now
if ARGV[3]=='1' then
  local base=math.max(held and left or 0,0)
  local own=call('ZSCORE',z,me)
  if own then
    call('ZADD',z,math.max(tonumber(own),now+base+ARGV[2]),me)
  else
    local last=call('LINDEX',q,-1)
    if last then base=math.max(call('ZSCORE',z,last)-now,0) end
    call('ZADD',z,now+base+ARGV[2],me) call('RPUSH',q,me)
  end
end
return {'b',left,held and call('HKEYS',k)[1] or head}
