# SPDX-License-Identifier: MIT
"""What is measured on each engine, beside what, and what is wanted.

A contender is a program that says a rate and a latency. A row is a ratio of
two of them: of medians of the latency ("p50", less is better), of its tail to a
median ("p99"), or of rates ("rate", more is better). Beside may also stand a
number: what was promised.
"""

import dataclasses
import os
import re
import socket
import sys
import typing

from measure import HOLDFAST, ROOT, raw


@dataclasses.dataclass
class Contender:
    name: str
    command: typing.Any  # of the server and the seconds; a peer's scenario
    seconds: float = 0  # 0: as long as all
    warm: float = 0  # seconds before the first round
    once: bool = False  # too long for every round; not pinned
    counters: typing.Optional[typing.Callable] = None
    peer: typing.Any = None  # a process that stays

    def is_slow(self):
        """Nothing for --quick: what is held, a hundred processes, or ten
        thousand requests."""
        return self.once or self.name.endswith((" 101", " 10000"))


@dataclasses.dataclass
class Row:
    name: str
    ours: str
    beside: typing.Any  # a contender's name, or a number
    figure: str = "p50"
    floor: float = 0  # 0: nothing was promised
    goal: float = 0
    checked: bool = True  # has a place in the baseline
    unpinned_floor: float = 0  # 0: the same

    def floor_at(self, place):
        return (place == "unpinned" and self.unpinned_floor) or self.floor

    def better(self, one, other):
        return one > other if self.figure == "rate" else one < other


@dataclasses.dataclass
class Engine:
    name: str
    server: list  # tests/live/…, and its arguments
    contenders: list
    rows: list
    alias: str = ""
    counted: bool = False  # quick enough for callgrind

    def checked(self):
        return [row for row in self.rows if row.checked]


def ours(name, *arguments, query="", **keys):
    """holdfast bench ARGUMENT…, as a contender. To connect is not measured, and
    takes a hundred processes long on a busy machine."""

    def command(server, seconds):
        return [HOLDFAST, "bench", "--json", "--seconds", str(seconds),
                *map(str, arguments), "-o", "connect_timeout=60s", "-u",
                server.url + query]

    return Contender(name, command, **keys)


def limit(engine, scenario, *arguments, name="", **keys):
    """The raw program of an engine at its ports, or at its URL."""

    def command(server, seconds):
        where = [server.url] if engine == "postgres" else server.ports
        return [raw(engine), scenario, str(seconds), *where,
                *map(str, arguments)]

    return Contender(name or "raw " + scenario, command, **keys)


def wall(name, *parts):
    """A command from its start to its end."""

    def command(server, seconds):
        words = {"URL": server.url, "DIRECTORY": server.url[len("local://"):],
                 "PORT": "".join(server.ports[:1])}
        return [sys.executable, os.path.join(ROOT, "bench", "wall.py"),
                str(seconds), *(re.sub("URL|DIRECTORY|PORT",
                                       lambda word: words[word.group()], part)
                                for part in parts)]

    return Contender(name, command)


def redis_counters(server):
    """Scripts run and messages read so far, from the server's own books."""
    with socket.create_connection(("127.0.0.1", int(server.ports[0]))) as sock:
        sock.sendall(b"INFO ALL\r\nQUIT\r\n")
        text = sock.makefile(encoding="utf-8", errors="replace").read()
    count = {"scripts": 0, "reads": 0}
    for line in text.splitlines():
        if line.startswith(("cmdstat_evalsha:", "cmdstat_eval:")):
            count["scripts"] += int(line.split("calls=")[1].split(",")[0])
        elif line.startswith("total_reads_processed:"):
            count["reads"] = int(line.split(":")[1])
    return count


# One holds the lock: two wait of three, a hundred of a hundred and one.
PROCESSES = (2, 3, 10, 101)
IN_FLIGHT = (1, 100, 10000)
THREADS = (2, 8, 32)
HELD = (1000, 10000, 100000)


def long_enough(n, many):
    """With @many of them it takes a while until each had its turn."""
    return {"seconds": 1} if n >= many else {}


def handovers(counters=None):
    return [ours(f"handover {n}", "--scenario", "handover", "--processes", n,
                 counters=counters, **long_enough(n, 100)) for n in PROCESSES]


def handovers_beside_raw(engine, counters=None):
    return [one for n, two in zip(PROCESSES, handovers(counters)) for one in (
        limit(engine, "handover", n, name=f"raw handover {n}",
              **long_enough(n, 100)), two)]


GROWTH = Row("handover, 100 waiting of 2 waiting", "handover 101", "handover 3")
# Beside raw, the rows of raw are checked: the growth depends on other programs.
GROWTHS = [dataclasses.replace(GROWTH, checked=False),
           Row("raw handover, 100 waiting of 2 waiting", "raw handover 101",
               "raw handover 3", checked=False)]


def tail(processes):
    """No hand-over is much later than the others."""
    name = f"handover {processes}"
    return Row(f"handover, {processes} processes, p99 of p50", name, name,
               "p99", 6, checked=False)


def threads(scenario, numbers=THREADS):
    return [ours(f"{scenario}, {n} threads", "--scenario", scenario,
                 "--threads", n) for n in numbers]


def flights():
    return [ours(f"async {n}", "--scenario", "async", "--locks", n,
                 **long_enough(n, 10000)) for n in IN_FLIGHT]


def held(numbers, seconds, counters=None):
    return [ours(f"held {n}", "--scenario", "held", "--locks", n, once=True,
                 seconds=seconds, counters=counters) for n in numbers]


PAIR = ours("pair", "--scenario", "pair")
TRY = ours("try", "--scenario", "try")
SHARED = "shared-name, 8 threads"

LOCAL = Engine(
    "local", None,
    [limit("local", "pair"), PAIR, limit("local", "try"), TRY] +
    handovers_beside_raw("local") +
    [limit("local", "shared-name")] + threads("shared-name") +
    threads("pair") + flights() +
    [wall("run", HOLDFAST, "run", "-u", "URL", "x", "--", "true"),
     wall("flock(1)", "flock", "DIRECTORY", "true")] + held(HELD, 10),
    [Row("pair", "pair", "raw pair", "rate", 2, 4),
     Row("try, refused", "try", "raw try", "rate"),
     Row("handover, 2 processes", "handover 2", "raw handover 2", "p50", 2.5),
     Row("handover, 10 processes", "handover 10", "raw handover 10"),
     Row("handover, 101 processes", "handover 101", "raw handover 101", "p50",
         0, 2),
     *GROWTHS,
     Row("one name, 8 threads", SHARED, "raw shared-name", "rate", 0.5),
     Row("async, 100 under way, of pair", "async 100", "pair", "rate"),
     Row("holdfast run x -- true", "run", "flock(1)", "p50", 1.5, 1.2)],
    counted=True)

REDIS = Engine(
    "redis", ["redis/with_redis.sh", "tcp", ""],
    [limit("redis", "pair"), PAIR, limit("redis", "try"), TRY] +
    handovers_beside_raw("redis", redis_counters) +
    [limit("redis", "pipeline", 8, name="raw pipeline 8"),
     *threads("pair"),
     ours("posted, 8 threads", "--scenario", "pair", "--threads", 8, "-o",
          "release=post"),
     limit("redis", "blocking", 8),
     limit("hiredis", "blocking", 8, name="hiredis")] + threads("shared-name") +
    [one for n, two in zip(IN_FLIGHT, flights()) for one in (limit(
        "redis", "pipeline", n, name=f"raw pipeline {n}",
        **long_enough(n, 10000)), two)] +
    held(HELD, 12, redis_counters),
    [Row("pair", "pair", "raw pair", "p50", 1.25, 1.1),
     Row("try, refused", "try", "raw try", "p50", 1.2),
     Row("handover, 2 processes", "handover 2", "raw handover 2", "p50", 2.2,
         1.5),
     Row("handover, 10 processes", "handover 10", "raw handover 10"),
     Row("handover, 101 processes", "handover 101", "raw handover 101", "p50",
         0, 1.5),
     *GROWTHS,
     Row("8 threads, of pipelining", "pair, 8 threads", "raw pipeline 8",
         "rate", 0.4, 0.6),
     Row("8 threads posting, of pipelining", "posted, 8 threads",
         "raw pipeline 8", "rate", 0.5),
     Row("8 threads, of 8 hiredis connections", "pair, 8 threads", "hiredis",
         "rate", 2, unpinned_floor=1.2),
     Row("8 threads, of 8 bare connections", "pair, 8 threads", "raw blocking",
         "rate"),
     Row("one name, 8 threads, of pair", SHARED, "pair", "rate", 5),
     Row("async, 1 under way", "async 1", "raw pipeline 1", "rate", 0, 0.7),
     Row("async, 100 under way", "async 100", "raw pipeline 100", "rate", 0,
         0.7),
     Row("async, 10000 under way", "async 10000", "raw pipeline 10000", "rate",
         0, 0.7)], counted=True)


def plain_engine(name, server, rows, contenders, **keys):
    """An engine with pairs and hand-overs only."""
    return Engine(name, server, contenders, rows, **keys)


ZOOKEEPER = plain_engine(
    "zk", ["zookeeper/with_zookeeper.sh", "one", ""],
    [Row("pair", "pair", "raw pair", "p50", 1.15),
     Row("handover, 2 processes", "handover 2", "raw handover", "p50", 1.3),
     GROWTH,
     Row("one name, 8 threads, of pair", SHARED, "pair", "rate", 1.5)],
    [limit("zookeeper", "pair", warm=2), PAIR,
     limit("zookeeper", "handover"), *handovers(), TRY,
     *threads("shared-name", (8,)), *flights()[:2], *held(HELD[:2], 10)],
    alias="zookeeper")


def beside_limits(engine, *pairs):
    """Each (limit, label, scenario, mode): the limit, then ours right after it."""
    steps = []
    for name, label, scenario, mode in pairs:
        steps += [limit(engine, name),
                  ours(label, "--scenario", scenario, query="?mode=" + mode)]
    return steps


ETCD = plain_engine(
    "etcd", ["etcd/with_etcd.sh", "1", ""],
    [Row("pair", "pair", "raw pair", "p50", 1.2),
     *(Row(f"handover, {n} processes", f"handover {n}", 900, "rate", 1,
           checked=False) for n in PROCESSES[:3]),
     *map(tail, PROCESSES[:3]),
     GROWTH,
     Row("one name, 8 threads, of pair", SHARED, "pair", "rate", 1.5)],
    [limit("etcd", "pair", warm=1), PAIR, *handovers(), TRY,
     *threads("shared-name", (8,)), *held(HELD[:1], 10)])

MYSQL = plain_engine(
    "mysql", ["mysql/with_mysql.sh", ""],
    [Row("pair, mode=get_lock", "get_lock", "raw get_lock", "p50", 1.25),
     Row("pair, mode=table", "table", "raw table", "p50", 1.45),
     Row("handover, mode=get_lock", "handover", "raw handover", "p50", 1.3),
     Row("handover, mode=for_update", "handover, rows", "raw for_update",
         "p50", 1.3)],
    beside_limits("mysql",
                  ("get_lock", "get_lock", "pair", "get_lock"),
                  ("table", "table", "pair", "table"),
                  ("handover", "handover", "handover", "get_lock"),
                  ("for_update", "handover, rows", "handover", "for_update")))

POSTGRES = plain_engine(
    "postgres", ["postgres/with_postgres.sh", ""],
    [Row("pair, mode=advisory", "advisory", "raw pair", "p50", 1.35),
     Row("pair, mode=table", "table", "raw rows", "p50", 1.55),
     Row("handover, mode=advisory", "handover", "raw handover", "p50", 1.3),
     Row("handover, mode=table", "notify", "raw notify", "p50", 1.7),
     Row("handover, mode=for_update", "handover, rows", "raw for_update",
         "p50", 1.3)],
    beside_limits("postgres",
                  ("pair", "advisory", "pair", "advisory"),
                  ("rows", "table", "pair", "table"),
                  ("handover", "handover", "handover", "advisory"),
                  ("notify", "notify", "handover", "table"),
                  ("for_update", "handover, rows", "handover", "for_update")))

MEMCACHED = plain_engine(
    "memcached", ["memcached/with_memcached.sh", "tcp", ""],
    [Row("pair", "pair", "raw pair", "p50", 1.25),
     Row("handover, by polling", "handover 2", 100, "rate", 1, checked=False)],
    [limit("memcached", "pair"), PAIR,
     ours("handover 2", "--scenario", "handover", seconds=2)], counted=True)

REDLOCK = plain_engine(
    "redlock", ["redlock/with_redlock.sh", "5", ""],
    [Row("pair, 5 servers", "pair", "raw pair", "p50", 1.5)],
    [limit("redlock", "pair"), PAIR], counted=True)

ENGINES = [LOCAL, REDIS, REDLOCK, ZOOKEEPER, ETCD, MYSQL, POSTGRES, MEMCACHED]


def find(name):
    for engine in ENGINES:
        if name in (engine.name, engine.alias):
            return engine
    known = " ".join(engine.name for engine in ENGINES)
    sys.exit(f"bench: no engine {name}; there are {known}")
