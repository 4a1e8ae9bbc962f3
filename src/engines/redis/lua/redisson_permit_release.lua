#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_permit_release.lua - RPermitExpirableSemaphore: give permits back.
--include redisson_common.lua
local z=b..':timeout'
--include redisson_permits_release.lua
