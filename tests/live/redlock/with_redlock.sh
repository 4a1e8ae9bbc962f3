#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_redlock.sh N QUERY COMMAND… - start N Redis servers of our own that
# forget nothing, run COMMAND with HOLDFAST_TEST_URL set to them (and
# "?QUERY"), stop them.

in_memory=yes
. "$(dirname "$0")/../../lib/server.sh"

n=$1
query=$2
shift 2

start() {
    local i log

    hosts=
    for ((i = 0; i < n; i++)); do
        log=$dir/log.$i
        mkdir -p "$dir/$i"
        serve "$log" "${HOLDFAST_TEST_REDIS_SERVER:-redis-server}" --port $(($1 + i)) --bind 127.0.0.1 \
            --save "" --dir "$dir/$i" --appendonly yes --appendfsync always
        await says 'ready to accept connections' "$log" || return 1
        hosts=$hosts${hosts:+,}127.0.0.1:$(($1 + i))
    done
}

on_free_ports start
run_with "redlock://$hosts" "$@"
