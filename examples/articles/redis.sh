# shellcheck shell=sh
# SPDX-License-Identifier: MIT
#
# redis.sh - a recipe on the server REDIS. Sourced.

. "$(dirname "$0")/lib.sh"
: "${REDIS:=${HOLDFAST_TEST_URL:-redis://127.0.0.1:6379}}"
export HOLDFAST_URL="$REDIS"

redis() {
    redis-cli -u "${REDIS%%\?*}" "$@"
}

# gone KEY: wait until its lease has ended.
gone() {
    while [ "$(redis exists "$1")" = 1 ]; do
        :
    done
}
