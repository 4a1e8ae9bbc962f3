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
    src/engines/common/* src/engines/local/* src/engines/wrap/* \
    src/engines/postgres/*.[ch] src/engines/postgres/sql/* src/engines/sql/* \
    src/engines/mysql/*.* src/engines/mysql/sql/* \
    cli/*.[ch] docs/guide/*.md docs/man/holdfast.1
for page in README architecture words monitor ticket adding-an-engine testing \
    simulation dependencies command local-engine postgres-engine mysql-engine; do
    set -- "$@" "docs/internals/$page.md"
done

if grep -niE '\b(whoever|whomever|whom|himself|his|he|him)\b|\bas (it comes|they come)\b' \
    "$@"; then
    echo "say which client, thread, server or user does it"
    exit 1
fi

# Pictures, in what users read and in the command: use the technical word.
if grep -niE '\b(ghost(s|ly)?|graves?|farewell|hush|tales?|exorcis[a-z]*|to the door|like company|let(s|ting)? in the next)\b' \
    README.md cli/*.[ch] docs/guide/*.md docs/man/*; then
    echo "say it in the words of docs/internals/words.md"
    exit 1
fi
