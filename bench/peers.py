# SPDX-License-Identifier: MIT
"""The locks of others on the same servers: bench/peers, libraries by name from
their registries.

A peer is a process that stays for the whole run, because most of them need
some thousand turns until they are quick. It does what it is told by lines:
"pair SECONDS" or "handover SECONDS".
"""

import atexit
import dataclasses
import glob
import json
import os
import re
import shutil
import subprocess
import sys

from engines import HOLDFAST, Contender, Row, wall
from measure import BUILD, ROOT, Server, parse

MADE = os.path.join(BUILD, "bench", "peers")
PREPARE = os.path.join(ROOT, "tests", "interop", "prepare.sh")


def made(*parts):
    return os.path.join(MADE, *parts)


@dataclasses.dataclass
class Kind:
    tool: str
    packages: tuple  # whose versions say what was measured
    command: list


def java(kind, package):
    path = f"{made('java')}:{made('java', 'dependency', '*')}"
    return Kind("java", (package,), [
        "java", "-cp", path, "-Dorg.slf4j.simpleLogger.defaultLogLevel=error",
        "Peer", kind])


def go(kind, *packages):
    return Kind("go", packages, [made("go", "peer"), kind])


def node(kind, *packages):
    return Kind("node", packages, ["node", made("node", "peer.js"), kind])


def python(kind, *packages):
    return Kind("python", packages,
                [sys.executable, made("python", "peer.py"), kind])


PEERS = {
    "redis": {
        "Redisson RLock": java("rlock", "redisson"),
        "Redisson RFairLock": java("rfair", "redisson"),
        "redsync": go("redsync", "github.com/go-redsync/redsync/v4",
                      "github.com/redis/go-redis/v9"),
        "node-redlock": node("redlock", "redlock", "ioredis"),
        "redis-semaphore": node("semaphore", "redis-semaphore", "ioredis"),
        "redis-py": python("redis", "redis"),
    },
    "zk": {
        "Curator InterProcessMutex": java("mutex", "curator-recipes"),
        "kazoo": python("kazoo", "kazoo"),
    },
    "etcd": {
        "Go concurrency.Mutex": go("etcd", "go.etcd.io/etcd/client/v3"),
    },
    "memcached": {
        "tooz": python("tooz", "tooz", "pymemcache"),
    },
}
TOOLS = {"java": ("javac", "mvn"), "go": ("go",), "node": ("node", "npm"),
         "python": ("python3",)}


def said_by(command, **keys):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True,
                          **keys).stdout


def java_versions():
    """What Maven fetched: NAME-VERSION.jar."""
    for jar in glob.glob(made("java", "dependency", "*.jar")):
        found = re.fullmatch(r"(.+?)-(\d.*)\.jar", os.path.basename(jar))
        yield found.groups() if found else (os.path.basename(jar), "")


def go_versions():
    for line in said_by(["go", "list", "-m", "all"],
                        cwd=made("go")).splitlines()[1:]:
        yield line.split()[:2]


def node_versions():
    told = json.loads(said_by(["npm", "ls", "--json", "--depth=0"],
                              cwd=made("node")))
    for name, package in told["dependencies"].items():
        yield name, package["version"]


def python_versions():
    for package in json.loads(said_by([
            "python3", "-m", "pip", "list", "--format=json",
            "--disable-pip-version-check", "--path", made("python", "lib")])):
        yield package["name"], package["version"]


VERSIONS = {"java": java_versions, "go": go_versions, "node": node_versions,
            "python": python_versions}


class Peer:
    """A process that measures when told."""

    def __init__(self, command):
        self.command = command
        self.process = None

    def start(self, server):
        environment = dict(os.environ, PYTHONPATH=made("python", "lib"))
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
                    made(tool)], check=True)
    return True


def versions(engine):
    """What is measured beside @engine: {package: version}, as the package
    managers tell it."""
    kinds = [kind for kind in PEERS.get(engine.name, {}).values()
             if os.path.exists(made(kind.tool, "done"))]
    found = {}
    for tool in sorted({kind.tool for kind in kinds}):
        known = dict(VERSIONS[tool]())
        found.update({name: known[name] for kind in kinds if kind.tool == tool
                      for name in kind.packages})
    if engine.name == "etcd" and shutil.which("etcdctl"):
        found["etcdctl"] = said_by(["etcdctl", "version"]).split()[2]
    return found


def contenders(engine):
    """The peers of an engine, as contenders."""
    found = []
    kinds = PEERS.get(engine.name, {})
    ready = {tool for tool in {kind.tool for kind in kinds.values()}
             if prepared(tool)}
    for name, kind in kinds.items():
        if kind.tool not in ready:
            continue
        peer = Peer(kind.command)
        for scenario in ("pair", "handover"):
            # Some of them hand over a few times a second.
            found.append(Contender(
                f"{name} {scenario}", scenario, peer=peer,
                seconds=1 if scenario == "handover" else 0))
    if engine.name == "etcd" and shutil.which("etcdctl"):
        found += [wall("run", HOLDFAST, "run", "-u", "URL", "x", "--", "true"),
                  wall("etcdctl lock", "etcdctl", "--endpoints=127.0.0.1:PORT",
                       "lock", "x", "true")]
    return found


OF_OURS = ", of ours"


def rows_of_ours(engine):
    """Each peer as a ratio to ours, by its name alone."""
    return [dataclasses.replace(row, name=row.name.removesuffix(OF_OURS))
            for row in rows(engine) if row.name.endswith(OF_OURS)]


def rows(engine):
    """Each peer as a ratio to the raw limit, and to ours. Of hand-overs the
    rate: who asks again now and then is sometimes lucky, but not often."""
    known = [one.name for one in engine.contenders]
    for name in PEERS.get(engine.name, {}):
        for scenario, ours, figure in (("pair", "pair", "p50"),
                                       ("handover", "handover 2", "rate")):
            row = f"{name} {scenario}"
            for limit in [one for one in known
                          if one.startswith(f"raw {scenario}")][:1]:
                yield Row(f"{row}, of raw", row, limit, figure)
            yield Row(row + OF_OURS, row, ours, figure)
    if engine.name == "etcd":
        yield Row("etcdctl lock x true" + OF_OURS, "etcdctl lock", "run")
