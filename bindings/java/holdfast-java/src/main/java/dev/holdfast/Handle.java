/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;

/**
 * A pointer of the library, and how many calls use it. It is freed when its owner has dropped it
 * and the last call has returned, so a late call never meets freed memory.
 */
final class Handle implements Runnable {
    private final AtomicInteger uses = new AtomicInteger(1);
    private final AtomicInteger dropped = new AtomicInteger();
    private final long pointer;
    private final LongConsumer free;

    Handle(long pointer, LongConsumer free) {
        this.pointer = pointer;
        this.free = free;
    }

    /** The pointer until {@link #leave}, or 0 if it has been dropped. */
    long enter() {
        for (int n = uses.get(); n > 0; n = uses.get()) {
            if (uses.compareAndSet(n, n + 1)) {
                return pointer;
            }
        }
        return 0;
    }

    void leave() {
        if (uses.decrementAndGet() == 0) {
            free.accept(pointer);
        }
    }

    /** The owner's own use ends. Only the first call counts. */
    boolean drop() {
        if (!dropped.compareAndSet(0, 1)) {
            return false;
        }
        leave();
        return true;
    }

    /** For a Cleaner. */
    @Override
    public void run() {
        drop();
    }
}
