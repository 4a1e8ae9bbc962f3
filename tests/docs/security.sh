#!/bin/sh
# SPDX-License-Identifier: MIT
# security.sh ROOT - every paragraph of SECURITY.md about what is protected has
# a row in docs/internals/testing.md, and the tests named there exist.
set -eu
cd "$1"

bad=0
rows=$(sed -n '/^## Security/,$p' docs/internals/testing.md | grep '^| [A-Z]' |
    grep -v '^| Paragraph')
titles=$(sed -n 's/^- \*\*\([^*]*\)\*\*.*/\1/p' SECURITY.md)
[ -n "$rows" ] && [ -n "$titles" ] || { echo "no rows, or no paragraphs"; exit 1; }

IFS='
'
for title in $titles; do
    found=
    for row in $rows; do
        words=$(echo "$row" | sed 's/^| \([^|]*\) |.*/\1/')
        case $title in "$words"*) found=1 ;; esac
    done
    [ -n "$found" ] || { echo "SECURITY.md: no row of tests for: $title"; bad=1; }
done
for test in $(echo "$rows" | grep -oE '`[a-z_0-9]+\.[a-z_0-9]+`' | tr -d '`'); do
    grep -rqE "^TEST[A-Z_]*\(${test%%.*}, ${test#*.}\)" tests --include='*.c' || {
        echo "docs/internals/testing.md: there is no test $test"
        bad=1
    }
done
exit $bad
