#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_look.lua - everything about a lock, for people.
--
-- Answers the key, and rows of {role, owner, lease, mode, token}; -1: not
-- known. A hash with very many fields is something else.
--include redisson_common.lua

local rows={k}
local function row(role,owner,ms,mode,token)
  if #rows<=1000 then rows[#rows+1]={role,owner,ms,mode,token or '0'} end
end
local kind=call('TYPE',k).ok
if kind=='hash' and call('HLEN',k)<=10000 then
  local mode=call('HGET',k,'mode')
  local token=not mode and call('GET','redisson_lock_token:'..b)
  for _,f in ipairs(call('HKEYS',k)) do
    if f~='mode' and (mode~='read' and (not mode
        or string.sub(f,-6)==':write')) then
      row('h',f,call('PTTL',k),'x',token)
    elseif f~='mode' then
      local ms=call('PTTL',b..':'..f..':rwlock_timeout:1')
      if ms>0 then row('h',f,ms,'s') end
    end
  end
end
if call('TYPE','redisson_lock_queue:'..b).ok=='list' then
  for _,f in ipairs(call('LRANGE','redisson_lock_queue:'..b,0,999)) do
    row('w',f,-1,'x')
  end
end
if kind=='string' then
  local now=math.floor(clock()/1000)
  for _,z in ipairs({b..':timeout',b..':holdfast'}) do
    local p=call('ZRANGEBYSCORE',z,now,'+inf','WITHSCORES','LIMIT',0,999)
    for i=1,#p,2 do
      row('h',string.gsub(p[i],'.',function(c)
        return string.format('%02x',string.byte(c))
      end),p[i+1]-now,'n')
    end
  end
end
return rows
