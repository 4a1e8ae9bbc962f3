#!lua
-- SPDX-License-Identifier: MIT
--
-- redisson_lock_try.lua - RLock and RFencedLock: take the lock if it is free.
--include redisson_common.lua

local mine=call('HEXISTS',k,me)==1
if not mine and call('EXISTS',k)==1 then
  return {'b',call('PTTL',k),call('HKEYS',k)[1]}
end
local token='0'
if ARGV[4]=='f' then
  local counter='redisson_lock_token:'..b
  token=call('GET',counter) or '0'
  if not mine or token=='0' then
    local next,now=tonumber(token)+1,clock()
    if next<now then next=now end
    token=string.format('%.0f',next)
    call('SET',counter,token)
  end
end
if not mine then call('HINCRBY',k,me,1) end
call('PEXPIRE',k,ARGV[2])
return {'g',token}
