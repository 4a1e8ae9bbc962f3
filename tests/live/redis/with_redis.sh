#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_redis.sh tcp|unix|tls QUERY COMMAND… - start a Redis server of our own,
# run COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop the server.
#
# tls: TLS, a certificate of our own authority, and an ACL user that has no
# more rights than holdfast(7) asks for.

set -euo pipefail

kind=$1
query=$2
shift 2
dir=$(mktemp -d)
server=

clean() {
    if [ -n "$server" ]; then
        kill "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$dir"
}
trap clean EXIT

# An authority, and a certificate of it for 127.0.0.1.
make_certificates() {
    (
        cd "$dir"
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout ca.key -out ca.crt -days 2 -subj "/CN=test authority"
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
            -keyout server.key -out server.csr -subj "/CN=redis"
        printf 'subjectAltName=IP:127.0.0.1,DNS:localhost\n' >san
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key \
            -CAcreateserial -days 2 -extfile san -out server.crt
    ) >"$dir/openssl.log" 2>&1 || {
        cat "$dir/openssl.log" >&2
        exit 1
    }
}

rights='-@all +hello +auth +ping +info +select +script|load +evalsha +eval
+client|kill +subscribe +publish +time +get +set +del +incrby +pttl +pexpire
+exists +rpush +lpush +lpop +lrem +lindex +lrange +hset +hget +hdel +zadd +zrem
+zcard +zscore +zrange +zrangebyscore +scan +config|get'

start() {
    local port=$1 log=$dir/log options=()

    case $kind in
    tcp)
        options=(--port "$port" --bind 127.0.0.1)
        url=redis://127.0.0.1:$port
        ;;
    unix)
        options=(--port 0 --unixsocket "$dir/socket")
        url=redis+unix://$dir/socket
        ;;
    tls)
        options=(--port 0 --tls-port "$port" --bind 127.0.0.1
            --tls-cert-file "$dir/server.crt" --tls-key-file "$dir/server.key"
            --tls-ca-cert-file "$dir/ca.crt" --tls-auth-clients no
            --aclfile "$dir/acl")
        url=rediss://locker:s3cret@127.0.0.1:$port
        query="tls.ca=$dir/ca.crt${query:+&$query}"
        ;;
    esac
    setpriv --pdeathsig KILL redis-server --save "" --appendonly no \
        --dir "$dir" "${options[@]}" >"$log" 2>&1 </dev/null &
    server=$!
    # Whatever happens to us, it does not stay behind. It says when it is
    # ready, and ends when it cannot have the port.
    while ! grep -qi 'ready to accept connections' "$log"; do
        kill -0 "$server" 2>/dev/null || return 1
        read -r -t 0.02 <> <(:) || true
    done
}

if [ "$kind" = tls ]; then
    make_certificates
    {
        echo "user default off"
        echo "user locker on >s3cret ~hf:* &hf:*" $rights
    } >"$dir/acl"
fi
given=$query
for _ in 1 2 3 4 5 6 7 8; do
    query=$given
    start $((20000 + RANDOM % 12000)) && break
    server=
done
[ -n "$server" ] || {
    cat "$dir/log" >&2
    exit 1
}
export HOLDFAST_TEST_URL="$url${query:+?$query}"
"$@"
