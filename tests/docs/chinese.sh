#!/bin/sh
# SPDX-License-Identifier: MIT
# chinese.sh ROOT - a Chinese page has the headings, tables and blocks of its
# English twin, in the same order, and no word that the glossary tells not to use.
set -eu
cd "$1"

# The outline of a page: its headings' levels, rows of tables, blocks.
outline() {
    awk '/^```/ { print "block"; inside = !inside; next }
         inside { next }
         /^#+ / { print $1 }
         /^\|/ { print "row" }' "$1"
}

twin() {
    case $1 in
    README.zh-CN.md) echo README.md ;;
    *) echo "docs/guide/$(basename "$1")" ;;
    esac
}

bad=0
for page in README.zh-CN.md docs/zh-CN/*.md; do
    [ "$page" = docs/zh-CN/glossary.md ] && continue
    english=$(twin "$page")
    if [ "$(outline "$page")" != "$(outline "$english")" ]; then
        echo "$page and $english differ in their headings, tables or blocks"
        bad=1
    fi
done

# The manual: the same sections, options and verbs, and the same examples.
skeleton() {
    awk '/^\.Bd/ { inside = 1 } inside { print } /^\.Ed/ { inside = 0 }
         /^\.(Sh|Ss) / || /^\.It (Cm|Fl|Ev|Pa|Fn|Ql dialect) / { print }' "$1" |
        grep -v '^\.It .*[^ -~]'
}
for page in holdfast.1 holdfast.7; do
    skeleton "docs/man/$page" >"${TMPDIR:-/tmp}/chinese.$$"
    skeleton "docs/man/zh_CN/$page" | diff "${TMPDIR:-/tmp}/chinese.$$" - || {
        echo "docs/man/zh_CN/$page lacks, or has in addition, what is shown"
        bad=1
    }
    rm -f "${TMPDIR:-/tmp}/chinese.$$"
    if mandoc -T lint -W warning "docs/man/zh_CN/$page" | grep .; then
        bad=1
    fi
done

# One word for one thing: the third column of the glossary has those to avoid.
for word in $(awk -F'|' 'NR > 6 { gsub("、", " ", $4); print $4 }' \
    docs/zh-CN/glossary.md); do
    if grep -n "$word" README.zh-CN.md docs/zh-CN/[!g]*.md docs/man/zh_CN/*; then
        echo "docs/zh-CN/glossary.md says not to use $word"
        bad=1
    fi
done

# The figures are the same.
figures() {
    grep -E '^\| `' "$1" | grep -oE '[0-9.]+[–][0-9.]+' | tr '\n' ' '
}
if [ "$(figures README.md)" != "$(figures README.zh-CN.md)" ]; then
    echo "README.zh-CN.md has other figures than README.md"
    bad=1
fi

# explained WHAT PATTERN: does a row of both pages begin so?
explained() {
    for page in docs/guide/troubleshooting.md docs/zh-CN/troubleshooting.md; do
        grep -qE "^\| $2" "$page" || {
            echo "$page does not explain $1"
            bad=1
        }
    done
}

for code in $(sed -n 's/^    X(\(E[A-Z]*\),.*/HF_\1/p' include/holdfast.h); do
    explained "$code" "\`$code\` \|"
done
for code in $(sed -n 's/^    CLI_[A-Z_]* = \([0-9]*\),$/\1/p' cli/cli.h); do
    explained "exit code $code" "([0-9]+[,、] ?)*$code\b"
done
exit $bad
