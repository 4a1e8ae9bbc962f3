#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_memcached.sh tcp|tls QUERY COMMAND… - start a Memcached server of our
# own, run COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop it.

. "$(dirname "$0")/../../lib/server.sh"

kind=$1
query=$2
shift 2

# Is the process that we started the one that listens?
listens() {
    local inode

    inode=$(awk -v port="$(printf '%04X' "$1")" \
        '$2 ~ ":" port "$" && $4 == "0A" { print $10; exit }' /proc/net/tcp)
    [ -n "$inode" ] &&
        find "/proc/${servers[0]}/fd" -lname "socket:\[$inode\]" 2>/dev/null |
        grep -q .
}

start() {
    local port=$1 options=(-u root -l 127.0.0.1 -p "$1" -U 0 -m 64 -t 2)

    url=memcached://127.0.0.1:$port
    if [ "$kind" = tls ]; then
        options+=(-Z -o "ssl_chain_cert=$dir/server.crt,ssl_key=$dir/server.key")
        url=memcacheds://127.0.0.1:$port
    fi
    serve "$dir/log" memcached "${options[@]}"
    await listens "$port"
}

if [ "$kind" = tls ]; then
    quietly certificates
    query="tls.ca=$dir/ca.crt${query:+&$query}"
fi
on_free_ports start
run_with "$url" "$@"
