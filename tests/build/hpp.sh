#!/bin/sh
# SPDX-License-Identifier: MIT
# hpp.sh INCLUDE_DIR LIBRARY - holdfast.hpp compiles, without a warning, as C++17
# and C++20 with every compiler that is here, and works.
set -eu

include=$1
library=$2
source=$(dirname "$0")/hpp_test.cc
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

tried=0
# try STANDARD COMPILER [OPTION…]
try() {
    std=$1
    shift
    command -v "$1" >/dev/null 2>&1 || return 0
    "$@" -std="$std" -Wall -Wextra -Wshadow -pedantic-errors -Werror -g \
        -I"$include" -o "$dir/test" "$source" "$library" -pthread || {
        echo "holdfast.hpp does not compile: $* -std=$std"
        exit 1
    }
    rm -rf "$dir/locks"
    mkdir -m 700 "$dir/locks"
    LD_LIBRARY_PATH=$(dirname "$library") "$dir/test" "local://$dir/locks" \
        >"$dir/out" || {
        echo "it does not work: $* -std=$std"
        exit 1
    }
    # The library of C++20 has std::stop_token, and then we use it.
    if [ "$std $1" = "c++20 g++" ] && ! grep -q stop_token "$dir/out"; then
        echo "no std::stop_token in C++20"
        exit 1
    fi
    tried=$((tried + 1))
}

try c++17 g++
try c++20 g++ -fsanitize=address,undefined -fno-sanitize-recover
try c++17 clang++
try c++20 clang++
test "$tried" -gt 0
echo "holdfast.hpp: $tried compilations"
