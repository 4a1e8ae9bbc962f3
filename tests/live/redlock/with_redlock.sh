#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_redlock.sh N QUERY COMMAND… - start N Redis servers of our own that
# forget nothing, run COMMAND with HOLDFAST_TEST_URL set to them (and
# "?QUERY"), stop them.

set -euo pipefail

n=$1
query=$2
shift 2
dir=$(mktemp -d)
servers=()
hosts=

clean() {
    if [ ${#servers[@]} -gt 0 ]; then
        kill "${servers[@]}" 2>/dev/null || true
        wait "${servers[@]}" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

# start I: one server; fails if it cannot have its port.
start() {
    local here=$dir/$1 port=$((20000 + RANDOM % 12000))

    mkdir -p "$here"
    setpriv --pdeathsig KILL redis-server --port "$port" \
        --bind 127.0.0.1 --save "" --dir "$here" --appendonly yes \
        --appendfsync always >"$here/log" 2>&1 </dev/null &
    # Whatever happens to us, it does not stay behind. It says when it is
    # ready, and ends when it cannot have the port.
    while ! grep -qi 'ready to accept connections' "$here/log"; do
        kill -0 $! 2>/dev/null || return 1
        read -r -t 0.02 <> <(:) || true
    done
    servers+=($!)
    hosts=$hosts${hosts:+,}127.0.0.1:$port
}

for ((i = 1; i <= n; i++)); do
    start "$i" || start "$i" || start "$i" || {
        cat "$dir/$i/log" >&2
        exit 1
    }
done
export HOLDFAST_TEST_URL="redlock://$hosts${query:+?$query}"
"$@"
