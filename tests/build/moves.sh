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
    file=$(grep -lE 'MAY\(' "${header%.h}.c" "$(dirname "$header")"/*.c \
        2>/dev/null | head -n 1)
    if [ "$(drawn "$header")" != "$(asserted "$file")" ]; then
        echo "$header draws other moves than $file asserts"
        bad=1
    fi
done
exit $bad
