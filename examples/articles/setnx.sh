#!/bin/sh
# SPDX-License-Identifier: MIT
#
# setnx.sh - SETNX, and SETNX followed by EXPIRE: the holder dies, or dies between
# the two, and the lock stays for ever.

. "$(dirname "$0")/lib.sh"

redis del articles:order >/dev/null

# The holder takes the lock and is killed before it comes to EXPIRE.
redis setnx articles:order me >/dev/null
expect "the next one asks" "$(redis setnx articles:order you)" 0
expect "the time left" "$(redis ttl articles:order)" -1
naive "the holder is dead, and its key stays for ever (ttl -1)"
redis del articles:order >/dev/null

# The same with holdfast: kill -9, and the next one has it when the lease ends.
holdfast run -o ttl=1s articles-order -- sh -c 'kill -9 $PPID' 2>/dev/null || true
holdfast run -w 60s articles-order -- true
ours "the next one got the lock after kill -9 of the holder"
