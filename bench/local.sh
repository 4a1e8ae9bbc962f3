#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/local.sh [SECONDS] [ROUNDS] - the embedded engine beside what the kernel
# does at most, in turns within one run. "ratio" is ours to the raw one: of
# rates for pair and shared-name (more is better), of the median latency for
# handover (less is). The median of the rounds counts; the others show how far
# the machine can be trusted.

set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=${BENCH_BUILD:-$here/../build}
seconds=${1:-1}
rounds=${2:-7}
directory=$(mktemp -d "${XDG_RUNTIME_DIR:-/dev/shm}/holdfast-bench-XXXXXX")
trap 'rm -rf "$directory"' EXIT

figure() {
    sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"
}

ours() {
    "$build/holdfast" -u "local://$directory" bench --scenario "$1" \
        --seconds "$seconds" --json "${@:2}"
}

# compare SCENARIO FIGURE BOUND [OPTION…]
compare() {
    local scenario=$1 what=$2 bound=$3 round
    for ((round = 0; round < rounds; round++)); do
        echo "$("$build/bench/raw_local" --seconds "$seconds" "$scenario" |
            figure "$what") $(ours "$scenario" "${@:4}" | figure "$what")"
    done | awk '
        { print $2 / $1, $2, $1 }' | sort -n | awk -v s="$scenario" \
        -v w="$what" -v b="$bound" '
        { ratio[NR] = $1; o[NR] = $2; r[NR] = $3 }
        END {
            m = int((NR + 1) / 2)
            printf "{\"scenario\":\"%s\",\"figure\":\"%s\",\"ours\":%s,\"raw\":%s," \
                   "\"ratio\":%.2f,\"least\":%.2f,\"most\":%.2f,\"wanted\":\"%s\"}\n",
                   s, w, o[m], r[m], ratio[m], ratio[1], ratio[NR], b
        }'
}

compare pair pairs_per_s ">= 2"
compare handover p50_us "<= 2.5"
compare shared-name pairs_per_s ">= 0.5" --threads 8
ours held --locks 100000
