#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""plants.py [NAME…] - are mistakes that were made on purpose found?

A build with -DHOLDFAST_PLANTS=ON has them (src/base/planted.h). Each has a
suite that should find it, and a time within which it should: the simulation, or
chaos on an engine. What finds nothing is a hole in the suites, and is told as
one.
"""

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))

# name: (what is wrong, engine or "sim", faults, seconds of them, more options)
PLANTS = {
    "deadline_from_the_answer":
        ("the claim counts from the answer, not from the request", "sim"),
    "renewal_counts_when_sent":
        ("a renewal extends the claim before it is answered", "sim"),
    "check_without_the_clock":
        ("hf_check() does not look at the clock", "sim"),
    "lost_answer_means_no":
        ("a request whose answer was lost counts as refused", "sim"),
    "token_of_a_coarse_clock":
        ("tokens repeat within some milliseconds", "sim"),
    "place_lost_while_asking":
        ("a place that is lost while it is asked for is never asked for "
         "again", "mysql-get_lock", "cut,sessions", 25),
    "session_end_not_told":
        ("mysql: the end of a session is not told to who holds a lock by it",
         "mysql-get_lock", "sessions,cut,reset", 25),
    "token_not_flushed":
        ("postgres: a token is given before the log has it, and given again "
         "after a crash", "postgres-late-log", "server_kill", 45, "--pace 1.5"),
    "push_counts_from_its_arrival":
        ("postgres: the lease of a grant that is pushed counts from its "
         "arrival", "postgres-table", "late_push", 60,
         "--pace 2 --ttl 3000 --long 2 --workers 9 --patience 150"),
    "release_told_without_proof":
        ("a release whose answer was lost is told as 0 without a lease that "
         "proves it", "postgres", "hidden_end", 30),
    "withdrawal_sent_once":
        ("a withdrawal without an answer is not repeated", "sim"),
    "timer_starves_timers":
        ("a timer that is set to the past runs before all others again and "
         "again", "sim"),
    "child_may_use_the_hold":
        ("hf_check() of a forked child answers for its parent", "local",
         "fork", 5),
    "many_in_the_callers_order":
        ("a multi-lock takes its names in the caller's order", "local",
         "none", 15),
    "passed_without_end":
        ("threads of one process pass a lock among themselves for ever",
         "sim"),
    "one_slot_too_many": ("local: one holder more than slots", "local",
                          "none", 5),
    "writer_beside_readers":
        ("local: a writer enters beside readers", "local", "none", 5),
    "repeated_request_is_new":
        ("local: a request that is repeated enters the line again", "local",
         "pause_waiter,pause_holder", 10),
    "renewal_not_written":
        ("local: a renewal does not move the end of the lease", "local",
         "none", 10),
    "release_without_compare":
        ("memcached: a withdrawal deletes what another owner has by now",
         "memcached", "pause_holder", 30, "--ttl 3000"),
    "renewal_ignores_the_owner":
        ("redis: \"not yours\" is taken for a renewal", "redis",
         "pause_waiter,pause_holder", 20),
    "no_quarantine":
        ("redlock: a server that forgot its locks votes at once",
         "redlock-forgetful", "server_kill", 25),
    "less_than_a_majority":
        ("redlock: two of five servers are enough", "redlock",
         "cut,one_way,delay", 15),
    "lease_from_its_answer":
        ("etcd: the lease counts from the answer of its keepalive", "etcd",
         "late_renewal", 120,
         "--pace 2 --ttl 6000 --long 2 --workers 9 --patience 150"),
    "unsure_node_not_sought":
        ("zookeeper: a node whose create was not answered counts as missing",
         "zk", "lost_reply,reset", 20),
}


# Mistakes that the library had, and that a review found.
FOUND_IN_REVIEW = (
    "place_lost_while_asking", "session_end_not_told", "token_not_flushed",
    "push_counts_from_its_arrival", "release_told_without_proof",
    "withdrawal_sent_once")

# Seconds for one suite; busy machines are slow.
PATIENCE = 900


def simulate(name, build):
    program = os.path.join(build, "tests/sim/sim_test")
    done = subprocess.run([program], capture_output=True, text=True,
                          timeout=PATIENCE, check=False,
                          env={**os.environ, "HOLDFAST_TEST_PLANT": name})
    lines = [line for line in done.stdout.splitlines()
             if "# seed" in line or "died of signal" in line]
    return done.returncode != 0, lines[0].lstrip("# ") if lines else ""


def attack(name, build, seed, engine, faults, seconds, options=""):
    with tempfile.TemporaryDirectory() as report:
        done = subprocess.run(
            [os.path.join(HERE, "chaos.py"), engine, "--seed", str(seed),
             "--minutes", str(seconds / 60), "--faults", faults, "--build",
             build, "--report", report, "--patience", "20", *options.split()],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
            env={**os.environ, "HOLDFAST_TEST_PLANT": name})
    lines = done.stdout.splitlines()
    found = done.returncode == 1 and bool(lines) and \
        lines[0].startswith("not ok")
    if not found and done.returncode != 0:
        print(done.stderr, file=sys.stderr)
    return found, lines[1].lstrip("# ") if found and len(lines) > 1 else ""


def seek(name, build, tries, seed):
    plant = PLANTS[name]
    started = time.monotonic()
    found, text = False, ""
    for turn in range(1 if plant[1] == "sim" else tries):
        try:
            found, text = simulate(name, build) if plant[1] == "sim" else \
                attack(name, build, seed + turn, *plant[1:])
        except subprocess.TimeoutExpired:
            text = "it does not come to an end"
        if found:
            break
    return {"name": name, "by": plant[1],
            "faults": plant[2] if len(plant) > 2 else "",
            "found": found, "seconds": round(time.monotonic() - started, 1),
            "how": text, "date": datetime.date.today().isoformat()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--build", default=os.path.join(ROOT, "build/plants"))
    parser.add_argument("--tries", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true",
                        help="write docs/reliability/plants.jsonl")
    options = parser.parse_args()
    path = os.path.join(ROOT, "docs/reliability/plants.jsonl")
    known = {}
    if os.path.exists(path):
        with open(path) as file:
            known = {row["name"]: row for row in map(json.loads, file)}
    missed = 0
    for name in options.names or PLANTS:
        row = seek(name, options.build, options.tries, options.seed)
        known[name] = row
        missed += not row["found"]
        print(f"{'ok' if row['found'] else 'not ok'} - {name}: by {row['by']}"
              f" in {row['seconds']} s {row['how']}", flush=True)
        if options.record:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.writelines(json.dumps(known[n]) + "\n" for n in PLANTS
                                if n in known)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
