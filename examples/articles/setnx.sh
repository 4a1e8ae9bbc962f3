#!/bin/sh
# SPDX-License-Identifier: MIT
#
# setnx.sh - SETNX: the holder dies, and the lock stays for ever.

. "$(dirname "$0")/redis.sh"

redis del articles:order >/dev/null
redis setnx articles:order me >/dev/null # and here its process is killed
expect "the next one asks" "$(redis setnx articles:order you)" 0
expect "the time left" "$(redis ttl articles:order)" -1
naive "the holder is dead, and its key stays for ever (ttl -1)"
redis del articles:order >/dev/null

# The same with holdfast: kill -9, and the next one has it when the lease ends.
die articles-order -o ttl=1s
holdfast run -w 60s articles-order -- true
ours "the next one got the lock after kill -9 of the holder"
