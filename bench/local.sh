#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/local.sh [SECONDS] - the embedded engine beside what the kernel does at
# most, in the same run. "ratio" is ours to the raw one: of rates for pair and
# shared-name (more is better), of the median latency for handover (less is).

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${BENCH_BUILD:-$here/../build}
seconds=${1:-3}
directory=$(mktemp -d "${XDG_RUNTIME_DIR:-/dev/shm}/holdfast-bench-XXXXXX")
trap 'rm -rf "$directory"' EXIT

figure() {
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"
}

compare() {
    local scenario=$1 what=$2 ours raw
    shift 2
    raw=$("$build/bench/raw_local" --seconds "$seconds" "$@" "$scenario" |
        figure "$what")
    ours=$("$build/holdfast" -u "local://$directory" bench "$@" \
        --scenario "$scenario" --seconds "$seconds" --json | figure "$what")
    awk -v s="$scenario" -v w="$what" -v o="$ours" -v r="$raw" 'BEGIN {
        printf "{\"scenario\":\"%s\",\"%s\":%s,\"raw\":%s,\"ratio\":%.2f}\n",
               s, w, o, r, o / r }'
}

compare pair pairs_per_s
compare handover p50_us --pin 0 # where they run would decide
compare shared-name pairs_per_s
"$build/holdfast" -u "local://$directory" bench --scenario held \
    --seconds "$seconds" --locks 100000 --json
