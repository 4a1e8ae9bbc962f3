#!/bin/sh
# SPDX-License-Identifier: MIT
# lua.sh DIRECTORY LUAC - the scripts for Redis, as they are sent: they compile,
# and use no global name but those that Redis has.
set -eu

bad=0
n=0
for script in "$1"/alone/*.lua "$1"/cluster/*.lua; do
    n=$((n + 1))
    listing=$("$2" -l -p "$script") || {
        bad=1
        continue
    }
    # GETGLOBAL and SETGLOBAL are of Lua 5.1, which is what Redis runs.
    globals=$(echo "$listing" | sed -n 's/.*[GS]ETGLOBAL.*; //p' | sort -u |
        grep -vxE 'ARGV|KEYS|ipairs|math|redis|string|tonumber|type|unpack' ||
        true)
    [ -z "$globals" ] || {
        echo "$script: not a name of Redis: $globals"
        bad=1
    }
done
[ "$n" -ge 60 ] || {
    echo "$1 has $n scripts"
    bad=1
}
exit $bad
