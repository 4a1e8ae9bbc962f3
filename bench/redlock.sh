#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/redlock.sh [ROUNDS] [SECONDS] - a pair on five servers beside raw
# parallel writes to the same five, in turns, everything on one processor.
# Wanted is at most 1.5 × the raw time.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-9}
seconds=${2:-1}
cpu=${BENCH_CPU:-1}
dir=$(mktemp -d)
servers=()
ports=()
trap 'kill "${servers[@]}"; wait; rm -rf "$dir"' EXIT

first=$((20000 + RANDOM % 12000))
for i in 1 2 3 4 5; do
    port=$((first + i))
    taskset -c "$cpu" redis-server --port "$port" --bind 127.0.0.1 --save "" \
        --appendonly no --dir "$dir" >"$dir/log$i" 2>&1 </dev/null &
    servers+=($!)
    ports+=("$port")
    until grep -qi 'ready to accept connections' "$dir/log$i"; do
        kill -0 "${servers[-1]}" || { cat "$dir/log$i" >&2; exit 1; }
        read -r -t 0.02 <> <(:) || true
    done
done
hosts=$(printf '127.0.0.1:%s,' "${ports[@]}")
# They forget in a restart, and do not vote for a lease after it: a short one,
# and the first acquire waits for it.
url="redlock://${hosts%,}?ttl=3s"
"$build/holdfast" run -u "$url" warm -- true

for ((i = 0; i < rounds; i++)); do
    taskset -c "$cpu" "$build/bench/raw_redlock" "$seconds" "${ports[@]}" |
        while read -r _ _ p50; do
            echo "$p50" >>"$dir/raw"
        done
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" \
        --scenario pair "$url" |
        sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' >>"$dir/ours"
done

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

awk -v a="$(median "$dir/ours")" -v b="$(median "$dir/raw")" -v n="$rounds" '
    BEGIN { printf "pair, p50, medians of %d: ours %.1f µs, raw %.1f µs, ratio %.2f\n",
            n, a, b, a / b }'
