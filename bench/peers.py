# SPDX-License-Identifier: MIT
"""The locks of others on the same servers: bench/peers, libraries by name from
their registries.

A peer is a process that stays for the whole run, because most of them need
some thousand turns until they are quick. It does what it is told by lines:
"pair SECONDS" or "handover SECONDS".
"""

import atexit
import os
import shutil
import subprocess
import sys

from engines import Contender, Row
from measure import BUILD, ROOT, Server, parse

MADE = os.path.join(BUILD, "bench", "peers")
PREPARE = os.path.join(ROOT, "tests", "interop", "prepare.sh")


def java(kind):
    made = os.path.join(MADE, "java")
    return ["java", "-cp", f"{made}:{made}/dependency/*",
            "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "Peer", kind]


# engine: {peer: (toolchain, command)}
PEERS = {
    "redis": {
        "Redisson RLock": ("java", java("rlock")),
        "Redisson RFairLock": ("java", java("rfair")),
        "redsync": ("go", [os.path.join(MADE, "go", "peer")]),
        "node-redlock": ("node", ["node", os.path.join(MADE, "node", "peer.js"),
                                  "redlock"]),
        "redis-semaphore": ("node", ["node",
                                     os.path.join(MADE, "node", "peer.js"),
                                     "semaphore"]),
        "redis-py": ("python", [sys.executable,
                                os.path.join(MADE, "python", "peer.py"),
                                "redis"]),
    },
    "zk": {
        "Curator InterProcessMutex": ("java", java("mutex")),
        "kazoo": ("python", [sys.executable,
                             os.path.join(MADE, "python", "peer.py"), "kazoo"]),
    },
}
TOOLS = {"java": ("javac", "mvn"), "go": ("go",), "node": ("node", "npm"),
         "python": ("python3",)}


class Peer:
    """A process that measures when told."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def start(self, server):
        environment = dict(os.environ, PYTHONPATH=os.path.join(
            MADE, "python", "lib"))
        self.process = subprocess.Popen(
            self.command + server.ports[:1], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment)
        atexit.register(self.process.kill)
        if self.process.stdout.readline().strip() != "ready":
            sys.exit(f"bench: {' '.join(self.command)} does not start")

    def ask(self, scenario, seconds, cpus):
        """One turn: what it says, and what it took."""
        me = Server("", [self.process.pid])
        me.place(cpus)
        before = me.cpu_seconds()
        self.process.stdin.write(f"{scenario} {seconds}\n")
        self.process.stdin.flush()
        figures = parse(self.process.stdout.readline())
        return {"seconds": seconds, "memory_mb": me.memory_mb(),
                "cpu_s": me.cpu_seconds() - before, **figures}

    def stop(self):
        self.process.stdin.close()
        self.process.wait()


def prepared(tool):
    """Is the toolchain there? Then fetch and build."""
    if not all(shutil.which(program) for program in TOOLS[tool]):
        print(f"bench: no {' and '.join(TOOLS[tool])}: no peers of {tool}")
        return False
    subprocess.run([PREPARE, tool, os.path.join(ROOT, "bench", "peers", tool),
                    os.path.join(MADE, tool)], check=True)
    return True


def contenders(engine):
    """The peers of an engine, as contenders."""
    found = []
    for name, (tool, command) in PEERS.get(engine.name, {}).items():
        if not prepared(tool):
            continue
        peer = Peer(command)
        for scenario in ("pair", "handover"):
            # Some of them hand over a few times a second.
            found.append(Contender(
                f"{name} {scenario}", scenario, peer=peer,
                seconds=1 if scenario == "handover" else 0))
    return found


def rows(engine):
    """Each peer as a ratio to the raw limit, and to ours. Of hand-overs the
    rate: who asks again now and then is sometimes lucky, but not often."""
    for name in PEERS.get(engine.name, {}):
        for scenario, ours, figure in (("pair", "pair", "p50"),
                                       ("handover", "handover 2", "rate")):
            row = f"{name} {scenario}"
            limit = next(one.name for one in engine.contenders
                         if one.name.startswith(f"raw {scenario}"))
            yield Row(f"{row}, of raw", row, limit, figure)
            yield Row(f"{row}, of ours", row, ours, figure)
