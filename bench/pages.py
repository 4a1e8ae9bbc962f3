#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The figures in the documents, from docs/benchmarks/figures.json.

A run with --docs replaces what that file says of the engines it measured, with
--peers of the locks of others on them, and writes the tables of the documents
anew. Without arguments: do they agree with the file? tests/docs asks that.
"""

import json
import os
import re
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FIGURES = os.path.join(ROOT, "docs", "benchmarks", "figures.json")
ORDER = ("local", "redis", "redlock", "zk", "etcd", "mysql", "postgres",
         "memcached")
HEAD = ("", "ours", "beside", "which is", "ratio", "spread", "wanted", "")

RATE, LATENCY = "rate", "latency"
# engine, row, what it is of; in English and in Chinese: ours, beside.
SUMMARY = (
    ("local", "pair", RATE,
     "`local:`, acquire and release, uncontended", "a bare `flock()` pair",
     "`local:`，无竞争的加锁和释放", "裸 `flock()` 一对"),
    ("redis", "pair", LATENCY,
     "`redis://`, acquire and release",
     "`SET NX PX` and a script that compares and deletes",
     "`redis://`，加锁和释放", "`SET NX PX` 加比较并删除的脚本"),
    ("zk", "pair", LATENCY,
     "`zk://`, acquire and release", "create and delete with libzookeeper",
     "`zk://`，加锁和释放", "libzookeeper 的创建和删除"),
)
OF = {RATE: ("× its rate", "速率"), LATENCY: ("× its latency", "延迟")}


# ---- what a run leaves -------------------------------------------------------

def load():
    with open(FIGURES, encoding="utf-8") as file:
        return json.load(file)


def record(found):
    """@found: {engine: entry} of a run. What it did not measure stays."""
    figures = load()
    for name, one in found.items():
        figures[name] = {**figures.get(name, {}), **one}
    with open(FIGURES, "w", encoding="utf-8") as file:
        json.dump(figures, file, indent=1, sort_keys=True, ensure_ascii=False)
        file.write("\n")


def entry(options, here, tables, **more):
    return {"date": time.strftime("%Y-%m-%d"), "load": round(here["load"], 1),
            "rounds": options.rounds, "seconds": options.seconds,
            "tables": tables, **more}


# ---- tables ------------------------------------------------------------------

def markdown(head, lines):
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def made_by(one):
    return (f"{one['date']}, {one['rounds']} rounds of {one['seconds']:g} s, "
            f"load {one['load']} at the start.")


def engine_text(name, figures):
    one = figures[name]
    parts = []
    for place, lines in one["tables"].items():
        parts += [f"### {name}, {place}", markdown(HEAD, lines)]
    made = made_by(one)
    if one["instructions"]:
        made += (" One acquire and release is "
                 f"{one['instructions']:,.0f} of our instructions.")
    for held in one["held"]:
        made += f" {held[0]}: {held[1]} bytes each, {held[2]} % of a core."
    return "\n\n".join(parts + [made])


def all_text(figures):
    return "\n\n".join(engine_text(name, figures) for name in ORDER
                       if name in figures)


def peers_text(figures):
    """A table for each place, and what was measured when."""
    found = [(name, figures[name]["peers"]) for name in ORDER
             if "peers" in figures.get(name, {})]
    parts = [markdown((place, "peer", "ours", "ratio", "spread"),
                      [[*line[:3], *line[4:6]] for _, one in found
                       for line in one["tables"][place]])
             for place in ("pinned", "unpinned")]
    for name, one in found:
        versions = ", ".join(f"{package} {version}" for package, version
                             in one["versions"].items())
        parts.append(f"{name}: {made_by(one)} {versions}.")
    return "\n\n".join(parts)


def ratio_of(figures, engine, row):
    """The ratio and its spread, on one processor."""
    for line in figures[engine]["tables"]["pinned"]:
        if line[0] == row:
            return line[4], line[5]
    sys.exit(f"bench: {engine} has no row '{row}'")


def summary_text(figures, chinese):
    lines = []
    for engine, row, of, ours, beside, zh_ours, zh_beside in SUMMARY:
        ratio, spread = ratio_of(figures, engine, row)
        words, zh_words = OF[of]
        if chinese:
            lines.append([zh_ours, zh_beside,
                          f"{zh_words}的 {ratio} 倍 ({spread})"])
        else:
            lines.append([ours, beside, f"{ratio} {words} ({spread})"])
    head = ["", "对照", "比值（范围）"] if chinese else [
        "", "ours beside", "ratio (spread)"]
    return markdown(head, lines)


PAGES = (
    ("docs/benchmarks/README.md", "figures", all_text),
    ("docs/benchmarks/README.md", "peers", peers_text),
    ("README.md", "summary", lambda figures: summary_text(figures, False)),
    ("README.zh-CN.md", "summary", lambda figures: summary_text(figures, True)),
)


def between(name):
    return re.compile(rf"(<!-- {name}: made by ./dev bench --docs -->\n)(.*?)"
                      rf"(<!-- end of {name} -->)", re.DOTALL)


def rendered(page, name, text):
    """The page as it is, and as it should be."""
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        is_now = file.read()
    wanted, n = between(name).subn(lambda found: f"{found[1]}\n{text}\n\n{found[3]}",
                                   is_now)
    if n != 1:
        sys.exit(f"bench: {page} has no place for '{name}'")
    return is_now, wanted


def write():
    figures = load()
    for page, name, text in PAGES:
        _, wanted = rendered(page, name, text(figures))
        with open(os.path.join(ROOT, page), "w", encoding="utf-8") as file:
            file.write(wanted)


def main():
    figures = load()
    stale = [page for page, name, text in PAGES
             if len(set(rendered(page, name, text(figures)))) > 1]
    for page in stale:
        print(f"{page}: its figures are not those of docs/benchmarks/"
              "figures.json: bench/pages.py --write")
    return 1 if stale else 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        sys.exit(main())
