/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.time.Duration;
import java.util.Optional;

/**
 * One holder of, or one waiter for, one lock, as the engine shows it.
 *
 * @param parked whether it waits for a condition of the lock, and not for the lock
 * @param slots how many holders the name admits; 0 unless the mode is {@link Mode#SLOT}
 * @param host "" where the engine does not know
 * @param pid 0 where the engine does not know
 * @param token 0 for waiters, and where the engine has none
 * @param since how long it has held or waited
 * @param lease of a holder: until the engine would free the lock
 * @param place of a waiter: 1 is the next
 * @param alive whether its process lives, where the engine knows
 */
public record LockInfo(
        String name,
        boolean holder,
        boolean parked,
        Mode mode,
        int slots,
        String owner,
        String host,
        String note,
        long pid,
        long token,
        Optional<Duration> since,
        Optional<Duration> lease,
        int place,
        Optional<Boolean> alive) {

    static LockInfo of(long[] n, String name, String owner, String host, String note) {
        return new LockInfo(
                name,
                n[0] == 0,
                n[0] == 2,
                Mode.values()[(int) n[1]],
                (int) n[2],
                owner,
                host,
                note,
                n[3],
                n[4],
                millis(n[5]),
                millis(n[6]),
                (int) n[7],
                n[8] == 2 ? Optional.empty() : Optional.of(n[8] == 1));
    }

    private static Optional<Duration> millis(long ms) {
        return ms < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(ms));
    }
}
