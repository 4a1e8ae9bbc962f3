#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_postgres.sh QUERY COMMAND… - start a PostgreSQL server of our own, run
# COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop the server.
#
# It does not run as root, so it gets the user postgres there. HOLDFAST_TEST_PG_BINDIR
# names the directory of another version's programs.

. "$(dirname "$0")/../../lib/server.sh"

query=$1
shift 1
end_with=QUIT # killed, it would leave its shared memory behind
bin=${HOLDFAST_TEST_PG_BINDIR:-$(pg_config --bindir 2>/dev/null || true)}
[ -x "$bin/postgres" ] || bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)

make_database() {
    mkdir "$dir/postgres"
    [ "$(id -u)" != 0 ] || chown postgres "$dir/postgres"
    chmod 755 "$dir"
    cd "$dir/postgres"
    as_user postgres "$bin/initdb" -D data -A trust -U postgres --no-sync
    cd - >/dev/null
}

start() {
    cd "$dir/postgres"
    serve_as postgres "$dir/log" "$bin/postgres" -D data -p "$1" \
        -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories="$dir/postgres" \
        -c shared_buffers=32MB -c max_connections=200 -c fsync=off
    cd - >/dev/null
    await says 'ready to accept connections' "$dir/log" || return 1
    url=postgresql://postgres@127.0.0.1:$1/postgres
}

quietly make_database
on_free_ports start
# For dialect=row, which makes no table.
psql -Xq "$url" -c 'CREATE TABLE by_hand (name text PRIMARY KEY, owner text)'
run_with "$url" "$@"
