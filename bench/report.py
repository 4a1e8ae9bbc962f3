# SPDX-License-Identifier: MIT
"""What came out: ratios with their spread, as tables."""

import statistics

COSTS = (("µs of client", "cpu_s"), ("µs of server", "server_cpu_s"))


def median(figures, key):
    return statistics.median(one[key] for one in figures)


def beside_figure(row):
    return "p50" if row.figure == "p99" else row.figure


def is_number(row):
    return not isinstance(row.beside, str)


def rounds(row, results):
    """[(ours, beside)] of the rounds in which both were measured."""
    if is_number(row):
        return [(one[row.figure], row.beside)
                for one in results.get(row.ours, ())]
    beside = {one["turn"]: one[beside_figure(row)]
              for one in results.get(row.beside, ())}
    return [(one[row.figure], beside[one["turn"]])
            for one in results.get(row.ours, ()) if one["turn"] in beside]


def ratios(row, results):
    return sorted(mine / theirs for mine, theirs in rounds(row, results))


def judge(row, place, ratio):
    """How a ratio stands to what is wanted."""
    floor = row.floor_at(place)
    for word, bound in (("goal", row.goal), ("floor", floor)):
        if bound and not row.better(bound, ratio):
            return "" if word == "goal" or not row.goal else "goal missed"
    if floor:
        return "FLOOR MISSED"
    return "goal missed" if row.goal else ""


def wanted(row, place):
    sign = "≥" if row.figure == "rate" else "≤"
    words = []
    if row.floor_at(place):
        words.append(f"{sign} {row.floor_at(place):g}")
    if row.goal:
        words.append(f"goal {row.goal:g}")
    return ", ".join(words)


def show(value, figure):
    return f"{value:,.0f} /s" if figure == "rate" else f"{value:.1f} µs"


def tabulate(head, lines):
    """A table that is Markdown and can be read as it is."""
    widths = [max(len(line[i]) for line in [head, *lines])
              for i in range(len(head))]
    for line in [head, ["-" * width for width in widths], *lines]:
        cells = [f"{cell:<{width}}" for cell, width in zip(line, widths)]
        print("| " + " | ".join(cells) + " |")
    print()


def ratio_lines(rows, place, results):
    """The cells of each row that was measured there."""
    lines = []
    for row in rows:
        found = ratios(row, results)
        if found:
            ratio = statistics.median(found)
            beside = (row.beside if is_number(row) else
                      median(results[row.beside], beside_figure(row)))
            lines.append([
                row.name, show(median(results[row.ours], row.figure), row.figure),
                show(beside, row.figure),
                "wanted" if is_number(row) else row.beside,
                f"{ratio:.2f}", f"{found[0]:.2f}–{found[-1]:.2f}",
                wanted(row, place), judge(row, place, ratio)])
    return lines


def print_ratios(engine, rows, place, results):
    print(f"{engine.name}, {place}\n")
    tabulate(["", "ours", "beside", "which is", "ratio", "spread", "wanted",
              ""], ratio_lines(rows, place, results))


def print_costs(engine, place, results):
    """Everybody's rate, latency, and what it took of the machine."""
    lines = []
    for name, figures in results.items():
        if "rate" not in figures[0]:
            continue
        done = [one["rate"] * one["seconds"] for one in figures]
        lines.append([
            name, show(median(figures, "rate"), "rate"),
            show(median(figures, "p50"), "p50"),
            show(median(figures, "p99"), "p50"),
            *(f"{statistics.median(1e6 * one[key] / n for one, n in zip(figures, done)):.1f}"
              for _, key in COSTS),
            f"{median(figures, 'memory_mb'):.0f}",
            f"{median(figures, 'server_memory_mb'):.0f}",
            *(f"{statistics.median(one[key] / n for one, n in zip(figures, done)):.2f}"
              if key in figures[0] else "" for key in ("scripts", "reads"))])
    print(f"{engine.name}, {place}: what one costs\n")
    tabulate(["", "rate", "p50", "p99", *(title for title, _ in COSTS),
              "MB", "MB of server", "scripts", "messages"], lines)


def held_lines(results):
    lines = []
    for name, figures in results.items():
        if "bytes_per_lock" not in figures[0]:
            continue
        one = figures[0]
        renewals = one["renewals_per_s"] * one["seconds"]
        # An acquire and a release are a message each.
        trips = one.get("reads", 0) - 2 * one["locks"]
        lines.append([
            name, f"{one['bytes_per_lock']:.0f}", f"{one['cpu_percent']:.2f}",
            f"{renewals:.0f}",
            f"{max(trips, 0) / renewals:.4f}" if renewals and "reads" in one
            else ""])
    return lines


def print_held(engine, results):
    lines = held_lines(results)
    if lines:
        print(f"{engine.name}: locks that are only held\n")
        tabulate(["", "bytes each", "% of a core", "renewals",
                  "messages per renewal"], lines)


def print_all(engine, rows, results):
    measured = [place for place in results if results[place]]
    for place in measured:
        print_ratios(engine, rows, place, results[place])
    for place in measured:
        print_costs(engine, place, results[place])
    print_held(engine, results["unpinned"])
