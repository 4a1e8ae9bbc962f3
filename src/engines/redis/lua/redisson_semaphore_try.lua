#!lua
-- SPDX-License-Identifier: MIT
--
-- redisson_semaphore_try.lua - RSemaphore: take one permit, or all of them.
--include redisson_common.lua
local z=b..':holdfast'
--include redisson_permits_try.lua
