#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/mysql.sh [ROUNDS] [SECONDS] - the MariaDB engine beside the raw limits of
# the same server, in turns, everything on one processor. Wanted are, as ratios
# of medians:
#
#   get_lock  at most 1.25 × a prepared pair of GET_LOCK and RELEASE_LOCK
#   table     at most 1.3 × a prepared INSERT and DELETE
#   handover  mode=get_lock: at most 1.3 × two processes that wait in GET_LOCK

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-5}
seconds=${2:-1}
cpu=${BENCH_CPU:-1}
dir=$(mktemp -d)
port=$((20000 + RANDOM % 12000))

taskset -c "$cpu" "$root/tests/live/mysql/server.sh" "$port" "$dir" \
    >"$dir/log" 2>&1 </dev/null &
server=$!
trap 'kill $server; wait; rm -rf "$dir"' EXIT
until grep -q 'ready for connections' "$dir/log"; do
    kill -0 "$server" || { cat "$dir/log" >&2; exit 1; }
    read -r -t 0.05 <> <(:) || true
done

raw() { # raw SCENARIO
    taskset -c "$cpu" "$build/bench/raw_mysql" "$1" "$port" "$seconds" |
        while read -r _ _ p50; do
            echo "$p50" >>"$dir/raw-$1"
        done
}

ours() { # ours NAME SCENARIO MODE
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" \
        --scenario "$2" \
        "mysql://locker:s3cret@127.0.0.1:$port/locks?mode=$3" |
        sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' >>"$dir/ours-$1"
}

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

for ((i = 0; i < rounds; i++)); do
    raw get_lock
    ours get_lock pair get_lock
    raw table
    ours table pair table
    raw handover
    ours handover handover get_lock
done
for name in get_lock table handover; do
    awk -v name="$name" -v ours="$(median "$dir/ours-$name")" \
        -v raw="$(median "$dir/raw-$name")" \
        'BEGIN { printf "%-10s ours %8.1f us  raw %8.1f us  ratio %.2f\n",
                 name, ours, raw, ours / raw }'
done
