#!/bin/sh
# SPDX-License-Identifier: MIT
# figures.sh ROOT - where a page says "`FILE` has about N lines", it has, give or
# take a sixth.
set -eu
cd "$1"

cat docs/internals/*.md | tr '\n' ' ' | tr -s ' ' |
    grep -oE '`src/[a-z_/]+[.]c` has about [0-9]+ lines' | tr -d '`' | {
    bad=0
    seen=0
    while read -r file _ _ said _; do
        lines=$(wc -l <"$file")
        seen=$((seen + 1))
        [ $((6 * lines)) -ge $((5 * said)) ] &&
            [ $((6 * lines)) -le $((7 * said)) ] || {
            echo "$file has $lines lines, not about $said"
            bad=1
        }
    done
    [ "$seen" -gt 0 ] || bad=1
    exit "$bad"
}
