#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""page.py [--check] - docs/reliability/README.md and matrix.svg, from the
ledgers of runs (./dev chaos --record), of planted mistakes and of scenarios."""

import collections
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
DOCS = os.path.join(ROOT, "docs/reliability")
sys.path.insert(0, HERE)
import check  # noqa: E402
import plants  # noqa: E402
import repro  # noqa: E402
import servers  # noqa: E402

GROUPS = (
    ("client", ("pause_short", "pause_holder", "pause_waiter", "pause_slow",
                "kill", "exit", "fork", "starve", "suspend")),
    ("network", ("cut", "one_way", "deaf", "black_hole", "half_open", "delay",
                 "slice", "reset", "lost_reply", "late_answer",
                 "late_renewal", "late_push", "hidden_end")),
    ("server", ("server_pause", "server_pause_short", "server_kill",
                "leader_kill", "handover", "restart_all", "sessions",
                "script_flush", "compact", "member", "reshard", "disk_full")),
    ("not promised", ("failover", "flush", "wipe", "clock",
                      "restart_all_wiped")),
)
KILLS = ("server_kill", "leader_kill", "restart_all", "failover", "wipe",
         "restart_all_wiped")
KINDS = [kind for _, kinds in GROUPS for kind in kinds]

WORDS = {
    "pause_short": "stopped for less than a lease",
    "pause_holder": "a holder is stopped for more than a lease",
    "pause_waiter": "a waiter is stopped for more than a lease",
    "pause_slow": "the same, and it goes on over a slow line",
    "kill": "kill -9", "exit": "the process ends and releases nothing",
    "fork": "a holder forks, and the child uses the hold",
    "starve": "it runs for 5 ms of each 50",
    "suspend": "its CLOCK_BOOTTIME jumps ahead, as over a suspend",
    "cut": "connections are reset and refused",
    "one_way": "nothing reaches the server",
    "deaf": "nothing comes back from the server",
    "black_hole": "nothing passes", "delay": "every byte is late",
    "half_open": "nothing passes, and the server does not see the end",
    "slice": "bytes come in small pieces", "reset": "connections are reset",
    "lost_reply": "the server executes, and the answer is lost in a reset",
    "late_answer": "answers are late, and nothing reaches the server once they "
                   "arrive",
    "late_renewal": "answers are late, the line works for a moment, and is cut",
    "late_push": "what the server says is late, and nothing reaches it any more",
    "reshard": "the slot of a lock moves to another master",
    "hidden_end": "the server ends all sessions, and one client does not "
                  "hear of it",
    "server_pause": "a server is stopped", "server_pause_short":
        "a server is stopped for less than a failover takes",
    "server_kill": "a server is killed and starts again on its disk",
    "leader_kill": "the same for the leader",
    "handover": "a leader gives its place away, in order",
    "restart_all": "the same for all servers at once",
    "sessions": "the server ends sessions",
    "script_flush": "SCRIPT FLUSH", "compact": "compaction",
    "member": "a member leaves the cluster, and comes back (etcd: without its "
              "disk)",
    "disk_full": "the disk is full for a while",
    "failover": "the master is killed, and a replica takes over",
    "flush": "the server forgets all locks (FLUSHALL, flush_all)",
    "wipe": "a server is killed and starts without its disk",
    "clock": "the server's clock jumps an hour ahead and back",
    "restart_all_wiped": "all servers start again without their disks",
}


def rows_of(name):
    path = os.path.join(DOCS, name)
    if not os.path.exists(path):
        return []
    with open(path) as file:
        return [json.loads(line) for line in file]


def labels(ledger):
    """The name of a row's engine, with the version of its server if there were
    several: what one version lost is not the others'."""
    versions = collections.defaultdict(set)
    for row in ledger:
        versions[row["engine"]].add(version_of(row))
    return lambda row: row["engine"] if len(versions[row["engine"]]) == 1 \
        else f"{row['engine']} {version_of(row)}"


def version_of(row):
    return re.search(r"\d+\.\d+(\.\d+)*", row["version"]).group()


def in_order(cells):
    """By the engines' order, then by version."""
    order = list(servers.ENGINES)
    return sorted(cells, key=lambda label: (
        order.index(label.split()[0]),
        [int(n) for n in re.findall(r"\d+", label.partition(" ")[2])]))


class Cell:
    """What runs of one engine came to, added up."""

    def __init__(self):
        self.runs = self.grants = self.seconds = self.gap = self.left = 0
        self.writes = self.refused = self.killed = 0
        self.faults = collections.Counter()
        self.violations = collections.Counter()  # that nothing explains, and
        self.explained = collections.Counter()   # (cause, kind): those others

    def add(self, row):
        self.runs += 1
        self.grants += row["grants"]
        self.seconds += row["seconds"]
        self.gap = max(self.gap, row["gap_ms"])
        self.left += row["leftovers"]
        self.writes += row["writes"]
        self.refused += row.get("refused", 0)
        # Runs before the nemesis counted them killed one server each time.
        self.killed += row.get("killed", sum(
            n for kind, n in row["faults"].items() if kind in KILLS))
        self.faults.update(row["faults"])
        if "cause" in row:
            self.explained.update({(row["cause"], kind): n for kind, n in
                                   row["violations"].items()})
        else:
            self.violations.update(row["violations"])


def add_up(rows, key):
    cells = collections.defaultdict(Cell)
    for row in rows:
        cells[key(row)].add(row)
    return cells


def number(n):
    return f"{n:,}"


# Why a run had violations, as its row in the ledger says, with a note.
CAUSES = {
    "mended": "a mistake of ours, mended since",
    "bound": "a bound that was too short",
}
SERVERS = "servers that had lost data, which their makers have mended since"


def counts(found, zero):
    return ", ".join(f"{n} {kind}" for kind, n in sorted(found.items())) or zero


def explained(cell, causes):
    return "; ".join(
        counts({kind: n for (why, kind), n in cell.explained.items()
                if why == cause}, "") + f" ({cause})"
        for cause in causes if any(why == cause for why, _ in cell.explained))


def violations(cell):
    """With those of servers: whoever runs these has them."""
    found = [counts(cell.violations, ""), explained(cell, ("servers",))]
    return "; ".join(filter(None, found)) or "**0**"


def totals(cells):
    whole = Cell()
    for cell in cells.values():
        whole.faults.update(cell.faults)
        whole.violations.update(cell.violations)
        whole.grants += cell.grants
        whole.runs += cell.runs
        whole.seconds += cell.seconds
        whole.killed += cell.killed
    f = whole.faults
    return [
        ("runs", whole.runs), ("grants", whole.grants),
        ("faults", sum(f.values())),
        ("pauses of holders and waiters beyond their lease",
         f["pause_holder"] + f["pause_waiter"] + f["pause_slow"]),
        ("clients killed, or gone without a release", f["kill"] + f["exit"]),
        ("faults of the network", sum(f[k] for k in GROUPS[1][1])),
        ("servers killed", whole.killed),
        ("failovers, kills of a leader and changes of it",
         f["leader_kill"] + f["failover"] + f["handover"]),
        ("minutes", round(whole.seconds / 60)),
    ]


def promised_table(cells):
    yield ("| Engine | runs | grants | faults | violations | on the way | "
           "longest gap | left |")
    yield "|---|---:|---:|---:|---|---|---:|---:|"
    for label in in_order(cells):
        cell = cells[label]
        yield (f"| {label} | {cell.runs} | {number(cell.grants)} | "
               f"{number(sum(cell.faults.values()))} | "
               f"{violations(cell)} | {explained(cell, CAUSES)} "
               f"| {cell.gap / 1000:.1f} s | {cell.left} |")


def void_table(cells):
    yield ("| Engine, fault | grants | times | claims of two, told late or "
           "released late | writes accepted | refused by token | updates lost "
           "| tokens not growing |")
    yield "|---|---:|---:|---:|---:|---:|---:|---:|"
    for (engine, kind), cell in sorted(cells.items()):
        v = collections.Counter(cell.violations)
        for (_, k), n in cell.explained.items():
            v[k] += n
        double = sum(n for k, n in v.items()
                     if k not in ("update", "token", "left", "starved"))
        fenced = cell.writes > 0
        yield (f"| {engine}, {kind} | {number(cell.grants)} | "
               f"{cell.faults[kind]} | {double} | "
               f"{number(cell.writes) if fenced else 'no token'} | "
               f"{number(cell.refused) if fenced else '–'} | "
               f"{'**' + str(v['update']) + '**' if fenced else '–'} | "
               f"{v['token'] if fenced else '–'} |")


def fault_table(cells):
    engines = in_order(cells)
    yield "| Fault | " + " | ".join(engines) + " |"
    yield "|---|" + "---:|" * len(engines)
    for kind in KINDS:
        counts = [cells[engine].faults[kind] for engine in engines]
        if any(counts):
            yield (f"| `{kind}`: {WORDS[kind]} | "
                   + " | ".join(str(n) if n else "" for n in counts) + " |")


def plants_table(rows):
    yield "| Mistake | should be found by | found | after | how |"
    yield "|---|---|---|---:|---|"
    for row in rows:
        what = plants.PLANTS.get(row["name"], ("",))[0]
        how = row["how"].split(": ", 1)[-1].replace("|", "/")
        by = "simulation" if row["by"] == "sim" else \
            f"chaos, {row['by']}: {row['faults']}"
        kind = how if row["found"] else "**a hole**"
        if row["by"] != "sim" and row["found"]:
            kind = row["how"].split()[1].rstrip(":")
            kind = check.KINDS.get(kind, row["how"])
        yield (f"| `{row['name']}`: {what} | {by} | "
               f"{'yes' if row['found'] else '**no**'} | {row['seconds']} s | "
               f"{kind} |")


def simulation(rows):
    if not rows:
        return
    steps, seeds = (sum(row[key] for row in rows) for key in ("steps", "seeds"))
    yield from ("", "## The simulation", "",
                "The real core on a virtual clock, with coroutines for threads "
                "and a service behind a bad network "
                "([simulation.md](../internals/simulation.md)): "
                f"{number(steps)} steps in {number(seeds)} seeds.", "",
                "| date | commit | seeds | steps | found |",
                "|---|---|---|---:|---|")
    for row in rows:
        yield (f"| {row['date']} | {row['commit']} | {row['first']} to "
               f"{row['first'] + row['seeds'] - 1} | {number(row['steps'])} | "
               f"{'; '.join(row['found']) or 'nothing'} |")


def repro_table():
    yield "| `./dev repro NAME` | the complaint | what has to happen here |"
    yield "|---|---|---|"
    for name, scene in repro.SCENES.items():
        yield f"| `{name}` | {scene.complaint} | {scene.claim} |"


HEAD = """# Reliability

Processes lock on real servers while faults happen; a checker that shares no code with the library reads what they logged.
This page is made from the ledgers of those runs by `tests/chaos/page.py`; [testing.md](../internals/testing.md#chaos) says how it is done.
Repeat it:

```
./dev chaos                          # every engine, a minute each
./dev chaos redis --seed 101         # one schedule of faults again
./dev chaos redis --faults flush     # what the engine cannot promise
./dev chaos --plants                 # are mistakes on purpose found?
./dev repro                          # what the users of other libraries met
./dev simulate                       # the core on a virtual clock, 10^9 steps
```
"""


def page():
    ledger = rows_of("ledger.jsonl")
    label = labels(ledger)
    good = add_up([r for r in ledger if r["promised"]], label)
    void = add_up([r for r in ledger if not r["promised"]],
                  lambda r: (label(r), r["kinds"].split(",")[0]))
    lines = [HEAD, "![Engines and faults](matrix.svg)", "",
             "## Added up", "", "| | |", "|---|---:|"]
    everything = add_up(ledger, label)
    lines += [f"| {name} | {number(n)} |" for name, n in totals(everything)]
    lines += ["", "## Faults under which everything is promised", "",
              "A violation is one of these: "
              + "; ".join(f"{text} (`{kind}`)"
                          for kind, text in check.KINDS.items()) + ".",
              "The longest gap is the longest time in which a lock that a "
              "client waited for was granted to nobody, faults included. "
              "\"Left\" counts what was on the store after the end. \"On the "
              "way\" are violations with a cause that is told below: "
              + "; ".join(f"{text} (`{cause}`)"
                          for cause, text in CAUSES.items())
              + f". `servers` are {SERVERS}; whoever runs them has that.", ""]
    lines += promised_table(good)
    for row in ledger:
        if row.get("note"):
            lines += ["", f"{label(row)}, seed {row['seed']}: {row['note']}"]
    if void:
        lines += ["", "## Faults under which exclusion is not promised", "",
                  "holdfast(7) says that two clients may hold the lock then. "
                  "The runs show that it happens, that LOST is told, and that "
                  "a counter whose keeper compares tokens loses no update. "
                  "Engines without tokens have nothing to compare.", ""]
        lines += void_table(void)
    lines += ["", "## How often each fault happened", ""]
    lines += fault_table(everything)
    found = rows_of("plants.jsonl")
    if found:
        n = sum(row["found"] for row in found)
        lines += ["", "## Mistakes on purpose", "",
                  f"Of {len(found)} mistakes that were put into the library on "
                  f"purpose (`src/base/planted.h`), {n} were found. The time "
                  "is that of the suite until it said so, with its start and "
                  "the time without faults at the end. Six are mistakes that "
                  "the library had until a review found them, put back one at "
                  "a time: " + ", ".join(f"`{name}`" for name in
                                         plants.FOUND_IN_REVIEW) + ".", ""]
        lines += plants_table(found)
    lines += simulation(rows_of("simulation.jsonl"))
    lines += ["", "## Complaints about other libraries", ""]
    lines += repro_table()
    versions = sorted({row["version"] for row in ledger})
    lines += ["", "## The ledger", "",
              "[ledger.jsonl](ledger.jsonl) has a line for each run: date, "
              "commit, seed, version of the server, faults by kind, "
              "violations. Versions so far: " + "; ".join(versions) + ".", ""]
    return "\n".join(lines)


def svg():
    ledger = rows_of("ledger.jsonl")
    label = labels(ledger)
    cells = add_up(ledger, lambda r: (label(r), r["promised"]))
    engines = in_order({name for name, _ in cells})
    left, top, width, height = 130, 120, 34, 24
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="'
           f'{left + width * len(KINDS) + 20}" height="'
           f'{top + height * len(engines) + 50}" font-family="sans-serif" '
           'font-size="10">',
           '<rect width="100%" height="100%" fill="#fff"/>']
    for i, kind in enumerate(KINDS):
        x = left + i * width + 18
        out.append(f'<text transform="translate({x},{top - 6}) rotate(-60)">'
                   f'{kind}</text>')
    for j, engine in enumerate(engines):
        y = top + j * height
        out.append(f'<text x="{left - 8}" y="{y + 16}" text-anchor="end" '
                   f'font-size="12">{engine}</text>')
        for i, kind in enumerate(KINDS):
            out += svg_cell(cells, engine, kind, left + i * width, y, width,
                            height)
    y = top + height * len(engines) + 24
    for x, colour, text in ((left, "#b7e1c0", "faults; 0 violations"),
                            (left + 190, "#f4c7a1", "exclusion not promised"),
                            (left + 390, "#e88", "violations: see the page")):
        out.append(f'<rect x="{x}" y="{y - 11}" width="14" height="14" '
                   f'fill="{colour}"/><text x="{x + 20}" y="{y}">{text}'
                   '</text>')
    return "\n".join(out + ["</svg>", ""])


def svg_cell(cells, engine, kind, x, y, width, height):
    good = cells.get((engine, True), Cell())
    void = cells.get((engine, False), Cell())
    n = good.faults[kind] + void.faults[kind]
    colour = "#f3f3f3"
    lost = good.violations or any(why == "servers" for why, _ in good.explained)
    if kind in servers.ENGINES[engine.split()[0]].bad and n:
        colour = "#f4c7a1"
    elif n:
        colour = "#e88" if lost else "#b7e1c0"
    yield (f'<rect x="{x}" y="{y}" width="{width - 2}" height="{height - 2}" '
           f'fill="{colour}"/>')
    if n:
        yield (f'<text x="{x + width / 2 - 1}" y="{y + 15}" '
               f'text-anchor="middle">{n}</text>')


def main():
    made = {"README.md": page(), "matrix.svg": svg()}
    stale = []
    for name, text in made.items():
        path = os.path.join(DOCS, name)
        old = open(path).read() if os.path.exists(path) else ""
        if old != text:
            stale.append(name)
            if "--check" not in sys.argv:
                with open(path, "w") as file:
                    file.write(text)
    if "--check" in sys.argv and stale:
        print(f"docs/reliability: run tests/chaos/page.py: {' '.join(stale)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
