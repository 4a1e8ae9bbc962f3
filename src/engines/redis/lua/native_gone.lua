#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- native_gone.lua - has a lock left this node together with its slot?
--
-- No KEYS: it is asked where the lock may not be any more. ARGV: the gate.
-- Answers h if something of the lock is still here; or the last token in 16
-- digits, which this script removes, and for how many ms it was to be kept.
for _,suffix in ipairs({'',':q',':r',':h',':p',':a'}) do
  if redis.pcall('EXISTS',ARGV[1]..suffix)==1 then return 'h' end
end
local token=tonumber(redis.pcall('GET',ARGV[1]..':t'))
if not token then return '' end
local keep=redis.call('PTTL',ARGV[1]..':t')
redis.call('DEL',ARGV[1]..':t')
return string.format('%016.0f%d',token,keep)
