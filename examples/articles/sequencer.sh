#!/bin/sh
# SPDX-License-Identifier: MIT
#
# sequencer.sh - a holder stands still, loses the lock, and writes when it wakes up. The
# resource is a value of the same Redis.

. "$(dirname "$0")/redis.sh"

redis del articles:sequencer articles:report >/dev/null
expect "A takes it" "$(redis set articles:sequencer A PX 50 NX)" OK
gone articles:sequencer # A stands still
expect "B takes it" "$(redis set articles:sequencer B PX 60000 NX)" OK
redis set articles:report "of B" >/dev/null
redis set articles:report "of A" >/dev/null # A wakes up, and does what it was about to do
expect "the report" "$(redis get articles:report)" "of A"
naive "A wrote over the work of B: the resource cannot tell that A is late"
redis del articles:sequencer articles:report >/dev/null

# The same with holdfast: the resource remembers the largest token it has seen.
write="if tonumber(ARGV[1]) < tonumber(redis.call('hget', KEYS[1], 'token') or 0) then
    return 'too late' end
    redis.call('hset', KEYS[1], 'token', ARGV[1], 'text', ARGV[2])
    return 'written'"
eval "$(holdfast acquire articles-sequencer)"
token_of_a=$HOLDFAST_TOKEN
holdfast break -q articles-sequencer --token "$token_of_a" --confirm=articles-sequencer
# shellcheck disable=SC2016 # the inner shell has the token
token_of_b=$(env -u HOLDFAST_TOKEN holdfast run articles-sequencer -- sh -c 'echo "$HOLDFAST_TOKEN"')
expect "B writes" "$(redis eval "$write" 1 articles:report "$token_of_b" "of B")" written
expect "A writes" "$(redis eval "$write" 1 articles:report "$token_of_a" "of A")" "too late"
expect "the report" "$(redis hget articles:report text)" "of B"
redis del articles:report >/dev/null
ours "the resource refused the smaller token of A"
