#!/bin/sh
# SPDX-License-Identifier: MIT
#
# del.sh - SET NX PX, and DEL at the end: who is late deletes the lock of another.

. "$(dirname "$0")/lib.sh"

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
mkfifo "$dir/b"
env -u HOLDFAST_TOKEN holdfast hold articles-del <"$dir/b" >"$dir/held" 2>/dev/null &
exec 8>"$dir/b"
until [ -s "$dir/held" ]; do :; done
code=0
holdfast release 2>/dev/null || code=$?
expect "A releases" "$code" 79
code=0
holdfast test articles-del || code=$?
expect "B has it" "$code" 75
exec 8>&-
wait
ours "A was told that it lost the lock (79), and B kept its own"
