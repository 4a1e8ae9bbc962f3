#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh HEADER LIBRARY - the library exports what the header declares,
# and nothing else; and it can be loaded by dlopen() of any C library.
set -eu

header=$1
library=$2
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

"$(dirname "$0")/functions.sh" "$header" >"$dir/declared"
nm -D --defined-only "$library" | awk '{ print $3 }' | sed 's/@.*//' |
    grep -v '^HOLDFAST_' | sort -u >"$dir/exported"

diff -u "$dir/declared" "$dir/exported" || {
    echo "declared (-) and exported (+) functions differ"
    exit 1
}
soname=$(readelf -d "$library" | sed -n 's/.*SONAME.*\[\(.*\)\]/\1/p')
test "$soname" = libholdfast.so.0
# musl's dlopen() accepts no library whose thread-local words are static.
if readelf -d "$library" | grep -q STATIC_TLS; then
    echo "$library needs static TLS"
    exit 1
fi
echo "$(wc -l <"$dir/exported") functions, $soname"
