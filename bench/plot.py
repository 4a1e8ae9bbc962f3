# SPDX-License-Identifier: MIT
"""How the cost grows: log-log plots as SVG, made of what was measured."""

import math
import os
import re
import statistics

WIDTH, HEIGHT = 640, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 170, 40, 50
COLOURS = ("#0b6", "#888", "#c30", "#06c", "#a0a", "#960")

# (file, title, what the x axis counts, figure, its name, contenders: a name
# with the number in it)
PLOTS = (
    ("handover", "hand-over to one of N waiting processes", "processes", "p50",
     "µs", (("ours", r"handover (\d+)"), ("raw", r"raw handover (\d+)"))),
    ("threads", "acquire and release by N threads of one client", "threads",
     "rate", "pairs/s", (("each its own name", r"pair, (\d+) threads"),
                         ("all one name", r"shared-name, (\d+) threads"))),
    ("async", "N requests under way on one thread", "requests", "rate",
     "pairs/s", (("ours", r"async (\d+)"), ("raw", r"raw pipeline (\d+)"))),
    ("held", "N locks that are only held", "locks", "cpu_percent",
     "% of a core", (("ours", r"held (\d+)"),)),
)


def points(results, pattern, figure):
    """[(number, median)] of the contenders whose names match."""
    found = []
    for name, figures in results.items():
        match = re.fullmatch(pattern, name)
        if match and figure in figures[0]:
            value = statistics.median(one[figure] for one in figures)
            if value > 0:
                found.append((int(match.group(1)), value))
    return sorted(found)


class Axis:
    """From numbers to places, by their logarithms, in whole decades."""

    def __init__(self, values, start, length):
        self.low = math.floor(math.log10(min(values)))
        self.high = max(math.ceil(math.log10(max(values))), self.low + 1)
        self.start, self.length = start, length

    def place(self, value):
        share = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + share * self.length

    def decades(self):
        return [10.0 ** i for i in range(self.low, self.high + 1)]


def text(x, y, words, anchor="middle", more=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>'
            f"{words}</text>")


def frame(x_axis, y_axis, title, x_name, y_name):
    lines = [text(WIDTH / 2, 20, title, more='font-weight="bold"'),
             text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, x_name),
             text(15, TOP - 12, y_name, "start")]
    for value in x_axis.decades():
        x = x_axis.place(value)
        lines.append(f'<path d="M{x:.1f} {TOP}V{HEIGHT - BOTTOM}"/>')
        lines.append(text(x, HEIGHT - BOTTOM + 18, f"{value:g}"))
    for value in y_axis.decades():
        y = y_axis.place(value)
        lines.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        lines.append(text(LEFT - 6, y + 4, f"{value:g}", "end"))
    return lines


def curve(dots, x_axis, y_axis, colour, name, at):
    places = [(x_axis.place(x), y_axis.place(y)) for x, y in dots]
    way = "L".join(f"{x:.1f} {y:.1f}" for x, y in places)
    lines = [f'<path d="M{way}" style="stroke:{colour};stroke-width:2"/>']
    lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>'
              for x, y in places]
    lines.append(text(WIDTH - RIGHT + 12, at, name, "start",
                      f'style="fill:{colour}"'))
    return lines


def svg(title, x_name, y_name, curves):
    dots = [dot for _, found in curves for dot in found]
    x_axis = Axis([x for x, _ in dots], LEFT, WIDTH - RIGHT - LEFT)
    y_axis = Axis([y for _, y in dots], HEIGHT - BOTTOM, TOP + BOTTOM - HEIGHT)
    lines = frame(x_axis, y_axis, title, x_name, y_name)
    for i, (name, found) in enumerate(curves):
        lines += curve(found, x_axis, y_axis, COLOURS[i % len(COLOURS)], name,
                       TOP + 14 + 18 * i)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} '
            f'{HEIGHT}" font-family="sans-serif" font-size="12">\n'
            "<style>path{stroke:#ddd;fill:none}</style>\n"
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>\n' +
            "\n".join(lines) + "\n</svg>\n")


def draw(results, directory):
    """One picture per engine and question, where there is something to see."""
    os.makedirs(directory, exist_ok=True)
    for engine, places in results.items():
        for name, title, x_name, figure, y_name, wanted in PLOTS:
            place = "unpinned" if name == "held" else "pinned"
            curves = [(label, points(places[place], pattern, figure))
                      for label, pattern in wanted]
            curves = [one for one in curves if len(one[1]) > 1]
            if not curves:
                continue
            path = os.path.join(directory, f"{engine}-{name}.svg")
            with open(path, "w", encoding="utf-8") as file:
                file.write(svg(f"{engine}: {title}", x_name, y_name, curves))
