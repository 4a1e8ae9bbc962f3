# SPDX-License-Identifier: MIT
"""The logs of a run, as grants and faults.

One line is one event: NANOSECONDS EVENT KEY=VALUE…, on CLOCK_BOOTTIME, which all
processes of a machine share. A file is one process. Workers write

    caps  names=A,B [ttl=]     what the engine promises; its lease in ms
    ask   id= name= mode=x|s|n slots= wait= kind=   before the call
    got   id= token=           after it returned 0
    fail  id= rc=              after it returned something else
    seen  id= until=           a check said HELD or JEOPARDY; the time is from
                               before the check; until: surely ours so long
    down  id=                  before a downgrade from x to s
    lost  id=                  LOST was told, or seen
    rel   id=                  before the release
    reld  id= rc=              after it
    gap   from=                the process did not run from then to now
    wrong what=                an answer that the header excludes
    exit  end                  it leaves without a release, or in order

the nemesis

    kill  proc=                before the signal
    fault kind= [proc=]        before the fault
    heal  kind=                after its end
    killed what=               before a server is killed
    healed                     no fault comes after this
    differs what= at= [watched=]   a node that only these servers have while
                               a waiter is not served, and who waits for it
    stop                       the workers were asked to end
    left  what=                found on the store after all had ended
    diverged what=             a server whose data are not those of the others

and the guarded resource

    write name= token= value=  accepted
"""

import os

FOREVER = 1 << 62


class Grant:
    """One request, and what became of it."""

    def __init__(self, proc, at, fields):
        self.proc = proc
        self.id = fields["id"]
        self.name = fields["name"]
        self.mode = fields.get("mode", "x")
        self.slots = int(fields.get("slots", 1))
        self.wait = int(fields.get("wait", -1))
        self.kind = fields.get("kind", "sync")
        self.ask = at
        self.got = self.failed = self.rel = self.reld = None
        self.lost = self.down = self.seen = self.until = None
        self.token = self.rc = 0

    def __str__(self):
        return f"{self.proc}/{self.id} of {self.name} (token {self.token})"

    def claim(self, history):
        """From when to when did the process surely claim the lock?"""
        if self.got is None:
            return None
        end = self.seen or self.got
        if history.promises("told_before_regrant") and self.until:
            early = self.lost is not None and self.lost < self.until
            end = max(end, self.until) if not early else end
        for cut in (self.rel, history.ended.get(self.proc)):
            end = end if cut is None else min(end, cut)
        return (self.got, end) if end > self.got else None

    def claims(self, history):
        """The same in pieces of one mode: (start, end, mode)."""
        claim = self.claim(history)
        if claim is None:
            return
        start, end = claim
        if self.down is None or self.down >= end:
            yield start, end, self.mode
            return
        if self.down > start:
            yield start, self.down, self.mode
        yield max(start, self.down), end, "s"


class History:
    def __init__(self):
        self.grants = []
        self.caps = None
        self.ended = {}   # process: its last instant
        self.gaps = {}    # process: [(from, to)]
        self.faults = []  # (at, kind, process or None)
        self.heals = []   # their ends: (at, kind)
        self.ttl = 0      # of the leases, in nanoseconds; 0: unknown
        self.killed = 0   # server processes
        self.healed = None
        self.stop = None
        self.left = []
        self.diverged = []
        self.differs = []
        self.wrong = []
        self.writes = []  # (at, name, token, value)
        self.last = 0
        self._open = {}

    def promises(self, name):
        return self.caps is not None and name in self.caps

    def feed(self, proc, line):
        words = line.split()
        if len(words) < 2 or not words[0].isdigit():
            return  # a killed process leaves half a line
        at, event = int(words[0]), words[1]
        fields = dict(word.split("=", 1) for word in words[2:] if "=" in word)
        self.last = max(self.last, at)
        handler = getattr(self, "_on_" + event, None)
        if handler is None:
            raise ValueError(f"{proc}: no such event: {line.strip()}")
        try:
            handler(proc, at, fields)
        except KeyError:
            if line.endswith("\n"):
                raise

    def _grant(self, proc, fields):
        return self._open[proc, fields["id"]]

    def _on_caps(self, proc, at, fields):
        names = set(fields["names"].split(","))
        self.ttl = int(fields.get("ttl", 0)) * 1_000_000
        self.caps = names if self.caps is None else self.caps & names

    def _on_ask(self, proc, at, fields):
        grant = Grant(proc, at, fields)
        self._open[proc, grant.id] = grant
        self.grants.append(grant)

    def _on_got(self, proc, at, fields):
        grant = self._grant(proc, fields)
        grant.got = at
        grant.token = int(fields.get("token", 0))

    def _on_fail(self, proc, at, fields):
        grant = self._grant(proc, fields)
        grant.failed, grant.rc = at, int(fields["rc"])

    def _on_seen(self, proc, at, fields):
        grant = self._grant(proc, fields)
        grant.seen = at
        grant.until = max(grant.until or 0, int(fields.get("until", at)))

    def _on_down(self, proc, at, fields):
        self._grant(proc, fields).down = at

    def _on_lost(self, proc, at, fields):
        grant = self._grant(proc, fields)
        grant.lost = at if grant.lost is None else min(grant.lost, at)

    def _on_rel(self, proc, at, fields):
        self._grant(proc, fields).rel = at

    def _on_reld(self, proc, at, fields):
        grant = self._grant(proc, fields)
        grant.reld, grant.rc = at, int(fields["rc"])

    def _on_gap(self, proc, at, fields):
        self.gaps.setdefault(proc, []).append((int(fields["from"]), at))

    def _on_wrong(self, proc, at, fields):
        self.wrong.append((at, proc, fields["what"]))

    def _end(self, proc, at):
        self.ended[proc] = min(self.ended.get(proc, FOREVER), at)

    def _on_exit(self, proc, at, fields):
        self._end(proc, at)

    _on_end = _on_exit

    def _on_kill(self, proc, at, fields):
        self._end(fields["proc"], at)

    def _on_fault(self, proc, at, fields):
        self.faults.append((at, fields["kind"], fields.get("proc")))

    def _on_heal(self, proc, at, fields):
        self.heals.append((at, fields["kind"]))

    def _on_killed(self, proc, at, fields):
        self.killed += 1

    def _on_healed(self, proc, at, fields):
        self.healed = at

    def _on_differs(self, proc, at, fields):
        self.differs.append((fields["what"], fields["at"],
                             fields.get("watched", "")))

    def _on_stop(self, proc, at, fields):
        self.stop = at

    def _on_left(self, proc, at, fields):
        self.left.append(fields["what"])

    def _on_diverged(self, proc, at, fields):
        self.diverged.append(fields["what"])

    def _on_write(self, proc, at, fields):
        self.writes.append((at, fields["name"], int(fields["token"]),
                            int(fields["value"])))

    def ran(self, proc, start, end):
        """How long did @proc surely run between the two?"""
        away = 0
        for since, until in self.gaps.get(proc, ()):
            away += max(0, min(end, until) - max(start, since))
        return max(0, end - start - away)


def read(directory):
    history = History()
    for file in sorted(os.listdir(directory)):
        if not file.endswith(".log"):
            continue
        with open(os.path.join(directory, file), errors="replace") as lines:
            for line in lines:
                history.feed(file[:-4], line)
    return history
