/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.time.Duration;
import java.util.Optional;

/** Up to N holders of one name. A place belongs to no thread: its {@link Hold} gives it back. */
public final class HoldfastSemaphore {
    private final HoldfastClient client;
    private final String name;
    private final LockOptions options;

    HoldfastSemaphore(HoldfastClient client, String name, LockOptions options) {
        this.client = client;
        this.name = name;
        this.options = options;
    }

    /** Waits as configured, for ever if nothing is. */
    public Hold acquire() {
        return client.acquire(name, options, 0, false);
    }

    /** An interrupt cancels the wait. */
    public Hold acquireInterruptibly() throws InterruptedException {
        Hold hold = client.acquireInterruptibly(name, options, 0);
        if (hold == null) {
            throw HoldfastException.of(Native.ETIMEOUT, 0, name + " stayed full until the wait ran out");
        }
        return hold;
    }

    /** Empty if there is no place now. */
    public Optional<Hold> tryAcquire() {
        return Optional.ofNullable(client.acquire(name, options.waitMs(0), 0, true));
    }

    /** Empty if there is no place within the wait. */
    public Optional<Hold> tryAcquire(Duration wait) throws InterruptedException {
        return Optional.ofNullable(client.acquireInterruptibly(name, options.waitFor(wait), 0));
    }
}
