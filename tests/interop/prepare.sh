#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
#
# prepare.sh java|go|node|python FROM TO - build the peer in FROM, with the
# libraries that it names, into the directory TO. Does nothing if that is done
# and FROM has not changed since; two at once are one after the other.

set -euo pipefail

tool=$1
from=$2
to=$3
mkdir -p "$to"
exec 9>"$to/lock"
flock 9
shared=$(dirname "$0")/java/Orders.java
sum=$(cat "$from"/* "$shared" | sha256sum)
if [ "$(cat "$to/done" 2>/dev/null)" = "$sum" ]; then
    exit 0
fi

case $tool in
java)
    mvn -q -B -f "$from/pom.xml" -Dout="$to" \
        org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies
    javac -d "$to" -cp "$to/dependency/*" "$from/Peer.java" "$shared"
    ;;
go)
    cp "$from"/* "$to"
    (cd "$to" && go build -o peer .)
    ;;
node)
    cp "$from"/* "$to"
    (cd "$to" && npm ci --silent --no-audit --no-fund)
    ;;
python)
    PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --upgrade \
        --target "$to/lib" -r "$from/requirements.txt"
    cp "$from/peer.py" "$to"
    ;;
esac
printf '%s\n' "$sum" >"$to/done"
