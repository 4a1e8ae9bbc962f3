#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_renew.lua - renew holders, prove that waiters and those that are parked
-- live, repair grants whose wake-up was lost.
--
-- KEYS: gates. ARGV: for each, the head of the record and the token, or
-- zeroes; then a p if it may be parked. Answers, for each: h token | b token, of a holder that bears a wake-up
-- | w watch | p | l.

--if cluster
do
  --include native_touch_slow.lua
end
--end
--include native_common.lua

-- Who is parked proves its life, and serves the line: the bearer of a wake-up
-- may have died, and nobody else need be there to notice. One that is overdue
-- may have missed a wake-up: it is told that it is gone. Its record goes with
-- the next call of its condition.
local function parked(record,slow)
  local me=record.ticket
  local ends=record.renew_parked=='p' and call('HGET',A,me)
  if not ends then return 'l' end
  if tonumber(ends)<ms then call('HDEL',A,me) return 'l' end
  park(record)
  if not slow then return 'p' end
  local granted,woken=grant(me)
  store(lease(record)+ttl(record))
  if granted then return (woken and 'b' or 'h')..fmt('%016.0f',granted) end
  return call('HGET',R,me) and 'w'..watch(me) or 'p'
end

local answers={}
clock()
for i,key in ipairs(KEYS) do
  open(key)
  local record=ARGV[i]
  local me,token=record.ticket,record.renew_token
  local gate=redis.pcall('GET',L)
  local out='l'
  if type(gate)~='string' then
    if not gate then out=parked(record,false) end
  elseif gate.form~='~' then
    if gate.ticket~=me then
      out=parked(record,false)
    else
      if gate.bound=='=' or tonumber(token)==0 then
        call('PEXPIRE',L,lease(record))
        token=gate.token
      else
        call('SET',L,exact(gate,tonumber(token)),'PX',lease(record))
      end
      out='h'..token
    end
  else
    read(gate)
    -- A client may have died after it counted, before its script ran.
    call('DEL',T)
    local entry=call('HGET',R,me)
    if mode=='x' and holder.ticket==me then
      if tonumber(token)>own then own=tonumber(token) end
      till=ms+lease(record)
      store(0)
      out=(bears(holder) and 'b' or 'h')..fmt('%016.0f',own)
    elseif entry and entry.entry_role=='h' then
      admit(entry.entry_record,tonumber(entry.entry_token))
      store(0)
      out='h'..entry.entry_token
    elseif entry then
      call('HSET',R,me,'w'..fmt('%013.0f',ms+ttl(record)))
      local granted,woken=grant(me)
      store(lease(record)+ttl(record))
      out=granted and (woken and 'b' or 'h')..fmt('%016.0f',granted)
        or 'w'..watch(me)
    else
      out=parked(record,true)
    end
  end
  answers[i]=out
end
return answers
