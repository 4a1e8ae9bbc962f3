-- SPDX-License-Identifier: MIT
--
-- redisson_permits_renew.lua - KEYS: names. ARGV: for each, owner, lease, mode.
-- Answers 1 or 0 for each. suffix: of the sorted set beside the name.
local t=redis.call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local answers={}
for i,k in ipairs(KEYS) do
  local z=(string.find(k,'{',1,true) and k or '{'..k..'}')..suffix
  local n=0
  while true do
    local m=ARGV[3*i-2]..string.char(math.floor(n/256),n%256)
    --if cluster
    -- A key that is elsewhere is no answer.
    local score=redis.call('ZSCORE',z,m)
    --else
    local score=redis.pcall('ZSCORE',z,m)
    --end
    if type(score)~='string' then break end
    redis.call('ZADD',z,now+ARGV[3*i-1],m) n=n+1
  end
  answers[i]=n>0 and 1 or 0
end
return answers
