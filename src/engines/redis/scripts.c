/* SPDX-License-Identifier: MIT */
/*
 * scripts.c - what runs inside the server.
 *
 * Redis runs a script as one step, so each of these is one atomic change of a
 * lock. They share one body of functions, COMMON, put before each of them. The
 * state of a lock in the slow form is in six variables (m, till, last, own,
 * rec and the clock), read by read(), changed by grant(), written by store().
 *
 *   ACQUIRE    ask; the same ticket may ask again, and gets the same answer
 *   LEAVE      release and withdraw: whatever this ticket is, it is no more
 *   BEAT       renew holders, prove the life of waiters, repair lost grants
 *   DOWNGRADE  exclusive to shared
 *
 * A script that were refused half-way would leave a lock torn. So ACQUIRE is
 * refused as a whole when memory is short (no flag), and what frees memory or
 * keeps a promise is never refused (allow-oom).
 *
 * ACQUIRE and LEAVE begin with the cases that matter for speed, in straight
 * lines and before any function is made: it is free; an exclusive holder is
 * there, and we stand in line behind it; nobody waits; one exclusive holder
 * hands on to the next.
 *
 * Numbers: Lua prints 14 digits of a number unless told otherwise, which
 * destroys a token; hence fmt('%.0f').
 */
#include "engines/redis/scripts.h"

#include "base/buf.h"
#include "engines/redis/redisson_scripts.h"
#include "engines/redis/sha1.h"

#define ANY_TIME "#!lua flags=allow-oom\n"
#define NOT_WHEN_FULL "#!lua\n"

static const char common[] =
    "local call,sub,fmt,floor=redis.call,string.sub,string.format,math.floor\n"
    "local L,Q,R,H,T\n"
    "local m,till,last,own,rec\n"
    "local now,ms\n"
    "local function open(key)\n"
    "  L=key Q=key..':q' R=key..':r' H=key..':h' T=key..':t'\n"
    "end\n"
    "local function clock()\n"
    "  local t=call('TIME')\n"
    "  now=t[1]*1000000+t[2] ms=floor(now/1000)\n"
    "end\n"
    "local function read(v)\n"
    "  m=sub(v,2,2) till=tonumber(sub(v,3,15))\n"
    "  last=tonumber(sub(v,16,31)) own=tonumber(sub(v,32,47)) rec=sub(v,48)\n"
    "end\n"
    "local function ttl(r) return tonumber(sub(r,51,63)) end\n"
    "local function lease(r) return ttl(r)+tonumber(sub(r,64,70)) end\n"
    /* T is believed only if a script wrote it: a smaller number was counted
     * up from nothing. */
    "local function base()\n"
    "  last=tonumber(call('GET',T) or '0')\n"
    "  if last<1e15 then last=0 end\n"
    "end\n"
    "local function take(r)\n"
    "  local t=last+1\n"
    "  if t<now then t=now end\n"
    "  last=t+tonumber(sub(r,71,73))-1\n"
    "  return t\n"
    "end\n"
    /* A token of a clock that was ahead is remembered until the clock has
     * passed it: how long that is, in ms. */
    "local function ahead()\n"
    "  return last>now and floor((last-now)/1000)+1 or 0\n"
    "end\n"
    "local function remember()\n"
    "  call('SET',T,fmt('%.0f',last),'PX',600000+ahead())\n"
    "end\n"
    /* Tell the client of record r; whoever cannot read it lacks the nonce. */
    "local function push(r,letter,text)\n"
    "  return call('PUBLISH','hf:i:'..sub(r,1,32),\n"
    "    letter..sub(r,33,44)..sub(r,104,119)..text)\n"
    "end\n"
    /* A shared or slot holder. */
    "local function admit(r,t)\n"
    "  local tk=sub(r,1,44)\n"
    "  local ends=ms+lease(r)\n"
    "  if m~=sub(r,45,45) or till<ends then till=ends end\n"
    "  m=sub(r,45,45)\n"
    "  call('ZADD',H,ends,tk)\n"
    "  call('HSET',R,tk,'h'..fmt('%016.0f',t)..r)\n"
    "end\n"
    /* Drop who is overdue, then serve the line as far as it can be served.
     * The grant of ticket me is returned instead of pushed. */
    "local function grant(me)\n"
    "  local mine=false\n"
    "  local n=0\n"
    "  if m=='x' and till<=ms then m='-' end\n"
    "  if m=='s' or m=='n' then\n"
    "    for _,t in ipairs(call('ZRANGEBYSCORE',H,'-inf',ms)) do\n"
    "      call('ZREM',H,t) call('HDEL',R,t)\n"
    "    end\n"
    "    n=call('ZCARD',H)\n"
    "    if n==0 then m='-' end\n"
    "  end\n"
    "  if m=='-' then till=0 own=0 rec='' end\n"
    "  while m~='x' do\n"
    "    local r=call('LINDEX',Q,0)\n"
    "    if not r then break end\n"
    "    local tk,mode=sub(r,1,44),sub(r,45,45)\n"
    "    local w=call('HGET',R,tk)\n"
    "    if not w or sub(w,1,1)~='w' or tonumber(sub(w,2,14))<ms then\n"
    "      call('LPOP',Q)\n"
    "      if w and sub(w,1,1)=='w' then call('HDEL',R,tk) end\n"
    "    else\n"
    "      if m~='-' and (mode~=m or\n"
    "          (mode=='n' and n>=tonumber(sub(r,46,50)))) then break end\n"
    "      call('LPOP',Q)\n"
    "      local t=take(r)\n"
    "      if tk==me then mine=t end\n"
    "      if tk~=me and push(r,'g',fmt('%016.0f',t))==0 then\n"
    "        call('HDEL',R,tk)\n" /* nobody listens: it is dead */
    "      elseif mode=='x' then\n"
    "        call('HDEL',R,tk)\n"
    "        m='x' till=ms+lease(r) own=t rec=r\n"
    "      else\n"
    "        admit(r,t) n=n+1\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "  return mine\n"
    "end\n"
    /* Keys of one lock live equally long, and at least as long as every lease
     * in them; a waiter that is granted later needs more than its own. */
    "local function store(need)\n"
    "  if m=='-' then\n"
    "    call('DEL',L,Q,R,H) remember()\n"
    "    return\n"
    "  end\n"
    "  local keep=call('PTTL',L)\n"
    "  if keep<till-ms then keep=till-ms end\n"
    "  if keep<need then keep=need end\n"
    "  if keep<2*ahead() then keep=2*ahead() end\n"
    "  call('SET',L,'~'..m..fmt('%013.0f%016.0f%016.0f',till,last,own)..rec,\n"
    "    'PX',keep)\n"
    "  call('PEXPIRE',Q,keep) call('PEXPIRE',R,keep) call('PEXPIRE',H,keep)\n"
    "end\n"
    /* When the first in line should look again; -1 for the others. */
    "local function watch(me)\n"
    "  local r=call('LINDEX',Q,0)\n"
    "  if not r or sub(r,1,44)~=me then return -1 end\n"
    "  if m=='x' then return till-ms end\n"
    "  local first=call('ZRANGE',H,0,0,'WITHSCORES')\n"
    "  return first[2]-ms\n"
    "end\n"
    /* The token is known now: write it into the record of the fast form. */
    "local function exact(r,t)\n"
    "  return sub(r,1,86)..'='..fmt('%016.0f',t)..sub(r,104)\n"
    "end\n";

/* KEYS: the gate. ARGV: record, wait, a fast attempt failed before.
 * Answers: g token | q watch | b ms record. While the holder is exclusive,
 * R has nobody but waiters: HSET tells whether we stand in line already. */
static const char acquire_quick[] =
    "local r,L=ARGV[1],KEYS[1]\n"
    "local call,sub,fmt=redis.call,string.sub,string.format\n"
    "local v=call('GET',L)\n"
    "local now=call('TIME')\n"
    "now=now[1]*1000000+now[2]\n"
    "if not v then\n"
    "  if sub(r,45,45)=='x' then\n"
    "    local k=(call('GET',L..':t') or 0)+1\n"
    "    if k<now then k=now end\n"
    "    call('SET',L,sub(r,1,86)..'='..fmt('%016.0f',k)..sub(r,104),\n"
    "      'PX',sub(r,51,63)+sub(r,64,70))\n"
    "    call('SET',L..':t',fmt('%.0f',k+sub(r,71,73)-1),'PX',\n"
    "      600000+math.ceil((k-now)/1000))\n"
    "    return {'g',fmt('%.0f',k)}\n"
    "  end\n"
    "elseif ARGV[2]=='1' then\n"
    "  local ms=math.floor(now/1000)\n"
    "  local me=sub(r,1,44)\n"
    "  local slow=sub(v,1,1)=='~'\n"
    "  local till=0\n"
    "  if not slow then\n"
    "    if sub(v,1,44)~=me then till=ms+call('PTTL',L) end\n"
    "  elseif sub(v,2,2)=='x' and sub(v,48,91)~=me then\n"
    "    till=tonumber(sub(v,3,15))\n"
    "  end\n"
    "  if till>ms then\n"
    "    local ttl=tonumber(sub(r,51,63))\n"
    "    local keep=call('PTTL',L)\n"
    "    local need=2*ttl+sub(r,64,70)\n"
    "    if not slow then\n"
    "      local last=tonumber(call('GET',L..':t') or 0)\n"
    "      if last<now then last=now end\n"
    "      call('DEL',L..':t')\n"
    "      if keep<need then keep=need end\n"
    "      local ahead=2*math.ceil((last-now)/1000)\n"
    "      if keep<ahead then keep=ahead end\n"
    "      call('SET',L,'~x'..fmt('%013.0f%016.0f',till,last)..\n"
    "        (sub(v,87,87)=='=' and sub(v,88,103) or '0000000000000000')..v,\n"
    "        'PX',keep)\n"
    "    else\n"
    "      if ARGV[3]=='1' then call('DEL',L..':t') end\n"
    "      if keep<need then keep=need call('PEXPIRE',L,keep) end\n"
    "    end\n"
    "    local n=0\n"
    "    if call('HSET',L..':r',me,'w'..fmt('%013.0f',ms+ttl))==1 then\n"
    "      n=call('RPUSH',L..':q',r)\n"
    "    elseif sub(call('LINDEX',L..':q',0) or '',1,44)==me then\n"
    "      n=1\n"
    "    end\n"
    "    call('PEXPIRE',L..':r',keep)\n"
    "    call('PEXPIRE',L..':q',keep)\n"
    "    return {'q',n==1 and till-ms or -1}\n"
    "  end\n"
    "end\n";
static const char acquire_rest[] =
    "open(KEYS[1])\n"
    "local r,wait,fast=ARGV[1],ARGV[2]=='1',ARGV[3]=='1'\n"
    "local me,mode=sub(r,1,44),sub(r,45,45)\n"
    "local v=call('GET',L)\n"
    "clock()\n"
    "local need=lease(r)+ttl(r)\n"
    "if not v then\n"
    "  base()\n"
    "  local t=take(r)\n"
    "  if mode=='x' then\n"
    "    call('SET',L,exact(r,t),'PX',lease(r)) remember()\n"
    "  else\n"
    "    call('DEL',T)\n"
    "    m='-' till=0 own=0 rec=''\n"
    "    admit(r,t) store(0)\n"
    "  end\n"
    "  return {'g',fmt('%.0f',t)}\n"
    "end\n"
    "local waiting=false\n"
    "if sub(v,1,1)~='~' then\n"
    "  local known=sub(v,87,87)=='='\n"
    "  if sub(v,1,44)==me then\n"
    "    local t=tonumber(sub(v,88,103))\n"
    "    if not known then base() t=take(r) remember() end\n"
    "    call('SET',L,exact(v,t),'PX',lease(r))\n"
    "    return {'g',fmt('%.0f',t)}\n"
    "  end\n"
    "  if fast or wait then base() end\n"
    "  if not wait then\n"
    "    if fast and last==0 then call('DEL',T) end\n"
    "    return {'b',call('PTTL',L),v}\n"
    "  end\n"
    "  if last<now then last=now end\n"
    "  call('DEL',T)\n"
    "  m='x' till=ms+call('PTTL',L) rec=v\n"
    "  own=known and tonumber(sub(v,88,103)) or 0\n"
    "else\n"
    "  read(v)\n"
    "  if fast then call('DEL',T) end\n"
    "  if m=='x' and sub(rec,1,44)==me then\n"
    "    if own==0 then own=take(r) end\n"
    "    till=ms+lease(r)\n"
    "    store(need)\n"
    "    return {'g',fmt('%.0f',own)}\n"
    "  end\n"
    "  local mine=call('HGET',R,me)\n"
    "  if mine and sub(mine,1,1)=='h' then\n"
    "    local t=tonumber(sub(mine,2,17))\n"
    "    admit(r,t) store(need)\n"
    "    return {'g',fmt('%.0f',t)}\n"
    "  end\n"
    "  waiting=mine~=false\n"
    "end\n"
    "if not waiting then call('RPUSH',Q,r) end\n"
    "call('HSET',R,me,'w'..fmt('%013.0f',ms+ttl(r)))\n"
    "local t=grant(me)\n"
    "if t then\n"
    "  store(need)\n"
    "  return {'g',fmt('%.0f',t)}\n"
    "end\n"
    "if wait then\n"
    "  store(need)\n"
    "  return {'q',watch(me)}\n"
    "end\n"
    "call('LREM',Q,-1,r) call('HDEL',R,me)\n"
    "store(0)\n"
    "if m=='x' then return {'b',till-ms,rec} end\n"
    "local first=call('ZRANGE',H,0,0,'WITHSCORES')\n"
    "return {'b',first[2]-ms,sub(call('HGET',R,first[1]) or '',18)}\n";

/* KEYS: the gate. ARGV: ticket, the waiter's record or nothing.
 * Answers 1, or 0 if there was nothing of this ticket. */
static const char leave_quick[] =
    "local v=redis.call('GET',KEYS[1])\n"
    "if not v then return 0 end\n"
    "local t=ARGV[1]\n"
    "if string.sub(v,1,44)==t then return redis.call('DEL',KEYS[1]) end\n"
    "local L,sub=KEYS[1],string.sub\n"
    "if sub(v,1,1)~='~' then return 0 end\n"
    "if sub(v,2,2)=='x' and sub(v,48,91)==t then\n"
    "  local call=redis.call\n"
    "  local r=call('LPOP',L..':q')\n"
    "  if not r then\n"
    "    call('DEL',L,L..':r')\n"
    "    local now=call('TIME')\n"
    "    local ahead=sub(v,16,31)/1000-now[1]*1000\n"
    "    call('SET',L..':t',sub(v,16,31),'PX',\n"
    "      600000+(ahead>0 and math.ceil(ahead) or 0))\n"
    "    return 1\n"
    "  end\n"
    "  if sub(r,45,45)=='x' then\n"
    "    local now=call('TIME')\n"
    "    now=now[1]*1000000+now[2]\n"
    "    local k=sub(v,16,31)+1\n"
    "    if k<now then k=now end\n"
    "    local fmt=string.format\n"
    "    call('HDEL',L..':r',sub(r,1,44))\n"
    "    if call('PUBLISH','hf:i:'..sub(r,1,32),\n"
    "        'g'..sub(r,33,44)..sub(r,104,119)..fmt('%016.0f',k))>0 then\n"
    "      call('SET',L,'~x'..fmt('%013.0f%016.0f%016.0f',\n"
    "        now/1000+sub(r,51,63)+sub(r,64,70),k+sub(r,71,73)-1,k)..r,\n"
    "        'KEEPTTL')\n"
    "      return 1\n"
    "    end\n"
    "  else\n"
    "    call('LPUSH',L..':q',r)\n"
    "  end\n"
    "end\n";
static const char leave_rest[] = "open(KEYS[1])\n"
                                 "clock()\n"
                                 "read(v)\n"
                                 "if m=='x' and sub(rec,1,44)==t then\n"
                                 "  m='-'\n"
                                 "else\n"
                                 "  local mine=call('HGET',R,t)\n"
                                 "  if not mine then return 0 end\n"
                                 "  call('HDEL',R,t)\n"
                                 "  if sub(mine,1,1)=='h' then\n"
                                 "    call('ZREM',H,t)\n"
                                 "  else\n"
                                 "    call('LREM',Q,1,ARGV[2])\n"
                                 "  end\n"
                                 "end\n"
                                 "grant(false)\n"
                                 "store(0)\n"
                                 "return 1\n";

/* KEYS: gates. ARGV: for each, the head of the record and the token, or
 * zeroes. Answers, for each: h token | w watch | l. */
static const char beat[] =
    "local answers={}\n"
    "clock()\n"
    "for i,key in ipairs(KEYS) do\n"
    "  open(key)\n"
    "  local a=ARGV[i]\n"
    "  local me,token=sub(a,1,44),sub(a,74,89)\n"
    "  local v=redis.pcall('GET',L)\n"
    "  local out='l'\n"
    "  if type(v)~='string' then\n"
    "    out='l'\n"
    "  elseif sub(v,1,1)~='~' then\n"
    "    if sub(v,1,44)==me then\n"
    "      if sub(v,87,87)=='=' or tonumber(token)==0 then\n"
    "        call('PEXPIRE',L,lease(a))\n"
    "        token=sub(v,88,103)\n"
    "      else\n"
    "        call('SET',L,exact(v,tonumber(token)),'PX',lease(a))\n"
    "      end\n"
    "      out='h'..token\n"
    "    end\n"
    "  else\n"
    "    read(v)\n"
    /* A client may have died after it counted, before its script ran. */
    "    call('DEL',T)\n"
    "    local mine=call('HGET',R,me)\n"
    "    if m=='x' and sub(rec,1,44)==me then\n"
    "      if tonumber(token)>own then own=tonumber(token) end\n"
    "      till=ms+lease(a)\n"
    "      store(0)\n"
    "      out='h'..fmt('%016.0f',own)\n"
    "    elseif mine and sub(mine,1,1)=='h' then\n"
    "      admit(sub(mine,18),tonumber(sub(mine,2,17)))\n"
    "      store(0)\n"
    "      out='h'..sub(mine,2,17)\n"
    "    elseif mine then\n"
    "      call('HSET',R,me,'w'..fmt('%013.0f',ms+ttl(a)))\n"
    "      local t=grant(me)\n"
    "      store(lease(a)+ttl(a))\n"
    "      out=t and 'h'..fmt('%016.0f',t) or 'w'..watch(me)\n"
    "    end\n"
    "  end\n"
    "  answers[i]=out\n"
    "end\n"
    "return answers\n";

/* KEYS: the gate. ARGV: the record, already shared, and the token. Answers
 * 1, or 0 if it is not ours. */
static const char downgrade[] =
    "open(KEYS[1])\n"
    "local r=ARGV[1]\n"
    "local me=sub(r,1,44)\n"
    "local v=call('GET',L)\n"
    "if not v then return 0 end\n"
    "clock()\n"
    "if sub(v,1,1)~='~' then\n"
    "  if sub(v,1,44)~=me then return 0 end\n"
    "  base()\n"
    "  if last<now then last=now end\n"
    "  call('DEL',T)\n"
    "else\n"
    "  read(v)\n"
    "  if m=='s' and call('ZSCORE',H,me) then return 1 end\n"
    "  if m~='x' or sub(rec,1,44)~=me then return 0 end\n"
    "end\n"
    "m='-' till=0 own=0 rec=''\n"
    "admit(r,tonumber(ARGV[2]))\n"
    "grant(false)\n"
    "store(lease(r))\n"
    "return 1\n";

/* The plain dialect. KEYS: the key. ARGV: the value. */
static const char plain_leave[] = "if redis.call('GET',KEYS[1])==ARGV[1] then\n"
                                  "  return redis.call('DEL',KEYS[1])\n"
                                  "end\n"
                                  "return 0\n";

/* KEYS: keys. ARGV: for each, its value and its lease. */
static const char plain_beat[] =
    "local answers={}\n"
    "for i,key in ipairs(KEYS) do\n"
    "  answers[i]=0\n"
    "  if redis.pcall('GET',key)==ARGV[2*i-1] then\n"
    "    answers[i]=redis.call('PEXPIRE',key,ARGV[2*i])\n"
    "  end\n"
    "end\n"
    "return answers\n";

/* Everything about each of the locks, for people. */
static const char look[] =
    "clock()\n"
    "local all={}\n"
    "for i,key in ipairs(KEYS) do\n"
    "  open(key)\n"
    "  local v=redis.pcall('GET',L)\n"
    "  all[i]={}\n"
    "  if type(v)=='string' then\n"
    "    local held={}\n"
    "    for _,t in ipairs(call('ZRANGEBYSCORE',H,ms,'+inf','LIMIT',0,1000)) "
    "do\n"
    "      held[#held+1]=call('ZSCORE',H,t)\n"
    "      held[#held+1]=call('HGET',R,t) or ''\n"
    "    end\n"
    "    all[i]={L,v,call('PTTL',L),call('GET',T) or '0',fmt('%.0f',ms),held,\n"
    "      call('LRANGE',Q,0,999)}\n"
    "  end\n"
    "end\n"
    "return all\n";

/* No KEYS: it is asked where the lock may not be any more. ARGV: the gate.
 * Answers h if something of the lock is still here, or the last token in 16
 * digits, which is here no longer, and for how many ms it was to be kept. */
static const char gone[] =
    "for _,s in ipairs({'',':q',':r',':h'}) do\n"
    "  if redis.pcall('EXISTS',ARGV[1]..s)==1 then return 'h' end\n"
    "end\n"
    "local t=tonumber(redis.pcall('GET',ARGV[1]..':t'))\n"
    "if not t then return '' end\n"
    "local keep=redis.call('PTTL',ARGV[1]..':t')\n"
    "redis.call('DEL',ARGV[1]..':t')\n"
    "return string.format('%016.0f%d',t,keep)\n";

/* ARGV: token. Answers y, n (nobody holds it), c (another), or u and the
 * ticket of who holds it and alone can tell. */
static const char check[] =
    "open(KEYS[1])\n"
    "local asked=tonumber(ARGV[1])\n"
    "local v=call('GET',L)\n"
    "if not v then return 'n' end\n"
    "clock()\n"
    "local first,most\n"
    "if sub(v,1,1)~='~' then\n"
    "  first=tonumber(sub(v,88,103)) most=tonumber(sub(v,71,73))\n"
    "  if sub(v,87,87)=='>' then\n"
    "    base()\n"
    "    if asked>last or asked<=first then return 'c' end\n"
    "    if asked==last and most==1 then return 'y' end\n"
    "    return 'u'..sub(v,1,44)\n"
    "  end\n"
    "else\n"
    "  read(v)\n"
    "  if m~='x' then\n"
    "    local found='n'\n"
    "    for _,t in ipairs(call('ZRANGEBYSCORE',H,ms+1,'+inf')) do\n"
    "      if tonumber(sub(call('HGET',R,t),2,17))==asked then return 'y' end\n"
    "      found='c'\n"
    "    end\n"
    "    return found\n"
    "  end\n"
    "  if till<=ms then return 'n' end\n"
    "  first=own most=tonumber(sub(rec,71,73))\n"
    "  if own==0 then\n"
    "    if asked>last or asked<=tonumber(sub(rec,88,103)) then return 'c' "
    "end\n"
    "    return 'u'..sub(rec,1,44)\n"
    "  end\n"
    "  v=rec\n"
    "end\n"
    "if asked<first or asked>=first+most then return 'c' end\n"
    "return most==1 and 'y' or 'u'..sub(v,1,44)\n";

/* ARGV: token or 0, owner. Answers 1, 0 (nobody holds it), -1 (another). */
static const char break_lock[] =
    "open(KEYS[1])\n"
    "local asked,owner=tonumber(ARGV[1]),ARGV[2]\n"
    "local v=call('GET',L)\n"
    "if not v then return 0 end\n"
    "clock()\n"
    "local function meant(r,first)\n"
    "  if asked==0 then\n"
    "    return "
    "string.match(sub(r,120),'^[^\\n]*\\n[^\\n]*\\n([^\\n]*)')==owner\n"
    "  end\n"
    "  return asked>=first and asked<first+tonumber(sub(r,71,73))\n"
    "end\n"
    "if sub(v,1,1)~='~' then\n"
    "  local first=tonumber(sub(v,88,103))\n"
    "  if sub(v,87,87)=='>' then\n"
    "    base()\n"
    "    first=last-tonumber(sub(v,71,73))+1\n"
    "  end\n"
    "  if not meant(v,first) then return -1 end\n"
    "  call('DEL',L) push(v,'b','')\n"
    "  return 1\n"
    "end\n"
    "read(v)\n"
    "local broken=m~='-' and -1 or 0\n"
    "if m=='x' then\n"
    "  if meant(rec,own) or (own==0 and asked==last) then\n"
    "    push(rec,'b','')\n"
    "    m='-' broken=1\n"
    "  end\n"
    "else\n"
    "  for _,t in ipairs(call('ZRANGE',H,0,-1)) do\n"
    "    local r=call('HGET',R,t)\n"
    "    if broken<1 and meant(sub(r,18),tonumber(sub(r,2,17))) then\n"
    "      call('ZREM',H,t) call('HDEL',R,t) push(sub(r,18),'b','')\n"
    "      broken=1\n"
    "    end\n"
    "  end\n"
    "end\n"
    "grant(false)\n"
    "store(0)\n"
    "return broken\n";

/* KEYS: the version. ARGV: the expected one. Answers {1|0, version}. */
static const char commit[] =
    "local call,fmt=redis.call,string.format\n"
    "local old=call('GET',KEYS[1]) or '0'\n"
    "if tonumber(old)~=tonumber(ARGV[1]) then return {0,old} end\n"
    "local t=call('TIME')\n"
    "local new=t[1]*1000000+t[2]\n"
    "if new<=tonumber(old) then new=tonumber(old)+1 end\n"
    "call('SET',KEYS[1],fmt('%.0f',new))\n"
    "return {1,fmt('%.0f',new)}\n";

/* KEYS: the key. Answers {value or nothing, what is left of its lease}. */
static const char plain_look[] =
    "return {redis.call('GET',KEYS[1]),redis.call('PTTL',KEYS[1])}\n";

/* KEYS: the key. ARGV: the owner, or the whole value. */
static const char plain_break[] =
    "local v=redis.call('GET',KEYS[1])\n"
    "if not v then return 0 end\n"
    "local owner=string.match(v,'^%x+:[^\\n]*\\n[^\\n]*\\n([^\\n]*)') or v\n"
    "if owner~=ARGV[1] then return -1 end\n"
    "return redis.call('DEL',KEYS[1])\n";

struct parts {
    const char *head;
    const char *first; /* before COMMON, or "" */
    bool common;
    const char *body;
};

static const struct parts parts[HF__REDIS_SCRIPTS] = {
    [HF__REDIS_ACQUIRE] = {NOT_WHEN_FULL, acquire_quick, true, acquire_rest},
    [HF__REDIS_LEAVE] = {ANY_TIME, leave_quick, true, leave_rest},
    [HF__REDIS_BEAT] = {ANY_TIME, "", true, beat},
    [HF__REDIS_DOWNGRADE] = {ANY_TIME, "", true, downgrade},
    [HF__REDIS_PLAIN_LEAVE] = {ANY_TIME, "", false, plain_leave},
    [HF__REDIS_PLAIN_BEAT] = {ANY_TIME, "", false, plain_beat},
    [HF__REDIS_GONE] = {ANY_TIME, "", false, gone},
    [HF__REDIS_LOOK] = {ANY_TIME, "", true, look},
    [HF__REDIS_CHECK] = {ANY_TIME, "", true, check},
    [HF__REDIS_BREAK] = {ANY_TIME, "", true, break_lock},
    [HF__REDIS_COMMIT] = {NOT_WHEN_FULL, "", false, commit},
    [HF__REDIS_PLAIN_LOOK] = {ANY_TIME, "", false, plain_look},
    [HF__REDIS_PLAIN_BREAK] = {ANY_TIME, "", false, plain_break},
    [HF__REDISSON_LOCK_TRY] = {NOT_WHEN_FULL, hf__redisson_head, false,
                               hf__redisson_lock_try},
    [HF__REDISSON_LOCK_LEAVE] = {ANY_TIME, hf__redisson_head, false,
                                 hf__redisson_lock_leave},
    [HF__REDISSON_FAIR_TRY] = {NOT_WHEN_FULL, hf__redisson_head, false,
                               hf__redisson_fair_try},
    [HF__REDISSON_FAIR_LEAVE] = {ANY_TIME, hf__redisson_head, false,
                                 hf__redisson_fair_leave},
    [HF__REDISSON_RW_TRY] = {NOT_WHEN_FULL, hf__redisson_head, false,
                             hf__redisson_rw_try},
    [HF__REDISSON_RW_LEAVE] = {ANY_TIME, hf__redisson_head, false,
                               hf__redisson_rw_leave},
    [HF__REDISSON_PERMIT_TRY] = {NOT_WHEN_FULL, hf__redisson_head, false,
                                 hf__redisson_permit_try},
    [HF__REDISSON_PERMIT_LEAVE] = {ANY_TIME, hf__redisson_head, false,
                                   hf__redisson_permit_leave},
    [HF__REDISSON_SEMAPHORE_TRY] = {NOT_WHEN_FULL, hf__redisson_head, false,
                                    hf__redisson_semaphore_try},
    [HF__REDISSON_SEMAPHORE_LEAVE] = {ANY_TIME, hf__redisson_head, false,
                                      hf__redisson_semaphore_leave},
    [HF__REDISSON_DOWNGRADE] = {ANY_TIME, hf__redisson_head, false,
                                hf__redisson_downgrade},
    [HF__REDISSON_CHECK] = {ANY_TIME, hf__redisson_head, false,
                            hf__redisson_check},
    [HF__REDISSON_LOOK] = {ANY_TIME, hf__redisson_head, false,
                           hf__redisson_look},
    [HF__REDISSON_FORGET] = {ANY_TIME, hf__redisson_head, false,
                             hf__redisson_forget},
    [HF__REDISSON_BEAT] = {ANY_TIME, "", false, hf__redisson_beat},
    [HF__REDISSON_PERMIT_BEAT] = {ANY_TIME, "", false,
                                  hf__redisson_permit_beat},
    [HF__REDISSON_SEMAPHORE_BEAT] = {ANY_TIME, "", false,
                                     hf__redisson_semaphore_beat},
};

/* In a cluster, before everything else. A slot that is on its way has some of
 * its keys here and some there: touching one that is not here ends the script,
 * so all are touched before any is changed. There is one that matters in the
 * fast form, unless somebody wants to wait: the gate, and that is here. */
#define TOUCH(unless)                                                          \
    "local v=redis.pcall('GET',KEYS[1])\n"                                     \
    "if type(v)~='string' or string.sub(v,1,1)=='~' or not(" unless ") then\n" \
    "  for _,s in ipairs({':q',':r',':h',':t'}) do\n"                          \
    "    redis.call('EXISTS',KEYS[1]..s)\n"                                    \
    "  end\n"                                                                  \
    "end\n"

/* The same for Redisson's, where there is more than one key. */
#define TOUCH_KEYS(keys)                                                       \
    "for _,key in ipairs({" keys "}) do call('EXISTS',key) end\n"
#define TOUCH_READERS                                                          \
    "for _,f in ipairs(call('HKEYS',k)) do\n"                                  \
    "  if f~='mode' and string.sub(f,-6)~=':write' then\n"                     \
    "    call('EXISTS',b..':'..f..':rwlock_timeout:1')\n"                      \
    "  end\n"                                                                  \
    "end\n"                                                                    \
    "call('EXISTS',b..':'..me..':rwlock_timeout:1')\n"

static const char *touch(size_t script)
{
    switch (script) {
    case HF__REDIS_LEAVE:
    case HF__REDIS_BEAT:
        return TOUCH("true");
    case HF__REDIS_ACQUIRE:
        return TOUCH("ARGV[2]=='0'");
    case HF__REDISSON_FAIR_TRY:
    case HF__REDISSON_FAIR_LEAVE:
        return TOUCH_KEYS("'redisson_lock_queue:'..b,"
                          "'redisson_lock_timeout:'..b");
    case HF__REDISSON_RW_TRY:
    case HF__REDISSON_RW_LEAVE:
    case HF__REDISSON_DOWNGRADE:
        return TOUCH_READERS;
    case HF__REDISSON_PERMIT_TRY:
    case HF__REDISSON_PERMIT_LEAVE:
        return TOUCH_KEYS("b..':timeout'");
    case HF__REDISSON_SEMAPHORE_TRY:
    case HF__REDISSON_SEMAPHORE_LEAVE:
        return TOUCH_KEYS("b..':holdfast'");
    default:
        return parts[script].common ? TOUCH("false") : "";
    }
}

/* … and channels are sharded: they are in the slot of the lock. What is
 * elsewhere is no answer. A slot that is on its way to here serves no command
 * with several keys, unless it has them all. */
static const struct {
    const char *alone;
    const char *in_cluster;
} changes[] = {
    {"'PUBLISH',", "'SPUBLISH',"},
    {"'hf:i:'..", "KEYS[1]..':i:'.."},
    {"redis.pcall('ZSCORE',", "redis.call('ZSCORE',"},
    {"call('DEL',L,L..':r')", "call('DEL',L) call('DEL',L..':r')"},
    {"call('DEL',L,Q,R,H)",
     "call('DEL',L) call('DEL',Q) call('DEL',R) call('DEL',H)"},
};

/* The first place in @text that one of them is about; NULL: none. */
static const char *next_change(const char *text, size_t *ret_which)
{
    const char *first = NULL;

    for (size_t i = 0; i < HF_COUNT_OF(changes); i++) {
        const char *at = strstr(text, changes[i].alone);

        if (at && (!first || at < first)) {
            first = at;
            *ret_which = i;
        }
    }
    return first;
}

static void add_in_cluster(struct hf__buf *buf, const char *text)
{
    size_t i = 0;
    const char *at = next_change(text, &i);

    for (; at; at = next_change(text, &i)) {
        hf__buf_append(buf, text, (size_t)(at - text));
        hf__buf_add(buf, changes[i].in_cluster);
        text = at + strlen(changes[i].alone);
    }
    hf__buf_add(buf, text);
}

static void compose(struct hf__buf *buf, size_t script, bool cluster)
{
    const struct parts *part = &parts[script];
    void (*add)(struct hf__buf *, const char *) =
        cluster ? add_in_cluster : hf__buf_add;

    hf__buf_add(buf, part->head);
    if (cluster && part->common)
        hf__buf_add(buf, touch(script));
    add(buf, part->first);
    if (cluster && !part->common)
        hf__buf_add(buf, touch(script));
    if (part->common)
        add(buf, common);
    add(buf, part->body);
}

int hf__redis_scripts_init(struct hf__redis_scripts *scripts, bool cluster)
{
    for (size_t i = 0; i < HF__REDIS_SCRIPTS; i++) {
        struct hf__buf buf = {0};

        compose(&buf, i, cluster);
        scripts->len[i] = buf.len;
        scripts->text[i] = hf__buf_steal(&buf);
        if (!scripts->text[i])
            return HF_ENOMEM;
        hf__redis_sha1(scripts->text[i], scripts->len[i], scripts->digest[i]);
    }
    return 0;
}

void hf__redis_scripts_release(struct hf__redis_scripts *scripts)
{
    for (size_t i = 0; i < HF__REDIS_SCRIPTS; i++) {
        hf__free(scripts->text[i]);
        scripts->text[i] = NULL;
    }
}
