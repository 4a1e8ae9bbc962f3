#!/bin/sh
# SPDX-License-Identifier: MIT
# links.sh ROOT - every relative link of a document leads somewhere, and every
# source file that one names exists; README is read in one go.
set -eu
cd "$1"

bad=0
for page in *.md docs/*.md docs/*/*.md; do
    [ -e "$page" ] || continue
    dir=$(dirname "$page")
    for link in $(grep -oE '\]\([^)#]+' "$page" | sed 's/^](//'); do
        case $link in
        http*) continue ;;
        esac
        [ -e "$dir/$link" ] || {
            echo "$page: leads to $link, which is not there"
            bad=1
        }
    done
    for name in $(grep -oE '`(src|include|tests|cli|bench|examples|docs)/[A-Za-z0-9_./-]+`' \
        "$page" | tr -d '`'); do
        [ -e "$name" ] || {
            echo "$page: names $name, which is not there"
            bad=1
        }
    done
done
for page in README.md README.zh-CN.md; do
    [ "$(wc -l <"$page")" -le 150 ] || {
        echo "$page has more than 150 lines"
        bad=1
    }
done
exit $bad
