#!lua
-- SPDX-License-Identifier: MIT
--
-- board_post.lua - the notice of a client, or that it has none any more.
--
-- KEYS: the board, a hash: client -> when its notice ends (13 digits), notice;
-- and '#', the number of this store. ARGV: client, notice or '', ms, a number by
-- chance. Answers the number.
local call,fmt=redis.call,string.format
local board=KEYS[1]
local t=call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local store=call('HGET',board,'#')
if not store then
  store=ARGV[4]
  call('HSET',board,'#',store)
end
local all=call('HGETALL',board)
for i=1,#all,2 do
  if all[i]~='#' and (tonumber(string.sub(all[i+1],1,13)) or 0)<=now then
    call('HDEL',board,all[i])
  end
end
if ARGV[2]=='' then
  call('HDEL',board,ARGV[1])
else
  call('HSET',board,ARGV[1],fmt('%013.0f',now+ARGV[3])..ARGV[2])
end
call('PEXPIRE',board,86400000)
return store
