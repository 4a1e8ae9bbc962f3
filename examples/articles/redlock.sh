#!/bin/bash
# SPDX-License-Identifier: MIT
#
# redlock.sh - RedLock on three servers, of which one is restarted without its disk:
# two have a majority. The servers are started here.

. "$(dirname "$0")/redlock_servers.sh"

start_three
expect "A asks 0 and 1, its request to 2 is lost" "$(majority A 0 1)" yes
restart_without_disk 1
expect "B asks all" "$(majority B 0 1 2)" yes
naive "server 1 forgot A: A has 0 and 1, B has 1 and 2, both have a majority"
forget

# The same with holdfast: the same server forgets, the other never knew.
hold articles-redlock
redis 2 flushall >/dev/null
restart_without_disk 1
expect_refused "B asks" "$(exit_of holdfast run -n articles-redlock -- true)"
let_go || true
holdfast run -w 60s articles-redlock -- true
ours "a server does not vote for a lease after its start: B had to wait"
