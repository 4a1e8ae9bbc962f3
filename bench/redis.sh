#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/redis.sh [ROUNDS] [SECONDS] - the Redis engine beside the raw limits of
# the same server, in turns, everything on one processor. Wanted are, as ratios
# of medians:
#
#   pair         at most 1.25 × a blocking SET NX PX and EVALSHA (goal 1.1)
#   handover     at most 2.2 × RPUSH/BLPOP between two processes (goal 1.5)
#   threads      8 threads, 8 names: at least 0.4 × pairs pipelined 8 deep, and
#                2 × eight blocking connections
#   shared-name  8 threads, one name: at least 5 × the rate of pair
#
# And the pair through a sentinel that names the same server, and on a cluster
# of one node that serves all slots: what the ways there cost.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-9}
seconds=${2:-1}
cpu=${BENCH_CPU:-1}
dir=$(mktemp -d)
port=$((20000 + RANDOM % 12000))
cluster_port=$((port + 1))
sentinel_port=$((port + 2))
servers=()
trap 'kill "${servers[@]}"; rm -rf "$dir"' EXIT

breathe() {
    read -r -t 0.02 <> <(:) || true
}

start() { # start NAME WORDS ARGUMENT…: until it says WORDS
    local name=$1 words=$2
    shift 2
    mkdir "$dir/$name"
    taskset -c "$cpu" redis-server "$@" --bind 127.0.0.1 --dir "$dir/$name" \
        >"$dir/$name.log" 2>&1 </dev/null &
    servers+=($!)
    until grep -qi "$words" "$dir/$name.log"; do
        kill -0 "${servers[-1]}" || { cat "$dir/$name.log" >&2; exit 1; }
        breathe
    done
}

start single 'ready to accept connections' --port "$port" --save "" \
    --appendonly no
start cluster 'ready to accept connections' --port "$cluster_port" --save "" \
    --appendonly no --cluster-enabled yes --cluster-port $((port + 3))
redis-cli -p "$cluster_port" cluster addslotsrange 0 16383 >/dev/null
until redis-cli -p "$cluster_port" cluster info | grep -q cluster_state:ok; do
    breathe
done
echo "sentinel monitor bench 127.0.0.1 $port 1" >"$dir/sentinel.conf"
start sentinel '+monitor master bench' "$dir/sentinel.conf" --sentinel \
    --port "$sentinel_port"

raw() { # raw SCENARIO [PORT FILE]: rate and p50 into files
    local name=${3:-$1}
    taskset -c "$cpu" "$build/bench/raw_redis" "$1" "${2:-$port}" "$seconds" |
        while read -r _ rate p50; do
            echo "$rate" >>"$dir/raw-$name.rate"
            echo "$p50" >>"$dir/raw-$name.p50"
        done
}

url=redis://127.0.0.1:$port

ours() { # ours NAME ARGUMENT…, at $url
    local name=$1
    shift
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" "$@" \
        "$url" >"$dir/json"
    sed -n 's/.*"\(pairs\|handovers\)_per_s":\([0-9.]*\).*/\2/p' "$dir/json" \
        >>"$dir/$name.rate"
    sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' "$dir/json" >>"$dir/$name.p50"
}

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

for ((i = 0; i < rounds; i++)); do
    raw pair
    ours pair --scenario pair
    raw handover
    ours handover --scenario handover
    raw pipeline
    ours threads --scenario pair --threads 8
    raw blocking
    ours posted --scenario pair --threads 8 -o release=post
    ours shared --scenario shared-name
    url=redis-sentinel://127.0.0.1:$sentinel_port/bench \
        ours sentinel --scenario pair
    raw pair "$cluster_port" cluster
    url=redis-cluster://127.0.0.1:$cluster_port ours cluster --scenario pair
done

ratio() { # ratio WHAT OURS RAW UNIT
    awk -v what="$1" -v a="$(median "$dir/$2")" -v b="$(median "$dir/$3")" \
        -v unit="$4" 'BEGIN {
            printf "%-38s %10.1f %10.1f %s  %5.2f\n", what, a, b, unit, a / b }'
}

printf '%-38s %10s %10s %s\n' "medians of $rounds" ours raw "     ratio"
ratio "pair, p50" pair.p50 raw-pair.p50 "µs "
ratio "handover, p50" handover.p50 raw-handover.p50 "µs "
ratio "handover, rate" handover.rate raw-handover.rate "/s "
ratio "8 threads, of pipelining" threads.rate raw-pipeline.rate "/s "
ratio "8 threads, release=post, of pipelining" posted.rate raw-pipeline.rate "/s "
ratio "8 threads, of 8 connections" threads.rate raw-blocking.rate "/s "
ratio "shared-name, of our pair" shared.rate pair.rate "/s "
ratio "pair by a sentinel, p50" sentinel.p50 raw-pair.p50 "µs "
ratio "pair on a cluster, p50" cluster.p50 raw-cluster.p50 "µs "
