#!lua
-- SPDX-License-Identifier: MIT
--
-- redisson_permit_try.lua - RPermitExpirableSemaphore: take one permit, or all of them.
--include redisson_common.lua
local z=b..':timeout'
--include redisson_permits_try.lua
