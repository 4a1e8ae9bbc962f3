#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_semaphore_renew.lua - RSemaphore: renew permits.
local suffix=':holdfast'
--include redisson_permits_renew.lua
