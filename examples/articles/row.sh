#!/bin/sh
# SPDX-License-Identifier: MIT
#
# row.sh - a row with a unique key: INSERT takes the lock, DELETE frees it. The holder
# dies, and its row stays.

. "$(dirname "$0")/mysql.sh"

take="INSERT IGNORE INTO articles_row VALUES (1, '%s'); SELECT ROW_COUNT()"

sql "CREATE TABLE IF NOT EXISTS articles_row(resource INT PRIMARY KEY, description VARCHAR(64))"
sql "DELETE FROM articles_row"
expect "A takes it" "$(sql "$(printf "$take" A)")" 1 # and here its process is killed
expect "B asks" "$(sql "$(printf "$take" B)")" 0
naive "A is gone, and its row stays until somebody deletes it by hand"

# The same with holdfast: a row with a lease.
die articles-row -o mode=table -o ttl=1s
holdfast run -o mode=table -w 60s articles-row -- true
ours "mode=table: the next one got the lock when the lease of the dead one ended"
