#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_renew.lua - renew holders, prove that waiters live, repair grants
-- whose wake-up was lost.
--
-- KEYS: gates. ARGV: for each, the head of the record and the token, or
-- zeroes. Answers, for each: h token | w watch | l.

--if cluster
do
  --include native_touch_slow.lua
end
--end
--include native_common.lua

local answers={}
clock()
for i,key in ipairs(KEYS) do
  open(key)
  local record=ARGV[i]
  local me,token=record.ticket,record.renew_token
  local gate=redis.pcall('GET',L)
  local out='l'
  if type(gate)~='string' then
    out='l'
  elseif gate.form~='~' then
    if gate.ticket==me then
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
      out='h'..fmt('%016.0f',own)
    elseif entry and entry.entry_role=='h' then
      admit(entry.entry_record,tonumber(entry.entry_token))
      store(0)
      out='h'..entry.entry_token
    elseif entry then
      call('HSET',R,me,'w'..fmt('%013.0f',ms+ttl(record)))
      local granted=grant(me)
      store(lease(record)+ttl(record))
      out=granted and 'h'..fmt('%016.0f',granted) or 'w'..watch(me)
    end
  end
  answers[i]=out
end
return answers
