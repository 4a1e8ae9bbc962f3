#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/memcached.sh [ROUNDS] [SECONDS] - a pair beside raw add and delete at
# the same server, in turns, everything on one processor. Wanted is at most
# 1.25 × the raw time.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-9}
seconds=${2:-1}
cpu=${BENCH_CPU:-1}
dir=$(mktemp -d)
port=$((20000 + RANDOM % 12000))

taskset -c "$cpu" memcached -u nobody -l 127.0.0.1 -p "$port" -U 0 -m 64 -t 1 \
    >"$dir/log" 2>&1 </dev/null &
server=$!
trap 'kill $server; wait; rm -rf "$dir"' EXIT
"$build/holdfast" run -u "memcached://127.0.0.1:$port" warm -- true

for ((i = 0; i < rounds; i++)); do
    taskset -c "$cpu" "$build/bench/raw_memcached" "$port" "$seconds" |
        while read -r _ _ p50; do
            echo "$p50" >>"$dir/raw"
        done
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" \
        --scenario pair "memcached://127.0.0.1:$port" |
        sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' >>"$dir/ours"
done

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

awk -v a="$(median "$dir/ours")" -v b="$(median "$dir/raw")" -v n="$rounds" '
    BEGIN { printf "pair, p50, medians of %d: ours %.1f µs, raw %.1f µs, ratio %.2f\n",
            n, a, b, a / b }'
