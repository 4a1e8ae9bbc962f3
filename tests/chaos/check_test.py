#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Forged histories: each violation is found, and nothing else is."""

import os
import sys
import tempfile
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check  # noqa: E402
import history  # noqa: E402
import servers  # noqa: E402

LEASED = "caps names=fenced,fifo,leased,told_before_regrant"
TIMED = LEASED + " ttl=3000"
SESSION = "caps names=fenced,session_bound"


def forge(*lines, caps=LEASED):
    """Lines are "PROCESS MILLISECONDS EVENT…"; until= and from= are milliseconds
    too."""
    forged = history.History()
    forged.feed("a", f"0 {caps}\n")
    for line in lines:
        proc, at, rest = line.split(" ", 2)
        words = []
        for word in rest.split():
            key, _, value = word.partition("=")
            if key in ("until", "from"):
                word = f"{key}={int(value) * check.MS}"
            words.append(word)
        forged.feed(proc, f"{int(at) * check.MS} {' '.join(words)}\n")
    return forged


def kinds(*lines, **options):
    return sorted({kind for kind, _, _ in
                   check.check(forge(*lines, **options))})


def held(proc, number, ask, got, seen, token, end=None, name="l", mode="x",
         **more):
    """The lines of one grant that was seen until @seen, and released."""
    extra = "".join(f" {key}={value}" for key, value in more.items())
    lines = [f"{proc} {ask} ask id={number} name={name} mode={mode}{extra}",
             f"{proc} {got} got id={number} token={token}",
             f"{proc} {seen} seen id={number} until={seen}"]
    if end is not None:
        lines += [f"{proc} {end} rel id={number}",
                  f"{proc} {end + 1} reld id={number} rc=0"]
    return lines


class Clean(unittest.TestCase):
    def test_one_after_the_other(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 10),
                               *held("b", 1, 3, 12, 19, 6, 20)), [])

    def test_readers_share(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 50, 5, 51, mode="s"),
                               *held("b", 1, 3, 10, 40, 6, 41, mode="s")), [])

    def test_slots_up_to_their_number(self):
        self.assertEqual(kinds(
            *held("a", 1, 1, 2, 50, 5, 51, mode="n", slots=2),
            *held("b", 1, 3, 10, 40, 6, 41, mode="n", slots=2)), [])

    def test_a_frozen_holder_whose_claim_ended(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l", "a 2 got id=1 token=5",
            "a 3 seen id=1 until=100", "a 2000 gap from=4",
            "a 2001 lost id=1", *held("b", 1, 50, 101, 120, 6, 130)), [])

    def test_the_end_of_a_candidacy_after_LOST(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l kind=elect", "a 2 got id=1 token=5",
            "a 3 seen id=1 until=10", "a 60 rel id=1", "a 61 lost id=1",
            "a 70 reld id=1 rc=0", *held("b", 1, 3, 20, 30, 6, 31)), [])

    def test_a_lease_that_runs_out(self):
        self.assertEqual(kinds(
            "n 40 fault kind=kill proc=a", "n 40 kill proc=a",
            *held("a", 1, 1, 2, 39, 5), *held("b", 1, 3, 3030, 3040, 6, 3050),
            caps=TIMED), [])

    def test_a_wait_in_which_a_process_did_not_run(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 10),
                               "c 500 gap from=100",
                               *held("b", 1, 3, 2412, 2419, 6, 2420),
                               caps=TIMED), [])

    def test_a_killed_holder_claims_nothing(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l", "a 2 got id=1 token=5",
            "a 3 seen id=1 until=100", "n 4 kill proc=a",
            *held("b", 1, 3, 10, 20, 6, 30)), [])

    def test_a_downgraded_writer_beside_a_reader(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l", "a 2 got id=1 token=5",
            "a 10 down id=1", "a 50 seen id=1 until=50",
            *held("b", 1, 3, 20, 30, 6, 31, mode="s")), [])

    def test_a_late_answer_after_the_lease_is_no_claim(self):
        self.assertEqual(kinds(
            *held("b", 1, 5, 20, 30, 6, 31),
            "a 1 ask id=1 name=l", "a 25 got id=1 token=5",
            "a 26 lost id=1", "a 27 rel id=1", "a 28 reld id=1 rc=-4"), [])

    def test_half_a_line_of_a_killed_process(self):
        forged = forge("a 1 ask id=1 name=l")
        forged.feed("a", "2000000 got i")
        forged.feed("a", "20")
        self.assertEqual(check.check(forged), [])

    def test_a_session_that_hears_of_its_end_a_moment_later(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 40, 5),
                               "a 41 lost id=1",
                               *held("b", 1, 3, 20, 90, 6, 91),
                               caps=SESSION), [])

    def test_a_session_that_hears_of_its_grant_after_its_end(self):
        self.assertEqual(kinds(*held("a", 1, 1, 30, 40, 5),
                               "a 41 lost id=1",
                               *held("b", 1, 3, 20, 90, 6, 91),
                               caps=SESSION), [])

    def test_a_try_may_fail_for_ever(self):
        self.assertEqual(kinds("n 1 healed", "a 2 ask id=1 name=l wait=0",
                               "n 90000 stop"), [])

    def test_service_after_the_healing(self):
        self.assertEqual(kinds("a 1 ask id=1 name=l wait=-1", "n 1000 healed",
                               "a 2000 got id=1 token=3", "n 60000 stop"), [])

    def test_updates_that_follow_each_other(self):
        self.assertEqual(kinds("r 1 write name=l token=1 value=1",
                               "r 2 write name=l token=1 value=2",
                               "r 3 write name=l token=4 value=3"), [])

    def test_a_place_lost_by_a_fault(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l kind=line", "n 5 fault kind=reset proc=a",
            *held("b", 1, 9000, 9100, 9200, 6, 9300, kind="line"),
            "a 9400 got id=1 token=7"), [])


class Violations(unittest.TestCase):
    def test_two_writers(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 30, 5, 31),
                               *held("b", 1, 3, 20, 40, 6, 41)),
                         ["overlap", "release"])

    def test_a_frozen_holder_whose_claim_goes_on(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l", "a 2 got id=1 token=5",
            "a 3 seen id=1 until=100", "a 2000 gap from=4",
            "a 2001 lost id=1", *held("b", 1, 50, 90, 120, 6, 130)),
            ["overlap"])

    def test_a_writer_beside_a_reader(self):
        self.assertIn("overlap", kinds(
            *held("a", 1, 1, 2, 30, 5, 31, mode="s"),
            *held("b", 1, 3, 20, 40, 6, 41)))

    def test_a_writer_beside_a_downgraded_one(self):
        self.assertIn("overlap", kinds(
            "a 1 ask id=1 name=l", "a 2 got id=1 token=5",
            "a 10 down id=1", "a 50 seen id=1 until=50",
            *held("b", 1, 3, 20, 30, 6, 31)))

    def test_a_session_that_does_not_hear_of_its_end(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 4000, 5),
                               "a 4001 lost id=1",
                               *held("b", 1, 3, 20, 4500, 6, 4501),
                               caps=SESSION), ["late", "overlap"])

    def test_two_threads_of_one_process(self):
        self.assertIn("overlap", kinds(*held("a", 1, 1, 2, 30, 5, 31),
                                       *held("a", 2, 3, 20, 40, 6, 41)))

    def test_more_holders_than_slots(self):
        self.assertEqual(kinds(
            *held("a", 1, 1, 2, 50, 5, 51, mode="n", slots=2),
            *held("b", 1, 3, 10, 40, 6, 41, mode="n", slots=2),
            *held("c", 1, 3, 11, 40, 7, 41, mode="n", slots=2)), ["slots"])

    def test_two_leaders(self):
        self.assertIn("leaders", kinds(
            *held("a", 1, 1, 2, 30, 5, 31, kind="elect"),
            *held("b", 1, 3, 20, 40, 6, 41, kind="elect")))

    def test_lost_told_after_the_next_grant(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5), "a 2000 lost id=1",
                               *held("b", 1, 3, 20, 2500, 6, 2600)), ["late"])

    def test_a_frozen_process_is_excused_for_its_gap_only(self):
        lines = (*held("a", 1, 1, 2, 9, 5), "a 3000 gap from=10",
                 *held("b", 1, 3, 20, 4500, 6, 4600))
        self.assertEqual(kinds(*lines, "a 3100 lost id=1"), [])
        self.assertEqual(kinds(*lines, "a 4050 lost id=1"), ["late"])

    def test_a_token_that_goes_down(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 10),
                               *held("b", 1, 12, 14, 19, 4, 20)), ["token"])

    def test_a_token_that_goes_down_between_two_that_waited(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 10),
                               *held("b", 1, 1, 14, 19, 4, 20)), ["token"])

    def test_a_token_given_twice(self):
        self.assertEqual(kinds(*held("a", 1, 1, 9, 50, 5, 51, mode="s"),
                               *held("b", 1, 3, 10, 40, 5, 41, mode="s")),
                         ["token"])

    def test_a_release_of_what_was_lost(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 70),
                               *held("b", 1, 3, 20, 30, 6, 31)), ["release"])

    def test_a_lock_that_nobody_had(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 10),
                               *held("b", 1, 3, 2412, 2419, 6, 2420),
                               caps=TIMED), ["idle"])

    def test_a_lock_that_nobody_had_after_a_pause(self):
        self.assertEqual(kinds(*held("a", 1, 1, 2, 9, 5, 10),
                               "n 11 fault kind=pause_slow proc=b",
                               "n 300 heal kind=pause_slow",
                               *held("b", 1, 3, 2501, 2510, 6, 2520),
                               caps=TIMED), ["idle"])

    def test_a_waiter_that_is_never_served(self):
        self.assertEqual(kinds("a 1 ask id=1 name=l wait=-1", "n 1000 healed",
                               "n 60000 stop"), ["starved"])

    def test_a_waiter_that_asked_after_the_healing(self):
        self.assertEqual(kinds("n 1000 healed", "a 2000 ask id=1 name=l",
                               "n 60000 stop"), ["starved"])

    def test_leftovers(self):
        self.assertEqual(kinds("n 9 left what=key:hf:l"), ["left"])

    def test_a_later_request_served_first(self):
        self.assertEqual(kinds(
            "a 1 ask id=1 name=l kind=line",
            *held("b", 1, 9000, 9100, 9200, 6, 9300, kind="line"),
            "a 9400 got id=1 token=7"), ["fifo"])

    def test_a_lost_update(self):
        self.assertEqual(kinds("r 1 write name=l token=1 value=1",
                               "r 2 write name=l token=2 value=2",
                               "r 3 write name=l token=3 value=2"), ["update"])

    def test_a_stale_write_that_was_accepted(self):
        self.assertEqual(kinds("r 1 write name=l token=2 value=1",
                               "r 2 write name=l token=1 value=2"), ["update"])

    def test_an_answer_that_the_header_excludes(self):
        self.assertEqual(kinds("a 1 wrong what=release_in_child"), ["answer"])

    def test_an_event_that_nobody_knows(self):
        with self.assertRaises(ValueError):
            forge("a 1 dance id=1")


class Files(unittest.TestCase):
    def test_logs_of_a_directory(self):
        with tempfile.TemporaryDirectory() as directory:
            for proc in "ab":
                with open(os.path.join(directory, proc + ".log"), "w") as log:
                    log.write("1 ask id=1 name=l\n2 got id=1 token=7\n"
                              "9 seen id=1 until=9\n")
            found = history.read(directory)
        self.assertEqual([kind for kind, _, _ in check.check(found)], [])
        found.caps = {"fenced", "told_before_regrant"}
        self.assertEqual({kind for kind, _, _ in check.check(found)},
                         {"overlap", "token"})

    def test_counts(self):
        found = forge(*held("a", 1, 1, 2, 9, 5, 10), "n 3 fault kind=kill",
                      "b 4 ask id=1 name=l", "b 30 got id=1 token=6")
        facts = check.summary(found, [])
        self.assertEqual((facts["grants"], facts["faults"], facts["gap_ms"]),
                         (2, {"kill": 1}, 26))


class Diverged(unittest.TestCase):
    def test_servers_are_found_by_their_logs(self):
        with tempfile.TemporaryDirectory() as directory:
            setup = servers.Zookeeper(directory)
            for i, node in enumerate(setup.nodes):
                with open(os.path.join(node.dir, "log"), "w") as log:
                    log.write("WARN DataTree - Message:Digests are not "
                              "matching. Value is Zxid." if i == 1 else "fine")
            self.assertEqual(setup.diverged(), ["zk1"])

    def test_they_are_among_the_facts(self):
        facts = check.summary(forge("n 1 diverged what=zk1"), [])
        self.assertEqual(facts["diverged"], ["zk1"])
        self.assertNotIn("diverged", check.summary(forge(), []))

    def test_nodes_that_only_one_server_has_are_told_with_who_waits(self):
        ports = {}

        def say(port, word):
            stale = "\t/locks/l/a-lock-1\n" if ports[port] == 1 else ""
            return (f"0x7\n{stale}" if word == "wchc" else
                    f"0x5:\n\t/locks/l/b-lock-2\n{stale}")

        with tempfile.TemporaryDirectory() as directory, \
                unittest.mock.patch.object(servers, "said_at_length", say), \
                unittest.mock.patch.object(servers.time, "sleep"):
            setup = servers.Zookeeper(directory)
            ports.update((node.port, i) for i, node in enumerate(setup.nodes))
            self.assertEqual(list(setup.differences()), [
                "what=/locks/l/a-lock-1 at=zk1 watched=0x7"])
        facts = check.summary(forge(
            "n 1 differs what=/locks/l/a-lock-1 at=zk1 watched=0x7"), [])
        self.assertEqual(facts["differs"], [("/locks/l/a-lock-1", "zk1",
                                             "0x7")])


if __name__ == "__main__":
    unittest.main()
