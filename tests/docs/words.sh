#!/bin/sh
# SPDX-License-Identifier: MIT
# words.sh ROOT - the pages and comments listed here name their subjects.
#
# A client, a thread and a server are "it"; "whoever", "whom" and "he" leave the
# reader to guess which of them is meant. An engine joins the list when its
# comments are plain.
set -eu
cd "$1"

set -- README.md SECURITY.md docs/man/holdfast.7 docs/man/libholdfast.3 include/holdfast.h \
    src/api/* src/base/* src/config/* src/core/* src/net/* src/engines/*.[ch] \
    src/engines/common/* src/engines/local/* src/engines/wrap/*
for page in README architecture words monitor ticket adding-an-engine testing \
    simulation dependencies command local-engine; do
    set -- "$@" "docs/internals/$page.md"
done

if grep -niE '\b(whoever|whomever|whom|himself|his|he|him)\b|\bas (it comes|they come)\b' \
    "$@"; then
    echo "say which client, thread, server or user does it"
    exit 1
fi
