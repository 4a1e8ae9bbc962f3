#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_etcd.sh MEMBERS|tls QUERY COMMAND… - start a cluster of our own, run
# COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop the servers.
#
# tls: one member with TLS, client certificates, and a user whose role has no
# more rights than holdfast(7) asks for.
#
# The shorter election makes one second the shortest lease; data is kept in
# memory where that is possible.

set -euo pipefail

kind=$1
query=$2
shift 2
members=$kind
[ "$kind" = tls ] && members=1
if [ -w /dev/shm ]; then
    dir=$(mktemp -d -p /dev/shm)
else
    dir=$(mktemp -d)
fi
servers=()

stop() {
    local server

    for server in "${servers[@]}"; do
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
    servers=()
}
trap 'stop; rm -rf "$dir"' EXIT

pause() {
    read -r -t 0.05 <> <(:) || true
}

# An authority, and a certificate of it for 127.0.0.1.
make_certificates() {
    (
        cd "$dir"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout ca.key -out ca.crt -days 2 -subj "/CN=test authority"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout server.key -out server.csr -subj "/CN=etcd"
        printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' >san
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key \
            -CAcreateserial -days 2 -extfile san -out server.crt
        # With users, the gateway refuses certificates with a common name.
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout client.key -out client.csr -subj "/O=holdfast"
        openssl x509 -req -in client.csr -CA ca.crt -CAkey ca.key \
            -CAcreateserial -days 2 -out client.crt
    ) >"$dir/openssl.log" 2>&1 || {
        cat "$dir/openssl.log" >&2
        exit 1
    }
}

# Member $1 of the cluster on ports from $2.
member() {
    local port=$(($2 + 2 * $1)) client=http tls=()

    if [ "$kind" = tls ]; then
        client=https
        tls=(--cert-file "$dir/server.crt" --key-file "$dir/server.key"
            --trusted-ca-file "$dir/ca.crt" --client-cert-auth)
    fi
    etcd --name "m$1" --data-dir "$dir/m$1" \
        --listen-client-urls "$client://127.0.0.1:$port" \
        --advertise-client-urls "$client://127.0.0.1:$port" \
        --listen-peer-urls "http://127.0.0.1:$((port + 1))" \
        --initial-advertise-peer-urls "http://127.0.0.1:$((port + 1))" \
        --initial-cluster "$cluster" --initial-cluster-state new \
        --heartbeat-interval 60 --election-timeout 660 \
        --logger zap --log-level warn "${tls[@]}" \
        >"$dir/log.$1" 2>&1 </dev/null &
    servers+=($!)
}

control() {
    ETCDCTL_API=3 etcdctl --endpoints "${endpoints#,}" \
        ${certificates[@]+"${certificates[@]}"} "$@"
}

start() {
    local i

    cluster=
    endpoints=
    hosts=
    certificates=()
    [ "$kind" = tls ] && certificates=(--cacert "$dir/ca.crt"
        --cert "$dir/server.crt" --key "$dir/server.key")
    for ((i = 0; i < members; i++)); do
        cluster=$cluster,m$i=http://127.0.0.1:$(($1 + 2 * i + 1))
        hosts=$hosts,127.0.0.1:$(($1 + 2 * i))
        endpoints=$endpoints,$([ "$kind" = tls ] && echo https:// || true)127.0.0.1:$(($1 + 2 * i))
    done
    cluster=${cluster#,}
    for ((i = 0; i < members; i++)); do
        member "$i" "$1"
    done
    # They end when they cannot have their ports.
    while ! control endpoint health >"$dir/health" 2>&1; do
        for i in "${servers[@]}"; do
            kill -0 "$i" 2>/dev/null || return 1
        done
        pause
    done
}

[ "$kind" = tls ] && make_certificates
for _ in 1 2 3 4 5 6 7 8; do
    start $((20000 + RANDOM % 12000)) && break
    stop
    rm -rf "$dir"/m*
done
[ "${#servers[@]}" -gt 0 ] || {
    cat "$dir"/log.* >&2
    exit 1
}
url=etcd://${hosts#,}
if [ "$kind" = tls ]; then
    {
        control user add root:root
        control user grant-role root root
        control role add locker
        control role grant-permission locker --prefix=true readwrite locks/
        control user add locker:s3cret
        control user grant-role locker locker
        control auth enable
    } >"$dir/control.log" 2>&1 || {
        cat "$dir/control.log" >&2
        exit 1
    }
    url=etcds://locker:s3cret@${hosts#,}/locks
    query="tls.ca=$dir/ca.crt&tls.cert=$dir/client.crt&tls.key=$dir/client.key${query:+&$query}"
fi
export HOLDFAST_TEST_URL="$url${query:+?$query}"
"$@"
