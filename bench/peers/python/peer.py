# SPDX-License-Identifier: MIT
"""peer.py - the locks of redis-py, kazoo and tooz, as they come.

    peer.py redis|kazoo|tooz PORT

"pair SECONDS" and "handover SECONDS" are answered by "SCENARIO rate p50_us
p99_us". A hand-over is between two threads, each with a client of its own.
"""

import sys
import threading
import time

members = []  # of tooz; each is a client of its own


def redis_lock(port):
    import redis
    return redis.Redis(port=port).lock("bench", timeout=30)


def kazoo_lock(port):
    from kazoo.client import KazooClient
    client = KazooClient(f"127.0.0.1:{port}")
    client.start()
    return client.Lock("/bench-kazoo")


def tooz_lock(port):
    from tooz import coordination
    member = f"bench-{len(members)}".encode()
    members.append(coordination.get_coordinator(
        f"memcached://127.0.0.1:{port}", member))
    members[-1].start(start_heart=True)
    return members[-1].get_lock(b"bench")


def say(scenario, seconds, samples):
    samples.sort()
    n = len(samples)
    at = samples.__getitem__ if n else lambda i: seconds
    print(scenario, n / seconds, 1e6 * at(n // 2), 1e6 * at(n * 99 // 100),
          flush=True)


def pair(lock, seconds):
    samples = []
    now = time.monotonic()
    end = now + seconds
    while now < end:
        before = now
        lock.acquire()
        lock.release()
        now = time.monotonic()
        samples.append(now - before)
    return samples


class Turns:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds
        self.door = threading.Semaphore(0)
        self.last = -1
        self.released = 0
        self.samples = []

    def take(self, lock, me):
        while time.monotonic() < self.end:
            self.door.release()
            lock.acquire()
            now = time.monotonic()
            self.door.acquire()
            if self.last == 1 - me:
                self.samples.append(now - self.released)
            self.last = me
            if self.door.acquire(timeout=max(0, self.end - now)):
                self.door.release()
            self.released = time.monotonic()
            lock.release()


def handover(locks, seconds):
    turns = Turns(seconds)
    threads = [threading.Thread(target=turns.take, args=(lock, i))
               for i, lock in enumerate(locks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return turns.samples


def main(kind, port):
    make = {"redis": redis_lock, "kazoo": kazoo_lock, "tooz": tooz_lock}[kind]
    locks = [make(int(port)), make(int(port))]
    pair(locks[0], 0.5)
    print("ready", flush=True)
    for line in sys.stdin:
        scenario, seconds = line.split()
        seconds = float(seconds)
        say(scenario, seconds, pair(locks[0], seconds) if scenario == "pair"
            else handover(locks, seconds))


main(*sys.argv[1:])
