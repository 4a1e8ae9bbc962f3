-- SPDX-License-Identifier: MIT
--
-- native_common.lua - what the scripts of our own layout share.
--
-- open() names the keys of a lock, read() takes the slow form of its gate
-- apart, grant() serves the line, store() writes the gate again. Between them
-- the state of the lock is in mode, till, last, own and holder.

local call,sub,fmt,floor=redis.call,string.sub,string.format,math.floor
-- Keys: gate, queue of waiters' records, entries by ticket, holders by the end
-- of their lease (shared and slots), the last token, records of those that wait
-- for a condition, until when each of these lives.
local L,Q,R,H,T,P,A
-- The slow form: mode of the holders or '-', end of the longest lease, last
-- token given, first token of the exclusive holder, its record.
local mode,till,last,own,holder
-- The server's clock in microseconds and in milliseconds.
local now,ms
-- For how many milliseconds the gate has to be kept for those that were called.
local called=0

local function open(key)
  L=key Q=key..':q' R=key..':r' H=key..':h' T=key..':t' P=key..':p' A=key..':a'
end

local function clock()
  local t=call('TIME')
  now=t[1]*1000000+t[2] ms=floor(now/1000)
end

local function read(gate)
  mode=gate.slow_mode till=tonumber(gate.slow_till)
  last=tonumber(gate.slow_last) own=tonumber(gate.slow_own) holder=gate.slow_record
end

local function ttl(record) return tonumber(record.ttl) end
local function lease(record) return ttl(record)+tonumber(record.delay) end

-- T is believed only if a script wrote it: a smaller number was counted up
-- from nothing.
local function base()
  last=tonumber(call('GET',T) or '0')
  if last<1e15 then last=0 end
end

-- The first of the tokens that this record reserves.
local function take(record)
  local token=last+1
  if token<now then token=now end
  last=token+tonumber(record.reserve)-1
  return token
end

-- A token of a clock that was ahead is remembered until the clock has passed
-- it: for how many milliseconds.
local function ahead()
  return last>now and floor((last-now)/1000)+1 or 0
end

local function remember()
  call('SET',T,fmt('%.0f',last),'PX',600000+ahead())
end

-- An exclusive record needs no slots: there a 1 marks the bearer of a wake-up.
local function bears(record)
  return record.mode=='x' and record.slots=='00001'
end

-- The same record, bearing a wake-up.
local function marked(record)
  return record.before_slots..'00001'..record.after_slots
end

-- The condition is the last line of the texts of a parked record.
local function condition(record)
  return string.match(record.texts,'\n([^\n]*)$')
end

-- Call up to most of those that are parked for the condition, the first come
-- first: each goes to the end of the line, bearing a wake-up. Parked records
-- that are overdue go. Returns how many were called.
local function wake(cond,most)
  local n,at=0,0
  while true do
    local some=call('LRANGE',P,at,at+99)
    for _,record in ipairs(some) do
      local ends=call('HGET',A,record.ticket)
      local live=ends and tonumber(ends)>=ms
      if live and (n>=most or condition(record)~=cond) then
        at=at+1
      else
        call('LREM',P,1,record) call('HDEL',A,record.ticket)
      end
      if live and n<most and condition(record)==cond then
        call('RPUSH',Q,marked(record))
        call('HSET',R,record.ticket,'w'..ends)
        if called<lease(record)+ttl(record) then
          called=lease(record)+ttl(record)
        end
        n=n+1
      end
    end
    if #some<100 or most>0 and n>=most then return n end
  end
end

-- The record went, and not in order. If it bears a wake-up, the next one that
-- is parked for its condition gets that.
local function drop(record)
  if bears(record) then wake(condition(record),1) end
end

-- The record proves that it lives, parked.
local function park(record)
  local keep=call('PTTL',P)
  local need=lease(record)+ttl(record)
  if keep<need then keep=need end
  call('HSET',A,record.ticket,fmt('%013.0f',ms+ttl(record)))
  call('PEXPIRE',P,keep) call('PEXPIRE',A,keep)
end

-- Send a wake-up to the client of this record. Only the client and those who
-- can read the record know the nonce.
local function push(record,letter,text)
  return call(PUBLISH,CHANNEL..record.client,
    letter..record.number..record.nonce..text)
end

-- Make the record a shared or slot holder with this token.
local function admit(record,token)
  local ticket=record.ticket
  local ends=ms+lease(record)
  if mode~=record.mode or till<ends then till=ends end
  mode=record.mode
  call('ZADD',H,ends,ticket)
  call('HSET',R,ticket,'h'..fmt('%016.0f',token)..record)
end

-- Drop holders and waiters that are overdue, then serve the line as far as it
-- can be served. The grant of ticket me is returned instead of pushed: its
-- token, and whether it bears a wake-up.
local function grant(me)
  local mine,woken=false,false
  local n=0
  if mode=='x' and till<=ms then mode='-' drop(holder) end
  if mode=='s' or mode=='n' then
    for _,t in ipairs(call('ZRANGEBYSCORE',H,'-inf',ms)) do
      call('ZREM',H,t) call('HDEL',R,t)
    end
    n=call('ZCARD',H)
    if n==0 then mode='-' end
  end
  if mode=='-' then till=0 own=0 holder='' end
  while mode~='x' do
    local record=call('LINDEX',Q,0)
    if not record then break end
    local ticket,wanted=record.ticket,record.mode
    local entry=call('HGET',R,ticket)
    if not entry or entry.entry_role~='w' or tonumber(entry.entry_till)<ms then
      call('LPOP',Q)
      if entry and entry.entry_role=='w' then call('HDEL',R,ticket) end
      drop(record)
    else
      if mode~='-' and (wanted~=mode or
          (wanted=='n' and n>=tonumber(record.slots))) then break end
      call('LPOP',Q)
      local token=take(record)
      if ticket==me then mine=token woken=bears(record) end
      if ticket~=me and push(record,bears(record) and 'w' or 'g',
          fmt('%016.0f',token))==0 then
        -- No client listens: the waiter is dead.
        call('HDEL',R,ticket)
        drop(record)
      elseif wanted=='x' then
        call('HDEL',R,ticket)
        mode='x' till=ms+lease(record) own=token holder=record
      else
        admit(record,token) n=n+1
      end
    end
  end
  return mine,woken
end

-- The keys of one lock live equally long, and at least as long as every lease
-- in them. A waiter that is granted later needs more than its own lease. A
-- bearer that dies is noticed by those that are parked: its wake-up is kept
-- until each of them has renewed.
local function store(need)
  if mode=='-' then
    --if cluster
    call('DEL',L) call('DEL',Q) call('DEL',R) call('DEL',H)
    --else
    call('DEL',L,Q,R,H)
    --end
    remember()
    return
  end
  local keep=call('PTTL',L)
  if keep<till-ms then keep=till-ms end
  if keep<need then keep=need end
  if keep<called then keep=called end
  local parked=call('PTTL',P)
  if parked>0 and keep<math.max(till-ms,0)+parked then
    keep=math.max(till-ms,0)+parked
  end
  if keep<2*ahead() then keep=2*ahead() end
  call('SET',L,'~'..mode..fmt('%013.0f%016.0f%016.0f',till,last,own)..holder,
    'PX',keep)
  call('PEXPIRE',Q,keep) call('PEXPIRE',R,keep) call('PEXPIRE',H,keep)
end

-- In how many milliseconds the first in line should look again; -1 for the
-- other waiters.
local function watch(me)
  local record=call('LINDEX',Q,0)
  if not record or record.ticket~=me then return -1 end
  if mode=='x' then return till-ms end
  local first=call('ZRANGE',H,0,0,'WITHSCORES')
  return first[2]-ms
end

-- The token is known now: write it into the record of the fast form.
local function exact(record,token)
  return record.before_bound..'='..fmt('%016.0f',token)..record.after_token
end
