#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/etcd.sh [ROUNDS] [SECONDS] - the etcd engine beside the raw limits of
# the same member and gateway, in turns, everything on one processor; with its
# data in memory, and on the disk of the temporary directory. Wanted is, as a
# ratio of medians:
#
#   pair         at most 1.2 × two transactions by libcurl

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-9}
seconds=${2:-1}
cpu=${BENCH_CPU:-1}

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

ratio() { # ratio WHAT OURS RAW UNIT
    awk -v what="$1" -v a="$(median "$2")" -v b="$(median "$3")" \
        -v unit="$4" 'BEGIN {
            printf "%-38s %10.1f %10.1f %s  %5.2f\n", what, a, b, unit, a / b }'
}

ours() { # ours NAME ARGUMENT…
    local name=$1
    shift
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" "$@" \
        "etcd://127.0.0.1:$port" >"$dir/json"
    sed -n 's/.*"\(pairs\|handovers\)_per_s":\([0-9.]*\).*/\2/p' "$dir/json" \
        >>"$dir/$name.rate"
    sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' "$dir/json" >>"$dir/$name.p50"
}

measure() { # measure WHERE DIRECTORY
    local i

    dir=$(mktemp -d -p "$2")
    port=$((20000 + 2 * (RANDOM % 6000)))
    taskset -c "$cpu" etcd --name bench --data-dir "$dir/data" \
        --listen-client-urls "http://127.0.0.1:$port" \
        --advertise-client-urls "http://127.0.0.1:$port" \
        --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
        --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
        --initial-cluster "bench=http://127.0.0.1:$((port + 1))" \
        --logger zap --log-level error >"$dir/log" 2>&1 </dev/null &
    server=$!
    until ETCDCTL_API=3 etcdctl --endpoints "127.0.0.1:$port" \
        endpoint health >/dev/null 2>&1; do
        kill -0 "$server" || { cat "$dir/log" >&2; exit 1; }
        read -r -t 0.05 <> <(:) || true
    done
    for ((i = 0; i < rounds; i++)); do
        taskset -c "$cpu" "$build/bench/raw_etcd" "$port" "$seconds" |
            while read -r _ rate p50; do
                echo "$rate" >>"$dir/raw.rate"
                echo "$p50" >>"$dir/raw.p50"
            done
        ours pair --scenario pair
        ours handover --scenario handover
        ours shared --scenario shared-name
    done
    printf '%-38s %10s %10s %s\n' "$1, medians of $rounds" ours raw "     ratio"
    ratio "pair, p50" "$dir/pair.p50" "$dir/raw.p50" "µs "
    ratio "pair, rate" "$dir/pair.rate" "$dir/raw.rate" "/s "
    ratio "handover, p50, of a raw pair" "$dir/handover.p50" "$dir/raw.p50" "µs "
    ratio "shared-name, of our pair" "$dir/shared.rate" "$dir/pair.rate" "/s "
    stop
}

server=
dir=
stop() {
    [ -z "$server" ] || { kill "$server" && wait "$server" || true; }
    [ -z "$dir" ] || rm -rf "$dir"
    server=
    dir=
}
trap stop EXIT

[ ! -w /dev/shm ] || measure "in memory" /dev/shm
measure "on disk" "${TMPDIR:-/tmp}"
