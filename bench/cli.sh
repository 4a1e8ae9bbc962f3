#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench/cli.sh [ROUNDS] - what does a run cost? "holdfast run x -- true" beside
# "flock f true", in turns, so that whatever else the machine does hits both.
# The ratio should be at most 1.5; the goal is 1.2.

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
command=${BENCH_COMMAND:-$root/build/holdfast}
rounds=${1:-500}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

export HOLDFAST_URL="local://$dir/store"
times=("$dir/holdfast" "$dir/flock" "$dir/bare")

# Microseconds, without starting a process for the clock.
now() {
    local t=$EPOCHREALTIME
    printf -v "$1" '%s' "${t/[.,]/}"
}

measure() {
    local file=$1 before after
    shift
    now before
    "$@"
    now after
    echo $((after - before)) >>"$file"
}

for ((i = 0; i < rounds; i++)); do
    measure "${times[0]}" "$command" run x -- true
    measure "${times[1]}" flock "$dir/f" true
    measure "${times[2]}" /bin/true
done

at() { # at PERCENT FILE
    sort -n "$2" | sed -n "$((rounds * $1 / 100 + 1))p"
}

ratio() { # ratio PERCENT, in hundredths
    echo $(($(at "$1" "${times[0]}") * 100 / $(at "$1" "${times[1]}")))
}

printf '%-26s %8s %8s %8s\n' "microseconds, $rounds rounds" p10 p50 p90
names=("holdfast run x -- true" "flock f true" "true")
for i in 0 1 2; do
    printf '%-26s %8d %8d %8d\n' "${names[i]}" "$(at 10 "${times[i]}")" \
        "$(at 50 "${times[i]}")" "$(at 90 "${times[i]}")"
done

# The median is what it costs here and now; the tenth percentile what it costs
# when nothing else wants the processors.
median=$(ratio 50)
quiet=$(ratio 10)
printf 'holdfast / flock: %d.%02d at the median, %d.%02d undisturbed ' \
    $((median / 100)) $((median % 100)) $((quiet / 100)) $((quiet % 100))
printf '(at most 1.50; goal 1.20)\n'
[ "$quiet" -le 150 ]
