-- SPDX-License-Identifier: MIT
--
-- redisson_permits_try.lua - take one permit, or all of them.
--include redisson_permits_common.lua

local now=math.floor(clock()/1000)
local ends=now+ARGV[2]
local i=0
while call('ZSCORE',z,permit(i)) do
  call('ZADD',z,ends,permit(i)) i=i+1
end
if i>0 then return {'g','0'} end
local over=call('ZRANGEBYSCORE',z,0,now,'LIMIT',0,1000)
if #over>0 then
  call('ZREM',z,unpack(over)) give(#over)
end
local all=ARGV[4]~='n'
local free=call('GET',k)
if not free then
  free=all and 1 or ARGV[5]
  call('SET',k,free)
end
free=tonumber(free)
if all and free>65536 then
  return redis.error_reply('ERR too many permits to take all')
end
if free<1 or all and call('ZCARD',z)>0 then
  local next=call('ZRANGE',z,0,0,'WITHSCORES')[2]
  return {'b',next and math.max(next-now,0) or -1,''}
end
for n=0,all and free-1 or 0 do call('ZADD',z,ends,permit(n)) end
call('DECRBY',k,all and free or 1)
local ttl=call('PTTL',k)
if ttl>0 then call('PEXPIRE',z,ttl) end
return {'g','0'}
