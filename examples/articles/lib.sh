# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# lib.sh - what the recipes share. Sourced.

set -eu
: "${REDIS:=${HOLDFAST_TEST_URL:-redis://127.0.0.1:6379}}"
export HOLDFAST_URL="$REDIS"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

redis() {
    redis-cli -u "${REDIS%%\?*}" "$@"
}

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

# gone KEY: wait until its lease has ended.
gone() {
    while [ "$(redis exists "$1")" = 1 ]; do
        :
    done
}
