#!/bin/sh
# SPDX-License-Identifier: MIT
# spelling.sh ROOT - no known misspelling in documents, comments and messages.
set -eu
cd "$1"
# Nd is a macro of mdoc, te a header of HTTP/2, "nd" the end of an ordinal.
git ls-files '*.md' docs include src cli examples bindings | grep -v '/test/' |
    xargs codespell --quiet-level 3 --ignore-words-list nd,te
