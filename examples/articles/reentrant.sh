#!/bin/sh
# SPDX-License-Identifier: MIT
#
# reentrant.sh - a hash with the owner and a counter. The owner is the number of a
# thread, and each process has a thread 1.

. "$(dirname "$0")/redis.sh"

enter="if redis.call('exists', KEYS[1]) == 0
    or redis.call('hexists', KEYS[1], ARGV[1]) == 1 then
    redis.call('pexpire', KEYS[1], 60000)
    return redis.call('hincrby', KEYS[1], ARGV[1], 1) end
    return 0"

redis del articles:reentrant >/dev/null
expect "process A, thread 1" "$(redis eval "$enter" 1 articles:reentrant thread-1)" 1
expect "process B, thread 1" "$(redis eval "$enter" 1 articles:reentrant thread-1)" 2
naive "B has a thread 1 too: it is inside, counted as the second entry of A"
redis del articles:reentrant >/dev/null

# The same with holdfast: a stranger waits, the holder's own command goes in.
hold articles-reentrant
expect "another process" \
    "$(exit_of holdfast run -n articles-reentrant -- true)" 75
let_go
holdfast run articles-reentrant -- \
    holdfast run --reentrant articles-reentrant -- true
ours "another process is refused (75); the command of the holder goes in"
