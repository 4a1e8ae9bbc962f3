#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/zookeeper.sh [ROUNDS] [SECONDS] - the ZooKeeper engine beside ZooKeeper's
# own client library on the same server, in turns, everything on one processor;
# with the server's log in memory, and on the disk. Wanted are, as ratios of
# medians:
#
#   pair      at most 1.15 × create and delete
#   handover  at most 1.3 × watch and recheck between two processes

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-5}
seconds=${2:-2}
cpu=${BENCH_CPU:-1}
server=
dir=

stop() {
    [ -z "$server" ] || kill -9 "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" 2>/dev/null || true
    [ -z "$dir" ] || rm -rf "$dir"
    server=
}
trap stop EXIT

serves() {
    local line

    exec 3<>"/dev/tcp/127.0.0.1/$port" || return 1
    printf srvr >&3
    while read -r -t 5 line <&3; do
        case $line in Mode:*) return 0 ;; esac
    done
    return 1
} 2>/dev/null

start() { # start WHERE forceSync
    dir=$(mktemp -d "$1/holdfast-bench-XXXXXX")
    port=$((20000 + RANDOM % 12000))
    printf '%s\n' tickTime=2000 "dataDir=$dir" "clientPort=$port" \
        clientPortAddress=127.0.0.1 maxClientCnxns=0 \
        admin.enableServer=false '4lw.commands.whitelist=*' >"$dir/zoo.cfg"
    taskset -c "$cpu" java -Xmx192m -XX:+UseSerialGC \
        "-Dzookeeper.forceSync=$2" \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp /usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/zoo.cfg" \
        >"$dir/log" 2>&1 </dev/null &
    server=$!
    until serves; do
        kill -0 "$server" || { cat "$dir/log" >&2; exit 1; }
        read -r -t 0.05 <> <(:) || true
    done
}

raw() { # raw SCENARIO: rate and p50 into files
    taskset -c "$cpu" "$build/bench/raw_zookeeper" "$1" "$port" "$seconds" |
        while read -r _ rate p50; do
            echo "$rate" >>"$dir/raw-$1.rate"
            echo "$p50" >>"$dir/raw-$1.p50"
        done
}

ours() { # ours SCENARIO
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" \
        --scenario "$1" "zk://127.0.0.1:$port/bench" >"$dir/json"
    sed -n 's/.*"\(pairs\|handovers\)_per_s":\([0-9.]*\).*/\2/p' "$dir/json" \
        >>"$dir/$1.rate"
    sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' "$dir/json" >>"$dir/$1.p50"
}

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

row() { # row WHAT SCENARIO FIELD UNIT
    awk -v what="$1" -v a="$(median "$dir/$2.$3")" \
        -v b="$(median "$dir/raw-$2.$3")" -v unit="$4" 'BEGIN {
            printf "%-38s %10.1f %10.1f %s  %5.2f\n", what, a, b, unit, a / b }'
}

measure() { # measure TITLE WHERE forceSync
    start "$2" "$3"
    # The server's compiler needs some thousand requests before it is quick.
    taskset -c "$cpu" "$build/bench/raw_zookeeper" pair "$port" 3 >"$dir/warm"
    for ((i = 0; i < rounds; i++)); do
        for scenario in pair handover; do
            raw "$scenario"
            ours "$scenario"
        done
    done
    printf '%-38s %10s %10s %s\n' "$1, medians of $rounds" ours raw "     ratio"
    row "pair, p50" pair p50 "µs "
    row "pair, rate" pair rate "/s "
    row "handover, p50" handover p50 "µs "
    row "handover, rate" handover rate "/s "
    stop
}

measure "log in memory" /dev/shm no
measure "log on the disk" "${TMPDIR:-/var/tmp}" yes
