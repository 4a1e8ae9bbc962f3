# SPDX-License-Identifier: MIT
"""What goes wrong in a chaos run, and when: a seed decides.

schedule() draws all faults before the run begins: instants, kinds, lengths, and
numbers that choose their targets among those that are there. A seed so replays
its schedule; what the processes do in between is theirs.
"""

import os
import random
import signal
import threading
import time

from servers import await_true


def fill(directory):
    """Write until nothing fits any more; the file that has to go again."""
    path = os.path.join(directory, "filler")
    with open(path, "wb", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while filler.write(bytes(size)) == size:
                    pass
            except OSError:
                pass
    return path


class Fault:
    def __init__(self, at, kind, who, long):
        self.at, self.kind, self.who, self.long = at, kind, who, long

    def __repr__(self):
        return f"{self.at:.3f} {self.kind} {self.who:.3f} {self.long:.3f}"


def schedule(seed, kinds, seconds, pace=0.35):
    dice = random.Random(seed)
    at, faults = 0.0, []
    while True:
        at += pace * (0.4 + 1.2 * dice.random())
        fault = Fault(at, dice.choice(kinds), dice.random(), dice.random())
        if fault.at + 0.5 > seconds:
            return faults
        faults.append(fault)


class Nemesis:
    """Carries out a schedule on a Run (chaos.py)."""

    def __init__(self, run):
        self.run = run
        self.ends = []  # (at, undo, kind)
        self.busy = set()
        self.asides = []
        self.broken = None  # what went wrong beside the schedule

    def carry_out(self, faults):
        start = time.monotonic()
        for fault in faults:
            self.wait_until(start + fault.at)
            self.begin(fault)
        for at, _, _ in sorted(self.ends, key=lambda end: end[0]):
            self.wait_until(at)
        self.wait_until(time.monotonic())
        for aside in self.asides:
            while aside.is_alive():
                self.run.rest(0.05)
        if self.broken:
            raise self.broken
        for node in self.run.setup.nodes:
            node.await_ready()
        await_true(self.run.setup.settled, 120)

    def wait_until(self, when):
        """Let time pass until @when, and end what has to end before."""
        while True:
            now = time.monotonic()
            for end in [end for end in self.ends if end[0] <= now]:
                self.ends.remove(end)
                end[1]()
                if end[2]:
                    self.run.log(f"heal kind={end[2]}")
            if now >= when:
                return
            self.run.rest(min([when] + [end[0] for end in self.ends]) - now)

    def begin(self, fault):
        act = getattr(self, "do_" + fault.kind, None)
        if act is None:
            raise SystemExit(f"no such fault: {fault.kind}")
        act(fault)

    def note(self, fault, proc=None):
        self.run.log(f"fault kind={fault.kind}"
                     + (f" proc={proc}" if proc else ""))

    def later(self, seconds, act):
        """A stage of a fault that goes on."""
        self.ends.append((time.monotonic() + seconds, act, None))

    def until(self, seconds, undo, fault, target=None):
        if target is not None:
            self.busy.add(target)

        def finish():
            undo()
            self.busy.discard(target)
        self.ends.append((time.monotonic() + seconds, finish, fault.kind))

    def aside(self, work):
        """What takes long does not delay the schedule."""
        def guarded():
            try:
                work()
            except Exception as error:  # told in the main thread
                self.broken = error
        self.asides = [old for old in self.asides if old.is_alive()]
        thread = threading.Thread(target=guarded)
        thread.start()
        self.asides.append(thread)

    # ---- clients

    def client(self, fault, wish=None):
        """A worker that is not in trouble; one that @wish is true of, if any."""
        free = [w for w in self.run.workers
                if w.works() and ("client", w.index) not in self.busy]
        wanted = [w for w in free if wish and wish(w)] or free
        return wanted[int(fault.who * len(wanted))] if wanted else None

    def pause(self, fault, wish, leases):
        worker = self.client(fault, wish)
        if not worker:
            return
        self.note(fault, worker.name)
        worker.send(signal.SIGSTOP)
        self.until(leases * self.run.setup.ttl_ms / 1000,
                   lambda: worker.send(signal.SIGCONT), fault,
                   ("client", worker.index))

    def do_pause_short(self, fault):
        self.pause(fault, None, 0.1 + 0.6 * fault.long)

    def do_pause_holder(self, fault):
        self.pause(fault, self.run.is_holding, 1.2 + 1.5 * fault.long)

    def do_pause_waiter(self, fault):
        self.pause(fault, self.run.is_waiting, 1.2 + 1.5 * fault.long)

    def do_pause_slow(self, fault):
        """A waiter is stopped, and goes on over a slow line."""
        worker = self.client(fault, self.run.is_waiting)
        if not worker or not self.run.wire:
            return
        self.note(fault, worker.name)
        self.run.wire.order(worker.index, -1,
                            f"delay {50 + int(250 * fault.long)}")
        worker.send(signal.SIGSTOP)
        away = self.lease(1.1 + fault.long)
        self.later(away, lambda: worker.send(signal.SIGCONT))
        self.until(away + 1.5,
                   lambda: self.run.wire.order(worker.index, -1, "pass"),
                   fault, ("client", worker.index))

    def do_starve(self, fault):
        """It runs for five milliseconds of each fifty."""
        worker = self.client(fault)
        if not worker:
            return
        self.note(fault, worker.name)
        self.busy.add(("client", worker.index))

        def work():
            end = time.monotonic() + self.lease(1 + fault.long)
            while time.monotonic() < end:
                worker.send(signal.SIGSTOP)
                time.sleep(0.045)
                worker.send(signal.SIGCONT)
                time.sleep(0.005)
            self.run.log(f"heal kind={fault.kind}")
            self.busy.discard(("client", worker.index))
        self.aside(work)

    def do_suspend(self, fault):
        """Its CLOCK_BOOTTIME jumps, as over a suspend that stopped no server."""
        worker = self.client(fault, self.run.is_holding)
        if worker and worker.suspend(self.lease(2 * fault.long)):
            self.note(fault, worker.name)

    def do_kill(self, fault):
        worker = self.client(fault, self.run.is_holding)
        if worker:
            self.note(fault, worker.name)
            self.run.log(f"kill proc={worker.name}")
            worker.send(signal.SIGKILL)

    def do_exit(self, fault):
        worker = self.client(fault, self.run.is_holding)
        if worker:
            self.note(fault, worker.name)
            worker.send(signal.SIGUSR1)

    def do_fork(self, fault):
        worker = self.client(fault, self.run.is_holding)
        if worker:
            self.note(fault, worker.name)
            worker.send(signal.SIGUSR2)

    # ---- the network

    def net(self, fault, seconds, *orders):
        worker = self.client(fault)
        if not worker or not self.run.wire:
            return
        self.note(fault, worker.name)
        for which in self.some_servers(fault):
            for order in orders:
                self.run.wire.order(worker.index, which, order)
        self.until(seconds,
                   lambda: self.run.wire.order(worker.index, -1, "pass"),
                   fault, ("client", worker.index))

    def some_servers(self, fault):
        """One of several, about half of them, or all (-1)."""
        n = len(self.run.setup.nodes)
        first = int(fault.who * 997) % n
        turn = int(fault.long * 1000) % 3
        if n == 1 or turn == 0:
            return [-1]
        return [(first + i) % n for i in range(1 if turn == 1 else n // 2 + 1)]

    def lease(self, times):
        return times * self.run.setup.ttl_ms / 1000

    def do_cut(self, fault):
        self.net(fault, self.lease(2 * fault.long), "refuse 1", "reset")

    def do_one_way(self, fault):
        self.net(fault, self.lease(2 * fault.long), "to_server 1")

    def do_deaf(self, fault):
        self.net(fault, self.lease(2 * fault.long), "to_client 1")

    def do_black_hole(self, fault):
        self.net(fault, self.lease(2 * fault.long), "to_server 1",
                 "to_client 1")

    def do_half_open(self, fault):
        self.net(fault, self.lease(1.5 * fault.long), "lose_ends 1",
                 "to_server 1", "to_client 1")

    def do_delay(self, fault):
        self.net(fault, 0.5 + fault.long, f"delay {5 + int(120 * fault.long)}")

    def do_slice(self, fault):
        self.net(fault, 0.5 + fault.long, f"slice {1 + int(20 * fault.long)}")

    def do_reset(self, fault):
        self.net(fault, 0, "reset")

    def do_late_answer(self, fault):
        """Answers are late; when they arrive, nothing reaches the server any
        more. Who counts its lease from them claims what another client has."""
        worker = self.client(fault, self.run.is_holding)
        if not worker or not self.run.wire:
            return
        self.note(fault, worker.name)
        self.run.wire.order(worker.index, -1, "to_client 1")

        def turn():
            self.run.wire.order(worker.index, -1, "to_server 1")
            self.run.wire.order(worker.index, -1, "to_client 0")
        late = self.lease(0.35 + 0.25 * fault.long)
        self.later(late, turn)
        self.until(late + self.lease(1.5),
                   lambda: self.run.wire.order(worker.index, -1, "pass"),
                   fault, ("client", worker.index))

    def stages(self, fault, worker, *stages):
        """Orders to the line of @worker, each after so many leases."""
        self.note(fault, worker.name)
        at = 0
        for leases, *orders in stages:
            at += self.lease(leases)
            self.later(at, lambda orders=orders: [
                self.run.wire.order(worker.index, -1, order)
                for order in orders])
        self.until(at, lambda: self.run.wire.order(worker.index, -1, "pass"),
                   fault, ("client", worker.index))

    def do_late_renewal(self, fault):
        """Answers are late; the line works for a moment, and is cut. Who counts
        its lease from an answer claims too much of what it takes then."""
        worker = self.client(fault, self.run.is_holding)
        if worker and self.run.wire:
            self.stages(fault, worker, (0, "to_client 1"),
                        (0.4 + 0.15 * fault.long, "to_client 0"),
                        (0.06, "to_server 1", "to_client 1"), (1.5,))

    def do_late_push(self, fault):
        """What the server says is late, and nothing reaches it any more. Who
        counts its lease from a message of the server claims too much."""
        worker = self.client(fault, self.run.is_waiting)
        if worker and self.run.wire:
            self.stages(fault, worker, (0, "to_client 1"),
                        (0.1, "to_server 1"),
                        (0.4 + 0.2 * fault.long, "to_client 0"), (1.5,))

    def do_lost_reply(self, fault):
        """What was sent is carried out, and its answer never arrives."""
        worker = self.client(fault)
        if not worker or not self.run.wire:
            return
        self.note(fault, worker.name)
        self.run.wire.order(worker.index, -1, "to_client 1")

        def cut():
            self.run.wire.order(worker.index, -1, "reset")
            self.run.wire.order(worker.index, -1, "pass")
        self.until(0.02 + 0.1 * fault.long, cut, fault,
                   ("client", worker.index))

    def do_hidden_end(self, fault):
        """The server ends all sessions, and one client does not hear of it."""
        worker = self.client(fault, self.run.is_holding)
        found = self.node(fault)
        if not worker or not found or not self.run.wire:
            return
        self.note(fault, worker.name)
        self.run.wire.order(worker.index, -1, "to_client 1")
        self.aside(lambda: self.run.setup.sessions(found[1], share=1.0))

        def cut():
            self.run.wire.order(worker.index, -1, "reset")
            self.run.wire.order(worker.index, -1, "pass")
        self.until(0.3 + 0.5 * fault.long, cut, fault,
                   ("client", worker.index))

    # ---- servers

    def node(self, fault, index=None):
        nodes = self.run.setup.nodes
        index = int(fault.who * len(nodes)) if index is None else index
        return None if ("node", index) in self.busy else (index, nodes[index])

    def do_server_pause(self, fault, longest=2.0):
        found = self.node(fault)
        if not found:
            return
        index, node = found
        self.note(fault)
        node.send(signal.SIGSTOP)
        self.until(self.lease(longest * fault.long),
                   lambda: node.send(signal.SIGCONT), fault, ("node", index))

    def do_server_pause_short(self, fault):
        self.do_server_pause(fault, longest=0.6)

    def restart(self, fault, indices, between=lambda node: None,
                until=None, first=lambda: None):
        """Kill, and start again after a while, or when @until is true. What was
        killed is left alone until it serves again. @first comes before that."""
        nodes = [self.run.setup.nodes[i] for i in indices]
        if any(("node", i) in self.busy for i in indices):
            return
        self.note(fault)
        self.busy.update(("node", i) for i in indices)

        def work():
            first()
            for node in nodes:
                self.run.log(f"killed what={os.path.basename(node.dir)}")
                node.kill()
                between(node)
            if until:
                await_true(until, 20)
            else:
                time.sleep(min(0.8, self.lease(0.8)) * fault.long)
            for node in nodes:
                node.launch()
            for node in nodes:
                node.await_ready()
            self.run.log(f"heal kind={fault.kind}")
            self.busy.difference_update(("node", i) for i in indices)
        self.aside(work)

    def do_server_kill(self, fault):
        self.restart(fault, [int(fault.who * len(self.run.setup.nodes))])

    def do_leader_kill(self, fault):
        self.restart(fault, [self.run.setup.leader()])

    def do_restart_all(self, fault):
        self.restart(fault, range(len(self.run.setup.nodes)))

    def do_wipe(self, fault):
        self.restart(fault, [int(fault.who * len(self.run.setup.nodes))],
                     self.run.setup.wipe)

    def do_restart_all_wiped(self, fault):
        self.restart(fault, range(len(self.run.setup.nodes)),
                     self.run.setup.wipe)

    def do_failover(self, fault):
        """The master dies, until another server has taken its place."""
        if any(target[0] == "node" for target in self.busy):
            return
        old = self.run.setup.leader()
        if self.run.setup.settled():
            self.restart(fault, [old],
                         until=lambda: self.run.setup.taken_over(old),
                         first=lambda: self.run.setup.fall_behind(
                             old, self.lease(0.3 * fault.long)))

    def do_handover(self, fault):
        """A leader gives its place away, in order."""
        if not any(target[0] == "node" for target in self.busy):
            self.note(fault)
            self.aside(self.run.setup.hand_over)

    def beside(self, fault, index, work):
        """Leave the node alone until @work is done, and it serves."""
        node = self.run.setup.nodes[index]
        self.note(fault)
        self.busy.add(("node", index))

        def carry_out():
            work(node)
            node.await_ready()
            self.run.log(f"heal kind={fault.kind}")
            self.busy.discard(("node", index))
        self.aside(carry_out)

    def do_disk_full(self, fault):
        """Its disk is full for a while; a server that ends starts again."""
        found = self.node(fault)
        if not found or not os.path.ismount(found[1].dir):
            return

        def work(node):
            filler = fill(node.dir)
            time.sleep(self.lease(0.2 + fault.long))
            os.unlink(filler)
            if node.process.poll() is not None:
                self.run.log(f"killed what={os.path.basename(node.dir)}")
                node.launch()
        self.beside(fault, found[0], work)

    def do_member(self, fault):
        """A member leaves the cluster, and comes back without its disk."""
        if not any(target[0] == "node" for target in self.busy):
            self.beside(fault, int(fault.who * len(self.run.setup.nodes)),
                        self.run.setup.change_member)

    def at_node(self, fault, act):
        found = self.node(fault)
        if found:
            self.note(fault)
            self.aside(lambda: act(found[1]))

    def do_reshard(self, fault):
        """The slot of a lock moves to another master."""
        if not any(target[0] == "node" for target in self.busy):
            self.beside(fault, self.run.setup.leader(),
                        self.run.setup.move_slot)

    def do_script_flush(self, fault):
        self.at_node(fault, self.run.setup.script_flush)

    def do_sessions(self, fault):
        self.at_node(fault, self.run.setup.sessions)

    def do_compact(self, fault):
        self.at_node(fault, self.run.setup.compact)

    def do_flush(self, fault):
        self.at_node(fault, self.run.setup.flush)

    def do_clock(self, fault):
        """The server's clock jumps ahead by an hour, and back again."""
        found = self.node(fault)
        if not found:
            return
        self.note(fault)
        self.run.setup.clock(found[1], 3600)
        self.until(0.2 + fault.long,
                   lambda: self.run.setup.clock(found[1], 0), fault,
                   ("node", found[0]))
