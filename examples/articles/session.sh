#!/bin/bash
# SPDX-License-Identifier: MIT
#
# session.sh - the node and the session: a node that outlives its maker, a session that
# ends while the holder believes, and one that lasts for ten minutes after a crash.

. "$(dirname "$0")/zookeeper.sh"

expect "a PERSISTENT node of somebody who is gone" "$(scene persistent)" refused
naive "a PERSISTENT node stays when its maker is gone"
expect "the session of A ends" "$(scene expired)" "A believes true, B taken"
naive "the session of A ended and A did not look: A and B are both inside"
expect "A dies, with a session of ten minutes" "$(scene ten-minutes)" taken

# The same with holdfast: A dies, and B has the lock while that session still counts.
die articles-session -o ttl=1s
holdfast run -w 60s articles-session -- true
expect "B asks" "$(scene ten-minutes-later)" refused
naive "session-timeout: 600000: A is dead, and its node is still there"
ours "ttl=1s: meanwhile the next one got the lock of a dead holder"

# A stands still; when it goes on, it is told.
hold articles-session -o ttl=1s
kill -STOP "$holder"
holdfast run -w 60s articles-session -- true 8>&-
kill -CONT "$holder"
code=0
wait "$holder" || code=$?
exec 8>&-
expect "A goes on" "$code" 79
ours "A was told that its session had ended (79)"
