#!/bin/bash
# SPDX-License-Identifier: MIT
#
# predecessor.sh - numbered nodes, each waiter watches the one before its own. When that
# goes, its waiter may have given up: who does not look again believes that it is first.

. "$(dirname "$0")/zookeeper.sh"

expect "the second gives up" "$(scene predecessor)" "the first and the third are inside"
naive "the second gave up, and the third took that for its turn"

# The same with holdfast: the second is ended while it waits.
hold articles-line
holdfast run -q -w 60s articles-line -- true 8>&- &
second=$!
in_line articles-line 1
holdfast run -w 60s articles-line -- touch "$dir/third" 8>&- &
third=$!
in_line articles-line 2
kill "$second"
wait "$second" || true
in_line articles-line 1
[ ! -e "$dir/third" ]
let_go
wait "$third"
[ -e "$dir/third" ]
ours "the third looked again, and waited for the first"
