# SPDX-License-Identifier: MIT
"""Is a row worse than the baseline by more than 25 %?

On a machine that others use a single ratio is off by half and more, so nothing
is judged by one. From the rounds comes the range in which the median of many
more would lie. A row is kept if the whole range is within the bound, lost if
the whole range is beyond it; until then it is measured again, and what seems
lost is, too. After MOST_ROUNDS of them nobody can tell, and that is what is
said: it is no success.

What the baseline's own range reached is no loss. Counts of instructions repeat
within a percent, so that they have a bound of their own.
"""

import math
import statistics

import report

LOSS = 1.25
LOSS_OF_COUNTS = 1.05
MORE_ROUNDS = 5
SURE_ROUNDS = 15  # before something is called lost
MOST_ROUNDS = 40
DOUBT = 1 / 16  # that the range misses: that of five rounds, from least to most

KEPT, UNCLEAR, LOST, MISSING = "kept", "CANNOT TELL", "LOST", "MISSING"


def confidence(values):
    """Between which of @values is the median of all that might have been?

    As many are above it as below. The number below it among n is that of heads
    of n coins, whatever else is known of the noise.
    """
    n = len(values)
    outside, chance = 0, 2 / 2 ** n
    while chance <= DOUBT:
        outside += 1
        chance += 2 * math.comb(n, outside) / 2 ** n
    if not outside:
        return 0, math.inf
    return sorted(values)[outside - 1], sorted(values)[-outside]


def entry(ratios):
    """What the baseline keeps of a row."""
    low, high = confidence(ratios)
    if not low:  # too few to know; nothing of the kind gets into a baseline
        low, high = min(ratios), max(ratios)
    return {"ratio": round(statistics.median(ratios), 3),
            "from": round(low, 3), "to": round(high, 3)}


def verdict(figure, before, ratios):
    """How @ratios of rounds stand to the baseline's entry @before."""
    if not ratios:
        return MISSING
    low, high = confidence(ratios)
    if figure != "rate":
        bound = max(LOSS * before["ratio"], before["to"])
        return KEPT if high <= bound else LOST if low > bound else UNCLEAR
    bound = min(before["ratio"] / LOSS, before["from"])
    return KEPT if low >= bound else LOST if high < bound else UNCLEAR


def is_settled(figure, before, ratios):
    """Would more rounds change nothing, or were there enough?"""
    word = verdict(figure, before, ratios)
    return (word in (KEPT, MISSING) or len(ratios) >= MOST_ROUNDS or
            (word == LOST and len(ratios) >= SURE_ROUNDS))


def is_narrow(ratios):
    """Is it known well enough to be a baseline? Or can it not be?"""
    low, high = confidence(ratios)
    return not ratios or len(ratios) >= MOST_ROUNDS or high <= LOSS * low


def play_until(stage, rows, is_done):
    """More rounds of those rows whose ratios are not done."""
    while True:
        names = {name for row in rows
                 if not is_done(row, report.ratios(row, stage.results["pinned"]))
                 for name in (row.ours, row.beside)}
        if not names:
            return
        stage.play(MORE_ROUNDS, ("pinned",), names)


def settle(stage, rows, before):
    play_until(stage, [row for row in rows if row.name in before],
               lambda row, ratios: is_settled(row.figure, before[row.name],
                                              ratios))


def narrow(stage, rows):
    play_until(stage, rows, lambda row, ratios: is_narrow(ratios))


def compare_rows(rows, before, results):
    """[(verdict, row's name, words)] for each row of the baseline."""
    known = {row.name: row for row in rows}
    for name, old in before.items():
        ratios = report.ratios(known[name], results) if name in known else []
        word = verdict(known[name].figure, old, ratios) if ratios else MISSING
        now = entry(ratios) if ratios else None
        yield word, name, (
            f"was {old['ratio']:.2f}" if not now else
            f"{now['ratio']:.2f} ({now['from']:.2f}–{now['to']:.2f} by "
            f"{len(ratios)} rounds), was {old['ratio']:.2f}")


def compare_counts(before, now):
    for engine, old in before.items():
        new = now.get(engine)
        word = (MISSING if new is None else
                LOST if new > old * LOSS_OF_COUNTS else KEPT)
        yield word, f"{engine}: instructions per pair", (
            f"{'none' if new is None else format(new, '.0f')}, was {old:.0f}")


def exit_status(words):
    """0: all kept. 1: lost or missing. 75, try again: cannot tell."""
    if LOST in words or MISSING in words:
        return 1
    return 75 if UNCLEAR in words else 0
