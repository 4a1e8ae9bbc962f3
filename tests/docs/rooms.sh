#!/bin/sh
# SPDX-License-Identifier: MIT
# rooms.sh ROOT - adding-an-engine.md names every C file of the engines that it
# compares, each once, and no file that is not there.
set -eu
cd "$1"

page=docs/internals/adding-an-engine.md
# "ENGINE FILE" for each file that the two tables name.
listed() {
    awk -F ' *[|] *' '
        /^[|] room / { for (i = 3; i < NF; i++) engine[i] = $i; rooms = 1; next }
        /^[|] engine / { alone = 1; next }
        !/^[|]/ { rooms = alone = 0; next }
        rooms { for (i = 3; i < NF; i++) print engine[i], $i }
        alone { print $2, $3 }
    ' "$page" | while read -r engine files; do
        echo "$files" | grep -oE '[a-z0-9_]+[.]c' | sed "s/^/$engine /" || true
    done
}
there() {
    for engine in $(sed -n 's/^| room |//p' "$page" | tr -d '|'); do
        for file in src/engines/"$engine"/*.c; do
            echo "$engine ${file##*/}"
        done
    done
}

listed=$(listed | sort)
there=$(there | sort)
[ -n "$there" ] && [ "$listed" = "$there" ] && exit 0
echo "$page has other files than src/engines; list each file once:"
printf '%s\n' "$listed" >"${TMPDIR:-/tmp}/rooms.$$"
printf '%s\n' "$there" | diff "${TMPDIR:-/tmp}/rooms.$$" - | grep '^[<>]' || true
rm -f "${TMPDIR:-/tmp}/rooms.$$"
exit 1
