# SPDX-License-Identifier: MIT
"""A kazoo client that does what it is told, line by line.

    python3 peer.py PORT

"THREAD lock KIND PATH WAIT_MS"   → "THREAD ok", "THREAD busy"
"THREAD unlock KIND PATH"         → "THREAD ok"

KIND is lock, read or write. WAIT_MS 0 tries once.
"""

import os
import queue
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib"))

from kazoo.client import KazooClient  # noqa: E402
from kazoo.exceptions import LockTimeout  # noqa: E402

client = KazooClient(hosts="127.0.0.1:" + sys.argv[1], timeout=2.0)
locks = {}
voice = threading.Lock()


def say(line):
    with voice:
        print(line, flush=True)


def find(thread, kind, path):
    make = {"lock": client.Lock, "read": client.ReadLock, "write": client.WriteLock}
    key = (thread, kind, path)
    if key not in locks:
        locks[key] = make[kind](path, thread)
    return locks[key]


def carry_out(words):
    lock = find(words[0], words[2], words[3])
    if words[1] == "unlock":
        lock.release()
        return "ok"
    wait_ms = int(words[4])
    try:
        if wait_ms == 0:
            return "ok" if lock.acquire(blocking=False) else "busy"
        return "ok" if lock.acquire(timeout=wait_ms / 1000) else "busy"
    except LockTimeout:
        return "busy"


def work(orders):
    while True:
        words = orders.get()
        try:
            answer = carry_out(words)
        except Exception as error:  # the test reads it
            answer = "failed %r" % (error,)
        say(words[0] + " " + answer)


client.start(timeout=20)
say("ready")
threads = {}
for line in sys.stdin:
    words = line.split()
    if words[0] not in threads:
        threads[words[0]] = queue.Queue()
        threading.Thread(target=work, args=(threads[words[0]],), daemon=True).start()
    threads[words[0]].put(words)
os._exit(0)
