#!/bin/sh
# SPDX-License-Identifier: MIT
#
# failover.sh - the master grants the lock and dies, and its replica, which has not
# heard of it, is the next master. REDIS is the master; the replica is started here.

. "$(dirname "$0")/redis.sh"

address=${REDIS#redis://}
address=${address%%[/?]*}

redis-server --port 0 --unixsocket "$dir/replica" --dir "$dir" --save "" \
    >"$dir/log" &
server=$!
trap 'kill "$server"; wait "$server"; rm -rf "$dir"' EXIT

replica() {
    redis-cli -s "$dir/replica" "$@"
}

follow() {
    replica replicaof "${address%:*}" "${address#*:}" >/dev/null
    until replica info replication | grep -q master_link_status:up; do :; done
}

# cut: nothing reaches the replica any more. Nobody listens on port 1.
cut() {
    replica replicaof 127.0.0.1 1 >/dev/null
}

# promote: the master is dead.
promote() {
    replica replicaof no one >/dev/null
}

until replica ping >/dev/null 2>&1; do :; done
redis del articles:failover >/dev/null
follow
cut
expect "A asks the master" "$(redis set articles:failover A PX 60000 NX)" OK
promote
expect "B asks the next one" "$(replica set articles:failover B PX 60000 NX)" OK
naive "the grant to A died with the master: A and B are both inside"
redis del articles:failover >/dev/null

# The same with holdfast, which counts a grant when a replica has it.
follow
cut
expect "A asks the master alone" \
    "$(exit_of holdfast run -n -o sync_replicas=1 -o io_timeout=1s articles-failover -- true)" 69
follow
hold articles-failover -o sync_replicas=1
promote
expect "B asks the next one" \
    "$(exit_of holdfast run -n -u "redis+unix://$dir/replica" articles-failover -- true)" 75
let_go
ours "sync_replicas=1: no grant without the replica, and the replica knows of it"
