#!/bin/sh
# SPDX-License-Identifier: MIT
#
# del.sh - SET NX PX, and DEL at the end: who is late deletes the lock of another.

. "$(dirname "$0")/redis.sh"

redis del articles:del >/dev/null
expect "A takes it" "$(redis set articles:del A PX 50 NX)" OK
gone articles:del # A is slow: its lease ends
expect "B takes it" "$(redis set articles:del B PX 60000 NX)" OK
redis del articles:del >/dev/null # A is done, and "releases"
expect "C takes it" "$(redis set articles:del C PX 60000 NX)" OK
naive "A deleted the lock of B: B and C are both inside"
redis del articles:del >/dev/null

# The same with holdfast: A loses the lock, B takes it, A "releases".
eval "$(holdfast acquire articles-del)"
holdfast break -q articles-del --token "$HOLDFAST_TOKEN" --confirm=articles-del
hold articles-del
expect "A releases" "$(exit_of holdfast release)" 79
expect "B has it" "$(exit_of holdfast test articles-del)" 75
let_go
ours "A was told that it lost the lock (79), and B kept its own"
