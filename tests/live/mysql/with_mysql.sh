#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_mysql.sh QUERY COMMAND… - start a MariaDB server of our own, run COMMAND
# with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop the server.
#
# The user has no more rights than holdfast(7) asks for.

set -euo pipefail

query=$1
shift
dir=$(mktemp -d)
server=
user=$(id -un)

clean() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

[ "$user" != root ] || user=mysql
chmod 755 "$dir"
mkdir "$dir/data"
[ "$(id -un)" != root ] || chown "$user" "$dir/data"
mariadb-install-db --no-defaults --user="$user" --datadir="$dir/data" \
    --auth-root-authentication-method=normal --skip-test-db \
    >"$dir/install" 2>&1 || {
    cat "$dir/install" >&2
    exit 1
}
cat >"$dir/init" <<'SQL'
CREATE DATABASE locks;
CREATE USER locker@'127.0.0.1' IDENTIFIED BY 's3cret';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO locker@'127.0.0.1';
SQL

start() {
    local log=$dir/log

    : >"$log"
    mariadbd --no-defaults --user="$user" --datadir="$dir/data" --port="$1" \
        --bind-address=127.0.0.1 --socket="$dir/data/socket" \
        --pid-file="$dir/data/pid" --skip-log-bin --skip-name-resolve \
        --init-file="$dir/init" \
        --innodb-buffer-pool-size=32M --innodb-log-file-size=8M \
        --innodb-flush-log-at-trx-commit=0 --performance-schema=OFF \
        >"$log" 2>&1 </dev/null &
    server=$!
    # It says when it is ready, and ends when it cannot have the port.
    while ! grep -q 'ready for connections' "$log"; do
        kill -0 "$server" 2>/dev/null || return 1
        read -r -t 0.02 <> <(:) || true
    done
    url=mysql://locker:s3cret@127.0.0.1:$1/locks
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
