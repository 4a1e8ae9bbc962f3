#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- plain_look.lua - KEYS: the key. Answers {value or nothing, what is left of
-- its lease}.
return {redis.call('GET',KEYS[1]),redis.call('PTTL',KEYS[1])}
