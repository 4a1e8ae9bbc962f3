#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_postgres.sh QUERY COMMAND… - start a PostgreSQL server of our own, run
# COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop the server.
#
# It does not run as root, so it gets the user postgres there.

set -euo pipefail

query=$1
shift 1
bin=$(pg_config --bindir 2>/dev/null || true)
[ -x "$bin/postgres" ] || bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
dir=$(mktemp -d)
server=
as=()

clean() {
    if [ -n "$server" ]; then
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --init-groups)
    chown postgres "$dir"
fi
(
    cd "$dir"
    "${as[@]}" "$bin/initdb" -D "$dir/data" -A trust -U postgres --no-sync
) >"$dir.log" 2>&1 || {
    cat "$dir.log" >&2
    rm -f "$dir.log"
    exit 1
}
rm -f "$dir.log"

start() {
    local port=$1 log=$dir/log

    : >"$log"
    cd "$dir"
    "${as[@]}" "$bin/postgres" -D "$dir/data" -p "$port" \
        -c listen_addresses=127.0.0.1 -c unix_socket_directories="$dir" \
        -c shared_buffers=32MB -c max_connections=200 -c fsync=off \
        >"$log" 2>&1 </dev/null &
    server=$!
    cd - >/dev/null
    # It says when it is ready, and ends when it cannot have the port.
    while ! grep -q 'ready to accept connections' "$log"; do
        kill -0 "$server" 2>/dev/null || return 1
        read -r -t 0.02 <> <(:) || true
    done
    url=postgresql://postgres@127.0.0.1:$port/postgres
}

for _ in 1 2 3 4 5 6 7 8; do
    start $((20000 + RANDOM % 12000)) && break
    server=
done
[ -n "$server" ] || {
    cat "$dir/log" >&2
    exit 1
}
export HOLDFAST_TEST_URL="$url${query:+?$query}"
"$@"
