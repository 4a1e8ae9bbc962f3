-- SPDX-License-Identifier: MIT
--
-- native_touch_slow.lua - touch all keys of the lock, unless it is in the fast
-- form: then the gate is the only key that matters, and that is here.
local gate=redis.pcall('GET',KEYS[1])
if type(gate)~='string' or string.sub(gate,1,1)=='~' then
  --include native_touch.lua
end
