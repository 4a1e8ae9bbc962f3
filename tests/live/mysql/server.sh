#!/bin/sh
# SPDX-License-Identifier: MIT
#
# server.sh PORT DIR [OPTION…] - become a MariaDB server in DIR, made when it is
# started there for the first time, with a database and a user for locks.
set -eu
port=$1
dir=$2
shift 2
user=$(id -un)
# A server that starts deletes the temporary tables of all that share its place
# for them.
export TMPDIR="$dir/tmp"
mkdir -p "$TMPDIR"
if [ ! -e "$dir/init" ]; then
    rm -rf "$dir/data"
    mariadb-install-db --no-defaults --user="$user" --datadir="$dir/data" \
        --auth-root-authentication-method=normal --skip-test-db
    cat >"$dir/init" <<'SQL'
CREATE DATABASE IF NOT EXISTS locks;
CREATE USER IF NOT EXISTS locker@'127.0.0.1' IDENTIFIED BY 's3cret';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO locker@'127.0.0.1';
SQL
fi
exec mariadbd --no-defaults --user="$user" --datadir="$dir/data" \
    --port="$port" --bind-address=127.0.0.1 --socket="$dir/socket" \
    --pid-file="$dir/pid" --skip-log-bin --skip-name-resolve \
    --init-file="$dir/init" --innodb-buffer-pool-size=16M \
    --innodb-log-file-size=8M --performance-schema=OFF "$@"
