#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- plain_release.lua - KEYS: the key. ARGV: the value. Answers 1 or 0.
if redis.call('GET',KEYS[1])==ARGV[1] then
  return redis.call('DEL',KEYS[1])
end
return 0
