#!/bin/sh
# SPDX-License-Identifier: MIT
#
# publish.sh - a waiter looks at the lock, and then subscribes to hear of its
# release. What is published in between is heard by nobody.

. "$(dirname "$0")/lib.sh"

redis del articles:publish >/dev/null
expect "A takes it" "$(redis set articles:publish A PX 60000 NX)" OK
# B sees that it is taken, and is about to subscribe.
expect "B looks" "$(redis exists articles:publish)" 1
# A releases and publishes.
redis del articles:publish >/dev/null
expect "who heard it" "$(redis publish articles:publish free)" 0
naive "nobody heard the release: B waits for a message that was sent already"

# The same with holdfast: B stands in line before it waits.
mkfifo "$dir/a"
holdfast hold articles-publish <"$dir/a" >"$dir/held" &
exec 8>"$dir/a"
until [ -s "$dir/held" ]; do :; done
holdfast run -w 60s articles-publish -- true 8>&- &
until holdfast show articles-publish | grep -q "in line"; do :; done
exec 8>&-
wait $!
ours "B had a place in line before it waited, and was woken"
