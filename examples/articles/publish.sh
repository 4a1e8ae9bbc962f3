#!/bin/sh
# SPDX-License-Identifier: MIT
#
# publish.sh - a waiter looks at the lock, and then subscribes to hear of its
# release. What is published in between is heard by nobody.

. "$(dirname "$0")/redis.sh"

redis del articles:publish >/dev/null
expect "A takes it" "$(redis set articles:publish A PX 60000 NX)" OK
# B sees that it is taken, and is about to subscribe.
expect "B looks" "$(redis exists articles:publish)" 1
# A releases and publishes.
redis del articles:publish >/dev/null
expect "who heard it" "$(redis publish articles:publish free)" 0
naive "nobody heard the release: B waits for a message that was sent already"

# The same with holdfast: B stands in line before it waits.
hold articles-publish
holdfast run -w 60s articles-publish -- true 8>&- &
waiter=$!
in_line articles-publish 1
let_go
wait "$waiter"
ours "B had a place in line before it waited, and was woken"
