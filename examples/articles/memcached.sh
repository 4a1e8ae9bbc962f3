#!/bin/bash
# SPDX-License-Identifier: MIT
#
# memcached.sh - add, and delete at the end: as with DEL, who is late deletes the
# lock of another. MEMCACHED is host:port.

. "$(dirname "$0")/lib.sh"
: "${MEMCACHED:=${HOLDFAST_TEST_URL:-127.0.0.1:11211}}"
MEMCACHED=${MEMCACHED#memcached://}
MEMCACHED=${MEMCACHED%%[/?]*}

# ask COMMAND [DATA]: the first line of the answer.
ask() {
    local answer
    exec 7<>"/dev/tcp/${MEMCACHED%:*}/${MEMCACHED#*:}"
    printf '%s\r\n' "$@" >&7
    read -r answer <&7
    exec 7>&-
    printf '%s\n' "${answer%$'\r'}"
}

ask "delete articles" >/dev/null
expect "A takes it" "$(ask "add articles 0 1 1" A)" STORED
until [ "$(ask "get articles")" = END ]; do :; done # A is slow
expect "B takes it" "$(ask "add articles 0 60 1" B)" STORED
expect "A deletes it" "$(ask "delete articles")" DELETED
expect "C takes it" "$(ask "add articles 0 60 1" C)" STORED
naive "A deleted the lock of B: B and C are both inside"
ask "delete articles" >/dev/null

export HOLDFAST_URL=memcached://$MEMCACHED
holdfast run articles -- true
ours "deletes with the number of its own value (meta commands), never another's"
