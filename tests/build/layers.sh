#!/bin/sh
# SPDX-License-Identifier: MIT
# layers.sh ROOT - includes point one way:
# cli → holdfast.h → core → engine.h → engines → net → base.
set -eu
cd "$1"

bad=0
# refuse WHAT PATTERN FILE…: none of the files includes what matches.
refuse() {
    what=$1
    pattern=$2
    shift 2
    for file in "$@"; do
        [ -e "$file" ] || continue
        if grep -nE "^#include \"$pattern\"" "$file" /dev/null; then
            echo "$file: $what"
            bad=1
        fi
    done
}

# The command sees the public header and its own.
for file in cli/*.c cli/*.h; do
    [ -e "$file" ] || continue
    for included in $(sed -n 's/^#include "\(.*\)"/\1/p' "$file"); do
        [ "$included" = holdfast.h ] || [ -e "cli/$included" ] || {
            echo "$file: includes $included, which is not the command's"
            bad=1
        }
    done
done

# base/ knows nothing about locks.
for file in src/base/*.c src/base/*.h; do
    for included in $(sed -n 's/^#include "\(.*\)"/\1/p' "$file"); do
        case $included in
        holdfast.h | base/*) ;;
        *)
            echo "$file: base/ includes $included"
            bad=1
            ;;
        esac
    done
done

# net/ knows nothing about locks either.
for file in src/net/*.c src/net/*.h; do
    for included in $(sed -n 's/^#include "\(.*\)"/\1/p' "$file"); do
        case $included in
        base/* | net/*) ;;
        *)
            echo "$file: net/ includes $included"
            bad=1
            ;;
        esac
    done
done

# No engine includes a header of another. They share engines/common/; those on
# SQL servers share engines/sql/.
for file in src/engines/*/*.c src/engines/*/*.h; do
    engine=${file#src/engines/}
    engine=${engine%%/*}
    for included in $(sed -n 's|^#include "engines/\([a-z]*\)/.*"|\1|p' "$file"); do
        case $engine-$included in
        "$engine-$engine" | *-common) ;;
        mysql-sql | postgres-sql) ;;
        *)
            echo "$file: the engine $engine includes headers of $included"
            bad=1
            ;;
        esac
    done
done

# Nor does the core.
refuse "the core includes an engine" "engines/[a-z]*/.*" src/core/*.[ch] src/api/*.[ch] \
    src/config/*.[ch]
# Engines know the contract, not the core. The wrappers are the exception: they
# log, and a line goes through the client.
refuse "an engine includes the core" \
    "(api/.*|core/(client|gate|hold|keeper|leaving|monitor|callbacks)).h" \
    src/engines/[!w]*/*.[ch]
# An engine reads of a ticket what is there for it, and not the core's own fields.
fields=$(sed -n "/The core's own/,/^};/p" src/core/ticket.h | sed 's|/\*.*||' |
    sed -n 's/^    [a-z].*[ *]\([a-z_]*\)\(\[.*\)*;.*/\1/p' | tr '\n' '|')
[ -n "$fields" ] || { echo "src/core/ticket.h: no fields of the core found"; bad=1; }
if grep -nE "(^|[^_a-z])ticket->(${fields%|})\>" src/engines/*/*.[ch]; then
    echo "an engine reads what is the core's of a ticket: see core/ticket.h"
    bad=1
fi
# The environment of a set-user-id program is its user's: nobody reads it.
if grep -nE '(^|[^_a-z])getenv *\(' cli/*.c src/*/*.c src/*/*/*.c; then
    echo "getenv: use secure_getenv"
    bad=1
fi
# The core does not know the public calls; config/ knows neither.
refuse "the core includes a public call" "api/.*" src/core/*.[ch]
refuse "config/ includes the core" "(api|core|engines)/.*" src/config/*.[ch]
exit $bad
