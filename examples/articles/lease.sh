#!/bin/sh
# SPDX-License-Identifier: MIT
#
# lease.sh - SET NX PX with a random value, and a script that deletes it if it is
# ours. Nobody's lock is deleted; but the lease ends while the work goes on.

. "$(dirname "$0")/redis.sh"

delete_if_mine="if redis.call('get', KEYS[1]) == ARGV[1] then
    return redis.call('del', KEYS[1]) else return 0 end"

redis del articles:lease >/dev/null
expect "A takes it" "$(redis set articles:lease A PX 100 NX)" OK
gone articles:lease # A still works
expect "B takes it" "$(redis set articles:lease B PX 60000 NX)" OK
expect "A releases" "$(redis eval "$delete_if_mine" 1 articles:lease A)" 0
naive "A learns of it when all is over: A and B were both inside"
redis del articles:lease >/dev/null

# The same with holdfast: more than two leases long, and B does not get it.
hold articles-lease -o ttl=2s
expect "B waits for more than two leases" \
    "$(exit_of holdfast run -q -w 5s articles-lease -- true)" 75
let_go
ours "the lease is renewed while A works; B had to wait"
