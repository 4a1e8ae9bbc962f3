#!/bin/sh
# SPDX-License-Identifier: MIT
#
# expire.sh - SETNX, then EXPIRE: the holder dies between the two.

. "$(dirname "$0")/redis.sh"

holder='redis-cli -u "$0" setnx articles:expire me
    kill -9 $$
    redis-cli -u "$0" expire articles:expire 30'

redis del articles:expire >/dev/null
expect "the holder" "$(exit_of sh -c "$holder" "${REDIS%%\?*}")" 137
expect "the time left" "$(redis ttl articles:expire)" -1
expect "the next one asks" "$(redis setnx articles:expire you)" 0
naive "the holder died before its EXPIRE: the key stays for ever (ttl -1)"
redis del articles:expire >/dev/null

# holdfast sends one script: there is nothing between the lock and its lease.
die articles-expire -o ttl=1s
holdfast run -w 60s articles-expire -- true
ours "lock and lease are one step; the next one got the lock when the lease ended"
