#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_zookeeper.sh one|tls|ensemble QUERY COMMAND… - start ZooKeeper servers of
# our own, run COMMAND with HOLDFAST_TEST_URL set to them (and "?QUERY"), stop
# them. tls: one, with a certificate of our own authority.

set -euo pipefail

kind=$1
query=$2
shift 2
java=/usr/share/java
classes=$java/zookeeper.jar:$java/slf4j-simple.jar
dir=$(mktemp -d)
servers=()

clean() {
    for server in "${servers[@]}"; do
        kill -9 "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap clean EXIT

breathe() {
    read -r -t 0.05 <> <(:) || true
}

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

# An authority, and a certificate of it for 127.0.0.1.
make_certificates() {
    (
        cd "$dir"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout ca.key -out ca.crt -days 2 -subj "/CN=test authority"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout server.key -out server.csr -subj "/CN=zookeeper"
        printf 'subjectAltName=IP:127.0.0.1\n' >san
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key \
            -CAcreateserial -days 2 -extfile san -out server.crt
        openssl pkcs12 -export -in server.crt -inkey server.key \
            -out server.p12 -passout pass:secret
        keytool -importcert -noprompt -alias ca -file ca.crt \
            -keystore trust.p12 -storetype PKCS12 -storepass secret
    ) >"$dir/openssl.log" 2>&1 || {
        cat "$dir/openssl.log" >&2
        exit 1
    }
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

configure() {
    local number=$1 port=$2 at=$dir/$1

    mkdir "$at"
    echo "$number" >"$at/myid"
    cat >"$at/zoo.cfg" <<EOF
tickTime=200
initLimit=50
syncLimit=10
minSessionTimeout=400
maxSessionTimeout=60000
dataDir=$at
clientPort=$port
clientPortAddress=127.0.0.1
maxClientCnxns=0
admin.enableServer=false
4lw.commands.whitelist=*
forceSync=no
EOF
}

start() {
    local at=$dir/$1

    java -Xmx128m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 \
        -Dzookeeper.extendedTypesEnabled=true -Dzookeeper.forceSync=no \
        -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
        -cp "$classes" \
        org.apache.zookeeper.server.quorum.QuorumPeerMain "$at/zoo.cfg" \
        >"$at/log" 2>&1 </dev/null &
    servers+=($!)
}

# Until all of them serve; fails when one has ended, as on a port in use.
await() {
    local i

    for i in "${!servers[@]}"; do
        until serves "${ports[i]}"; do
            kill -0 "${servers[i]}" 2>/dev/null || return 1
            breathe
        done
    done
}

begin() {
    local n=$1 base=$2 i j

    ports=()
    servers=()
    for ((i = 1; i <= n; i++)); do
        ports+=($((base + i)))
        configure "$i" $((base + i))
        for ((j = 1; n > 1 && j <= n; j++)); do
            echo "server.$j=127.0.0.1:$((base + 10 + j)):$((base + 20 + j))"
        done >>"$dir/$i/zoo.cfg"
    done
    if [ "$kind" = tls ]; then
        make_certificates
        configure_tls $((base + 30)) >>"$dir/1/zoo.cfg"
    fi
    for ((i = 1; i <= n; i++)); do
        start "$i"
    done
    await
}

case $kind in
one) n=1 ;;
tls)
    n=1
    # The manifest of Debian's zookeeper.jar lacks them.
    classes+=:$java/netty-codec.jar:$java/netty-resolver.jar
    classes+=:$java/netty-transport-native-unix-common.jar
    ;;
ensemble) n=3 ;;
esac
for _ in 1 2 3 4 5; do
    begin "$n" $((20000 + RANDOM % 12000)) && break
    cat "$dir"/*/log >&2
    for server in "${servers[@]}"; do
        kill -9 "$server" 2>/dev/null || true
    done
    rm -rf "${dir:?}"/*
    servers=()
done
[ ${#servers[@]} -gt 0 ]
hosts=$(printf ',127.0.0.1:%s' "${ports[@]}")
scheme=zk
if [ "$kind" = tls ]; then
    scheme=zks
    hosts=,127.0.0.1:$((ports[0] + 29))
    query="tls.ca=$dir/ca.crt${query:+&$query}"
fi
export HOLDFAST_TEST_URL="$scheme://${hosts:1}/locks${query:+?$query}"
"$@"
