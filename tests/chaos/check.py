#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check.py DIRECTORY [--json] - does a history keep what a lock promises?

Shares nothing with the library: it reads logs (history.py says what is in
them). Each rule below yields violations; a rule is sound: it reports only what
no order of the unlogged instants explains.
"""

import argparse
import bisect
import collections
import heapq
import json
import sys

import history as histories

MS = 1_000_000

KINDS = {
    "overlap": "two processes claim one lock",
    "slots": "more holders than slots",
    "leaders": "two leaders",
    "late": "LOST told after the grant of another",
    "token": "a token is not above those of earlier grants",
    "release": "a release answered 0 after the grant of another",
    "starved": "a waiter was not served after the healing",
    "idle": "a lock that nobody had was not granted",
    "left": "something was left on the store",
    "fifo": "a later request was served first",
    "update": "the guarded counter lost an update",
    "answer": "an answer that the header excludes",
}


# Faults without an end of their own, and those whose end is the beginning of a
# recovery.
LEAVES = ("kill", "exit")
SERVERS = ("server_pause", "server_pause_short", "server_kill", "leader_kill",
           "restart_all", "failover", "wipe", "restart_all_wiped", "clock",
           "member", "disk_full", "reshard")


class Bounds:
    """What the rules allow. Times are nanoseconds."""

    def __init__(self, serve_ms=20000, told_ms=1000, session_ms=1500,
                 line_ms=1500, exclusive=True):
        self.exclusive = exclusive      # claims of two are violations
        self.serve = serve_ms * MS      # a waiter, after the healing
        self.told = told_ms * MS        # LOST after the next grant, while running
        self.session = session_ms * MS  # the same, without told_before_regrant
        self.line = line_ms * MS        # surely in line before the other asked

    def late(self, history):
        told = history.promises("told_before_regrant")
        return self.told if told else self.session


def by_name(history):
    names = collections.defaultdict(list)
    for grant in history.grants:
        names[grant.name].append(grant)
    return names


def conflict(a, b):
    return a == "x" or b == "x" or (a == "n") != (b == "n")


def overlaps(history, bounds):
    allowed = 0 if history.promises("told_before_regrant") else bounds.session
    for name, grants in by_name(history).items():
        pieces = sorted((start, end, mode, grant.id, grant.proc, grant)
                        for grant in grants
                        for start, end, mode in grant.claims(history))
        open_pieces = []
        for start, end, mode, _, proc, grant in pieces:
            open_pieces = [old for old in open_pieces if old[0] > start]
            for old_end, old_mode, old in open_pieces:
                shared = min(old_end, end) - start
                if old is grant or shared <= allowed:
                    continue
                if conflict(mode, old_mode):
                    kind = "leaders" if grant.kind == "elect" else "overlap"
                    yield kind, start, (f"{old} and {grant} overlap for "
                                        f"{shared / MS:.3f} ms")
            open_pieces.append((end, mode, grant))


def slots(history, bounds):
    allowed = 0 if history.promises("told_before_regrant") else bounds.session
    for name, grants in by_name(history).items():
        ends = []
        pieces = sorted((*claim, grant.slots) for grant in grants
                        if grant.mode == "n"
                        for claim in [grant.claim(history)] if claim)
        for start, end, n in pieces:
            while ends and ends[0] - allowed <= start:
                heapq.heappop(ends)
            heapq.heappush(ends, end)
            if len(ends) > n:
                yield "slots", start, f"{len(ends)} of {n} slots of {name}"


def late(history, bounds):
    """LOST has to be told before somebody else is granted the lock. A process
    that does not run cannot be told: only the time that it ran counts."""
    for name, grants in by_name(history).items():
        gots = sorted((g.got, g.id, g.proc, g) for g in grants
                      if g.got is not None)
        times = [row[0] for row in gots]
        for grant in grants:
            if grant.got is None or grant.lost is None:
                continue
            if grant.rel is not None and grant.rel < grant.lost:
                continue
            at = bisect.bisect_right(times, grant.got)
            for got, _, _, other in gots[at:]:
                if got >= grant.lost:
                    break
                ran = history.ran(grant.proc, got, grant.lost)
                if (other is not grant and other.claim(history)
                        and conflict(other.mode, grant.mode)
                        and grant.mode != "n" and grant.down is None
                        and ran > bounds.late(history)):
                    yield "late", grant.lost, (f"{grant} told after {other}: "
                                               f"{ran / MS:.1f} ms")
                    break


def tokens(history, bounds):
    if not history.promises("fenced"):
        return
    for name, grants in by_name(history).items():
        yield from tokens_after_answers(name, grants)
        if bounds.exclusive and history.promises("told_before_regrant"):
            yield from tokens_of_claims(history, grants)


def tokens_after_answers(name, grants):
    """Asked after another was answered: granted after it."""
    answered, largest, seen = [], 0, {}
    for grant in sorted((g for g in grants if g.got is not None),
                        key=lambda g: g.ask):
        while answered and answered[0][0] < grant.ask:
            largest = max(largest, heapq.heappop(answered)[1])
        if grant.token <= largest:
            yield "token", grant.got, f"{grant} after token {largest}"
        elif grant.token in seen:
            yield "token", grant.got, f"{grant} and {seen[grant.token]}"
        seen[grant.token] = grant
        heapq.heappush(answered, (grant.got, grant.token))


def tokens_of_claims(history, grants):
    """Exclusive claims follow each other as their grants did: where they do not
    overlap, as those of sessions may for a moment."""
    last = None
    for grant in sorted((g for g in grants if g.mode == "x" and
                         g.claim(history)), key=lambda g: g.got):
        if last is not None and grant.token < last.token:
            yield "token", grant.got, f"{grant} after {last}"
        last = grant


def came_later(history, other, grant):
    """Was @other surely granted after @grant, whose answer came first?"""
    if other.token and grant.token:
        return other.token > grant.token
    return history.promises("told_before_regrant") or other.ask > grant.got


def releases(history, bounds):
    """0 means that it was ours until the release."""
    for name, grants in by_name(history).items():
        gots = sorted((g.got, g.id, g.proc, g) for g in grants
                      if g.mode == "x" and g.claim(history))
        times = [row[0] for row in gots]
        for grant in grants:
            if (grant.got is None or grant.rel is None or grant.reld is None
                    or grant.rc != 0):
                continue
            # Told LOST, an election is a candidacy, and its end is 0.
            if grant.kind == "elect" and grant.lost is not None:
                continue
            at = bisect.bisect_right(times, grant.got)
            for got, _, _, other in gots[at:]:
                if got >= grant.rel:
                    break
                if other is not grant and came_later(history, other, grant):
                    yield "release", grant.reld, f"{grant} after {other}"
                    break


def starved(history, bounds):
    if history.healed is None:
        return
    end = history.stop or history.last
    for grant in history.grants:
        if grant.wait >= 0 or grant.proc in history.ended and \
                history.ended[grant.proc] < (history.stop or 0):
            continue
        answer = grant.got or grant.failed or end
        since = max(grant.ask, history.healed)
        waited = history.ran(grant.proc, since, min(answer, end))
        if waited > bounds.serve:
            yield "starved", answer, f"{grant} waited {waited / MS:.0f} ms"


def idle(history, bounds):
    """Who waits for a lock that nobody has gets it: most of a lease without a
    fault, in which every process ran, is too long. A multi-lock that waits has
    some of its names already, and does not say so. Shorter leases are no longer
    than a busy machine may take."""
    if history.ttl < 3000 * MS:
        return
    allowed = 0.7 * history.ttl
    gaps = sorted(gap for gaps in history.gaps.values() for gap in gaps)
    quiet = quiet_times(history)
    for grants in by_name(history).values():
        had = 0
        if any(grant.kind == "many" for grant in grants):
            continue
        for grant in sorted((g for g in grants if g.got is not None),
                            key=lambda g: g.got):
            at = bisect.bisect_right(quiet, (grant.got, 1 << 62)) - 1
            start = max(grant.ask, had, quiet[at][1] if at >= 0 else 0)
            if grant.wait < 0 and grant.got - start > allowed and not any(
                    end > start and since < grant.got for since, end in gaps):
                yield "idle", grant.got, (
                    f"{grant} after {(grant.got - start) / MS:.0f} ms")
            had = max(had, grant.reld or grant.lost or grant.until or grant.got)


def quiet_times(history):
    """(beginning of a fault, since when all that began until then is over): what
    a dead client had ends with its lease, and servers find together again."""
    open_ones, windows = collections.defaultdict(list), []
    events = [(at, 0, kind) for at, kind, _ in history.faults]
    events += [(at, 1, kind) for at, kind in history.heals]
    for at, ends, kind in sorted(events):
        if not ends:
            open_ones[kind].append(at)
            continue
        start = open_ones[kind].pop(0) if open_ones[kind] else at
        windows.append((start, at + (10**10 if kind in SERVERS else 0)))
    for kind, starts in open_ones.items():
        windows += [(at, at + (3 * history.ttl if kind in LEAVES else 10**10))
                    for at in starts]
    latest, quiet = 0, []
    for start, end in sorted(windows):
        latest = max(latest, end)
        quiet.append((start, latest))
    return quiet


def fifo(history, bounds):
    """One thread of each process stands in this line, so that its order is the
    engine's. A fault in between excuses."""
    if not history.promises("fifo"):
        return
    faults = sorted([at for at, _, _ in history.faults] +
                    [at for at, _ in history.heals])
    for name, grants in by_name(history).items():
        line = sorted((g for g in grants if g.kind == "line"),
                      key=lambda g: g.ask)
        for i, first in enumerate(line):
            for other in line[i + 1:]:
                if first.got is not None and other.ask > first.got:
                    break
                if passed(history, first, other, bounds, faults):
                    yield "fifo", other.got, f"{other} before {first}"


def passed(history, first, other, bounds, faults):
    if other.got is None or other.ask < first.ask + bounds.line:
        return False
    end = min(t for t in (first.got, first.failed, history.last)
              if t is not None)
    if other.got >= end or other.proc == first.proc:
        return False
    calm = first.ask - 10 * bounds.line
    at = bisect.bisect_left(faults, calm)
    if at < len(faults) and faults[at] < other.got:
        return False
    gone = other.got - first.ask - history.ran(first.proc, first.ask, other.got)
    return gone == 0


def updates(history, bounds):
    """Each accepted write adds one to what the writer had read."""
    if not history.promises("fenced"):
        return
    last = {}
    for at, name, token, value in history.writes:
        before, newest = last.get(name, (0, 0))
        if value != before + 1:
            yield "update", at, f"{name}: {before} became {value}"
        elif token < newest:
            yield "update", at, f"{name}: token {token} after {newest}"
        last[name] = (value, max(newest, token))


def leftovers(history, bounds):
    for what in history.left:
        yield "left", history.last, what


def answers(history, bounds):
    for at, proc, what in history.wrong:
        yield "answer", at, f"{proc}: {what}"


RULES = (overlaps, slots, late, tokens, releases, starved, idle, fifo, updates,
         leftovers, answers)


def check(history, bounds=None):
    """All violations: (kind, at, text), in the order of time."""
    bounds = bounds or Bounds()
    found = [row for rule in RULES for row in rule(history, bounds)]
    return sorted(found, key=lambda row: row[1])


def longest_gap(history):
    """The longest time without a grant of a name that somebody waited for."""
    longest = 0
    for grants in by_name(history).values():
        gots = sorted(g.got for g in grants if g.got is not None)
        for grant in grants:
            if grant.wait >= 0 or grant.got is None:
                continue
            before = bisect.bisect_left(gots, grant.got)
            since = max(grant.ask, gots[before - 1] if before else 0)
            longest = max(longest, grant.got - since)
    return longest


def summary(history, violations):
    faults = collections.Counter(kind for _, kind, _ in history.faults)
    counts = collections.Counter(kind for kind, _, _ in violations)
    return {
        "grants": sum(g.got is not None for g in history.grants),
        "requests": len(history.grants),
        "lost": sum(g.lost is not None for g in history.grants),
        "writes": len(history.writes),
        "faults": dict(sorted(faults.items())),
        "killed": history.killed,
        "violations": dict(sorted(counts.items())),
        "gap_ms": round(longest_gap(history) / MS),
        "leftovers": len(history.left),
        **({"diverged": history.diverged} if history.diverged else {}),
        **({"differs": history.differs} if history.differs else {}),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--serve-ms", type=int, default=20000)
    options = parser.parse_args()
    history = histories.read(options.directory)
    violations = check(history, Bounds(serve_ms=options.serve_ms))
    facts = summary(history, violations)
    if options.json:
        print(json.dumps(facts))
    else:
        for key, value in facts.items():
            print(f"{key}: {value}")
    for kind, at, text in violations[:50]:
        print(f"{at} {kind}: {KINDS[kind]}: {text}", file=sys.stderr)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
