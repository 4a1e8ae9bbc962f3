-- SPDX-License-Identifier: MIT
--
-- redisson_permits_release.lua - give back one permit (16 bytes), or all that
-- an owner (14 bytes) has.
--include redisson_permits_common.lua

local n=#me==16 and call('ZREM',z,me) or 0
while #me<16 and call('ZREM',z,permit(n))==1 do n=n+1 end
if n==0 then return -call('EXISTS',z) end
give(n)
return 1
