#!/bin/sh
# SPDX-License-Identifier: MIT
#
# version.sh - a version column that is written, and not compared: the second one writes
# over the first.

. "$(dirname "$0")/mysql.sh"

# sell SEEN [CONDITION]: one piece less than was seen; how many rows changed.
sell() {
    sql "UPDATE articles_stock SET stock = $1 - 1, version = version + 1
        WHERE id = 1 ${2-}; SELECT ROW_COUNT()"
}

sql "CREATE TABLE IF NOT EXISTS articles_stock(id INT PRIMARY KEY, stock INT, version INT)"
sql "REPLACE INTO articles_stock VALUES (1, 10, 1)"
seen_by_a=$(sql "SELECT stock FROM articles_stock")
seen_by_b=$(sql "SELECT stock FROM articles_stock")
expect "A sells one" "$(sell "$seen_by_a")" 1
expect "B sells one" "$(sell "$seen_by_b")" 1
expect "what is left" "$(sql "SELECT stock FROM articles_stock")" 9
naive "two were sold, and 9 of 10 are left: nobody compared the version"

sql "REPLACE INTO articles_stock VALUES (1, 10, 1)"
expect "A sells one" "$(sell 10 "AND version = 1")" 1
expect "B sells one" "$(sell 10 "AND version = 1")" 0

# The same with holdfast, for data that are somewhere else.
version=$(holdfast version articles-stock)
expect "A commits" "$(exit_of holdfast version articles-stock --commit "$version")" 0
expect "B commits" "$(exit_of holdfast version articles-stock --commit "$version")" 1
ours "the second one is refused (1), reads again, and begins anew"
