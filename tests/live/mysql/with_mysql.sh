#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_mysql.sh QUERY COMMAND… - start a MariaDB server of our own, or the MySQL
# of HOLDFAST_TEST_MYSQLD, run COMMAND with HOLDFAST_TEST_URL set to it (and
# "?QUERY"), stop the server.

. "$(dirname "$0")/../../lib/server.sh"

query=$1
shift
server=$(dirname "$(realpath "$0")")/server.sh

start() {
    serve_as mysql "$dir/log" "$server" "$1" "$dir/mysql" \
        --innodb-flush-log-at-trx-commit=0
    await says 'ready for connections' "$dir/log" || return 1
    url=mysql://locker:s3cret@127.0.0.1:$1/locks
}

"$server" --prepare
mkdir "$dir/mysql"
[ "$(id -u)" != 0 ] || chown mysql "$dir/mysql"
chmod 755 "$dir"
on_free_ports start
run_with "$url" "$@"
