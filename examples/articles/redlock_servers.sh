# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# redlock_servers.sh - three servers that keep what they know, and the naive majority.
# Sourced.

. "$(dirname "$0")/lib.sh"

port=()
server=()
trap 'kill -9 "${server[@]}"; wait "${server[@]}" 2>/dev/null; rm -rf "$dir"' EXIT

# serve N yes|no: server N on its port, with or without a disk; fails if another has the
# port. SHIM, if there is one, gives it a clock of its own.
serve() {
    local n=$1

    : >"$dir/log.$n"
    mkdir -p "$dir/$n"
    LD_PRELOAD=${SHIM-} CLOCK_SHIM=$dir/clock.$n redis-server \
        --port "${port[n]}" --bind 127.0.0.1 --dir "$dir/$n" --save "" \
        --appendonly "$2" --appendfsync always >"$dir/log.$n" 8>&- &
    server[n]=$!
    until grep -qi "ready to accept" "$dir/log.$n"; do
        kill -0 "${server[n]}" 2>/dev/null || return 1
    done
}

# start_three: and the URL of them all.
start_three() {
    local n

    for n in 0 1 2; do
        until port[n]=$((20000 + RANDOM % 12000)) && serve "$n" yes; do :; done
    done
    export HOLDFAST_TTL=2m HOLDFAST_URL="redlock://127.0.0.1:${port[0]},127.0.0.1:${port[1]},127.0.0.1:${port[2]}"
}

# restart_without_disk N: what it knew is gone.
restart_without_disk() {
    kill -9 "${server[$1]}"
    wait "${server[$1]}" 2>/dev/null || true
    serve "$1" no
}

# redis N COMMAND…: on server N.
redis() {
    local n=$1
    shift
    redis-cli -p "${port[n]}" "$@"
}

# majority WHO SERVER…: do two of three grant it?
majority() {
    local who=$1 n yes=0
    shift
    for n; do
        [ "$(redis "$n" set articles:redlock "$who" PX 30000 NX)" != OK ] ||
            yes=$((yes + 1))
    done
    [ "$yes" -lt 2 ] || echo yes
}

# expect_refused WHO CODE: busy (75), or too few servers vote (69).
expect_refused() {
    case $2 in
    69 | 75) ;;
    *) expect "$1" "$2" "69 or 75" ;;
    esac
}

forget() {
    local n

    for n in 0 1 2; do
        redis "$n" flushall >/dev/null
    done
}
