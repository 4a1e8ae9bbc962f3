#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run_mysql.sh PROGRAM… - run each on the server of $HOLDFAST_TEST_URL, whose
# user may not drop tables.
set -eu

port=${HOLDFAST_TEST_URL##*:}
port=${port%%/*}
mariadb --no-defaults -uroot -h127.0.0.1 -P"$port" \
    -e 'GRANT DROP ON locks.* TO locker@127.0.0.1'
for program; do
    "$program" "$HOLDFAST_TEST_URL"
done
