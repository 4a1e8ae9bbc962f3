#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_renew.lua - renew the locks that are hashes.
--
-- KEYS: names. ARGV: for each, owner, lease, mode. Answers 1 or 0 for each.
local answers={}
for i,k in ipairs(KEYS) do
  local own,ms,mode=ARGV[3*i-2],ARGV[3*i-1],ARGV[3*i]
  answers[i]=0
  if redis.pcall('HEXISTS',k,own)==1 then
    if mode=='s' then
      local b=string.find(k,'{',1,true) and k or '{'..k..'}'
      redis.call('SET',b..':'..own..':rwlock_timeout:1','1','PX',ms)
      ms=math.max(redis.call('PTTL',k),tonumber(ms))
    end
    answers[i]=redis.call('PEXPIRE',k,ms)
  end
end
return answers
