/* SPDX-License-Identifier: MIT */
/*
 * redisson_scripts.c - what Redisson's locks are to each other, in our words.
 *
 * Each script has the effect on the keys, and sends the messages, that a
 * Redisson client expects of another one. None of it is Redisson's text. All
 * take KEYS: the name; and begin with HEAD, which makes
 *
 *   k   the name      b   the name in braces, unless it brings a brace
 *   me  the owner: "<uuid>:<number>", or 14 bytes of a permit
 *
 * TRY is asked with ARGV owner, lease, wait ("1" or "0"), mode (x, s, n; f:
 * exclusive with a token), slots; it may be asked again for one owner, which is
 * then found to hold already, and never counts twice. It answers {'g', token}
 * or {'b', milliseconds until it is worth looking again or -1, who is there}.
 *
 * LEAVE is asked with ARGV owner, token ("0", or break whoever has this one).
 * It answers 1, 0 (nobody is there), or -1 (somebody else).
 *
 * Differences on purpose, none of which a Redisson client can stumble over:
 *
 * - A token is at least the server's clock in microseconds. Redisson counts up
 *   from nothing, and so repeats tokens when the server lost its data.
 * - Time is the server's. Redisson uses the clock of each client.
 * - A waiter in a fair queue renews its place, so a dead one of ours is in the
 *   way for one lease, not for five minutes; and it does not shorten the times
 *   of those behind it when it goes.
 * - A reader-writer lock is not free while an RLock has the name.
 */
#include "engines/redis/redisson_scripts.h"

const char hf__redisson_head[] =
    "local call,k,me=redis.call,KEYS[1],ARGV[1]\n"
    "local b=string.find(k,'{',1,true) and k or '{'..k..'}'\n"
    "local function clock()\n"
    "  local t=call('TIME')\n"
    "  return t[1]*1000000+t[2]\n"
    "end\n";

/* ---- RLock, RFencedLock ------------------------------------------------ */

const char hf__redisson_lock_try[] =
    "local mine=call('HEXISTS',k,me)==1\n"
    "if not mine and call('EXISTS',k)==1 then\n"
    "  return {'b',call('PTTL',k),call('HKEYS',k)[1]}\n"
    "end\n"
    "local token='0'\n"
    "if ARGV[4]=='f' then\n"
    "  local counter='redisson_lock_token:'..b\n"
    "  token=call('GET',counter) or '0'\n"
    "  if not mine or token=='0' then\n"
    "    local next,now=tonumber(token)+1,clock()\n"
    "    if next<now then next=now end\n"
    "    token=string.format('%.0f',next)\n"
    "    call('SET',counter,token)\n"
    "  end\n"
    "end\n"
    "if not mine then call('HINCRBY',k,me,1) end\n"
    "call('PEXPIRE',k,ARGV[2])\n"
    "return {'g',token}\n";

const char hf__redisson_lock_leave[] =
    "if call('HEXISTS',k,me)==0 and (ARGV[2]=='0' or call('EXISTS',k)==0\n"
    "    or call('GET','redisson_lock_token:'..b)~=ARGV[2]) then\n"
    "  return -call('EXISTS',k)\n"
    "end\n"
    "call('DEL',k)\n"
    "call('PUBLISH','redisson_lock__channel:'..b,'0')\n"
    "return 1\n";

/* ARGV: a token. Answers y, n (nobody holds it), c (another token). */
const char hf__redisson_check[] =
    "if call('EXISTS',k)==0 then return 'n' end\n"
    "if call('GET','redisson_lock_token:'..b)==me then return 'y' end\n"
    "return 'c'\n";

/* ---- RFairLock --------------------------------------------------------- */

/* Who is first and has not been heard of for too long is put out. */
#define FAIR                                                                   \
    "local q,z='redisson_lock_queue:'..b,'redisson_lock_timeout:'..b\n"        \
    "local now=math.floor(clock()/1000)\n"                                     \
    "local function first()\n"                                                 \
    "  while true do\n"                                                        \
    "    local head=call('LINDEX',q,0)\n"                                      \
    "    if not head then return nil end\n"                                    \
    "    local score=tonumber(call('ZSCORE',z,head) or '0')\n"                 \
    "    if score>now then return head,score end\n"                            \
    "    call('LPOP',q) call('ZREM',z,head)\n"                                 \
    "  end\n"                                                                  \
    "end\n"

const char hf__redisson_fair_try[] = FAIR
    "local head,score=first()\n"
    "local held=call('EXISTS',k)==1\n"
    "if call('HEXISTS',k,me)==1 or (not held and (not head or head==me)) then\n"
    "  call('LREM',q,0,me) call('ZREM',z,me)\n"
    "  if not held then call('HINCRBY',k,me,1) end\n"
    "  call('PEXPIRE',k,ARGV[2])\n"
    "  return {'g','0'}\n"
    "end\n"
    "local left=held and call('PTTL',k) or score-now\n"
    "if ARGV[3]=='1' then\n"
    "  local base=math.max(held and left or 0,0)\n"
    "  local own=call('ZSCORE',z,me)\n"
    "  if own then\n"
    "    call('ZADD',z,math.max(tonumber(own),now+base+ARGV[2]),me)\n"
    "  else\n"
    "    local last=call('LINDEX',q,-1)\n"
    "    if last then base=math.max(call('ZSCORE',z,last)-now,0) end\n"
    "    call('ZADD',z,now+base+ARGV[2],me) call('RPUSH',q,me)\n"
    "  end\n"
    "end\n"
    "return {'b',left,held and call('HKEYS',k)[1] or head}\n";

/* Whether a holder or a waiter goes: if it is free now, the first is told. */
const char hf__redisson_fair_leave[] =
    FAIR "local gone=call('LREM',q,0,me)+call('ZREM',z,me)\n"
         "if call('HEXISTS',k,me)==1 then gone=gone+call('DEL',k) end\n"
         "local held=call('EXISTS',k)\n"
         "local head=first()\n"
         "if held==0 and head then\n"
         "  call('PUBLISH','redisson_lock__channel:'..b..':'..head,'0')\n"
         "end\n"
         "return gone>0 and 1 or -held\n";

/* ---- RReadWriteLock ---------------------------------------------------- */

/* A reader's own lease is a key of its own; the hash lives as long as the
 * longest of them. */
#define READS                                                                  \
    "local function lease(owner,n)\n"                                          \
    "  return b..':'..owner..':rwlock_timeout:'..n\n"                          \
    "end\n"                                                                    \
    "local function read(ms)\n"                                                \
    "  call('SET',lease(me,1),'1','PX',ms)\n"                                  \
    "  call('PEXPIRE',k,math.max(call('PTTL',k),tonumber(ms)))\n"              \
    "end\n"

const char hf__redisson_rw_try[] =
    READS "local mode=call('HGET',k,'mode')\n"
          "local own,shared=me..':write',ARGV[4]=='s'\n"
          "if shared then own=me end\n"
          "if call('HEXISTS',k,own)==0 then\n"
          "  if mode and (not shared or mode~='read')\n"
          "      or not mode and call('EXISTS',k)==1 then\n"
          "    return {'b',call('PTTL',k),call('HKEYS',k)[2] or ''}\n"
          "  end\n"
          "  call('HSET',k,'mode',shared and 'read' or 'write')\n"
          "  call('HINCRBY',k,own,1)\n"
          "end\n"
          "if shared then read(ARGV[2]) else call('PEXPIRE',k,ARGV[2]) end\n"
          "return {'g','0'}\n";

const char hf__redisson_rw_leave[] =
    READS "local wrote=call('HDEL',k,me..':write')\n"
          "local gone=wrote+call('HDEL',k,me)\n"
          "call('DEL',lease(me,1))\n"
          "if gone==0 then return -call('EXISTS',k) end\n"
          "local all,left=call('HGETALL',k),0\n"
          "for i=1,#all,2 do\n"
          "  if string.sub(all[i],-6)==':write' then return 1 end\n"
          "  for n=1,all[i]~='mode' and tonumber(all[i+1]) or 0 do\n"
          "    left=math.max(left,call('PTTL',lease(all[i],n)))\n"
          "  end\n"
          "end\n"
          "if left>0 then\n"
          "  call('HSET',k,'mode','read') call('PEXPIRE',k,left)\n"
          "else\n"
          "  call('DEL',k)\n"
          "end\n"
          "call('PUBLISH','redisson_rwlock:'..b,wrote==1 and '1' or '0')\n"
          "return 1\n";

/* ARGV: owner, lease. Answers 1, or 0 if it is not ours. */
const char hf__redisson_downgrade[] =
    READS "if call('HDEL',k,me..':write')==1 then\n"
          "  call('HSET',k,'mode','read')\n"
          "  call('HINCRBY',k,me,1)\n"
          "elseif call('HEXISTS',k,me)==0 then\n"
          "  return 0\n"
          "end\n"
          "read(ARGV[2])\n"
          "call('PUBLISH','redisson_rwlock:'..b,'1')\n"
          "return 1\n";

/* KEYS: names. ARGV: for each, owner, lease, mode. Answers 1 or 0 for each. */
const char hf__redisson_beat[] =
    "local answers={}\n"
    "for i,k in ipairs(KEYS) do\n"
    "  local own,ms,mode=ARGV[3*i-2],ARGV[3*i-1],ARGV[3*i]\n"
    "  answers[i]=0\n"
    "  if redis.pcall('HEXISTS',k,own)==1 then\n"
    "    if mode=='s' then\n"
    "      local b=string.find(k,'{',1,true) and k or '{'..k..'}'\n"
    "      redis.call('SET',b..':'..own..':rwlock_timeout:1','1','PX',ms)\n"
    "      ms=math.max(redis.call('PTTL',k),tonumber(ms))\n"
    "    end\n"
    "    answers[i]=redis.call('PEXPIRE',k,ms)\n"
    "  end\n"
    "end\n"
    "return answers\n";

/* ---- RSemaphore, RPermitExpirableSemaphore ----------------------------- */

/* Permits are members of a sorted set, by the end of their lease. Redisson has
 * that set for expirable permits only: those of an RSemaphore that are ours are
 * in a set that only we know. An exclusive holder has all permits, numbered in
 * the last two of 16 bytes. */
#define PERMITS                                                                \
    "local function permit(i)\n"                                               \
    "  return me..string.char(math.floor(i/256),i%256)\n"                      \
    "end\n"                                                                    \
    "local function give(n)\n"                                                 \
    "  call('PUBLISH','redisson_sc:'..b,call('INCRBY',k,n))\n"                 \
    "end\n"

#define PERMITS_TRY                                                            \
    "local now=math.floor(clock()/1000)\n"                                     \
    "local ends=now+ARGV[2]\n"                                                 \
    "local i=0\n"                                                              \
    "while call('ZSCORE',z,permit(i)) do\n"                                    \
    "  call('ZADD',z,ends,permit(i)) i=i+1\n"                                  \
    "end\n"                                                                    \
    "if i>0 then return {'g','0'} end\n"                                       \
    "local over=call('ZRANGEBYSCORE',z,0,now,'LIMIT',0,1000)\n"                \
    "if #over>0 then\n"                                                        \
    "  call('ZREM',z,unpack(over)) give(#over)\n"                              \
    "end\n"                                                                    \
    "local all=ARGV[4]~='n'\n"                                                 \
    "local free=call('GET',k)\n"                                               \
    "if not free then\n"                                                       \
    "  free=all and 1 or ARGV[5]\n"                                            \
    "  call('SET',k,free)\n"                                                   \
    "end\n"                                                                    \
    "free=tonumber(free)\n"                                                    \
    "if all and free>65536 then\n"                                             \
    "  return redis.error_reply('ERR too many permits to take all')\n"         \
    "end\n"                                                                    \
    "if free<1 or all and call('ZCARD',z)>0 then\n"                            \
    "  local next=call('ZRANGE',z,0,0,'WITHSCORES')[2]\n"                      \
    "  return {'b',next and math.max(next-now,0) or -1,''}\n"                  \
    "end\n"                                                                    \
    "for n=0,all and free-1 or 0 do call('ZADD',z,ends,permit(n)) end\n"       \
    "call('DECRBY',k,all and free or 1)\n"                                     \
    "local ttl=call('PTTL',k)\n"                                               \
    "if ttl>0 then call('PEXPIRE',z,ttl) end\n"                                \
    "return {'g','0'}\n"

#define PERMITS_LEAVE                                                          \
    "local n=#me==16 and call('ZREM',z,me) or 0\n"                             \
    "while #me<16 and call('ZREM',z,permit(n))==1 do n=n+1 end\n"              \
    "if n==0 then return -call('EXISTS',z) end\n"                              \
    "give(n)\n"                                                                \
    "return 1\n"

#define PERMITS_BEAT(suffix)                                                   \
    "local t=redis.call('TIME')\n"                                             \
    "local now=t[1]*1000+math.floor(t[2]/1000)\n"                              \
    "local answers={}\n"                                                       \
    "for i,k in ipairs(KEYS) do\n"                                             \
    "  local z=(string.find(k,'{',1,true) and k or '{'..k..'}').." suffix "\n" \
    "  local n=0\n"                                                            \
    "  while true do\n"                                                        \
    "    local m=ARGV[3*i-2]..string.char(math.floor(n/256),n%256)\n"          \
    "    if type(redis.pcall('ZSCORE',z,m))~='string' then break end\n"        \
    "    redis.call('ZADD',z,now+ARGV[3*i-1],m) n=n+1\n"                       \
    "  end\n"                                                                  \
    "  answers[i]=n>0 and 1 or 0\n"                                            \
    "end\n"                                                                    \
    "return answers\n"

#define EXPIRABLE "':timeout'"
#define LASTING "':holdfast'"

const char hf__redisson_permit_try[] =
    "local z=b.." EXPIRABLE "\n" PERMITS PERMITS_TRY;
const char hf__redisson_permit_leave[] =
    "local z=b.." EXPIRABLE "\n" PERMITS PERMITS_LEAVE;
const char hf__redisson_permit_beat[] = PERMITS_BEAT(EXPIRABLE);
const char hf__redisson_semaphore_try[] =
    "local z=b.." LASTING "\n" PERMITS PERMITS_TRY;
const char hf__redisson_semaphore_leave[] =
    "local z=b.." LASTING "\n" PERMITS PERMITS_LEAVE;
const char hf__redisson_semaphore_beat[] = PERMITS_BEAT(LASTING);

/* ---- for people -------------------------------------------------------- */

/* The key, and rows of {role, owner, lease, mode, token}; -1: not known. A hash
 * of so many fields is something else. */
const char hf__redisson_look[] =
    "local rows={k}\n"
    "local function row(role,owner,ms,mode,token)\n"
    "  if #rows<=1000 then rows[#rows+1]={role,owner,ms,mode,token or '0'} "
    "end\n"
    "end\n"
    "local kind=call('TYPE',k).ok\n"
    "if kind=='hash' and call('HLEN',k)<=10000 then\n"
    "  local mode=call('HGET',k,'mode')\n"
    "  local token=not mode and call('GET','redisson_lock_token:'..b)\n"
    "  for _,f in ipairs(call('HKEYS',k)) do\n"
    "    if f~='mode' and (mode~='read' and (not mode\n"
    "        or string.sub(f,-6)==':write')) then\n"
    "      row('h',f,call('PTTL',k),'x',token)\n"
    "    elseif f~='mode' then\n"
    "      local ms=call('PTTL',b..':'..f..':rwlock_timeout:1')\n"
    "      if ms>0 then row('h',f,ms,'s') end\n"
    "    end\n"
    "  end\n"
    "end\n"
    "if call('TYPE','redisson_lock_queue:'..b).ok=='list' then\n"
    "  for _,f in ipairs(call('LRANGE','redisson_lock_queue:'..b,0,999)) do\n"
    "    row('w',f,-1,'x')\n"
    "  end\n"
    "end\n"
    "if kind=='string' then\n"
    "  local now=math.floor(clock()/1000)\n"
    "  for _,z in ipairs({b.." EXPIRABLE ",b.." LASTING "}) do\n"
    "    local "
    "p=call('ZRANGEBYSCORE',z,now,'+inf','WITHSCORES','LIMIT',0,999)\n"
    "    for i=1,#p,2 do\n"
    "      row('h',string.gsub(p[i],'.',function(c)\n"
    "        return string.format('%02x',string.byte(c))\n"
    "      end),p[i+1]-now,'n')\n"
    "    end\n"
    "  end\n"
    "end\n"
    "return rows\n";

/* What a name leaves behind: the size of a semaphore that nobody uses, and the
 * counter of tokens. */
const char hf__redisson_forget[] =
    "call('DEL','redisson_lock_token:'..b)\n"
    "if call('TYPE',k).ok=='string' then call('DEL',k) end\n"
    "return 1\n";
