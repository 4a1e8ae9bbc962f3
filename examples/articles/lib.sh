# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# lib.sh - what the recipes share. Sourced.

set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

naive() {
    echo "naive:    $*"
}

ours() {
    echo "holdfast: $*"
}

# expect WHAT IS WANTED: a recipe that does not go as told is an error.
expect() {
    [ "$2" = "$3" ] || {
        echo "$1: \"$2\", not \"$3\"" >&2
        exit 1
    }
}

# exit_of COMMAND…: its exit code.
exit_of() {
    code=0
    "$@" >/dev/null 2>&1 || code=$?
    echo "$code"
}

# hold NAME [OPTION…]: another process has the lock from here on …
hold() {
    rm -f "$dir/open" "$dir/told"
    mkfifo "$dir/open"
    env -u HOLDFAST_TOKEN holdfast hold "$@" <"$dir/open" >"$dir/told" 2>/dev/null &
    holder=$!
    exec 8>"$dir/open"
    until [ -s "$dir/told" ]; do :; done
}

# … until here.
let_go() {
    exec 8>&-
    wait "$holder"
}

# die NAME [OPTION…]: a holder that is killed with the lock in its hands.
die() {
    holdfast run "$@" -- sh -c 'kill -9 $PPID' 2>/dev/null || true
}

# in_line NAME NUMBER: wait until so many stand in line.
in_line() {
    until [ "$(holdfast show "$1" | grep -c "in line")" = "$2" ]; do :; done
}
