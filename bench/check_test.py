# SPDX-License-Identifier: MIT
"""check_test.py - does ./dev bench --check see a loss, and only a loss? And do
the tables say what was wanted, and of what?"""

import random
import sys
import unittest

sys.dont_write_bytecode = True

import check  # noqa: E402
import pages  # noqa: E402
import report  # noqa: E402
from engines import Row  # noqa: E402

ROW = Row("pair", "pair", "raw pair")
BEFORE = {"ratio": 1.2, "from": 1.15, "to": 1.25}
SEEDS = range(200)


def noise(seed, n, spread):
    """Factors with the median 1, up to @spread and, now and then, ten."""
    chance = random.Random(seed)
    return [spread ** chance.uniform(-1, 1) * chance.choice((1,) * 20 + (10, .1))
            for _ in range(n)]


def times(factor, values):
    return [factor * value for value in values]


def verdicts(factor, n, spread):
    """What is said of a row whose ratio is @factor times that of before."""
    return [check.verdict("p50", BEFORE, times(1.2 * factor,
                                               noise(seed, n, spread)))
            for seed in SEEDS]


class Stage:
    """Measures ROW: each round gives the next of @ratios."""

    def __init__(self, ratios):
        self.left = list(ratios)
        self.turn = 0
        self.results = {"pinned": {"pair": [], "raw pair": []}}

    def play(self, rounds, places, names):
        assert names == {"pair", "raw pair"} and places == ("pinned",)
        for _ in range(rounds):
            for name, p50 in (("pair", self.left.pop(0)), ("raw pair", 1)):
                self.results["pinned"][name].append(
                    {"turn": self.turn, "p50": p50})
            self.turn += 1

    def settled(self):
        """The verdict after as many rounds as it takes, and their number."""
        self.play(5, ("pinned",), {"pair", "raw pair"})
        check.settle(self, [ROW], {"pair": BEFORE})
        (word, _, _), = check.compare_rows([ROW], {"pair": BEFORE},
                                           self.results["pinned"])
        return word, self.turn


class Verdicts(unittest.TestCase):
    def test_a_loss_of_26_percent_is_lost_and_one_of_24_is_not(self):
        for factor, word in ((1.26, check.LOST), (1.24, check.KEPT),
                             (0.5, check.KEPT)):
            self.assertEqual(
                check.verdict("p50", BEFORE, 5 * [1.2 * factor]), word)
            self.assertEqual(
                check.verdict("rate", BEFORE, 5 * [1.2 / factor]), word)

    def test_fewer_than_five_rounds_tell_nothing(self):
        self.assertEqual(check.verdict("p50", BEFORE, 4 * [9]), check.UNCLEAR)

    def test_noise_is_no_loss(self):
        for n in (5, 15, 40):
            self.assertNotIn(check.LOST, verdicts(1, n, 1.5))

    def test_noise_does_not_hide_what_is_kept_or_lost(self):
        self.assertGreater(verdicts(1, 40, 1.4).count(check.KEPT), 190)
        self.assertGreater(verdicts(1.6, 40, 1.4).count(check.LOST), 190)
        self.assertNotIn(check.KEPT, verdicts(1.6, 40, 1.5))

    def test_what_the_baseline_itself_reached_is_no_loss(self):
        wide = {"ratio": 1.2, "from": 0.6, "to": 2.4}
        self.assertEqual(check.verdict("p50", wide, 5 * [2.3]), check.KEPT)
        self.assertEqual(check.verdict("p50", wide, 5 * [2.5]), check.LOST)
        self.assertEqual(check.verdict("rate", wide, 5 * [0.61]), check.KEPT)
        self.assertEqual(check.verdict("rate", wide, 5 * [0.59]), check.LOST)


class Rounds(unittest.TestCase):
    def test_what_is_kept_is_not_measured_again(self):
        self.assertEqual(Stage(5 * [1.2]).settled(), (check.KEPT, 5))

    def test_what_seems_lost_is_measured_again_before_it_is(self):
        self.assertEqual(Stage(40 * [1.6]).settled(), (check.LOST, 15))
        word, rounds = Stage(5 * [1.6] + 35 * [1.2]).settled()
        self.assertEqual(word, check.KEPT)
        self.assertGreater(rounds, 5)

    def test_what_stays_unclear_is_said_to_be(self):
        self.assertEqual(Stage(20 * [0.9, 2.5]).settled(),
                         (check.UNCLEAR, check.MOST_ROUNDS))

    def test_a_baseline_is_made_of_as_many_rounds_as_it_needs(self):
        stage = Stage([1, 2, 1, 2, 1] + 35 * [1.5])
        check.narrow(stage, [ROW])
        self.assertEqual(stage.turn, 0)  # nothing was measured of that row
        stage.play(5, ("pinned",), {"pair", "raw pair"})
        check.narrow(stage, [ROW])
        self.assertTrue(5 < stage.turn < 40)


class Whole(unittest.TestCase):
    def test_a_row_that_is_gone_is_missing(self):
        for rows in ([], [ROW]):
            (word, _, _), = check.compare_rows(rows, {"pair": BEFORE}, {})
            self.assertEqual(word, check.MISSING)

    def test_counts_may_grow_by_5_percent(self):
        def word(now):
            (found, _, _), = check.compare_counts({"local": 1000}, now)
            return found
        self.assertEqual(word({"local": 1049}), check.KEPT)
        self.assertEqual(word({"local": 1051}), check.LOST)
        self.assertEqual(word({}), check.MISSING)

    def test_the_exit_status(self):
        for words, status in (((check.KEPT,), 0),
                              ((check.KEPT, check.UNCLEAR), 75),
                              ((check.UNCLEAR, check.LOST), 1),
                              ((check.KEPT, check.MISSING), 1)):
            self.assertEqual(check.exit_status(words), status)


class Words(unittest.TestCase):
    def test_a_floor_may_depend_on_the_place(self):
        row = Row("8 threads", "ours", "theirs", "rate", 2, unpinned_floor=1.2)
        for place, ratio, word in (("pinned", 2.1, ""),
                                   ("pinned", 1.9, "FLOOR MISSED"),
                                   ("unpinned", 1.3, ""),
                                   ("unpinned", 1.1, "FLOOR MISSED")):
            self.assertEqual(report.judge(row, place, ratio), word)
        self.assertEqual(report.wanted(row, "pinned"), "≥ 2")
        self.assertEqual(report.wanted(row, "unpinned"), "≥ 1.2")

    def test_peers_are_listed_with_what_was_measured(self):
        line = ["redsync pair", "80 µs", "40 µs", "pair", "2.00", "1.9–2.1", "",
                ""]
        text = pages.peers_text({"local": {}, "redis": {"peers": {
            "date": "2026-01-02", "rounds": 5, "seconds": 0.15, "load": 0.1,
            "versions": {"redsync": "4"},
            "tables": {"pinned": [line], "unpinned": [line]}}}})
        self.assertEqual(
            text.count("| redsync pair | 80 µs | 40 µs | 2.00 | 1.9–2.1 |"), 2)
        self.assertIn("redis: 2026-01-02, 5 rounds of 0.15 s, load 0.1 at the "
                      "start. redsync 4.", text)


unittest.main()
