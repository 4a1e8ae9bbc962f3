# SPDX-License-Identifier: MIT
"""check_test.py - does the check of the documents see a claim too many?"""

import sys
import unittest

sys.dont_write_bytecode = True

import check  # noqa: E402
import page  # noqa: E402
import suites  # noqa: E402

GOOD = "| Redis | 8.0.2 | Debian trixie | plain | 9/9 | 4/4 | 2026-01-02 |"
TABLE = f"""| server | version | from | modes | contract | live | date |
|---|---|---|---|---|---|---|
{GOOD}
| PostgreSQL | 14.24 | Maven | table | 9/9 | 4/4 | 2026-01-02 |
| PostgreSQL | 15.1 | Debian | table | 9/9 | 4/4 | 2026-01-02 |
| PostgreSQL with libpq 18, OpenSSL 3 | 15.1 | PyPI | table | 9/9 | 4/4 | 2026-01-02 |
"""
ROWS = page.rows(TABLE)


class Claims(unittest.TestCase):
    def wrong(self, text):
        return len(list(check.claims("x", text, ROWS)))

    def test_what_was_tried_may_be_said(self):
        self.assertEqual(self.wrong("Redis 8.0, PostgreSQL 14–15, libpq 18"), 0)

    def test_what_was_not_tried_may_not(self):
        self.assertEqual(self.wrong("Redis 8.2"), 1)
        self.assertEqual(self.wrong("PostgreSQL 14–16"), 1)
        self.assertEqual(self.wrong("PostgreSQL 13, 14 or 15"), 1)
        self.assertEqual(self.wrong("libpq 17"), 1)
        self.assertEqual(self.wrong("MySQL 8.0"), 1)

    def test_all_releases_of_a_number_may_not(self):
        self.assertEqual(self.wrong("Redis 8"), 1)

    def test_what_is_to_come_may_not(self):
        self.assertEqual(self.wrong("PostgreSQL 14 or later"), 1)
        self.assertEqual(
            len(list(check.promises("x", "PostgreSQL 14 or later"))), 1)
        self.assertEqual(len(list(check.promises(
            "x", "One Redis server, version 7 or later:"))), 1)


class Page(unittest.TestCase):
    def test_a_row_is_written_as_it_was_read(self):
        self.assertEqual(ROWS[0].line, GOOD)

    def test_a_row_passes_with_everything_or_not(self):
        for text, passes in (("9/9", True), ("8/9", False), ("0/0", False)):
            row = page.rows(GOOD.replace("9/9", text))[0]
            self.assertEqual(row.passes, passes)
            said = check.claims("x", "Redis 8.0", [row] if row.passes else [])
            self.assertEqual(not list(said), passes)

    def test_few_servers_are_not_enough(self):
        self.assertTrue(list(check.well_formed(ROWS)))

    def test_an_unknown_server_is_told(self):
        row = page.rows(GOOD.replace("Redis", "Oracle"))[0]
        self.assertTrue(any("unknown" in each
                            for each in check.well_formed([row])))


class Suites(unittest.TestCase):
    def test_what_is_not_promised_is_not_counted(self):
        self.assertEqual(suites.count(
            "# not tested: modes.slots: the engine is not 'slots'\n"
            "ok - modes.slots\nok - hold.one\nnot ok - hold.two\n"), (1, 1))

    def test_a_program_that_dies_has_failed(self):
        for end, good in (("exit 3", False), ("exit 0", True)):
            script = f"echo ok - a.b; echo 1 passed, 0 failed; {end}"
            outcome = suites.run("x", (["sh", "-c", script], {}, 9), {})
            self.assertEqual(outcome.good, good)

    def test_a_program_that_ends_in_its_middle_has_failed(self):
        self.assertFalse(suites.judge("x", "ok - a.b\n").good)

    def test_a_program_that_runs_nothing_has_failed(self):
        self.assertFalse(suites.run("x", (["true"], {}, 9), {}).good)


if __name__ == "__main__":
    unittest.main()
