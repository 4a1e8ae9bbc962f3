#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pairs.py [--check] - how long an acquire and a release take on each engine.

Measures with "holdfast bench --scenario pair" on servers that it starts, in turns,
and writes pairs.json beside this file and the rows of the two pages that show them.
--check compares the pages with pairs.json, and measures nothing.
"""
import contextlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
HOLDFAST = os.path.join(ROOT, "build", "holdfast")
FIGURES = os.path.join(HERE, "pairs.json")
PAGES = {"docs/guide/choosing.md": 0, "docs/zh-CN/choosing.md": 1}
BEGIN, END = "<!-- pairs.json -->\n", "<!-- end -->\n"
ROUNDS, SECONDS = 5, 0.4

# Name, server of tests/live, query of the URL, and the row's name in both languages.
ENGINES = [
    ("local", None, "", "`local:`", "`local:`"),
    ("redis", ["redis/with_redis.sh", "tcp", ""], "",
     "`redis://`", "`redis://`"),
    ("redlock", ["redlock/with_redlock.sh", "5", ""], "",
     "`redlock://`, five servers", "`redlock://`，五台服务器"),
    ("memcached", ["memcached/with_memcached.sh", "tcp", ""], "",
     "`memcached://`", "`memcached://`"),
    ("zookeeper", ["zookeeper/with_zookeeper.sh", "ensemble", ""], "",
     "`zk://`, three servers", "`zk://`，三台服务器"),
    ("etcd", ["etcd/with_etcd.sh", "3", ""], "",
     "`etcd://`, three servers", "`etcd://`，三台服务器"),
    ("mysql session", ["mysql/with_mysql.sh", ""], "?mode=get_lock",
     "`mysql://` `mode=get_lock`", "`mysql://` `mode=get_lock`"),
    ("mysql table", ["mysql/with_mysql.sh", ""], "?mode=table",
     "`mysql://` `mode=table`", "`mysql://` `mode=table`"),
    ("postgres session", ["postgres/with_postgres.sh", ""], "?mode=advisory",
     "`postgresql://` `mode=advisory`", "`postgresql://` `mode=advisory`"),
    ("postgres table", ["postgres/with_postgres.sh", ""], "?mode=table",
     "`postgresql://` `mode=table`", "`postgresql://` `mode=table`"),
]


# ---- to measure --------------------------------------------------------------

@contextlib.contextmanager
def serving(script):
    """The URL of a fresh server; without a script, of a store in memory."""
    if not script:
        with tempfile.TemporaryDirectory(dir="/dev/shm") as directory:
            yield "local://" + directory
        return
    with subprocess.Popen(
            [os.path.join(ROOT, "tests", "live", script[0]), *script[1:],
             "sh", "-c", 'echo "$HOLDFAST_TEST_URL"; read -r _ || :'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.stdin.close()


def pair(url):
    return json.loads(subprocess.check_output(
        [HOLDFAST, "bench", "--json", "--scenario", "pair", "--seconds",
         str(SECONDS), "-u", url], text=True))


def measure(script, query):
    with serving(script) as url:
        pair(url + query)  # warm
        turns = [pair(url + query) for _ in range(ROUNDS)]
    return {figure: round(statistics.median(turn[figure] for turn in turns), 2)
            for figure in ("p50_us", "p99_us")}


def commit():
    return subprocess.check_output(
        ["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], text=True).strip()


def measure_all():
    load = os.getloadavg()[0]
    found = {name: measure(script, query)
             for name, script, query, _, _ in ENGINES}
    return {"command": "docs/benchmarks/pairs.py", "commit": commit(),
            "load": round(load, 1), "processors": os.cpu_count(),
            "system": platform.release(), "pairs": found}


# ---- the pages ---------------------------------------------------------------

def duration(us):
    if us >= 1000:
        return "%.1f ms" % (us / 1000)
    return "%.1f µs" % us if us < 10 else "%.0f µs" % us


def rows(figures, language):
    for engine in ENGINES:
        pair_ = figures["pairs"][engine[0]]
        yield "| %s | %s | %s |\n" % (engine[3 + language],
                                      duration(pair_["p50_us"]),
                                      duration(pair_["p99_us"]))


def filled(text, figures, language):
    """The page with the table between its marks; its first two lines stay."""
    def table(match):
        head = "".join(match.group(1).splitlines(True)[:2])
        return BEGIN + head + "".join(rows(figures, language)) + END

    made, found = re.subn(re.escape(BEGIN) + "(.*?)" + re.escape(END), table,
                          text, flags=re.S)
    if found != 1:
        sys.exit("a page has no table of pairs")
    return made


def check(figures):
    bad = 0
    for page, language in PAGES.items():
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            text = file.read()
        if filled(text, figures, language) != text:
            print("%s has other figures than docs/benchmarks/pairs.json" % page)
            bad = 1
    return bad


def write(figures):
    with open(FIGURES, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1)
        file.write("\n")
    for page, language in PAGES.items():
        path = os.path.join(ROOT, page)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(filled(text, figures, language))


def main():
    if sys.argv[1:] == ["--check"]:
        with open(FIGURES, encoding="utf-8") as file:
            return check(json.load(file))
    write(measure_all())
    return 0


if __name__ == "__main__":
    sys.exit(main())
