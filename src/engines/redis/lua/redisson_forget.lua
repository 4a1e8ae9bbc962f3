#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_forget.lua - remove what a name leaves behind: the size of a
-- semaphore that nobody uses, and the counter of tokens.
--include redisson_common.lua

call('DEL','redisson_lock_token:'..b)
if call('TYPE',k).ok=='string' then call('DEL',k) end
return 1
