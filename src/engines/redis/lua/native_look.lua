#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_look.lua - everything about each of the locks, for people.
--
-- KEYS: gates, and lists of parked records. Answers, for each: {gate's key,
-- gate, what is left of its lease, last token, the server's clock, holders,
-- waiters}; of a list {gate's key, the server's clock, parked}; or {}.

--if cluster
--include native_touch.lua
--end
--include native_common.lua

-- Those that are parked and live: until when, the place among those that wait
-- for the same condition, and the record.
local function parked(records)
  local rows,places={},{}
  for _,record in ipairs(records) do
    local ends=call('HGET',A,record.ticket)
    if ends and tonumber(ends)>=ms then
      local cond=condition(record) or ''
      places[cond]=(places[cond] or 0)+1
      rows[#rows+1]=ends rows[#rows+1]=places[cond] rows[#rows+1]=record
    end
  end
  return rows
end

clock()
local all={}
for i,key in ipairs(KEYS) do
  local list=sub(key,-2)==':p'
  open(list and sub(key,1,-3) or key)
  local gate=not list and redis.pcall('GET',L)
  all[i]={}
  local records=list and redis.pcall('LRANGE',P,0,999)
  if list and not records.err then
    all[i]={L,fmt('%.0f',ms),parked(records)}
  elseif type(gate)=='string' then
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
