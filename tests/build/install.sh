#!/bin/sh
# SPDX-License-Identifier: MIT
# install.sh CMAKE SOURCE BUILD - install to a fresh prefix, and build the
# first example from there: pkg-config shared and static, and find_package.
set -eu

cmake=$1
source=$2
build=$3
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

DESTDIR='' "$cmake" --install "$build" --prefix "$dir/prefix" >"$dir/log" ||
    { cat "$dir/log"; exit 1; }

pc=$(find "$dir/prefix" -name holdfast.pc)
libdir=$(dirname "$(dirname "$pc")")
test -e "$libdir/libholdfast.so.0"
test -e "$libdir/libholdfast.a"
# Nobody who links it waits for an optimisation across its files.
if objdump -h "$libdir/libholdfast.a" | grep -q '\.gnu\.lto_'; then
    echo "libholdfast.a is installed with LTO sections"
    exit 1
fi
test -e "$dir/prefix/include/holdfast.h"
test -e "$dir/prefix/include/holdfast.hpp"
test -s "$dir/prefix/share/holdfast/hf_api.json"
export PKG_CONFIG_PATH="$libdir/pkgconfig"
example=$source/examples/report.c

# The locks of this test are nobody else's.
export HOLDFAST_URL="local://$dir/locks"

run() {
    LD_LIBRARY_PATH=$2 "$1" | grep -q 'token' || {
        echo "$1 did not work"
        exit 1
    }
    echo "ok: $1"
}

# shellcheck disable=SC2046 # pkg-config's words are words
gcc -o "$dir/shared" "$example" $(pkg-config --cflags --libs holdfast)
run "$dir/shared" "$libdir"
# shellcheck disable=SC2046
gcc -o "$dir/static" "$example" $(pkg-config --cflags holdfast) \
    "$libdir/libholdfast.a" $(pkg-config --libs --static holdfast |
        sed 's/-lholdfast//')
run "$dir/static" /nonexistent

mkdir "$dir/project"
cp "$example" "$dir/project/report.c"
cat >"$dir/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user C)
find_package(holdfast 0.1 REQUIRED)
add_executable(with_shared report.c)
target_link_libraries(with_shared holdfast::holdfast)
add_executable(with_static report.c)
target_link_libraries(with_static holdfast::holdfast_static)
END
"$cmake" -G Ninja -S "$dir/project" -B "$dir/project/build" \
    -DCMAKE_PREFIX_PATH="$dir/prefix" >"$dir/log" &&
    "$cmake" --build "$dir/project/build" >>"$dir/log" ||
    { cat "$dir/log"; exit 1; }
run "$dir/project/build/with_shared" "$libdir"
run "$dir/project/build/with_static" /nonexistent
