#!/bin/sh
# SPDX-License-Identifier: MIT
#
# lease.sh - SET NX PX with a random value, and a script that deletes it if it is
# ours. Nobody's lock is deleted; but the lease ends while the work goes on.

. "$(dirname "$0")/lib.sh"

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
mkfifo "$dir/a"
holdfast hold -o ttl=2s articles-lease <"$dir/a" >"$dir/held" &
exec 8>"$dir/a"
until [ -s "$dir/held" ]; do :; done
code=0
holdfast run -q -w 5s articles-lease -- true || code=$?
expect "B waits for more than two leases" "$code" 75
exec 8>&-
wait
ours "the lease is renewed while A works; B had to wait"
