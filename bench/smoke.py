# SPDX-License-Identifier: MIT
"""smoke.py - does ./dev bench print its tables, figures and plots whole?

How fast anything is does not matter here.
"""

import json
import os
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True

from engines import LOCAL  # noqa: E402
from measure import ROOT  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as directory:
        figures = os.path.join(directory, "figures.json")
        table = subprocess.run(
            [os.path.join(ROOT, "bench", "run"), "--quick", "--json", figures,
             "--plot", directory, "local"],
            stdout=subprocess.PIPE, text=True, check=True).stdout
        with open(figures, encoding="utf-8") as file:
            said = json.load(file)
        drawn = os.listdir(directory)
    quick = {one.name for one in LOCAL.contenders if not one.is_slow()}
    for row in LOCAL.rows:
        if row.ours not in quick:
            continue
        assert table.count(f"| {row.name} ") >= 2, row.name
        assert row.name in said["ratios"]["local"], row.name
    for place in ("pinned", "unpinned"):
        found = said["results"]["local"][place]
        for name in quick:
            assert "p50" in found[name][0], name
    for name in ("handover", "threads", "async"):
        assert f"local-{name}.svg" in drawn, drawn


main()
