#!/bin/sh
# SPDX-License-Identifier: MIT
#
# for_update.sh - SELECT … FOR UPDATE, on a connection that ends while the work goes on.

. "$(dirname "$0")/mysql.sh"

seat="SELECT seat FROM articles_seat WHERE id = 1 FOR UPDATE"

sql "CREATE TABLE IF NOT EXISTS articles_seat(id INT PRIMARY KEY, seat VARCHAR(16)) ENGINE=InnoDB"
sql "CREATE TABLE IF NOT EXISTS articles_booking(who VARCHAR(16)) ENGINE=InnoDB"
sql "REPLACE INTO articles_seat VALUES (1, '14A')"
sql "DELETE FROM articles_booking"

# A has the row, in a transaction of its own connection.
mkfifo "$dir/a"
client -n <"$dir/a" >"$dir/answers" 2>/dev/null &
exec 9>"$dir/a"
echo "BEGIN; $seat; SELECT CONNECTION_ID();" >&9
until [ "$(wc -l <"$dir/answers")" = 2 ]; do :; done
expect "B asks" "$(exit_of sql "BEGIN; $seat NOWAIT")" 1
sql "KILL $(tail -n 1 "$dir/answers")" # a pool, a proxy or wait_timeout ends the connection
exec 9>&-
wait $! || true
expect "B asks again" "$(sql "BEGIN; $seat NOWAIT; INSERT INTO articles_booking VALUES ('B'); COMMIT")" 14A
sql "INSERT INTO articles_booking VALUES ('A')" # the pool gives A another connection
expect "who booked the seat" "$(sql "SELECT COUNT(*) FROM articles_booking")" 2
naive "the connection of A ended, and the lock with it: A and B booked one seat"

# The same with holdfast, which has its own connection and watches it.
hold articles-seat -o mode=for_update
for id in $(sql "SELECT id FROM information_schema.processlist WHERE id <> CONNECTION_ID()"); do
    sql "KILL $id" 2>/dev/null || true # one of our own may have ended by itself
done
code=0
wait "$holder" || code=$?
exec 8>&-
expect "A is told" "$code" 79
ours "mode=for_update: A is told that its lock ended with the connection (79)"
