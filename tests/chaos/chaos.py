#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""chaos.py [ENGINE…] - locks under faults, on real servers, and a verdict.

Each engine gets its servers, workers (worker.c) and their network (wire.c), a
schedule of faults that the seed decides (nemesis.py), a time without faults, and
the checker (check.py). The time without faults lasts until everybody who waited
at its beginning has been served, twice over. "good" faults are those under which
the engine promises everything: a violation fails the run. With "bad" ones
exclusion is not promised: the run shows what was found, and that the token
protected the resource. Servers whose copies of the data differ (of ZooKeeper,
ZOOKEEPER-4712) are named beside the result, so that the logs can be read with
that in mind.
"""

import argparse
import datetime
import json
import mmap
import os
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
sys.path.append(os.path.join(ROOT, "tests/matrix"))
import cells  # noqa: E402
import check  # noqa: E402
import history  # noqa: E402
import nemesis  # noqa: E402
import servers  # noqa: E402

# Found under faults that void exclusion; not failures there.
EXCUSED = {"overlap", "slots", "leaders", "late", "release", "fifo"}
# journal.h: struct journal_state.
STATE, THREADS = 128, 15


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Log:
    def __init__(self, path):
        self.file = open(path, "a", buffering=1)
        self.mutex = threading.Lock()

    def __call__(self, text):
        with self.mutex:
            self.file.write(f"{now_ns()} {text}\n")


class Resource(threading.Thread):
    """A counter for each name, that refuses a token below one that it saw."""

    def __init__(self, path, log):
        super().__init__(daemon=True)
        self.log, self.path = log, path
        self.counters = {}  # name: [newest token, value]
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(128)
        self.refused = 0

    def run(self):
        select = selectors.DefaultSelector()
        select.register(self.listener, selectors.EVENT_READ)
        while True:
            for key, _ in select.select():
                if key.fileobj is self.listener:
                    select.register(self.listener.accept()[0],
                                    selectors.EVENT_READ)
                elif not self.answer(key.fileobj):
                    select.unregister(key.fileobj)
                    key.fileobj.close()

    def answer(self, line):
        try:
            text = line.recv(1024).decode()
            if text:
                line.sendall(self.obey(text.split()).encode())
            return bool(text)
        except OSError:
            return False

    def obey(self, words):
        name, token = words[1], int(words[2])
        counter = self.counters.setdefault(name, [0, 0])
        if token < counter[0]:
            self.refused += 1
            return "STALE\n"
        counter[0] = token
        if words[0] == "R":
            return f"V {counter[1]}\n"
        counter[1] = int(words[3])
        self.log(f"write name={name} token={token} value={counter[1]}")
        return "OK\n"


class Wire:
    def __init__(self, program, clients, ports):
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", program, str(clients),
             *map(str, ports)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)
        self.ports = [list(map(int, self.process.stdout.readline().split()))
                      for _ in range(clients)]

    def order(self, client, server, order):
        self.process.stdin.write(f"{client} {server} {order}\n")
        self.process.stdin.flush()

    def end(self):
        self.process.stdin.close()
        self.process.wait()


class Worker:
    """A place for processes: when one has ended, another is started there."""

    def __init__(self, run, index):
        self.run, self.index = run, index
        self.clock = os.path.join(run.servers_dir, f"clock{index}")
        self.born = -1
        self.process = None

    @property
    def name(self):
        return f"w{self.index}-{self.born}"

    def start(self):
        run = self.run
        self.born += 1
        run.state[STATE * self.index:STATE * (self.index + 1)] = bytes(STATE)
        ports = run.wire.ports[self.index] if run.wire else run.setup.ports()
        with open(os.path.join(run.dir, "stderr"), "ab") as errors:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", run.program("chaos_worker"),
                 run.setup.url(ports),
                 os.path.join(run.dir, self.name + ".log"), run.state_path,
                 str(self.index), str(run.seed * 1000 + self.index * 50 +
                                      self.born),
                 str(run.setup.ttl_ms), run.resource.path],
                stdin=subprocess.DEVNULL, stderr=errors,
                env={**os.environ, **self.shim(), "HOLDFAST_TEST_LONG_HOLDS":
                     str(run.options.long)})
        pidfd = os.pidfd_open(self.process.pid)
        run.ended.register(pidfd, selectors.EVENT_READ)

    def shim(self):
        """The clock of the process, which the nemesis can move."""
        if "suspend" not in self.run.kinds() or \
                not os.path.exists(self.run.options.shim):
            return {}
        with open(self.clock, "wb") as clock:
            clock.truncate(4096)
        return {"LD_PRELOAD": self.run.options.shim, "CLOCK_SHIM": self.clock}

    def suspend(self, seconds):
        """Its CLOCK_BOOTTIME is ahead by so much more."""
        if not os.path.exists(self.clock):
            return False
        with open(self.clock, "r+b") as clock:
            clock.seek(8)
            ahead = int.from_bytes(clock.read(8), "little")
            clock.seek(8)
            clock.write((ahead + int(seconds * 1e9)).to_bytes(8, "little"))
        return True

    def waits_since(self):
        """The instants since which its threads have waited."""
        return [at for at in struct.unpack_from(
            f"{THREADS}q", self.run.state, STATE * self.index + 8) if at]

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def works(self):
        return self.alive() and any(self.run.state_of(self))

    def send(self, number):
        if self.alive():
            self.process.send_signal(number)


class Run:
    def __init__(self, engine, options, seed, directory):
        self.engine, self.options, self.seed = engine, options, seed
        self.dir = directory
        self.servers_dir = tempfile.mkdtemp(prefix="holdfast-chaos-")
        self.log = Log(os.path.join(directory, "nemesis.log"))
        self.state_path = os.path.join(directory, "state")
        with open(self.state_path, "wb") as state:
            state.truncate(4096)
        with open(self.state_path, "r+b") as state:
            self.state = mmap.mmap(state.fileno(), 4096)
        self.setup = servers.ENGINES[engine](self.servers_dir, options.dense,
                                             self.kinds(engine))
        if options.ttl:
            self.setup.ttl_ms = options.ttl
        self.ended = selectors.DefaultSelector()
        self.wire = None
        self.workers = []
        self.died = 0

    def program(self, name):
        return os.path.join(self.options.build, "tests/chaos", name)

    def state_of(self, worker):
        return struct.unpack_from("ii", self.state, STATE * worker.index)

    def is_holding(self, worker):
        return self.state_of(worker)[0] > 0

    def is_waiting(self, worker):
        return self.state_of(worker)[1] > 0 and not self.is_holding(worker)

    def rest(self, seconds):
        """Let time pass, and start others for the workers that end."""
        end = time.monotonic() + seconds
        while True:
            ended = self.ended.select(max(0.0, end - time.monotonic()))
            for key, _ in ended:
                self.ended.unregister(key.fd)
                os.close(key.fd)
            if ended:
                self.tend()
            if time.monotonic() >= end:
                return

    def tend(self):
        for worker in self.workers:
            if worker.alive():
                continue
            if worker.process.returncode not in (0, -signal.SIGKILL):
                self.died += 1
                self.log(f"wrong what={worker.name}_ended_with_"
                         f"{worker.process.returncode}")
            self.log(f"kill proc={worker.name}")
            worker.start()

    def kinds(self, engine=None):
        setup = servers.ENGINES[engine or self.engine]
        dense = setup.often * 2 if self.options.dense else ()
        kinds = []
        for word in (self.options.faults or "good").split(","):
            kinds += {"good": setup.good + dense, "bad": setup.bad,
                      "none": ()}.get(word, (word,))
        return kinds

    def pace(self):
        setup = self.setup
        return self.options.pace or (setup.dense_pace if self.options.dense
                                     else setup.pace)

    def begin(self):
        self.setup.start()
        ports = self.setup.ports()
        if self.setup.proxied and ports:
            self.wire = Wire(self.program("chaos_wire"), self.options.workers,
                             ports)
        self.resource = Resource(os.path.join(self.servers_dir, "resource"),
                                 Log(os.path.join(self.dir, "resource.log")))
        self.resource.start()
        self.workers = [Worker(self, i) for i in range(self.options.workers)]
        for worker in self.workers:
            worker.start()

    def await_first_grant(self):
        end = time.monotonic() + 60
        while not any(worker.works() for worker in self.workers):
            if time.monotonic() > end:
                raise RuntimeError("no worker begins; see stderr")
            self.rest(0.02)

    def calm(self):
        """Without faults, everybody has to be served: those who wait now, and
        those who wait when they are. Then a while more, for the fair line."""
        self.log("healed")
        end = time.monotonic() + self.options.patience
        for _ in range(2):
            mark = now_ns()
            while time.monotonic() < end and any(
                    since <= mark for worker in self.workers
                    for since in worker.waits_since()):
                self.rest(0.05)
        if time.monotonic() >= end:
            for what in self.setup.differences():
                self.log(f"differs {what}")
        self.rest(self.options.calm)

    def stop_workers(self):
        self.log("stop")
        for worker in self.workers:
            worker.send(signal.SIGTERM)
        for worker in self.workers:
            try:
                worker.process.wait(90)
            except subprocess.TimeoutExpired:
                self.log(f"wrong what={worker.name}_does_not_end")
                worker.process.kill()
                worker.process.wait()

    def look_for_leftovers(self):
        """What dead clients left ends with its lease."""
        end = time.monotonic() + 3 * self.setup.ttl_ms / 1000 + 10
        left = self.setup.leftovers()
        while left and time.monotonic() < end:
            time.sleep(0.3)  # rest() would start workers again
            left = self.setup.leftovers()
        for what in left[:20]:
            self.log(f"left what={what.replace(' ', '_')}")
        for what in self.setup.diverged():
            self.log(f"diverged what={what}")

    def end(self):
        for worker in self.workers:
            if worker.alive():
                worker.process.kill()
                worker.process.wait()
        if self.wire:
            self.wire.end()
        self.setup.end()
        for node in self.setup.nodes:
            log = os.path.join(node.dir, "log")
            if os.path.exists(log):
                shutil.copy(log, os.path.join(
                    self.dir, os.path.basename(node.dir) + ".txt"))
        if self.options.keep_disks:
            shutil.copytree(self.servers_dir, os.path.join(self.dir, "servers"),
                            ignore=lambda place, names: [
                                name for name in names if not os.path.isdir(
                                    os.path.join(place, name)) and
                                not os.path.isfile(os.path.join(place, name))])
        shutil.rmtree(self.servers_dir, ignore_errors=True)

    def carry_out(self, seconds):
        kinds = self.kinds()
        try:
            self.begin()
            self.await_first_grant()
            if kinds:
                faults = nemesis.schedule(self.seed, kinds, seconds,
                                          self.pace())
                nemesis.Nemesis(self).carry_out(faults)
            else:
                self.rest(seconds)
            self.calm()
            self.stop_workers()
            self.look_for_leftovers()
            return self.setup.version()
        finally:
            self.end()


def is_good(engine, kinds):
    return set(kinds) <= set(servers.ENGINES[engine].good)


def verdict(run, good, options):
    found = history.read(run.dir)
    bounds = check.Bounds(serve_ms=int(options.patience * 1000) - 1000,
                          told_ms=options.told, exclusive=good)
    violations = check.check(found, bounds)
    failures = [row for row in violations if good or row[0] not in EXCUSED]
    facts = check.summary(found, violations)
    facts["refused"] = run.resource.refused
    return facts, violations, failures


def commit():
    return servers.run("git", "-C", ROOT, "rev-parse", "--short", "HEAD")


def one(engine, options, seed):
    directory = os.path.join(options.report, f"{engine}-{seed}")
    shutil.rmtree(directory, ignore_errors=True)
    os.makedirs(directory)
    run = Run(engine, options, seed, directory)
    good = is_good(engine, run.kinds())
    started = time.monotonic()
    version = run.carry_out(options.minutes * 60)
    facts, violations, failures = verdict(run, good, options)
    row = {"date": datetime.date.today().isoformat(), "engine": engine,
           "seed": seed, "version": version, "commit": commit(),
           "seconds": round(time.monotonic() - started),
           "kinds": options.faults or "good", "promised": good,
           "ttl_ms": run.setup.ttl_ms, "pace": run.pace(), **facts}
    with open(os.path.join(directory, "summary.json"), "w") as file:
        json.dump(row, file, indent=1)
    print(f"{'not ok' if failures else 'ok'} - {engine} seed {seed}: "
          f"{facts['grants']} grants, {sum(facts['faults'].values())} faults, "
          f"violations {facts['violations'] or 'none'}, longest gap "
          f"{facts['gap_ms']} ms, {facts['leftovers']} left", flush=True)
    if "diverged" in facts:
        print(f"#   the data of {', '.join(facts['diverged'])} differ from the "
              "other servers'")
    for kind, at, text in (failures or violations)[:10]:
        print(f"#   {at} {kind}: {text}")
    return row, bool(failures)


def record(row, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "a") as ledger:
        ledger.write(json.dumps(row) + "\n")


def parse():
    parser = argparse.ArgumentParser(
        prog="./dev chaos", description=__doc__.splitlines()[0],
        epilog="Engines: " + " ".join(servers.ENGINES))
    parser.add_argument("engines", nargs="*", metavar="ENGINE")
    parser.add_argument("--minutes", type=float, default=1.0,
                        help="of faults, for each engine")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--faults", metavar="LIST",
                        help="good (the default), bad, none, or kinds with "
                        "commas between them")
    parser.add_argument("--report", metavar="DIR",
                        default=os.path.join(ROOT, "build/chaos"))
    parser.add_argument("--record", action="store_true",
                        help="add the runs to docs/reliability/ledger.jsonl")
    parser.add_argument("--server", metavar="NAME", choices=[
        cell.name for cell in cells.CELLS if cell.make and not cell.library],
        help="another server than this machine's, as ./dev matrix fetches it: "
        "zookeeper-3.9.5, etcd-3.7.3")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--dense", action="store_true",
                        help="short leases, more processes, faults three times "
                        "as often, and most of them pauses and kills")
    parser.add_argument("--patience", type=float, default=60,
                        metavar="SECONDS", help="without faults, until everybody "
                        "who waits has been served")
    parser.add_argument("--calm", type=float, default=3, metavar="SECONDS",
                        help="without faults, after that")
    parser.add_argument("--told", type=int, default=1000, metavar="MS",
                        help="LOST may be told so long after the next grant, "
                        "while the process runs")
    parser.add_argument("--ttl", type=int, metavar="MS", help="of all leases")
    parser.add_argument("--long", type=int, default=40, metavar="N",
                        help="one of N holds lasts up to a lease and a half")
    parser.add_argument("--pace", type=float, metavar="SECONDS",
                        help="from fault to fault, on average")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    parser.add_argument("--keep", action="store_true",
                        help="keep the logs of runs in which nothing was found")
    parser.add_argument("--keep-disks", action="store_true",
                        help="keep what the servers had on their disks, too")
    options = parser.parse_args()
    options.workers = options.workers or (10 if options.dense else 6)
    options.shim = os.path.join(options.build,
                                "tests/live/redis/libredis_clock_shim.so")
    return options


def main():
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    unknown = set(options.engines) - set(servers.ENGINES)
    if unknown:
        sys.exit(f"no such engine: {' '.join(unknown)}")
    os.environ.setdefault("HOLDFAST_TEST_CLOCK_SHIM", options.shim)
    for cell in cells.CELLS:
        if options.server and cell.name == options.server:
            os.environ.update(cells.environment(cell))
    seed = options.seed
    if seed is None:
        seed = int.from_bytes(os.urandom(3), "big")
    bad = False
    for engine in options.engines or servers.ENGINES:
        row, failed = one(engine, options, seed)
        bad |= failed
        if options.record:
            record(row, os.path.join(ROOT, "docs/reliability/ledger.jsonl"))
        if not (row["violations"] or "diverged" in row or options.keep):
            shutil.rmtree(os.path.join(options.report, f"{engine}-{seed}"))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
