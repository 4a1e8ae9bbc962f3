#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""repro.py [NAME…] - what users of other lock libraries complained of, tried
here. Without a name: all of them.

A scene is a test of this tree that forces the situation, or a chaos run with
the faults that bring it about.
"""

import argparse
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Test:
    """Tests of one program; @tests are parts of their names."""

    def __init__(self, complaint, claim, program, *tests):
        self.complaint, self.claim = complaint, claim
        self.program, self.tests = program, tests
        self.target = os.path.basename(program)

    def run(self, build):
        return [os.path.join(build, "tests", self.program), *self.tests]


class Chaos:
    target = "chaos_worker"

    def __init__(self, complaint, claim, engine, faults):
        self.complaint, self.claim = complaint, claim
        self.engine, self.faults = engine, faults

    def run(self, build):
        return [os.path.join(HERE, "chaos.py"), self.engine, "--faults",
                self.faults, "--minutes", "0.25", "--seed",
                "5", "--workers", "4", "--build", build, "--report",
                os.path.join(build, "repro")]


SCENES = {
    "silent-loss": Test(
        "redisson#4698, etcd#6127, DistributedLock#133: nobody is told that "
        "the renewal fails",
        "the owner is told LOST before the lease ends",
        "live/redis/live_redis",
        "network.is_away_and_the_owner_is_told_before_the_lease_ends"),
    "partitioned-holder": Test(
        "curator#727: a holder that is cut off still believes",
        "LOST is told before another client holds the lock",
        "live/zookeeper/live_zookeeper",
        "connection.that_falls_silent_is_told_as_lost_before_another_holds"),
    "old-session": Test(
        "curator#1121: two holders, because the node of an old session is "
        "trusted", "an expired session is told as lost, and replaced",
        "live/zookeeper/live_zookeeper",
        "session.that_expires_in_a_pause_is_told_and_replaced"),
    "granted-after-its-lease": Test(
        "etcd#11456: a waiter is granted the lock although its lease has "
        "ended in line", "it asks again",
        "live/etcd/live_etcd",
        "session.that_ended_in_line_is_not_granted_what_it_asked_for_before"),
    "immortal-key": Chaos(
        "redisson#7272 #2714, ShedLock#606: a lock is renewed after its "
        "client has gone", "no key is left a lease after the end", "redis",
        "kill,exit,pause_holder"),
    "renewal-after-reconnect": Test(
        "redisson#3194 #2515: no renewal after a reconnect",
        "a holder that moves to another server keeps its lock",
        "live/zookeeper/live_zookeeper",
        "connection.that_is_cut_moves_to_another_server_and_keeps_its_hold"),
    "stuck-task": Test(
        "RedLock.net#68, DistributedLock#169: a stuck task is renewed for "
        "ever", "max_hold ends the renewals, and the command",
        "cli/cli_run", "run.stops_the_command_at_max_hold"),
    "leaked-node": Test(
        "curator#600 #982 #855, kazoo#732: an interrupted create leaves a "
        "node that blocks everybody", "no node without an owner is left",
        "live/zookeeper/live_zookeeper",
        "connection.lost_between_create_and_answer_leaves_no_orphan"),
    "leak-after-cancel": Chaos(
        "DistributedLock#147, redsync#164: cancelled and timed out requests "
        "hold the lock", "nothing is left, and everybody is served", "redis",
        "lost_reply,reset,cut"),
    "retried-unlock": Test(
        "etcd#22082: a repeated unlock deletes a newer lock",
        "a release whose answer was lost deletes its own key alone",
        "live/etcd/live_etcd",
        "answer.of_a_release_that_is_lost_is_made_good"),
    "foreign-release": Test(
        "memcached recipes: a release deletes what another client has by now",
        "only the owner's item is deleted",
        "live/memcached/live_memcached",
        "server.restarted_does_not_let_us_delete_anothers_lock"),
    "dead-fair-waiter": Chaos(
        "redisson#1104 #2099 #3730: a dead waiter stops the fair queue",
        "those behind it are served, in order", "redis",
        "kill,exit,pause_waiter"),
    "missed-wake-up": Test(
        "redisson#1763 #3891: a waiter misses the message of the unlock",
        "a waiter whose connection was killed is served",
        "live/redis/live_redis",
        "administrator.kills_connections_and_a_waiter_is_served"),
    "multi-lock-livelock": Chaos(
        "redisson#4050: multi-locks wait for each other",
        "they take their names in one order, and all are served", "local",
        "pause_short,kill"),
    "quorum-decay": Test(
        "node-redlock#262, redisson#1636, redsync#140: one dead server of a "
        "quorum fails or delays every acquire", "two of five cost no time",
        "live/redlock/live_redlock",
        "servers.two_of_five_stopped_cost_nobody_time",
        "servers.two_of_five_killed_cost_nobody_time"),
    "partial-votes": Test(
        "redis-plus-plus, node-redlock: votes of a failed attempt stay",
        "they are given back before the next attempt",
        "live/redlock/live_redlock",
        "votes.of_a_failed_attempt_are_given_back_before_the_next"),
    "forgetful-server": Chaos(
        "Kleppmann 2016: a restarted server without its memory gives a "
        "second client a majority", "it does not vote until every lease of "
        "before has ended", "redlock-forgetful", "server_kill,server_pause"),
    "clock-jump": Test(
        "ShedLock#231 #639, valkey#2651: a clock jump runs a job twice",
        "a server whose clock jumped does not vote",
        "live/redlock/live_redlock",
        "clock.that_jumps_ahead_does_not_make_a_second_holder"),
    "lost-tokens": Test(
        "a fence that is kept in memory starts again with the server",
        "tokens grow after FLUSHALL",
        "live/redis/live_redis",
        "administrator.flushes_everything_and_tokens_still_grow"),
    "failover": Test(
        "redisson#4706 #4822: a lock that was not copied to the replica",
        "its holder is told LOST at once",
        "live/redis/live_redis_sentinel",
        "failover.a_lock_that_was_not_copied_is_told_lost_at_once"),
    "evicted": Test(
        "a full cache throws a lock away", "its holder is told LOST",
        "live/memcached/live_memcached",
        "server.that_throws_a_lock_away_is_told_as_lost"),
    "only-the-shell-is-killed": Test(
        "consul#2022, flock: grandchildren go on after the loss",
        "all of them end", "cli/cli_lost", "lost.takes_grandchildren_along",
        "lost.takes_along_what_left_the_process_group"),
    "flat-exit-code": Test(
        "consul#947: the exit code of the command is lost",
        "it is passed through", "cli/cli_run",
        "run.passes_exit_codes_through"),
    "deaf-while-waiting": Test(
        "consul#4439: no signal ends a command that waits",
        "it ends at once", "cli/cli_run",
        "run.ends_at_once_when_interrupted_while_waiting"),
    "who-has-it": Test(
        "redisson#2116, node-redlock#12: nobody says who holds the lock",
        "a refused caller is told", "cli/cli_run",
        "run.says_who_holds_it_and_what_to_try_when_busy"),
}


def play(name, build):
    scene = SCENES[name]
    subprocess.run(["ninja", "-C", build, "--quiet", scene.target, "chaos_wire",
                    "redis_clock_shim"], check=True)
    done = subprocess.run(scene.run(build), capture_output=True, text=True,
                          timeout=600, check=False)
    said = done.stdout + done.stderr
    none = isinstance(scene, Test) and said.count("\nok ") + \
        said.startswith("ok ") < len(scene.tests)
    good = done.returncode == 0 and not none
    print(f"{'ok' if good else 'not ok'} - {name}: {scene.claim}", flush=True)
    if not good:
        print(said)
    return good


def main():
    parser = argparse.ArgumentParser(prog="./dev repro",
                                     description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME",
                        help=" ".join(SCENES))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"))
    options = parser.parse_args()
    unknown = set(options.names) - set(SCENES)
    if unknown:
        sys.exit(f"no such scene: {' '.join(unknown)}")
    bad = [name for name in options.names or SCENES
           if not play(name, options.build)]
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
