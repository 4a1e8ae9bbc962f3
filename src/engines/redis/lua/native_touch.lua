-- SPDX-License-Identifier: MIT
--
-- native_touch.lua - touch all keys of the lock, in a cluster.
--
-- While a slot moves, some of its keys are here and some at the other node.
-- Touching a key that is not here ends the script, so a script touches all of
-- them before it changes any.
for _,suffix in ipairs({':q',':r',':h',':t',':p',':a'}) do
  redis.call('EXISTS',KEYS[1]..suffix)
end
