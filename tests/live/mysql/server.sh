#!/bin/sh
# SPDX-License-Identifier: MIT
#
# server.sh PORT DIR [OPTION…] - become a server in DIR, made when it is started
# there for the first time, with a database and a user for locks: MariaDB, or
# the MySQL whose mysqld HOLDFAST_TEST_MYSQLD names.
# server.sh --prepare: make what takes long, once for all servers.
set -eu
mysqld=${HOLDFAST_TEST_MYSQLD:-}

# MySQL takes many seconds to make its tables: they are made beside it, and
# copied from there.
made=${mysqld:+$(dirname "$(dirname "$mysqld")")/made}
prepare() {
    [ -n "$mysqld" ] && [ -w "$(dirname "$made")" ] || return 0
    (
        flock 9
        [ ! -e "$made/done" ] || exit 0
        rm -rf "$made"
        mkdir -p "$made"
        "$mysqld" --no-defaults --user="$(id -un)" --datadir="$made/data" \
            --initialize-insecure --innodb-redo-log-capacity=8M >&2
        chmod -R a+rX "$made"
        : >"$made/done"
    ) 9>"$made.lock"
}
prepare
[ "$1" != --prepare ] || exit 0

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
    if [ -z "$mysqld" ]; then
        mariadb-install-db --no-defaults --user="$user" --datadir="$dir/data" \
            --auth-root-authentication-method=normal --skip-test-db
    elif [ -e "$made/done" ]; then
        cp -r "$made/data" "$dir/data"
        rm -f "$dir/data/auto.cnf"
    else
        "$mysqld" --no-defaults --user="$user" --datadir="$dir/data" \
            --initialize-insecure --innodb-redo-log-capacity=8M
    fi
    cat >"$dir/init" <<'SQL'
CREATE DATABASE IF NOT EXISTS locks;
CREATE USER IF NOT EXISTS root@'127.0.0.1';
GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;
CREATE USER IF NOT EXISTS locker@'127.0.0.1' IDENTIFIED BY 's3cret';
GRANT SELECT, INSERT, UPDATE, DELETE, CREATE ON locks.* TO locker@'127.0.0.1';
CREATE TABLE IF NOT EXISTS locks.by_hand (name VARBINARY(400) NOT NULL PRIMARY KEY, owner VARCHAR(255) NOT NULL);
SQL
fi
set -- --no-defaults --user="$user" --datadir="$dir/data" \
    --port="$port" --bind-address=127.0.0.1 --socket="$dir/socket" \
    --pid-file="$dir/pid" --skip-log-bin --skip-name-resolve \
    --init-file="$dir/init" --innodb-buffer-pool-size=16M \
    --performance-schema=OFF "$@"
if [ -z "$mysqld" ]; then
    # By itself MariaDB makes a key for TLS at each start since 11.4, which takes
    # long. A certificate among the options says otherwise.
    shift
    exec mariadbd --no-defaults --skip-ssl "$@" --innodb-log-file-size=8M
fi
exec "$mysqld" "$@" --mysqlx=OFF --innodb-redo-log-capacity=8M
