#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_downgrade.lua - RReadWriteLock: from writer to reader.
--
-- ARGV: owner, lease. Answers 1, or 0 if it is not ours.
--include redisson_common.lua
--include redisson_rw_common.lua

if call('HDEL',k,me..':write')==1 then
  call('HSET',k,'mode','read')
  call('HINCRBY',k,me,1)
elseif call('HEXISTS',k,me)==0 then
  return 0
end
read(ARGV[2])
tell_all()
return 1
