#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_look.lua - everything about each of the locks, for people.
--
-- KEYS: gates. Answers, for each: {gate's key, gate, what is left of its
-- lease, last token, the server's clock, holders, waiters}, or {}.

--if cluster
--include native_touch.lua
--end
--include native_common.lua

clock()
local all={}
for i,key in ipairs(KEYS) do
  open(key)
  local gate=redis.pcall('GET',L)
  all[i]={}
  if type(gate)=='string' then
    local held={}
    for _,t in ipairs(call('ZRANGEBYSCORE',H,ms,'+inf','LIMIT',0,1000)) do
      held[#held+1]=call('ZSCORE',H,t)
      held[#held+1]=call('HGET',R,t) or ''
    end
    all[i]={L,gate,call('PTTL',L),call('GET',T) or '0',fmt('%.0f',ms),held,
      call('LRANGE',Q,0,999)}
  end
end
return all
