#!/bin/sh
# SPDX-License-Identifier: MIT
# walks.sh ROOT - where a page says `file` `function`, the file has it.
set -eu
cd "$1"

bad=0
seen=0
for page in docs/internals/*.md; do
    grep -oE '`src/[a-z0-9_/]+[.][ch]` `[a-z0-9_]+`' "$page" | tr -d '`' |
        sort -u >"${TMPDIR:-/tmp}/walks.$$"
    while read -r file function; do
        seen=$((seen + 1))
        grep -qE "(^|[^A-Za-z0-9_])$function\\(" "$file" 2>/dev/null || {
            echo "$page: $file has no $function"
            bad=1
        }
    done <"${TMPDIR:-/tmp}/walks.$$"
    rm -f "${TMPDIR:-/tmp}/walks.$$"
done
test "$seen" -gt 10 || {
    echo "no walk found"
    bad=1
}
exit $bad
