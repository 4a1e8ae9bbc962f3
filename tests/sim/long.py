#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""long.py - so many steps of the simulation, and a line for its ledger.

The seeds follow those of the ledger, so that runs add up. SIGINT or SIGTERM end
the run with what was done until then.
"""

import argparse
import datetime
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
LEDGER = os.path.join(ROOT, "docs/reliability/simulation.jsonl")
AT_A_TIME = 5_000_000


def rows():
    if not os.path.exists(LEDGER):
        return []
    with open(LEDGER) as file:
        return [json.loads(line) for line in file]


def parse():
    parser = argparse.ArgumentParser(prog="./dev simulate",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=float, default=1e9)
    parser.add_argument("--first", type=int, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--record", action="store_true",
                        help="add the run to docs/reliability")
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    options = parser.parse_args()
    if options.first is None:
        options.first = max([1_000_000] + [row["first"] + row["seeds"]
                                           for row in rows()])
    return options


def some(options, first, steps):
    """Seeds, steps and what was found, of one call."""
    done = subprocess.run(
        [os.path.join(options.build, "tests/sim/sim_test"), "--first",
         str(first), "--steps", str(int(steps)), "--jobs", str(options.jobs)],
        stdout=subprocess.PIPE, text=True, check=False)
    said = re.search(r"(\d+) seeds from \d+, (\d+) steps", done.stdout)
    if not said:
        raise SystemExit(f"no answer: {done.stdout}")
    found = [line for line in done.stdout.splitlines() if line[:1] == "#"]
    return int(said[1]), int(said[2]), found


def simulate(options):
    seeds, steps, started = 0, 0, time.monotonic()
    found = []
    try:
        while steps < options.steps and not found:
            n, more, found = some(options, options.first + seeds,
                                  min(AT_A_TIME, options.steps - steps))
            seeds, steps = seeds + n, steps + more
    except KeyboardInterrupt:
        pass
    return {"date": datetime.date.today().isoformat(), "commit":
            subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"],
                           capture_output=True, text=True,
                           check=False).stdout.strip(),
            "first": options.first, "seeds": seeds, "steps": steps,
            "seconds": round(time.monotonic() - started), "found": found}


def interrupt(number, frame):
    raise KeyboardInterrupt


def main():
    options = parse()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupt)
    row = simulate(options)
    print(f"{'not ok' if row['found'] else 'ok'} - {row['seeds']} seeds from "
          f"{row['first']}, {row['steps']} steps in {row['seconds']} s")
    print("\n".join(row["found"]))
    if options.record and row["seeds"]:
        with open(LEDGER, "a") as file:
            file.write(json.dumps(row) + "\n")
    return 1 if row["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
