#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/postgres.sh [ROUNDS] [SECONDS] - the PostgreSQL engine beside the raw
# limits of the same server, in turns, everything on one processor. Wanted are,
# as ratios of medians:
#
#   pair      mode=advisory: at most 1.25 × a prepared try and unlock
#   rows      mode=table: at most 1.3 × INSERT and DELETE of one row
#   handover  mode=advisory: at most 1.3 × pg_advisory_lock between processes

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
rounds=${1:-9}
seconds=${2:-1}
cpu=${BENCH_CPU:-1}
bin=$(pg_config --bindir 2>/dev/null || true)
[ -x "$bin/postgres" ] || bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
dir=$(mktemp -d)
port=$((20000 + RANDOM % 12000))
as=()
server=

clean() {
    if [ -n "$server" ]; then
        kill -QUIT "$server"
        wait "$server" || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --init-groups)
    chown postgres "$dir"
fi
cd "$dir"
"${as[@]}" "$bin/initdb" -D "$dir/data" -A trust -U postgres --no-sync \
    >/dev/null
"${as[@]}" taskset -c "$cpu" "$bin/postgres" -D "$dir/data" -p "$port" \
    -c listen_addresses=127.0.0.1 -c unix_socket_directories="$dir" \
    -c shared_buffers=64MB >"$dir/log" 2>&1 </dev/null &
server=$!
until grep -q 'ready to accept connections' "$dir/log"; do
    kill -0 "$server" || { cat "$dir/log" >&2; exit 1; }
    read -r -t 0.02 <> <(:) || true
done
url=postgresql://postgres@127.0.0.1:$port/postgres

raw() { # raw SCENARIO: rate and p50 into files
    taskset -c "$cpu" "$build/bench/raw_postgres" "$1" "$url" "$seconds" |
        while read -r _ rate p50; do
            echo "$rate" >>"$dir/raw-$1.rate"
            echo "$p50" >>"$dir/raw-$1.p50"
        done
}

ours() { # ours NAME QUERY ARGUMENT…
    local name=$1 query=$2
    shift 2
    taskset -c "$cpu" "$build/holdfast" bench --json --seconds "$seconds" "$@" \
        "$url?$query" >"$dir/json"
    sed -n 's/.*"\(pairs\|handovers\)_per_s":\([0-9.]*\).*/\2/p' "$dir/json" \
        >>"$dir/$name.rate"
    sed -n 's/.*"p50_us":\([0-9.]*\).*/\1/p' "$dir/json" >>"$dir/$name.p50"
}

median() {
    sort -n "$1" | sed -n "$(((rounds + 1) / 2))p"
}

for ((i = 0; i < rounds; i++)); do
    raw pair
    ours pair mode=advisory --scenario pair
    raw rows
    ours rows mode=table --scenario pair
    raw handover
    ours handover mode=advisory --scenario handover
    ours notify mode=table --scenario handover
done

ratio() { # ratio WHAT OURS RAW UNIT
    awk -v what="$1" -v a="$(median "$dir/$2")" -v b="$(median "$dir/$3")" \
        -v unit="$4" 'BEGIN {
            printf "%-38s %10.1f %10.1f %s  %5.2f\n", what, a, b, unit, a / b }'
}

printf '%-38s %10s %10s %s\n' "medians of $rounds" ours raw "     ratio"
ratio "advisory pair, p50" pair.p50 raw-pair.p50 "µs "
ratio "table pair, p50" rows.p50 raw-rows.p50 "µs "
ratio "advisory handover, p50" handover.p50 raw-handover.p50 "µs "
ratio "advisory handover, rate" handover.rate raw-handover.rate "/s "
ratio "table handover, rate" notify.rate raw-handover.rate "/s "
