#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""monitoring.py ROOT HOLDFAST - the alert rules and the Grafana dashboard of
examples/ name only what "holdfast metrics" and --metrics-textfile write, with
the labels that it has there; operating.md tells of every alert; and where there
is promtool, each rule fires as alerts_test.yml says.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

root, holdfast = sys.argv[1:]
alerts = os.path.join(root, "examples/prometheus/alerts.yml")
dashboard = os.path.join(root, "examples/grafana/holdfast.json")
page = os.path.join(root, "docs/guide/operating.md")
bad = []


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def written(directory):
    """Every metric that holdfast writes: its name, and its labels."""
    store = os.path.join(directory, "store")
    prom = os.path.join(directory, "run.prom")
    os.mkdir(store, 0o700)
    env = dict(os.environ, HOLDFAST_URL="local://" + store, HOME=directory)
    # One holds, one waits.
    both = [subprocess.Popen([holdfast, "hold", "x", "--until-signal"], env=env,
                             stdout=subprocess.DEVNULL) for _ in range(2)]
    text = ""
    while 'holdfast_lock_waiters{name="x"} 1' not in text:
        text = subprocess.run([holdfast, "metrics"], env=env, check=True,
                              stdout=subprocess.PIPE, text=True).stdout
    for one in both:
        one.terminate()
        one.wait()
    subprocess.run([holdfast, "run", "y", "--metrics-textfile", prom, "--",
                    "true"], env=env, check=True)
    metrics = {}
    for line in (text + read(prom)).splitlines():
        match = re.match(r"(\w+)(?:{(.*)})? ", line)
        if match and not line.startswith("#"):
            labels = re.findall(r'(\w+)="', match.group(2) or "")
            metrics.setdefault(match.group(1), set()).update(labels)
    return metrics


def check(where, text, metrics):
    """Prometheus itself adds instance and job."""
    named = re.findall(r"\b(holdfast_\w+)(?:{([^}]*)})?", text)
    if not named:
        bad.append(f"{where} names no metric")
    for name, labels in named:
        if name not in metrics:
            bad.append(f"{where}: holdfast writes no {name}")
            continue
        for label in re.findall(r"(\w+) *[=!]~?", labels):
            if label not in metrics[name] | {"instance", "job"}:
                bad.append(f"{where}: {name} has no label {label}")


def check_dashboard(board):
    ids = [panel["id"] for panel in board["panels"]]
    if len(set(ids)) != len(ids):
        bad.append("two panels have one id")
    for panel in board["panels"]:
        at = panel["gridPos"]
        if at["x"] + at["w"] > 24 or not panel["targets"]:
            bad.append(f"the panel {panel['title']} has no place or no target")


def run_promtool(directory):
    promtool = shutil.which("promtool")
    if not promtool:
        print("no promtool here: the syntax of the rules is not checked")
        return
    shutil.copy(alerts, directory)
    shutil.copy(os.path.join(root, "tests/docs/alerts_test.yml"), directory)
    for what in (["check", "rules", "alerts.yml"],
                 ["test", "rules", "alerts_test.yml"]):
        result = subprocess.run([promtool] + what, cwd=directory, text=True,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        if result.returncode != 0:
            bad.append(result.stdout)


with tempfile.TemporaryDirectory() as temporary:
    known = written(temporary)
    check("alerts.yml", read(alerts), known)
    board = json.loads(read(dashboard))
    check("holdfast.json", json.dumps(
        [[target["expr"] for panel in board["panels"]
          for target in panel["targets"]],
         [variable["query"]["query"] for variable in board["templating"]["list"]
          if variable["type"] == "query"]]).replace('\\"', '"'), known)
    check_dashboard(board)
    for alert in re.findall(r"- alert: (\w+)", read(alerts)):
        if f"`{alert}`" not in read(page):
            bad.append(f"operating.md does not tell what to do about {alert}")
    run_promtool(temporary)

print("\n".join(bad))
sys.exit(bool(bad))
