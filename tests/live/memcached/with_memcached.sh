#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# with_memcached.sh tcp|tls QUERY COMMAND… - start a Memcached server of our
# own, run COMMAND with HOLDFAST_TEST_URL set to it (and "?QUERY"), stop it.

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

# A certificate for 127.0.0.1 that is its own authority.
make_certificate() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -keyout "$dir/key" -out "$dir/crt" -days 2 -subj "/CN=memcached" \
        -addext "subjectAltName=IP:127.0.0.1" >"$dir/openssl.log" 2>&1 || {
        cat "$dir/openssl.log" >&2
        exit 1
    }
}

# Is the process that we started the one that listens?
listens() {
    local inode

    inode=$(awk -v port="$(printf '%04X' "$1")" \
        '$2 ~ ":" port "$" && $4 == "0A" { print $10; exit }' /proc/net/tcp)
    [ -n "$inode" ] &&
        find "/proc/$server/fd" -lname "socket:\[$inode\]" 2>/dev/null |
        grep -q .
}

start() {
    local port=$1 options=(-u root -l 127.0.0.1 -p "$1" -U 0 -m 64 -t 2)

    url=memcached://127.0.0.1:$port
    if [ "$kind" = tls ]; then
        options+=(-Z -o "ssl_chain_cert=$dir/crt,ssl_key=$dir/key")
        url=memcacheds://127.0.0.1:$port
    fi
    # Whatever happens to us, it does not stay behind: a change of its user
    # would undo that.
    setpriv --pdeathsig KILL memcached "${options[@]}" >"$dir/log" 2>&1 \
        </dev/null &
    server=$!
    until listens "$port"; do
        kill -0 "$server" 2>/dev/null || return 1
        read -r -t 0.02 <> <(:) || true
    done
}

if [ "$kind" = tls ]; then
    make_certificate
    query="tls.ca=$dir/crt${query:+&$query}"
fi
for _ in 1 2 3 4 5 6 7 8; do
    start $((20000 + RANDOM % 12000)) && break
    server=
done
[ -n "$server" ] || {
    cat "$dir/log" >&2
    exit 1
}
export HOLDFAST_TEST_URL="$url${query:+?$query}"
"$@"
