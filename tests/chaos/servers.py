# SPDX-License-Identifier: MIT
"""Real servers of a chaos run, on free ports of the loopback.

A Setup is what one engine needs: its nodes, the URL for a client whose way to
node i leads over port i, and what is left on the store. Every process ends with
the one that started it.
"""

import concurrent.futures
import glob
import os
import shutil
import signal
import socket
import struct
import subprocess
import time

HERE = os.path.dirname(os.path.abspath(__file__))
QUICK = "retry.base=10ms&retry.max_interval=300ms"
# A server ends with the thread that started it: this one stays.
STARTER = concurrent.futures.ThreadPoolExecutor(1)


def free_port():
    """A port below those that the kernel gives to outgoing connections."""
    for _ in range(200):
        port = 20000 + int.from_bytes(os.urandom(2), "big") % 12000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass
    raise RuntimeError("no free port")


def said_by(port, text, wait=2.0):
    """What the server on @port answers to @text, or ""."""
    try:
        with socket.create_connection(("127.0.0.1", port), wait) as line:
            line.settimeout(wait)
            line.sendall(text.encode())
            answer = b""
            while True:
                piece = line.recv(65536)
                answer += piece
                if not piece or len(piece) < 65536:
                    return answer.decode(errors="replace")
    except OSError:
        return ""


def said_at_length(port, text, wait=5.0):
    """The same of a server that hangs up behind its answer."""
    try:
        with socket.create_connection(("127.0.0.1", port), wait) as line:
            line.settimeout(wait)
            line.sendall(text.encode())
            return line.makefile(errors="replace").read()
    except OSError:
        return ""


def run(*argv, **options):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60,
                          check=False, **options)
    return (done.stdout + done.stderr).strip()


def await_true(condition, seconds):
    """Servers cannot be waited for: they are asked again and again."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


class Node:
    """One server process."""

    def __init__(self, argv, port, directory, ready, user=None,
                 end_with="KILL", env=None, crash=signal.SIGKILL):
        self.argv, self.port, self.dir = argv, port, directory
        self.ready, self.user, self.env = ready, user, env
        self.end_with, self.crash = end_with, crash
        self.process = None

    def launch(self):
        words = ["setpriv"]
        if self.user and os.getuid() == 0:
            words += [f"--reuid={self.user}", f"--regid={self.user}",
                      "--init-groups"]
        words += ["--pdeathsig", self.end_with, *self.argv]
        with open(os.path.join(self.dir, "log"), "ab") as log:
            self.process = STARTER.submit(
                subprocess.Popen, words, stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, cwd=self.dir,
                env={**os.environ, **(self.env or {})}).result()

    def await_ready(self, seconds=90):
        end = time.monotonic() + seconds
        while not self.ready(self.port):
            if self.process.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.dir, "log"), "rb") as log:
                    tail = log.read()[-2000:].decode(errors="replace")
                raise RuntimeError(f"{self.argv[0]} does not serve:\n{tail}")
            time.sleep(0.05)

    def kill(self):
        self.send(self.crash)
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.kill_all()
            self.process.wait()

    def kill_all(self):
        """A server that does not end, as PostgreSQL in its recovery."""
        pid = self.process.pid
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            for child in children.read().split():
                try:
                    os.kill(int(child), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        self.process.kill()

    def send(self, number):
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)

    def end(self):
        if not self.process:
            return
        self.send(signal.SIGCONT)
        self.send(getattr(signal, "SIG" + self.end_with))
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Setup:
    """An engine. @good: faults under which everything is promised; @bad: those
    under which exclusion is not; @often: of the good ones, those that a dense run
    has more of."""

    PAUSES = ("pause_holder", "pause_waiter")
    CLIENT = ("pause_short", *PAUSES, "kill", "exit", "fork", "starve",
              "suspend")
    NET = ("cut", "one_way", "deaf", "black_hole", "delay", "reset",
           "lost_reply", "late_answer", "half_open", "slice", "late_renewal",
           "late_push")
    SERVER = ("server_pause", "server_kill")
    good = CLIENT + NET + SERVER
    bad = ()
    often = 3 * PAUSES + 3 * ("server_kill",)
    ttl_ms = 1000
    dense_ttl_ms = 1000
    pace, dense_pace = 0.35, 0.06  # seconds from fault to fault
    proxied = True

    def __init__(self, directory, dense=False, kinds=()):
        self.dir = directory
        self.dense, self.kinds = dense, kinds
        self.nodes = []
        if dense:
            self.ttl_ms = self.dense_ttl_ms

    def new_dir(self, name, user=None):
        path = os.path.join(self.dir, name)
        os.mkdir(path)
        if user and os.getuid() == 0:
            shutil.chown(path, user)
        return path

    def query(self):
        return f"ttl={self.ttl_ms}ms&{QUICK}"

    def ports(self):
        return [node.port for node in self.nodes]

    def start(self):
        for node in self.nodes:
            node.launch()
        for node in self.nodes:
            node.await_ready()

    def end(self):
        for node in reversed(self.nodes):
            node.end()
            if os.path.ismount(node.dir):
                run("umount", node.dir)

    def leader(self):
        return 0

    def settled(self):
        """Have the servers found together again?"""
        return True

    def fall_behind(self, leader, seconds):
        """Those who would replace the leader hear nothing from it any more, and
        so much time passes."""

    def leftovers(self):
        return []

    def diverged(self):
        """The servers that found their data to differ from the others'."""
        return []

    def differences(self):
        """What some servers have and others do not, while nothing happens."""
        return []

    def wipe(self, node):
        """Take the disk of a node that does not run."""
        for entry in os.listdir(node.dir):
            path = os.path.join(node.dir, entry)
            if os.path.isdir(path):
                shutil.rmtree(path)
            elif entry not in ("log", "s.conf", "clock"):
                os.unlink(path)


class Local(Setup):
    # All clients share one clock, that of the machine.
    good = tuple(kind for kind in Setup.CLIENT if kind != "suspend")
    often = 3 * Setup.PAUSES
    ttl_ms = 600
    dense_ttl_ms = 200

    def url(self, ports):
        store = os.path.join(self.dir, "store")
        return f"local://{store}?ttl={self.ttl_ms}ms"

    def start(self):
        self.new_dir("store")
        os.chmod(os.path.join(self.dir, "store"), 0o700)

    def version(self):
        return "kernel " + os.uname().release


def redis_ready(port):
    return "PONG" in said_by(port, "PING\r\n")


class Redis(Setup):
    good = Setup.CLIENT + Setup.NET + Setup.SERVER + ("script_flush",
                                                      "sessions", "disk_full")
    bad = ("flush", "wipe", "clock")
    dense_ttl_ms = 300
    n = 1
    durable = True

    def __init__(self, *arguments):
        super().__init__(*arguments)
        for i in range(self.n):
            self.add(f"redis{i}")

    def add(self, name, *more):
        port, home = free_port(), self.new_dir(name)
        env = None
        if "disk_full" in self.kinds and os.getuid() == 0:
            run("mount", "-t", "tmpfs", "-o", "size=256m", "none", home)
        shim = os.environ.get("HOLDFAST_TEST_CLOCK_SHIM", "")
        if os.path.exists(shim):
            env = {"LD_PRELOAD": shim, "CLOCK_SHIM": os.path.join(home, "clock")}
        words = [os.environ.get("HOLDFAST_TEST_REDIS_SERVER", "redis-server"),
                 "--port", str(port), "--bind", "127.0.0.1", "--save", "",
                 "--dir", home, "--repl-diskless-sync-delay", "0"]
        if self.durable:
            words += ["--appendonly", "yes", "--appendfsync", "always"]
        else:
            words += ["--appendonly", "no"]
        self.nodes.append(Node(words + list(more), port, home, redis_ready,
                               env=env))

    def url(self, ports):
        return f"redis://127.0.0.1:{ports[0]}?{self.query()}&io_timeout=1s"

    def script_flush(self, node):
        said_by(node.port, "SCRIPT FLUSH\r\n")

    def sessions(self, node):
        said_by(node.port, "CLIENT KILL TYPE normal\r\n")
        said_by(node.port, "CLIENT KILL TYPE pubsub\r\n")

    def flush(self, node):
        said_by(node.port, "FLUSHALL\r\n")

    def clock(self, node, seconds):
        path = os.path.join(node.dir, "clock")
        with open(path, "r+b") as clock:
            clock.write(int(seconds * 10**9).to_bytes(8, "little", signed=True))

    def keys(self, node):
        return run("redis-cli", "-p", str(node.port), "KEYS", "*").split()

    def leftovers(self):
        left = []
        for node in self.nodes:
            for key in self.keys(node):
                ttl = run("redis-cli", "-p", str(node.port), "PTTL", key)
                # What remembers the last token ends by itself, and so does a
                # board of which only the store's number is left.
                stays = key.endswith(":t") or key.endswith(":w") and run(
                    "redis-cli", "-p", str(node.port), "HLEN", key) == "1"
                if not (stays and ttl.isdigit()) and ttl != "-2":
                    left.append(f"{key}:{ttl}")
        return left

    def version(self):
        return run("redis-server", "--version").split(" sha")[0]


class Redlock(Redis):
    n = 5
    good = Setup.CLIENT + Setup.NET + Setup.SERVER + ("script_flush",
                                                      "sessions")
    bad = ("flush", "restart_all_wiped")

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return (f"redlock://{hosts}?{self.query()}"
                f"&node_timeout={min(300, self.ttl_ms // 3)}ms")


class RedlockForgetful(Redlock):
    """Its servers forget in a restart, and do not vote for a while then."""
    durable = False
    bad = ("flush",)


class Sentinel(Redis):
    """A master, two replicas, three sentinels; they tell the real ports."""
    proxied = False
    durable = False
    good = Setup.CLIENT + ("server_pause_short", "script_flush", "sessions")
    bad = ("failover",)
    often = 3 * Setup.PAUSES

    def __init__(self, *arguments):
        Setup.__init__(self, *arguments)
        self.add("redis0")
        master = self.nodes[0].port
        for i in (1, 2):
            self.add(f"redis{i}", "--replicaof", f"127.0.0.1 {master}")
        self.sentinels = []
        down_ms = 500 if self.dense and "failover" in self.kinds else 1500
        for i in range(3):
            port, home = free_port(), self.new_dir(f"sentinel{i}")
            with open(os.path.join(home, "s.conf"), "w") as conf:
                conf.write(f"port {port}\nbind 127.0.0.1\ndir {home}\n"
                           f"sentinel monitor m1 127.0.0.1 {master} 2\n"
                           f"sentinel down-after-milliseconds m1 {down_ms}\n"
                           f"sentinel failover-timeout m1 {2 * down_ms}\n")
            self.sentinels.append(Node(
                ["redis-server", os.path.join(home, "s.conf"), "--sentinel"],
                port, home, redis_ready))

    def start(self):
        super().start()
        for node in self.sentinels:
            node.launch()
        for node in self.sentinels:
            node.await_ready()
        for node in self.sentinels:
            while "OK 3" not in said_by(node.port, "SENTINEL CKQUORUM m1\r\n"):
                time.sleep(0.1)

    def end(self):
        for node in self.sentinels:
            node.end()
        super().end()

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.sentinels)
        return (f"redis-sentinel://{hosts}/m1?{self.query()}&io_timeout=1s")

    def leader(self):
        for i, node in enumerate(self.nodes):
            if "master" in said_by(node.port, "ROLE\r\n")[:20]:
                return i
        return 0

    def taken_over(self, old):
        return self.leader() != old and self.settled()

    def settled(self):
        master = self.nodes[self.leader()]
        return "master" in said_by(master.port, "ROLE\r\n")[:20] and all(
            f"\n{master.port}\r" in said_by(
                node.port, "SENTINEL get-master-addr-by-name m1\r\n")
            for node in self.sentinels)

    def leftovers(self):
        everybody, self.nodes = self.nodes, [self.nodes[self.leader()]]
        try:
            return super().leftovers()
        finally:
            self.nodes = everybody


class Cluster(Redis):
    """Three masters, three replicas; they tell the real ports."""
    proxied = False
    durable = False
    n = 6
    good = Setup.CLIENT + ("server_pause_short", "script_flush", "sessions",
                           "reshard")
    bad = ("failover", "handover")
    often = 3 * Setup.PAUSES

    def add(self, name, *more):
        down_ms = 600 if self.dense and "failover" in self.kinds else 1500
        super().add(name, "--cluster-enabled", "yes", "--cluster-config-file",
                    "nodes.conf", "--cluster-node-timeout", str(down_ms),
                    "--cluster-port", str(free_port()), *more)

    def start(self):
        super().start()
        hosts = [f"127.0.0.1:{node.port}" for node in self.nodes]
        run("redis-cli", "--cluster", "create", *hosts, "--cluster-replicas",
            "1", "--cluster-yes")
        for node in self.nodes:
            while "cluster_state:ok" not in said_by(node.port,
                                                    "CLUSTER INFO\r\n"):
                time.sleep(0.1)

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{node.port}" for node in self.nodes[:3])
        return f"redis-cluster://{hosts}?{self.query()}&io_timeout=1s"

    def leader(self):
        masters = [i for i, node in enumerate(self.nodes)
                   if "master" in said_by(node.port, "ROLE\r\n")[:20]]
        return masters[int.from_bytes(os.urandom(1), "big") % len(masters)] \
            if masters else 0

    def settled(self):
        return all("cluster_state:ok" in said_by(node.port, "CLUSTER INFO\r\n")
                   for node in self.nodes)

    def taken_over(self, old):
        """Do the others serve every slot?"""
        return all("cluster_state:ok" in said_by(node.port, "CLUSTER INFO\r\n")
                   for i, node in enumerate(self.nodes) if i != old) and sum(
            "master" in said_by(node.port, "ROLE\r\n")[:20]
            for i, node in enumerate(self.nodes) if i != old) == 3

    def hand_over(self):
        replicas = [node for node in self.nodes
                    if "slave" in said_by(node.port, "ROLE\r\n")[:20]]
        if replicas:
            node = replicas[int.from_bytes(os.urandom(1), "big") % len(replicas)]
            said_by(node.port, "CLUSTER FAILOVER\r\n")

    def masters(self):
        """The masters, by their names in the cluster."""
        said = {said_by(node.port, "CLUSTER MYID\r\n").split("\r\n")[1]: node
                for node in self.nodes
                if "master" in said_by(node.port, "ROLE\r\n")[:20]}
        return said

    def move_slot(self, node):
        """Move the slot of some key, with all of its keys, to another master."""
        masters = self.masters()
        name = next((n for n, it in masters.items() if it is node), None)
        others = [n for n in masters if n != name]
        key = run("redis-cli", "-p", str(node.port), "RANDOMKEY")
        if name is None or not others or not key:
            return
        slot = run("redis-cli", "-p", str(node.port), "CLUSTER", "KEYSLOT", key)
        other = others[int.from_bytes(os.urandom(1), "big") % len(others)]
        self.carry_slot(slot, name, other, masters)

    def carry_slot(self, slot, source, target, masters):
        """As redis-cli --cluster does it."""
        def do(node, *words):
            return run("redis-cli", "-p", str(node.port), *words)

        old, new = masters[source], masters[target]
        do(new, "CLUSTER", "SETSLOT", slot, "IMPORTING", source)
        do(old, "CLUSTER", "SETSLOT", slot, "MIGRATING", target)
        end = time.monotonic() + 10
        while time.monotonic() < end:
            keys = do(old, "CLUSTER", "GETKEYSINSLOT", slot, "20").split("\n")
            if not keys[0]:
                break
            do(old, "MIGRATE", "127.0.0.1", str(new.port), "", "0", "2000",
               "KEYS", *keys)
        for node in (new, old, *(n for n in masters.values()
                                 if n not in (new, old))):
            do(node, "CLUSTER", "SETSLOT", slot, "NODE", target)

    def keys(self, node):
        if "master" not in said_by(node.port, "ROLE\r\n")[:20]:
            return []
        return super().keys(node)


def jute(*values):
    """Numbers of 4 bytes, (number,) of 8, and texts, as ZooKeeper reads them."""
    out = b""
    for value in values:
        if isinstance(value, int):
            out += struct.pack(">i", value)
        elif isinstance(value, tuple):
            out += struct.pack(">q", *value)
        else:
            out += struct.pack(">i", len(value)) + value.encode()
    return struct.pack(">i", len(out)) + out


def zookeeper_reconfig(port, joining, leaving):
    """Change the members of the ensemble. Is it done?"""
    try:
        with socket.create_connection(("127.0.0.1", port), 5) as line:
            line.settimeout(5)
            line.sendall(jute(0, (0,), 4000, (0,), "\0" * 16))
            line.recv(4096)
            # reconfig: who joins, who leaves, all members, of any version
            line.sendall(jute(1, 16, joining, leaving, "", (-1,)))
            answer = line.recv(4096)
            line.sendall(jute(2, -11))
            return len(answer) >= 20 and struct.unpack_from(
                ">i", answer, 16)[0] == 0
    except OSError:
        return False


class Zookeeper(Setup):
    good = Setup.CLIENT + Setup.NET + Setup.SERVER + ("leader_kill",
                                                      "restart_all", "member")
    often = 2 * Setup.PAUSES + 4 * ("leader_kill",)
    ttl_ms = 2000
    dense_pace = 0.6

    def __init__(self, *arguments):
        super().__init__(*arguments)
        java = "/usr/share/java"
        classes = os.environ.get(
            "HOLDFAST_TEST_ZOOKEEPER_CLASSPATH",
            f"{java}/zookeeper.jar:{java}/slf4j-simple.jar")
        ports = [(free_port(), free_port(), free_port()) for _ in range(3)]
        self.members = [f"server.{i + 1}=127.0.0.1:{b}:{c}:participant;"
                        f"127.0.0.1:{port}"
                        for i, (port, b, c) in enumerate(ports)]
        for i, (port, _, _) in enumerate(ports):
            home = self.new_dir(f"zk{i}")
            data = self.new_dir(f"zk{i}/data")
            with open(os.path.join(data, "myid"), "w") as myid:
                myid.write(f"{i + 1}\n")
            with open(os.path.join(home, "zoo.cfg"), "w") as conf:
                conf.write(
                    "tickTime=200\ninitLimit=50\nsyncLimit=10\n"
                    "minSessionTimeout=400\nmaxSessionTimeout=60000\n"
                    f"dataDir={data}\nmaxClientCnxns=0\n"
                    "admin.enableServer=false\n4lw.commands.whitelist=*\n"
                    "forceSync=no\nreconfigEnabled=true\nskipACL=yes\n"
                    "standaloneEnabled=false\n"
                    + "\n".join(self.members) + "\n")
            self.nodes.append(Node(
                ["java", "-Xmx128m", "-XX:+UseSerialGC",
                 "-XX:TieredStopAtLevel=1",
                 "-Dzookeeper.extendedTypesEnabled=true",
                 "-Dzookeeper.forceSync=no",
                 "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                 "-cp", classes,
                 "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                 os.path.join(home, "zoo.cfg")],
                port, home, lambda p: "Mode:" in said_by(p, "srvr")))

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"zk://{hosts}/locks?{self.query()}"

    def leader(self):
        for i, node in enumerate(self.nodes):
            if "Mode: leader" in said_by(node.port, "srvr"):
                return i
        return 0

    def change_member(self, node):
        """A member leaves the ensemble, and joins it again."""
        i = self.nodes.index(node)
        port = self.nodes[(i + 1) % len(self.nodes)].port
        if zookeeper_reconfig(port, "", str(i + 1)):
            time.sleep(0.3)
            await_true(lambda: zookeeper_reconfig(port, self.members[i], ""), 30)

    def leftovers(self):
        """Ephemeral nodes; the nodes of names stay, as containers do."""
        dump = said_by(self.nodes[self.leader()].port, "dump")
        return [line.strip() for line in dump.splitlines()
                if line.strip().startswith("/locks/")]

    def differences(self):
        """Ephemeral nodes that some servers have and the others do not, twice in
        a second; and the sessions that wait for one at such a server."""
        first = self.owners()
        time.sleep(1)
        names = [os.path.basename(node.dir) for node in self.nodes]
        for path, where in sorted(self.owners().items()):
            if len(where) < len(names) and first.get(path) == where:
                watched = [session for i in where for session in
                           self.watchers(self.nodes[i], path)]
                yield (f"what={path} at={','.join(names[i] for i in where)}"
                       f" watched={','.join(watched)}")

    def owners(self):
        """Each ephemeral node, and the servers that have it."""
        found = {}
        for i, node in enumerate(self.nodes):
            for line in said_at_length(node.port, "dump").splitlines():
                if line.strip().startswith("/locks/"):
                    found.setdefault(line.strip(), []).append(i)
        return found

    @staticmethod
    def watchers(node, path):
        """Watches by session: a line with its number, then the paths."""
        session = ""
        for line in said_at_length(node.port, "wchc").splitlines():
            if line.startswith("0x"):
                session = line.strip()
            elif line.strip() == path:
                yield session

    def diverged(self):
        """A server that applies a transaction compares a digest of its tree
        with the one that the leader had."""
        found = []
        for node in self.nodes:
            with open(os.path.join(node.dir, "log"), errors="replace") as log:
                if "Digests are not matching" in log.read():
                    found.append(os.path.basename(node.dir))
        return found

    def version(self):
        said = said_by(self.nodes[0].port, "srvr")
        return said.splitlines()[0].split(",")[0] if said else "ZooKeeper"


class ZookeeperOne(Zookeeper):
    """The clients know one server of the three."""

    def url(self, ports):
        return super().url(ports[:1])


class Etcd(Setup):
    good = Setup.CLIENT + Setup.NET + Setup.SERVER + ("leader_kill",
                                                      "restart_all", "compact",
                                                      "handover", "member")
    often = 2 * Setup.PAUSES + 3 * ("leader_kill", "handover")
    ttl_ms = dense_ttl_ms = 2000
    dense_pace = 0.6

    def __init__(self, *arguments):
        super().__init__(*arguments)
        ports = [(free_port(), free_port()) for _ in range(3)]
        self.peers = [f"http://127.0.0.1:{peer}" for _, peer in ports]
        cluster = ",".join(f"m{i}=http://127.0.0.1:{peer}"
                           for i, (_, peer) in enumerate(ports))
        for i, (port, peer) in enumerate(ports):
            home = self.new_dir(f"etcd{i}")
            self.nodes.append(Node(
                [os.environ.get("HOLDFAST_TEST_ETCD", "etcd"), "--name",
                 f"m{i}", "--data-dir", os.path.join(home, "data"),
                 "--listen-client-urls", f"http://127.0.0.1:{port}",
                 "--advertise-client-urls", f"http://127.0.0.1:{port}",
                 "--listen-peer-urls", f"http://127.0.0.1:{peer}",
                 "--initial-advertise-peer-urls", f"http://127.0.0.1:{peer}",
                 "--initial-cluster", cluster, "--initial-cluster-state",
                 "new", "--heartbeat-interval", "60", "--election-timeout",
                 "660", "--logger", "zap", "--log-level", "error"],
                port, home, lambda p: '"health":"true"' in said_by(
                    p, "GET /health HTTP/1.0\r\n\r\n")))

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return f"etcd://{hosts}?{self.query()}"

    def control(self, *words):
        return self.control_at(self.nodes, *words)

    def control_at(self, nodes, *words):
        hosts = ",".join(f"http://127.0.0.1:{node.port}" for node in nodes)
        return run(os.environ.get("HOLDFAST_TEST_ETCDCTL", "etcdctl"),
                   "--endpoints", hosts, "--dial-timeout=300ms",
                   "--command-timeout=1s", *words,
                   env={**os.environ, "ETCDCTL_API": "3"})

    def leader(self):
        for line in self.control("endpoint", "status").splitlines():
            words = [word.strip() for word in line.split(",")]
            if len(words) > 4 and "true" in words[4:6]:
                for i, node in enumerate(self.nodes):
                    if words[0].endswith(f":{node.port}"):
                        return i
        return 0

    def hand_over(self):
        """etcd's name for another member is the number that it shows."""
        rows = [line.split(", ") for line in
                self.control("endpoint", "status").splitlines()]
        leader = self.leader()
        others = [row[1] for row in rows if len(row) > 4 and
                  not row[0].endswith(f":{self.nodes[leader].port}")]
        if others:
            self.control_at([self.nodes[leader]], "move-leader", others[
                int.from_bytes(os.urandom(1), "big") % len(others)])

    def change_member(self, node):
        i = self.nodes.index(node)
        others = [other for other in self.nodes if other is not node]
        for line in self.control_at(others, "member", "list").splitlines():
            words = line.split(", ")
            if len(words) > 3 and words[2] == f"m{i}" and "removed" in \
                    self.control_at(others, "member", "remove", words[0]):
                node.kill()
                self.wipe(node)
                self.add_member(node, others, i)
                return

    def add_member(self, node, others, i):
        """Until the two that are left agree on it."""
        end = time.monotonic() + 30
        while "added" not in self.control_at(
                others, "member", "add", f"m{i}",
                f"--peer-urls={self.peers[i]}") and time.monotonic() < end:
            time.sleep(0.1)
        node.argv = ["existing" if word == "new" else word
                     for word in node.argv]
        node.launch()

    def compact(self, node):
        said = self.control("get", "x", "-w", "json")
        if '"revision":' in said:
            revision = said.split('"revision":')[1].split(",")[0]
            self.control("compact", revision)

    def leftovers(self):
        keys = self.control("get", "", "--prefix", "--keys-only")
        leases = self.control("lease", "list")
        # The number of the store's board stays.
        return [key for key in keys.split()
                if not key.endswith("~board/number")] + [
            line for line in leases.splitlines()
            if line.strip() and "found" not in line]

    def version(self):
        return run("etcd", "--version").splitlines()[0]


class Postgres(Setup):
    good = Setup.CLIENT + ("delay", "reset", "lost_reply", "slice",
                           "server_pause", "sessions", "hidden_end")
    bad = ("server_kill",)
    often = 3 * Setup.PAUSES + 2 * ("sessions",)
    mode = ""
    options = ()
    node_kind = Node
    ttl_ms = 3000
    dense_ttl_ms = 1500
    dense_pace = 0.2

    def __init__(self, *arguments):
        super().__init__(*arguments)
        os.chmod(self.dir, 0o755)
        bins = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.bin = os.environ.get("HOLDFAST_TEST_PG_BINDIR", bins[-1])
        self.add("postgres")
        self.program(self.nodes[0], "initdb", "-D", "data", "-A", "trust", "-U",
                     "postgres", "--no-sync")

    def program(self, node, name, *words):
        """Run one of PostgreSQL's programs as its user."""
        user = () if os.getuid() != 0 else (
            "setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups")
        return run(*user, f"{self.bin}/{name}", *words, cwd=node.dir)

    def add(self, name):
        port, home = free_port(), self.new_dir(name, "postgres")
        # By SIGQUIT: it ends at once, as in a crash, and its children with it.
        self.nodes.append(self.node_kind(
            [f"{self.bin}/postgres", "-D", "data", "-p", str(port),
             "-c", "listen_addresses=127.0.0.1",
             "-c", f"unix_socket_directories={home}",
             "-c", "shared_buffers=32MB", "-c", "max_connections=300",
             *self.options],
            port, home, self.is_ready, user="postgres", end_with="QUIT",
            crash=signal.SIGQUIT))

    def is_ready(self, port):
        return self.do_at(port, "SELECT 1") == "1"

    def do_at(self, port, text):
        return run("psql", "-XAtq", "postgresql://postgres@127.0.0.1:"
                   f"{port}/postgres", "-c", text)

    def do(self, text):
        return self.do_at(self.nodes[self.leader()].port, text)

    def url(self, ports):
        return (f"postgresql://postgres@127.0.0.1:{ports[0]}/postgres?"
                f"{self.query()}&io_timeout=2s&pool.max=24{self.mode}")

    def sessions(self, node, share=0.3):
        self.do("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                "pid <> pg_backend_pid() AND backend_type = 'client backend' "
                f"AND random() < {share}")

    def leftovers(self):
        left = self.do("SELECT 'lock ' || objid FROM pg_locks "
                       "WHERE locktype = 'advisory'")
        rows = self.do("SELECT 'row ' || p::text FROM holdfast_place p")
        return [line for line in (left + "\n" + rows).splitlines()
                if line.startswith(("lock", "row"))]

    def version(self):
        return run(f"{self.bin}/postgres", "--version")


class PostgresLateLog(Postgres):
    """A crash loses what the log did not have to have yet."""
    options = ("-c", "commit_delay=100000", "-c", "commit_siblings=0",
               "-c", "wal_writer_delay=10000")


class PostgresTable(Postgres):
    mode = "&mode=table"
    good = Setup.CLIENT + Setup.NET + Setup.SERVER + ("sessions",
                                                      "pause_slow")
    bad = ()
    often = Setup.often
    dense_ttl_ms = 1000


class CopiedNode(Node):
    """A server that is made a copy of another one (copy) before it starts."""
    copy = None

    def launch(self):
        if self.copy:
            self.copy()
        super().launch()


class PostgresStandby(PostgresTable):
    """A primary, and a standby that has applied a commit before the client hears
    of it. The one takes the other's place, which comes back as its copy."""
    good = Setup.CLIENT + Setup.NET + ("failover",)
    often = 3 * Setup.PAUSES + 2 * ("failover",)
    node_kind = CopiedNode
    options = ("-c", "synchronous_standby_names=*",
               "-c", "synchronous_commit=remote_apply")

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.add("standby")

    def start(self):
        first, second = self.nodes
        first.launch()
        first.await_ready()
        first.copy = lambda: self.copy(second, first)
        second.copy = lambda: self.copy(first, second)
        second.launch()
        second.await_ready()
        await_true(self.settled, 60)

    def copy(self, source, target):
        shutil.rmtree(os.path.join(target.dir, "data"), ignore_errors=True)
        self.program(target, "pg_basebackup", "-h", "127.0.0.1", "-p",
                     str(source.port), "-U", "postgres", "-D", "data", "-R",
                     "-X", "stream", "-c", "fast", "--no-sync")

    def url(self, ports):
        hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
        return (f"postgresql://postgres@{hosts}/postgres?{self.query()}"
                f"&target_session_attrs=read-write&io_timeout=2s{self.mode}")

    def leader(self):
        for i, node in enumerate(self.nodes):
            if self.do_at(node.port, "SELECT pg_is_in_recovery()") == "f":
                return i
        return 0

    def settled(self):
        return self.do("SELECT count(*) FROM pg_stat_replication WHERE state = "
                       "'streaming'") == "1"

    def taken_over(self, old):
        other = self.nodes[1 - old].port
        if self.do_at(other, "SELECT pg_is_in_recovery()") == "f":
            return True
        self.do_at(other, "SELECT pg_promote(false)")
        return False


class PostgresAsync(PostgresStandby):
    """The same, and a commit is answered before the standby has it."""
    good = Setup.CLIENT + Setup.NET
    bad = ("failover",)
    options = ()

    def fall_behind(self, leader, seconds):
        """On one machine a standby is never behind by itself: it is cut off."""
        port = self.nodes[1 - leader].port
        self.do_at(port, "ALTER SYSTEM SET primary_conninfo = ''")
        self.do_at(port, "SELECT pg_reload_conf()")
        await_true(lambda: self.do_at(
            port, "SELECT count(*) FROM pg_stat_wal_receiver") == "0", 5)
        time.sleep(seconds)


class Mysql(Setup):
    good = Setup.CLIENT + Setup.NET + Setup.SERVER + ("sessions",)
    mode = ""
    ttl_ms = 3000
    dense_ttl_ms = 1500
    dense_pace = 0.2

    def __init__(self, *arguments):
        super().__init__(*arguments)
        os.chmod(self.dir, 0o755)
        home = self.new_dir("mysql", "mysql")
        port = free_port()
        script = os.path.join(os.path.dirname(HERE), "live/mysql/server.sh")
        self.nodes.append(Node([script, str(port), home,
                                "--max-connections=400"], port, home,
                               self.is_ready, user="mysql"))

    def is_ready(self, port):
        return self.do("SELECT 1") == "1"

    def do(self, text):
        return run("mariadb", "--no-defaults", "-N", "-h127.0.0.1", "-uroot",
                   f"-P{self.nodes[0].port}", "locks", "-e", text)

    def url(self, ports):
        return (f"mysql://locker:s3cret@127.0.0.1:{ports[0]}/locks?"
                f"{self.query()}&io_timeout=2s&pool.max=24{self.mode}")

    def sessions(self, node, share=0.3):
        ids = self.do("SELECT id FROM information_schema.processlist "
                      f"WHERE user = 'locker' AND RAND() < {share}").split()
        if ids and ids[0].isdigit():
            self.do(";".join(f"KILL {number}" for number in ids))

    def leftovers(self):
        left = self.do("SELECT CONCAT('session-', id) FROM "
                       "information_schema.processlist WHERE user = 'locker'")
        rows = self.do("SELECT 'ticket' FROM holdfast_ticket UNION ALL SELECT "
                       "'lock' FROM holdfast_lock WHERE until > 0")
        return [line for line in (left + "\n" + rows).splitlines()
                if line.startswith(("session-", "ticket", "lock"))]

    def version(self):
        return run("/usr/sbin/mariadbd", "--version").split("Ver ")[-1]


class MysqlGetLock(Mysql):
    mode = "&mode=get_lock"
    often = 3 * Setup.PAUSES + 2 * ("sessions",)
    good = Setup.CLIENT + ("delay", "reset", "lost_reply", "slice", "cut",
                           "server_pause", "sessions", "hidden_end")
    bad = ("server_kill",)


class Memcached(Setup):
    # Stopped for more than a second, it reads its clock too late.
    good = Setup.CLIENT + Setup.NET + ("server_pause_short",)
    bad = ("server_kill", "flush", "server_pause")
    often = 3 * Setup.PAUSES

    def __init__(self, *arguments):
        super().__init__(*arguments)
        port, home = free_port(), self.new_dir("memcached")
        self.nodes.append(Node(
            ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", str(port),
             "-U", "0", "-m", "64", "-t", "2"], port, home,
            lambda p: "VERSION" in said_by(p, "version\r\n")))

    def url(self, ports):
        return (f"memcached://127.0.0.1:{ports[0]}?{self.query()}"
                "&io_timeout=1s")

    def flush(self, node):
        said_by(node.port, "flush_all\r\n")

    def leftovers(self):
        said = said_by(self.nodes[0].port, "lru_crawler metadump all\r\n")
        return [line.split()[0] for line in said.splitlines()
                if line.startswith("key=")]

    def version(self):
        return run("memcached", "--version")


ENGINES = {
    "local": Local, "redis": Redis, "sentinel": Sentinel, "cluster": Cluster,
    "redlock": Redlock, "redlock-forgetful": RedlockForgetful, "zk": Zookeeper,
    "zk-one": ZookeeperOne, "etcd": Etcd, "postgres": Postgres,
    "postgres-late-log": PostgresLateLog, "postgres-table": PostgresTable,
    "postgres-standby": PostgresStandby, "postgres-async": PostgresAsync,
    "mysql": Mysql,
    "mysql-get_lock": MysqlGetLock, "memcached": Memcached,
}
