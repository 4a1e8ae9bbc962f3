#!/bin/sh
# SPDX-License-Identifier: MIT
# moves.sh ROOT - the moves that a header draws are those that the code asserts.
#
# A header lists "STATE -> STATE STATE"; the file beside it has a table
# [PREFIX_STATE] = MAY(STATE) | MAY(STATE).
set -eu
cd "$1"

bad=0
drawn() {
    sed -nE 's/^ [*] +([A-Z_]+) +-> ([A-Z_ ]+)$/\1 \2/p' "$1" | normal
}
asserted() {
    tr '\n' ' ' <"$1" |
        grep -oE '\[HF__[A-Z]+_[A-Z_]+\] = *MAY[^,;}]*' |
        sed -E 's/\[HF__[A-Z]+_([A-Z_]+)\] =/\1/; s/MAY\(([A-Z_]+)\)/\1/g; s/[|]/ /g' |
        normal
}
normal() {
    while read -r state moves; do
        for move in $moves; do
            echo "$state $move"
        done
    done | sort
}

for header in src/core/ticket.h $(grep -lE '^ [*] +[A-Z_]+ +-> [A-Z_]' \
    src/engines/*/*.h || true); do
    same=
    for file in $(grep -lE 'MAY\(' "$(dirname "$header")"/*.c); do
        [ "$(drawn "$header")" != "$(asserted "$file")" ] || same=$file
    done
    if [ -z "$same" ]; then
        echo "$header draws moves that no file beside it asserts"
        bad=1
    fi
done
exit $bad
