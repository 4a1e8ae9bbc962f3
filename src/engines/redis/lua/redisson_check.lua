#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_check.lua - is this the token of the holder?
--
-- ARGV: a token. Answers y, n (nobody holds the lock), c (another token).
--include redisson_common.lua

if call('EXISTS',k)==0 then return 'n' end
if call('GET','redisson_lock_token:'..b)==me then return 'y' end
return 'c'
