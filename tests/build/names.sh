#!/bin/sh
# SPDX-License-Identifier: MIT
# names.sh ROOT OBJECT… - a file's internal functions carry its name, and so do
# its first lines.
#
# What src/DIR/FILE.c exports as hf__… begins with hf__FILE_ (or its singular:
# keys.c has hf__key_find). In an engine it may also begin with
# hf__ENGINE_FILE_ (hf__zk_FILE_ in zookeeper, hf__pg_FILE_ in postgres), be an operation of the engine's
# table (hf__ENGINE_release), or be the table itself (hf__engine_ENGINE). Public
# functions, hf_…, are named by their users' view and not looked at.
#
# "nouns" lists the other words that a file may begin its names with. Keep it
# short: a new line needs a reason.
set -eu
cd "$1"
shift

find src cli tests bench examples -name '*.[ch]' -exec awk '
    FNR <= 4 && match($0, /[a-z0-9_]+\.[ch] - /) {
        name = substr($0, RSTART, RLENGTH - 3)
        if (substr("/" FILENAME, length(FILENAME) - length(name) + 1) != "/" name) {
            printf "%s: its first lines call it %s\n", FILENAME, name
            bad = 1
        }
    }
    END { exit bad }' {} +

nouns() {
    cat <<'END'
base/alloc        malloc calloc realloc free strdup strndup text
base/error        fail
base/loop         alarm fd io timer
base/world        processors random
config/config     override settings
config/config_file config
core/monitor      waiter
net/stream        net
engines/registry  engine
engines/local/choose    place
engines/local/directory place
engines/local/token     mark
engines/local/waiting   watch
engines/local/attend    observe check_store
engines/local/inspect   break holder
engines/wrap/fault_script fault
engines/redis/cluster_ask   cluster
engines/redis/cluster_nodes cluster
engines/redis/sentinel      sentinels
engines/mysql/library  mariadb
engines/sql/dialect     name_uuid
END
}

{
    nouns | sed 's/^/noun /'
    sed -n 's/^ *hf__engine_[a-z]*_fn \*\([a-z_]*\);.*/operation \1/p' \
        src/engines/engine.h
    nm -A --defined-only "$@" |
        sed -n 's/.*\/src\/\(.*\)\.c\.o:[0-9a-f]* [A-Z] \(hf__.*\)/name \1 \2/p'
} | awk '
    # Does @name begin with one of the words of @list, as a whole word?
    function begins(name, list,    words, n, i) {
        n = split(list, words, " ")
        for (i = 1; i <= n; i++)
            if (index(name "_", words[i] "_") == 1)
                return 1
        return 0
    }
    function rest() { sub(/^[^ ]+ +[^ ]+ +/, ""); return $0 }
    $1 == "noun"      { path = $2; noun[path] = rest(); next }
    $1 == "operation" { operations = operations " " $2; next }
    {
        n = split($2, part, "/")
        file = part[n]
        one = file
        sub(/s$/, "", one)
        engine = part[1] == "engines" && n == 3 ? part[2] : ""
        name = substr($3, 5)
        if (engine == "zookeeper")
            sub(/^zk_/, "zookeeper_", name)
        if (engine == "postgres")
            sub(/^pg_/, "postgres_", name)
        names++
        used[$2] = 1
        if (engine != "" && name ~ "^engine_")
            next
        if (begins(name, file " " one " " noun[$2]))
            next
        if (engine != "" && index(name, engine "_") == 1) {
            name = substr(name, length(engine) + 2)
            if (begins(name, file " " one " " operations " " noun[$2]))
                next
        }
        printf "src/%s.c: %s does not carry the name of its file\n", $2, $3
        bad = 1
    }
    END {
        for (path in noun)
            if (!(path in used)) {
                printf "names.sh: src/%s.c has no names to except\n", path
                bad = 1
            }
        if (names < 100) {
            print "names.sh: saw only " names " names"
            bad = 1
        }
        exit bad
    }'
