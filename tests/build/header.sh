#!/bin/sh
# SPDX-License-Identifier: MIT
# header.sh INCLUDE_DIR - holdfast.h compiles, without a warning, in every
# language that it claims, with every compiler that is here.
set -eu

include=$1
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

cat >"$dir/use.c" <<'END'
#include "holdfast.h"
#include "holdfast.h"

int use(hf_client *client);

int use(hf_client *client)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold = 0;
    hf_error err;
    int rc = hf_acquire(client, "name", &opts, &hold, &err);

    return rc == HF_EBUSY ? 1 : hf_release(hold, &err);
}
END
cat >"$dir/block.c" <<'END'
#include "holdfast.h"

int block(hf_client *client);

int block(hf_client *client)
{
    int rc;
    hf_autorelease hf_hold *hold = NULL;

    (void)hold;
    HF_WITH_LOCK(client, "name", NULL, &rc)
    {
        if (client)
            return 1;
    }
    return rc;
}
END
cp "$dir/use.c" "$dir/use.cc"

tried=0
try() {
    command -v "$1" >/dev/null 2>&1 || return 0
    "$@" -Wall -Wextra -Werror -pedantic-errors -I"$include" \
        -c -o "$dir/use.o" || {
        echo "holdfast.h does not compile: $*"
        exit 1
    }
    tried=$((tried + 1))
}

for c in gcc clang; do
    for std in c99 c11 c17 c2x gnu11; do
        try $c -std=$std -Wstrict-prototypes -Wmissing-prototypes \
            -Wshadow -Wcast-qual "$dir/use.c"
        try $c -std=$std "$dir/block.c"
    done
done
for cxx in g++ clang++; do
    for std in c++98 c++11 c++14 c++17 c++20; do
        try $cxx -std=$std -Wno-long-long "$dir/use.cc"
    done
done
test "$tried" -gt 0
echo "holdfast.h: $tried compilations"
