#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_rw_release.lua - RReadWriteLock: a reader or the writer goes.
--include redisson_common.lua
--include redisson_rw_common.lua

local wrote=call('HDEL',k,me..':write')
local gone=wrote+call('HDEL',k,me)
call('DEL',lease(me,1))
if gone==0 then return -call('EXISTS',k) end
local all,left=call('HGETALL',k),0
for i=1,#all,2 do
  if string.sub(all[i],-6)==':write' then return 1 end
  for n=1,all[i]~='mode' and tonumber(all[i+1]) or 0 do
    left=math.max(left,call('PTTL',lease(all[i],n)))
  end
end
if left>0 then
  call('HSET',k,'mode','read') call('PEXPIRE',k,left)
else
  call('DEL',k)
end
if wrote==1 then tell_all() else call(PUBLISH,'redisson_rwlock:'..b,'0') end
return 1
