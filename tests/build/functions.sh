#!/bin/sh
# SPDX-License-Identifier: MIT
# functions.sh HEADER - the names of the functions that it declares, sorted.
set -eu
awk '
    /^HF_API/ { text = ""; inside = 1 }
    inside    { text = text " " $0 }
    inside && /\)/ {
        sub(/\(.*/, "", text)
        sub(/.*[ *]/, "", text)
        print text
        inside = 0
    }
' "$1" | sort -u
