-- SPDX-License-Identifier: MIT
--
-- native_ask.lua - take the lock, or a place in its line.
--
-- record: of who asks. wait: for a place in line. fast: an attempt without a
-- script failed before. Answers: g token, with a 1 behind it for the bearer of a
-- wake-up | q watch | b ms record.

local me,wanted=record.ticket,record.mode
local gate=call('GET',L)
clock()
local need=lease(record)+ttl(record)
if not gate then
  base()
  local token=take(record)
  if wanted=='x' then
    call('SET',L,exact(record,token),'PX',lease(record)) remember()
  else
    call('DEL',T)
    mode='-' till=0 own=0 holder=''
    admit(record,token) store(0)
  end
  return {'g',fmt('%.0f',token)}
end
local waiting=false
if gate.form~='~' then
  local known=gate.bound=='='
  if gate.ticket==me then
    local token=tonumber(gate.token)
    if not known then base() token=take(record) remember() end
    call('SET',L,exact(gate,token),'PX',lease(record))
    return {'g',fmt('%.0f',token)}
  end
  if fast or wait then base() end
  if not wait then
    if fast and last==0 then call('DEL',T) end
    return {'b',call('PTTL',L),gate}
  end
  if last<now then last=now end
  call('DEL',T)
  mode='x' till=ms+call('PTTL',L) holder=gate
  own=known and tonumber(gate.token) or 0
else
  read(gate)
  if fast then call('DEL',T) end
  if mode=='x' and holder.ticket==me then
    if own==0 then own=take(record) end
    till=ms+lease(record)
    store(need)
    return {'g',fmt('%.0f',own),bears(holder) and 1 or 0}
  end
  local entry=call('HGET',R,me)
  if entry and entry.entry_role=='h' then
    local token=tonumber(entry.entry_token)
    admit(record,token) store(need)
    return {'g',fmt('%.0f',token)}
  end
  waiting=entry~=false
end
if not waiting then call('RPUSH',Q,record) end
call('HSET',R,me,'w'..fmt('%013.0f',ms+ttl(record)))
local token,woken=grant(me)
if token then
  store(need)
  return {'g',fmt('%.0f',token),woken and 1 or 0}
end
if wait then
  store(need)
  return {'q',watch(me)}
end
call('LREM',Q,-1,record) call('HDEL',R,me)
store(0)
if mode=='x' then return {'b',till-ms,holder} end
local first=call('ZRANGE',H,0,0,'WITHSCORES')
return {'b',first[2]-ms,sub(call('HGET',R,first[1]) or '',ENTRY_RECORD)}
