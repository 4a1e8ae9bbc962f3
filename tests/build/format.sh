#!/bin/sh
# SPDX-License-Identifier: MIT
# format.sh ROOT - every C file has the layout that .clang-format gives it.
#
# Other versions of clang-format lay out a few things differently, so the check
# needs the version that .clang-format names. Without it, or without git, the
# check is skipped (77).
set -eu
cd "$1"

skip() {
    echo "skipped: $*"
    exit 77
}

wanted=$(sed -n 's/^#.*clang-format \([0-9]*\)[.]*$/\1/p' .clang-format)
program=clang-format-$wanted
command -v "$program" >/dev/null || program=clang-format
version=$("$program" --version 2>/dev/null) || skip "no clang-format"
case $version in
*"version $wanted."*) ;;
*) skip "$version, not $wanted" ;;
esac
files=$(git ls-files --cached --others --exclude-standard -- '*.c' '*.h') ||
    skip "not a git repository"

# A file that is deleted but not yet committed is still in the list.
report=$(echo "$files" | while read -r file; do
    [ ! -e "$file" ] || echo "$file"
done | xargs -n 60 "$program" --dry-run --Werror 2>&1) || true
[ -z "$report" ] || {
    echo "$report"
    echo "./dev format mends this"
    exit 1
}
