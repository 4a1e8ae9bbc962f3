#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# test.sh BUILD [ENGINE…] - the JUnit suites of holdfast-java on a server of each
# engine that is started for them: local (the default), redis, zookeeper, etcd,
# mysql, postgres. BUILD has libholdfast_jni.so and the command. Maven works in a copy
# below BUILD, so that nothing appears among the sources.

set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
live=$here/../../tests/live
build=$(cd "$1" && pwd)
shift
[ $# -gt 0 ] || set -- local

mkdir -p "$build/java/work"
exec 9>"$build/java/lock"
flock 9
cp -R "$here/." "$build/java/work"


# A registry may fail once.
run() {
    local engine=$1
    shift
    HOLDFAST_TEST_COMMAND=$build/holdfast "$@" mvn -q -B \
        -f "$build/java/work/pom.xml" -Dholdfast.native="$build/java/native" \
        -DargLine="-Xcheck:jni -Dholdfast.test.pairs=100000" \
        -Dmaven.wagon.http.retryHandler.count=3 test
    echo "java: $engine passed"
}

for engine; do
    case $engine in
    local) run local env ;;
    redis) run redis "$live/redis/with_redis.sh" tcp "" ;;
    zookeeper) run zookeeper "$live/zookeeper/with_zookeeper.sh" one "" ;;
    etcd) run etcd "$live/etcd/with_etcd.sh" 1 "" ;;
    mysql) run mysql "$live/mysql/with_mysql.sh" "" ;;
    postgres) run postgres "$live/postgres/with_postgres.sh" "" ;;
    *)
        echo "test.sh: no such engine: $engine" >&2
        exit 64
        ;;
    esac
done
