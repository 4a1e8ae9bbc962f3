#!lua flags=allow-oom
-- SPDX-License-Identifier: MIT
--
-- redisson_permit_renew.lua - RPermitExpirableSemaphore: renew permits.
local suffix=':timeout'
--include redisson_permits_renew.lua
