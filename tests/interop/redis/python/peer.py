# SPDX-License-Identifier: MIT
"""A redis-py client that does what it is told, line by line.

    python3 peer.py PORT

"OWNER lock NAME LEASE_MS WAIT_MS"  -> "OWNER ok", "OWNER busy"
"OWNER extend NAME LEASE_MS"        -> "OWNER ok", "OWNER lost"
"OWNER unlock NAME"                 -> "OWNER ok", "OWNER lost"

Each line is carried out on a thread of its own, since a lock may wait.
"""

import sys
import threading

import redis
from redis.exceptions import LockError

client = redis.Redis(host="127.0.0.1", port=int(sys.argv[1]))
held = {}
printing = threading.Lock()


def say(line):
    with printing:
        print(line, flush=True)


def lock(owner, name, lease_ms, wait_ms):
    lock = client.lock(
        name, timeout=int(lease_ms) / 1000, sleep=0.05, thread_local=False
    )
    if not lock.acquire(
        blocking=wait_ms != "0", blocking_timeout=int(wait_ms) / 1000
    ):
        return "busy"
    held[owner + name] = lock
    return "ok"


def extend(owner, name, lease_ms):
    held[owner + name].extend(int(lease_ms) / 1000, replace_ttl=True)
    return "ok"


def unlock(owner, name):
    held.pop(owner + name).release()
    return "ok"


def carry_out(owner, verb, *words):
    verbs = {"lock": lock, "extend": extend, "unlock": unlock}
    try:
        answer = verbs[verb](owner, *words)
    except LockError:
        answer = "lost"
    except Exception as error:  # told, not hidden
        answer = f"error {error}"
    say(f"{owner} {answer}")


say("ready")
for line in sys.stdin:
    threading.Thread(
        target=carry_out, args=line.split(), daemon=True
    ).start()
