-- SPDX-License-Identifier: MIT
--
-- redisson_common.lua - how every script about one of Redisson's locks begins.
--
-- Each script has the effect on the keys, and sends the messages, that a
-- Redisson client expects of another one. None of it is Redisson's text. All
-- take KEYS: the name.
--
-- The scripts ..._try take ARGV owner, lease, wait ('1' or '0'), mode (x, s, n;
-- f: exclusive with a token), slots. The same owner may ask again: it is then
-- found to hold already, and never counts twice. They answer {'g', token}, or
-- {'b', milliseconds until it is worth looking again or -1, an owner}.
--
-- The scripts ..._release take ARGV owner, token ('0'; otherwise break the
-- holder that has this one). They answer 1, 0 (nobody is there), or -1
-- (somebody else).
--
-- Differences on purpose, none of which disturbs a Redisson client:
--
-- - A token is at least the server's clock in microseconds. Redisson counts up
--   from nothing, and so repeats tokens when the server lost its data.
-- - Time is the server's. Redisson uses the clock of each client.
-- - A waiter in a fair queue renews its place, so a dead one of ours is in the
--   way for one lease, not for five minutes; and it does not shorten the times
--   of those behind it when it goes.
-- - A reader-writer lock is not free while an RLock has the name.

-- k: the name. me: the owner, "<uuid>:<number>" or 14 bytes of a permit.
local call,k,me=redis.call,KEYS[1],ARGV[1]
-- The name in braces, unless it brings a brace.
local b=string.find(k,'{',1,true) and k or '{'..k..'}'

local function clock()
  local t=call('TIME')
  return t[1]*1000000+t[2]
end
