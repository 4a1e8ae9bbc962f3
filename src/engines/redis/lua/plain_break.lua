#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- plain_break.lua - KEYS: the key. ARGV: the owner, or the whole value.
-- Answers 1, 0 (nobody holds the lock), -1 (another).
local value=redis.call('GET',KEYS[1])
if not value then return 0 end
local owner=string.match(value,'^%x+:[^\n]*\n[^\n]*\n([^\n]*)') or value
if owner~=ARGV[1] then return -1 end
return redis.call('DEL',KEYS[1])
