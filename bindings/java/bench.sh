#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# bench.sh BUILD - pairs and hand-overs of holdfast-java beside Redisson's RLock and
# Curator's InterProcessMutex, on one server each; and alone on local:, where the
# cost of JNI shows beside "holdfast bench".

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
live=$here/../../tests/live
build=$(cd "$1" && pwd)
work=$build/java/work
mkdir -p "$work"
cp -R "$here/." "$work"
mvn -q -B -f "$work/pom.xml" -Dholdfast.native="$build/java/native" -DskipTests install
mvn -q -B -f "$work/examples/pom.xml" dependency:build-classpath \
    -Dmdep.outputFile="$build/java/classpath"

bench() {
    java -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp "$work/examples/target/classes:$(cat "$build/java/classpath")" \
        dev.holdfast.examples.Bench "${1:-$HOLDFAST_TEST_URL}"
}
export -f bench
export work build

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
echo "local:"
bench "local://$directory"
echo "redis://"
"$live/redis/with_redis.sh" tcp "" bash -c bench
echo "zk://"
"$live/zookeeper/with_zookeeper.sh" one "" bash -c bench
