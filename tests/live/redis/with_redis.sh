#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_redis.sh tcp|unix|tls QUERY COMMAND… - start a Redis server of our own,
# run COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop the server.
#
# tls: TLS, a certificate of our own authority, and an ACL user that has no
# more rights than holdfast(7) asks for.

. "$(dirname "$0")/../../lib/server.sh"

kind=$1
query=$2
shift 2

rights='-@all +hello +auth +ping +info +select +script|load +evalsha +eval
+client|kill +client|tracking +subscribe +publish +time +get +set +del +incrby
+pttl +pexpire +exists +rpush +lpush +lpop +lrem +lindex +lrange +hset +hget +hdel +hgetall +zadd +zrem
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
        ;;
    esac
    serve "$log" "${HOLDFAST_TEST_REDIS_SERVER:-redis-server}" --save "" --appendonly no --dir "$dir" \
        "${options[@]}"
    await says 'ready to accept connections' "$log"
}

if [ "$kind" = tls ]; then
    quietly certificates
    query="tls.ca=$dir/ca.crt${query:+&$query}"
    {
        echo "user default off"
        echo "user locker on >s3cret ~hf:* &hf:*" $rights
    } >"$dir/acl"
fi
on_free_ports start
run_with "$url" "$@"
