#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- plain_renew.lua - KEYS: keys. ARGV: for each, its value and its lease.
-- Answers 1 or 0 for each.
local answers={}
for i,key in ipairs(KEYS) do
  answers[i]=0
  if redis.pcall('GET',key)==ARGV[2*i-1] then
    answers[i]=redis.call('PEXPIRE',key,ARGV[2*i])
  end
end
return answers
