#!/bin/sh
# SPDX-License-Identifier: MIT
# pages.sh ROOT TABLES [--update] - libholdfast(3) has the tables that the
# library has, names every function, and all pages are good mdoc.
set -eu

root=$1
tables=$2
update=${3:-}
page=$root/docs/man/libholdfast.3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$tables" keys >"$dir/keys"
"$tables" errors >"$dir/errors"
awk -v keys="$dir/keys" -v errors="$dir/errors" '
    /^\.\\" BEGIN KEYS/   { print; while ((getline l < keys) > 0) print l; skip = 1; next }
    /^\.\\" BEGIN ERRORS/ { print; while ((getline l < errors) > 0) print l; skip = 1; next }
    /^\.\\" END/          { skip = 0 }
    !skip
' "$page" >"$dir/page"

if [ "$update" = --update ]; then
    cmp -s "$dir/page" "$page" || cat "$dir/page" >"$page"
elif ! diff -u "$page" "$dir/page"; then
    echo "libholdfast(3) is behind the library: ./dev docs --update"
    exit 1
fi

bad=0
for function in $("$root/tests/build/functions.sh" \
    "$root/include/holdfast.h"); do
    grep -q "Fn $function\b" "$page" || {
        echo "libholdfast(3) does not mention $function"
        bad=1
    }
done
for file in "$root"/docs/man/*.[0-9]; do
    mandoc -T lint -W warning "$file" || bad=1
done
exit $bad
