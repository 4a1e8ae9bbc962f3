#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_lock_release.lua - RLock and RFencedLock: release or break.
--include redisson_common.lua

if call('HEXISTS',k,me)==0 and (ARGV[2]=='0' or call('EXISTS',k)==0
    or call('GET','redisson_lock_token:'..b)~=ARGV[2]) then
  return -call('EXISTS',k)
end
call('DEL',k)
call(PUBLISH,'redisson_lock__channel:'..b,'0')
return 1
