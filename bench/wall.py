# SPDX-License-Identifier: MIT
"""wall.py SECONDS COMMAND... - how long does COMMAND take, from start to end?

Runs it again and again and prints "wall rate p50_us p99_us".
"""

import os
import sys
import time


def main(seconds, command):
    samples = []
    end = time.monotonic() + seconds
    while not samples or time.monotonic() < end:
        before = time.monotonic()
        pid = os.posix_spawnp(command[0], command, os.environ)
        _, status = os.waitpid(pid, 0)
        samples.append(1e6 * (time.monotonic() - before))
        if status:
            sys.exit(f"wall: {command[0]}: status {status}")
    samples.sort()
    print("wall", len(samples) / seconds, samples[len(samples) // 2],
          samples[len(samples) * 99 // 100])


main(float(sys.argv[1]), sys.argv[2:])
