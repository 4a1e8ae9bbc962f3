# SPDX-License-Identifier: MIT
"""Start servers, run programs beside each other, and keep what they say.

Everything is measured in turns (A B C A B C ...), so that whatever else the
machine does hits all of them. Pinned means: servers and clients on one
processor; what is measured then is work, not the distance between processors.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BENCH_BUILD", os.path.join(ROOT, "build"))
HOLDFAST = os.path.join(BUILD, "holdfast")
PATIENCE_S = 120  # for one program
REAL_TIME = 10  # the priority of --steady
PLACES = ("pinned", "unpinned")

# Pinned programs go before all others, so that these do not disturb.
steady = False


def raw(engine):
    return os.path.join(BUILD, "bench", "raw_" + engine)


class Server:
    """What answers at @url, and the processes that do it."""

    def __init__(self, url, pids):
        self.url = url
        self.pids = pids

    @property
    def ports(self):
        return re.findall(r":(\d+)", self.url)

    def place(self, cpus):
        first = steady and len(cpus) == 1
        for pid in self.pids:
            for task in os.listdir(f"/proc/{pid}/task"):
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(int(task), cpus)
                    os.sched_setscheduler(
                        int(task), os.SCHED_RR if first else os.SCHED_OTHER,
                        os.sched_param(REAL_TIME if first else 0))

    def cpu_seconds(self):
        ticks = 0
        for pid in self.pids:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
                fields = stat.read().rpartition(")")[2].split()
            ticks += sum(map(int, fields[11:15]))  # and of ended children
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_mb(self):
        kib = 0
        for pid in self.pids:
            with contextlib.suppress(OSError), open(
                    f"/proc/{pid}/status", encoding="utf-8") as status:
                found = re.search(r"VmRSS:\s+(\d+)", status.read())
                kib += int(found.group(1)) if found else 0
        return kib / 1024


def descendants(pid):
    """The processes below @pid. Any of them may end while we look."""
    found = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/children",
                      encoding="utf-8") as file:
                for child in file.read().split():
                    found += [int(child)] + descendants(child)
    return found


def is_server(pid):
    """Neither a shell around it, nor gone."""
    with contextlib.suppress(OSError):
        program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
        return program not in ("bash", "dash", "sh")
    return False


@contextlib.contextmanager
def server(script):
    """A fresh server by tests/live/SCRIPT; without one, a store in memory."""
    if not script:
        directory = subprocess.check_output(
            ["mktemp", "-d", "-p", "/dev/shm"], text=True).strip()
        try:
            yield Server("local://" + directory, [])
        finally:
            subprocess.run(["rm", "-rf", directory], check=True)
        return
    with subprocess.Popen(
            [os.path.join(ROOT, "tests", "live", script[0])] + script[1:] +
            ["sh", "-c", 'echo "$HOLDFAST_TEST_URL"; read -r _ || :'],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        url = process.stdout.readline().strip()
        if not url:
            sys.exit(f"bench: {script[0]} started no server")
        pids = [pid for pid in descendants(process.pid) if is_server(pid)]
        try:
            yield Server(url, pids)
        finally:
            process.stdin.close()
            process.wait()


def parse(text):
    """What a program says: one JSON object, or "SCENARIO rate p50 p99"."""
    line = text.strip().splitlines()[-1]
    if not line.startswith("{"):
        _, rate, p50, p99 = line.split()
        return {"rate": float(rate), "p50": float(p50), "p99": float(p99)}
    said = json.loads(line)
    figures = {key[:-3] if key.endswith("_us") else key: value
               for key, value in said.items() if isinstance(value, (int, float))}
    for key in ("pairs_per_s", "handovers_per_s", "tries_per_s"):
        if key in figures:
            figures["rate"] = figures.pop(key)
    return figures


def run(command, seconds, place=None):
    """Run @command to its end. What it said, and what it took."""
    prefix = []
    if place is not None:
        prefix = ["taskset", "-c", str(place)]
    if prefix and steady:
        prefix += ["chrt", "-r", str(REAL_TIME)]
    memory = []
    with subprocess.Popen(prefix + command, stdout=subprocess.PIPE,
                          text=True) as process:
        client = Server("", [process.pid])
        timers = [threading.Timer(PATIENCE_S, process.kill),
                  threading.Timer(seconds / 2,
                                  lambda: memory.append(client.memory_mb()))]
        for timer in timers:
            timer.start()
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        for timer in timers:
            timer.cancel()
    if process.returncode != 0 or not text.strip():
        sys.exit(f"bench: {' '.join(command)}: exit {process.returncode}")
    return {"seconds": seconds, "memory_mb": max(memory, default=0),
            "cpu_s": usage.ru_utime + usage.ru_stime, **parse(text)}


def measure(one, server_, seconds, place):
    """One turn of one contender, with the server's side of it."""
    before = server_.cpu_seconds()
    counters = one.counters(server_) if one.counters else {}
    if one.peer:
        everywhere, _ = processors()
        figures = one.peer.ask(one.command, seconds,
                               everywhere if place is None else {place})
    else:
        figures = run(one.command(server_, seconds), seconds, place)
    if one.counters:
        after = one.counters(server_)
        figures.update({key: after[key] - counters[key] for key in after})
    figures["server_cpu_s"] = server_.cpu_seconds() - before
    figures["server_memory_mb"] = server_.memory_mb()
    return figures


def processors():
    """The processors there are, and the one to pin to."""
    cpus = sorted(os.sched_getaffinity(0))
    return set(cpus), int(os.environ.get("BENCH_CPU", cpus[-1]))


class Stage:
    """A fresh server, and whoever is measured on it in turns.

    results is {place: {name: [figures]}}; what was measured in the same round
    has the same "turn".
    """

    def __init__(self, engine, contenders, seconds, progress):
        self.engine, self.contenders = engine, contenders
        self.seconds, self.progress = seconds, progress
        self.results = {place: {} for place in PLACES}
        self.server = None
        self.turn = 0

    @contextlib.contextmanager
    def opened(self):
        peers = {id(one.peer): one.peer for one in self.contenders if one.peer}
        with server(self.engine.server) as self.server:
            for one in self.contenders:
                if one.warm:
                    run(one.command(self.server, one.warm), one.warm)
            for peer in peers.values():
                peer.start(self.server)
            yield self
            for peer in peers.values():
                peer.stop()

    def play(self, rounds, places=PLACES, names=None):
        """@rounds more of all contenders, or only of those in @names."""
        for turn in range(rounds):
            for place in places:
                for one in self.contenders:
                    if names is None or one.name in names:
                        self.progress(f"{self.engine.name}: round {turn + 1} of "
                                      f"{rounds}, {place}: {one.name}")
                        self.measure(one, place)
            self.turn += 1

    def measure(self, one, place):
        if one.once and (self.turn or place == "pinned"):
            return
        everywhere, one_cpu = processors()
        self.server.place({one_cpu} if place == "pinned" else everywhere)
        figures = measure(one, self.server, one.seconds or self.seconds,
                          one_cpu if place == "pinned" else None)
        self.results[place].setdefault(one.name, []).append(
            {"turn": self.turn, **figures})


def instructions(script):
    """Our instructions of one acquire and release, by callgrind. On one
    processor, where nobody looks again and again for an answer."""
    collected = {}
    _, cpu = processors()
    for pairs in (1000, 6000):
        with server(script) as there:
            said = subprocess.run(
                ["taskset", "-c", str(cpu), "valgrind", "--tool=callgrind",
                 "--callgrind-out-file=/dev/null",
                 os.path.join(BUILD, "bench", "pairs"), str(pairs), there.url],
                stderr=subprocess.PIPE, text=True, check=True).stderr
        collected[pairs] = int(re.search(r"Collected : (\d+)", said).group(1))
    return (collected[6000] - collected[1000]) / 5000
