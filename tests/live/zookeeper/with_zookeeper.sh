#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_zookeeper.sh one|tls|ensemble QUERY COMMAND… - start ZooKeeper servers of
# our own, run COMMAND with HOLDFAST_TEST_URL set to them (and "?QUERY"), stop
# them. tls: one, with a certificate of our own authority.
# HOLDFAST_TEST_ZOOKEEPER_CLASSPATH has another ZooKeeper than Debian's.

. "$(dirname "$0")/../../lib/server.sh"

kind=$1
query=$2
shift 2
java=/usr/share/java
classes=${HOLDFAST_TEST_ZOOKEEPER_CLASSPATH:-$java/zookeeper.jar:$java/slf4j-simple.jar}

# Does the server on port $1 serve?
serves() {
    local line

    exec 3<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf srvr >&3
    while read -r -t 5 line <&3; do
        case $line in Mode:*) return 0 ;; esac
    done
    return 1
} 2>/dev/null

make_stores() {
    certificates
    openssl pkcs12 -export -in "$dir/server.crt" -inkey "$dir/server.key" \
        -out "$dir/server.p12" -passout pass:secret
    keytool -importcert -noprompt -alias ca -file "$dir/ca.crt" \
        -keystore "$dir/trust.p12" -storetype PKCS12 -storepass secret
}

configure_tls() {
    cat <<EOF
secureClientPort=$1
secureClientPortAddress=127.0.0.1
serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory
ssl.keyStore.location=$dir/server.p12
ssl.keyStore.password=secret
ssl.keyStore.type=PKCS12
ssl.trustStore.location=$dir/trust.p12
ssl.trustStore.password=secret
ssl.trustStore.type=PKCS12
ssl.clientAuth=none
EOF
}

# configure NUMBER BASE: server NUMBER of those on the ports from BASE.
configure() {
    local at=$dir/$1 i

    rm -rf "$at"
    mkdir "$at"
    echo "$1" >"$at/myid"
    {
        cat <<EOF
tickTime=200
initLimit=50
syncLimit=10
minSessionTimeout=400
maxSessionTimeout=60000
dataDir=$at
clientPort=$(($2 + $1))
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
forceSync=no
EOF
        for ((i = 1; n > 1 && i <= n; i++)); do
            echo "server.$i=127.0.0.1:$(($2 + 10 + i)):$(($2 + 20 + i))"
        done
        [ "$kind" != tls ] || configure_tls $(($2 + 30))
    } >"$at/zoo.cfg"
}

start() {
    local i

    for ((i = 1; i <= n; i++)); do
        configure "$i" "$1"
        serve "$dir/log.$i" java -Xmx128m -XX:+UseSerialGC \
            -XX:TieredStopAtLevel=1 -Dzookeeper.extendedTypesEnabled=true \
            -Dzookeeper.forceSync=no \
            -Dorg.slf4j.simpleLogger.defaultLogLevel=warn -cp "$classes" \
            org.apache.zookeeper.server.quorum.QuorumPeerMain "$dir/$i/zoo.cfg"
    done
    hosts=
    for ((i = 1; i <= n; i++)); do
        await serves $(($1 + i)) || return 1
        hosts=$hosts${hosts:+,}127.0.0.1:$(($1 + i))
    done
    [ "$kind" != tls ] || hosts=127.0.0.1:$(($1 + 30))
}

n=1
scheme=zk
case $kind in
ensemble) n=3 ;;
tls)
    scheme=zks
    # The manifest of Debian's zookeeper.jar lacks them.
    [ -n "${HOLDFAST_TEST_ZOOKEEPER_CLASSPATH:-}" ] ||
        classes+=:$java/netty-codec.jar:$java/netty-resolver.jar:$java/netty-transport-native-unix-common.jar
    quietly make_stores
    query="tls.ca=$dir/ca.crt${query:+&$query}"
    ;;
esac
on_free_ports start
run_with "$scheme://$hosts/locks" "$@"
