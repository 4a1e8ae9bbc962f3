#!/bin/bash
# SPDX-License-Identifier: MIT
#
# clock.sh - RedLock on three servers, of which one has its clock set forward: two
# have a majority. SHIM is a library that moves the clock of a program by what stands
# in the file CLOCK_SHIM (tests/live/redis/clock_shim.c).

. "$(dirname "$0")/redlock_servers.sh"

# jump N: the clock of server N is set forward by an hour.
jump() {
    local before

    before=$(redis "$1" time | head -n 1)
    # 3600 * 10^9, as eight bytes.
    printf '\000\240\270\060\106\003\000\000' |
        dd of="$dir/clock.$1" conv=notrunc status=none
    until [ "$(redis "$1" time | head -n 1)" -ge $((before + 3000)) ]; do :; done
}

# readings N: how often the clock of server N was read.
readings() {
    redis "$1" info commandstats | sed -n 's/^cmdstat_time:calls=\([0-9]*\),.*/\1/p'
}

start_three
expect "A asks 0 and 1, its request to 2 is lost" "$(majority A 0 1)" yes
jump 1
expect "B asks all" "$(majority B 0 1 2)" yes
naive "on server 1 the lease of A has ended early: A and B both have a majority"
forget

# The same with holdfast: the clock of a server jumps while B waits, another never knew.
hold articles-clock
redis 2 flushall >/dev/null
before=$(readings 0)
holdfast run -q -w 3s articles-clock -- true 8>&- &
waiter=$!
until [ "$(readings 0)" -gt "$before" ]; do :; done
jump 0
code=0
wait "$waiter" || code=$?
expect_refused "B waits" "$code"
let_go || true
ours "a server whose clock jumped does not vote for a lease: B had to wait"
