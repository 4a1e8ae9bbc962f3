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
# memory where that is possible. HOLDFAST_TEST_ETCD and HOLDFAST_TEST_ETCDCTL are
# other programs than those of the PATH.

in_memory=yes
. "$(dirname "$0")/../../lib/server.sh"

kind=$1
query=$2
shift 2
members=$kind
client=http
tls=()
if [ "$kind" = tls ]; then
    members=1
    client=https
    tls=(--cert-file "$dir/server.crt" --key-file "$dir/server.key"
        --trusted-ca-file "$dir/ca.crt" --client-cert-auth)
fi

# Member $1 of the cluster, on port $2 and the next one.
member() {
    rm -rf "$dir/m$1"
    serve "$dir/log.$1" "${HOLDFAST_TEST_ETCD:-etcd}" --name "m$1" --data-dir "$dir/m$1" \
        --listen-client-urls "$client://127.0.0.1:$2" \
        --advertise-client-urls "$client://127.0.0.1:$2" \
        --listen-peer-urls "http://127.0.0.1:$(($2 + 1))" \
        --initial-advertise-peer-urls "http://127.0.0.1:$(($2 + 1))" \
        --initial-cluster "$cluster" --initial-cluster-state new \
        --heartbeat-interval 60 --election-timeout 660 \
        --logger zap --log-level warn "${tls[@]}"
}

control() {
    local certificates=()

    [ "$kind" != tls ] || certificates=(--cacert "$dir/ca.crt"
        --cert "$dir/server.crt" --key "$dir/server.key")
    ETCDCTL_API=3 "${HOLDFAST_TEST_ETCDCTL:-etcdctl}" \
        --endpoints "${hosts//127/$client://127}" \
        "${certificates[@]}" "$@" >"$dir/log.control" 2>&1
}

start() {
    local i

    cluster=
    hosts=
    for ((i = 0; i < members; i++)); do
        cluster=$cluster${cluster:+,}m$i=http://127.0.0.1:$(($1 + 2 * i + 1))
        hosts=$hosts${hosts:+,}127.0.0.1:$(($1 + 2 * i))
    done
    for ((i = 0; i < members; i++)); do
        member "$i" $(($1 + 2 * i))
    done
    await control endpoint health
}

make_certificates() {
    certificates
    certificate client /CN=client
}

make_user() {
    control user add root:root &&
        control user grant-role root root &&
        control role add locker &&
        control role grant-permission locker --prefix=true readwrite locks/ &&
        control user add locker:s3cret &&
        control user grant-role locker locker &&
        control auth enable || {
        cat "$dir/log.control" >&2
        exit 1
    }
}

[ "$kind" != tls ] || quietly make_certificates
on_free_ports start
url=etcd://$hosts
if [ "$kind" = tls ]; then
    make_user
    url=etcds://locker:s3cret@$hosts/locks
    query="tls.ca=$dir/ca.crt&tls.cert=$dir/client.crt&tls.key=$dir/client.key${query:+&$query}"
fi
run_with "$url" "$@"
