#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_release.lua - release and withdraw: whatever this ticket is, it is
-- no more.
--
-- KEYS: the gate. ARGV: ticket, then its record to withdraw it, or nothing to
-- release it; then a p if it may be parked. Answers 1, or 0 if there was
-- nothing of this ticket. A release uses up the wake-up that the ticket bears; a
-- withdrawal passes it on.

--if cluster
do
  --include native_touch_slow.lua
end
--end
-- The frequent cases, before any function is made: nobody waits; or one
-- exclusive holder hands on to the next.
local gate=redis.call('GET',KEYS[1])
local me,sub=ARGV[1],string.sub
if gate and gate.ticket==me then return redis.call('DEL',KEYS[1]) end
local L=KEYS[1]
if not gate or gate.form~='~' then
  -- Those that are parked may be there while nobody holds the lock.
  if ARGV[3]~='p' or redis.call('HDEL',L..':a',me)==0 then return 0 end
  return redis.call('LREM',L..':p',1,ARGV[2])
end
local dead
if gate.slow_mode=='x' and gate.slow_ticket==me and ARGV[2]=='' then
  local call=redis.call
  local record=call('LPOP',L..':q')
  if not record then
    --if cluster
    call('DEL',L) call('DEL',L..':r')
    --else
    call('DEL',L,L..':r')
    --end
    local now=call('TIME')
    local ahead=gate.slow_last/1000-now[1]*1000
    call('SET',L..':t',gate.slow_last,'PX',
      600000+(ahead>0 and math.ceil(ahead) or 0))
    return 1
  end
  if record.mode=='x' then
    local now=call('TIME')
    now=now[1]*1000000+now[2]
    local token=gate.slow_last+1
    if token<now then token=now end
    local fmt=string.format
    call('HDEL',L..':r',record.ticket)
    if call(PUBLISH,CHANNEL..record.client,
        (record.slots=='00001' and 'w' or 'g')..record.number..record.nonce..
        fmt('%016.0f',token))>0 then
      call('SET',L,'~x'..fmt('%013.0f%016.0f%016.0f',
        now/1000+record.ttl+record.delay,token+record.reserve-1,token)..record,
        'KEEPTTL')
      return 1
    end
    dead=record
  else
    call('LPUSH',L..':q',record)
  end
end

--include native_common.lua

open(KEYS[1])
clock()
read(gate)
if dead then drop(dead) end
if mode=='x' and holder.ticket==me then
  mode='-'
  if ARGV[2]~='' then drop(holder) end
else
  local entry=call('HGET',R,me)
  if not entry then
    if ARGV[3]~='p' or call('HDEL',A,me)==0 then return 0 end
    return call('LREM',P,1,ARGV[2])
  end
  call('HDEL',R,me)
  if entry.entry_role=='h' then
    call('ZREM',H,me)
  elseif call('LREM',Q,1,ARGV[2])==0
      and call('LREM',Q,1,marked(ARGV[2]))==1 then
    drop(marked(ARGV[2]))
  end
end
grant(false)
store(0)
return 1
