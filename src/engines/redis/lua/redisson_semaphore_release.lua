#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_semaphore_release.lua - RSemaphore: give permits back.
--include redisson_common.lua
local z=b..':holdfast'
--include redisson_permits_release.lua
