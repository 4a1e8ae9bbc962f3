#!lua
-- SPDX-License-Identifier: MIT
--
-- board_read.lua - all notices of a board (board_post.lua).
--
-- KEYS: the board. Answers {number of the store or '', notice, …}.
local call=redis.call
local t=call('TIME')
local now=t[1]*1000+math.floor(t[2]/1000)
local all=call('HGETALL',KEYS[1])
local rows={''}
for i=1,#all,2 do
  if all[i]=='#' then
    rows[1]=all[i+1]
  elseif #rows<300 and (tonumber(string.sub(all[i+1],1,13)) or 0)>now then
    rows[#rows+1]=string.sub(all[i+1],14)
  end
end
return rows
