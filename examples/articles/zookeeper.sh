# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# zookeeper.sh - a recipe on the server ZOOKEEPER, with Java's client. Sourced.

. "$(dirname "$0")/lib.sh"
: "${ZOOKEEPER:=${HOLDFAST_TEST_URL:-zk://127.0.0.1:2181/locks}}"
: "${CLASSES:=/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-simple.jar}"
export HOLDFAST_URL="$ZOOKEEPER"

address=${ZOOKEEPER#zk://}
address=${address%%[/?]*}
source=$(dirname "$0")/Znode.java

# scene NAME: what happens in it.
scene() {
    java -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=error \
        -cp "$CLASSES" "$source" "$address" "$1"
}

# four LETTERS: what the server answers.
four() {
    exec 7<>"/dev/tcp/${address%:*}/${address#*:}"
    printf %s "$1" >&7
    cat <&7
    exec 7>&-
}
