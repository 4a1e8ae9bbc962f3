#!lua
-- SPDX-License-Identifier: MIT
--
-- redisson_rw_try.lua - RReadWriteLock: take the lock for reading or writing.
--include redisson_common.lua
--include redisson_rw_common.lua

local mode=call('HGET',k,'mode')
local own,shared=me..':write',ARGV[4]=='s'
if shared then own=me end
if call('HEXISTS',k,own)==0 then
  if mode and (not shared or mode~='read')
      or not mode and call('EXISTS',k)==1 then
    return {'b',call('PTTL',k),call('HKEYS',k)[2] or ''}
  end
  call('HSET',k,'mode',shared and 'read' or 'write')
  call('HINCRBY',k,own,1)
end
if shared then read(ARGV[2]) else call('PEXPIRE',k,ARGV[2]) end
return {'g','0'}
