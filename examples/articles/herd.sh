#!/bin/bash
# SPDX-License-Identifier: MIT
#
# herd.sh - one ephemeral node that ten waiters watch: one release wakes them all.

. "$(dirname "$0")/zookeeper.sh"

expect "one release" "$(scene herd)" "10 wake-ups, 10 creates"
naive "one release woke ten waiters, and all of them tried to create the node"

# The same with holdfast: the server tells who watches the node of the holder.
hold articles-herd
waiters=()
for ((i = 0; i < 10; i++)); do
    holdfast run -w 60s articles-herd -- true 8>&- &
    waiters+=($!)
done
in_line articles-herd 10
# Each path, and the sessions that watch it below it.
expect "the most watched node" "$(four wchp | awk '
    /^\// { n = 0; next } NF { if (++n > most) most = n } END { print most }')" 1
let_go
wait "${waiters[@]}"
ours "each node is watched by one: a release wakes one waiter, of ten"
