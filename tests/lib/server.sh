# shellcheck shell=bash
# SPDX-License-Identifier: MIT
#
# server.sh - what the scripts with_ENGINE.sh share: they start servers of our
# own, run a command with HOLDFAST_TEST_URL set to them, and stop them. Sourced.
#
# The servers live in $dir, which is gone with them when the script ends. Even
# when it is killed they end, by the kernel's hand: it sends $end_with to them.

set -euo pipefail

if [ -n "${in_memory:-}" ] && [ -w /dev/shm ]; then
    dir=$(mktemp -d -p /dev/shm)
else
    dir=$(mktemp -d)
fi
end_with=KILL
servers=()

stop_servers() {
    local server

    for server in "${servers[@]}"; do
        kill "-$end_with" "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    done
    servers=()
}
trap 'stop_servers; rm -rf "$dir"' EXIT

# serve LOG COMMAND…: start it in the background. A change of its user would
# undo what ends it with us: as another user only by serve_as.
serve() {
    local log=$1
    shift
    : >"$log"
    setpriv --pdeathsig "$end_with" "$@" >"$log" 2>&1 </dev/null &
    servers+=($!)
}

# serve_as USER LOG COMMAND…: as USER where we are root, else as ourselves.
serve_as() {
    local user=$1 log=$2 as=()
    shift 2
    if [ "$(id -u)" = 0 ]; then
        as=(--reuid="$user" --regid="$user" --init-groups)
    fi
    serve "$log" "${as[@]}" "$@"
}

# as_user USER COMMAND…: the same for a command that ends.
as_user() {
    local user=$1
    shift
    if [ "$(id -u)" = 0 ]; then
        setpriv --reuid="$user" --regid="$user" --init-groups "$@"
    else
        "$@"
    fi
}

# await CONDITION…: until it holds. Fails when a server has ended, as one does
# that cannot have its port.
await() {
    local server

    until "$@"; do
        for server in "${servers[@]}"; do
            kill -0 "$server" 2>/dev/null || return 1
        done
        read -r -t 0.02 <> <(:) || true
    done
}

# says TEXT LOG: is TEXT in it?
says() {
    grep -qi "$1" "$2"
}

# on_free_ports START: call START with the first of some ports, until what it
# starts comes up.
on_free_ports() {
    local try

    for try in 1 2 3 4 5 6 7 8; do
        if "$1" $((20000 + RANDOM % 12000)); then
            return 0
        fi
        stop_servers
    done
    cat "$dir"/log* >&2
    echo "no server after $try tries" >&2
    exit 1
}

# quietly COMMAND…: what it prints is shown if it fails.
quietly() {
    "$@" >"$dir/quiet" 2>&1 || {
        cat "$dir/quiet" >&2
        exit 1
    }
}

# certificate NAME SUBJECT [EXTENSION…]: NAME.key and NAME.crt in $dir, by the
# test authority.
certificate() {
    local name=$dir/$1 subject=$2
    shift 2
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -keyout "$name.key" -out "$name.csr" -subj "$subject"
    printf '%s\n' "$@" >"$name.ext"
    openssl x509 -req -in "$name.csr" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" \
        -CAcreateserial -days 2 -extfile "$name.ext" -out "$name.crt"
}

# certificates: the test authority, ca.crt, and a certificate of it for
# 127.0.0.1, server.crt.
certificates() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -keyout "$dir/ca.key" -out "$dir/ca.crt" -days 2 \
        -subj "/CN=test authority"
    certificate server /CN=server \
        'subjectAltName=IP:127.0.0.1,DNS:localhost'
}

# run_with URL COMMAND…: run it with URL and "?$query".
run_with() {
    export HOLDFAST_TEST_URL="$1${query:+?$query}"
    shift
    [ $# -gt 0 ] || {
        echo "there is nothing to run" >&2
        exit 64
    }
    "$@"
}
