#!lua
-- SPDX-License-Identifier: MIT
--
-- version_commit.lua - KEYS: the version. ARGV: the expected one. Answers
-- {1 or 0, version}.
local call,fmt=redis.call,string.format
local old=call('GET',KEYS[1]) or '0'
if tonumber(old)~=tonumber(ARGV[1]) then return {0,old} end
local t=call('TIME')
local new=t[1]*1000000+t[2]
if new<=tonumber(old) then new=tonumber(old)+1 end
call('SET',KEYS[1],fmt('%.0f',new))
return {1,fmt('%.0f',new)}
