#!lua
-- SPDX-License-Identifier: MIT
--
-- native_acquire.lua - ask for a lock, or for a place in line.
--
-- KEYS: the gate. ARGV: record, wait ('1' or '0'), '1' if a fast attempt
-- failed before. Answers: g token | q watch | b ms record. The same ticket may
-- ask again, and gets the same answer.
--
-- The server refuses the script as a whole when memory is short (no flag):
-- one that were refused half-way would leave the lock torn.

--if cluster
do
  local gate=redis.pcall('GET',KEYS[1])
  if type(gate)~='string' or string.sub(gate,1,1)=='~' or ARGV[2]~='0' then
    --include native_touch.lua
  end
end
--end
-- The frequent cases, in straight lines and before any function is made: the
-- lock is free; or an exclusive holder is there, and we wait behind it. While
-- the holder is exclusive, R has nobody but waiters, so HSET tells whether we
-- are in line already.
local record,L=ARGV[1],KEYS[1]
local call,sub,fmt=redis.call,string.sub,string.format
local gate=call('GET',L)
local now=call('TIME')
now=now[1]*1000000+now[2]
if not gate then
  if record.mode=='x' then
    local token=(call('GET',L..':t') or 0)+1
    if token<now then token=now end
    call('SET',L,record.before_bound..'='..fmt('%016.0f',token)..record.after_token,
      'PX',record.ttl+record.delay)
    call('SET',L..':t',fmt('%.0f',token+record.reserve-1),'PX',
      600000+math.ceil((token-now)/1000))
    return {'g',fmt('%.0f',token)}
  end
elseif ARGV[2]=='1' then
  local ms=math.floor(now/1000)
  local me=record.ticket
  local slow=gate.form=='~'
  local till=0
  if not slow then
    if gate.ticket~=me then till=ms+call('PTTL',L) end
  elseif gate.slow_mode=='x' and gate.slow_ticket~=me then
    till=tonumber(gate.slow_till)
  end
  if till>ms then
    local ttl=tonumber(record.ttl)
    local keep=call('PTTL',L)
    local need=2*ttl+record.delay
    if not slow then
      -- The gate takes the slow form, and the last token moves into it.
      local last=tonumber(call('GET',L..':t') or 0)
      if last<now then last=now end
      call('DEL',L..':t')
      if keep<need then keep=need end
      local ahead=2*math.ceil((last-now)/1000)
      if keep<ahead then keep=ahead end
      call('SET',L,'~x'..fmt('%013.0f%016.0f',till,last)..
        (gate.bound=='=' and gate.token or '0000000000000000')..gate,
        'PX',keep)
    else
      if ARGV[3]=='1' then call('DEL',L..':t') end
      if keep<need then keep=need call('PEXPIRE',L,keep) end
    end
    local n=0
    if call('HSET',L..':r',me,'w'..fmt('%013.0f',ms+ttl))==1 then
      n=call('RPUSH',L..':q',record)
    elseif sub(call('LINDEX',L..':q',0) or '',TICKET)==me then
      n=1
    end
    call('PEXPIRE',L..':r',keep)
    call('PEXPIRE',L..':q',keep)
    return {'q',n==1 and till-ms or -1}
  end
end

--include native_common.lua

open(KEYS[1])
local record,wait,fast=ARGV[1],ARGV[2]=='1',ARGV[3]=='1'
--include native_ask.lua
