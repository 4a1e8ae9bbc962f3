/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.nio.channels.AsynchronousCloseException;
import java.nio.channels.spi.AbstractInterruptibleChannel;
import java.util.concurrent.CompletableFuture;
import java.util.function.LongUnaryOperator;

/**
 * Waits for a lock, or for a condition, so that an interrupt ends the wait.
 *
 * <p>A platform thread waits inside the library, as {@code hf_acquire} does, because then it reads
 * the engine's answer itself. {@link AbstractInterruptibleChannel} is the JDK's way to hear of an
 * interrupt meanwhile: it closes this "channel", which cancels the request. A virtual thread must
 * not block its carrier: it waits for a future that the library's thread completes.
 */
final class Waiting extends AbstractInterruptibleChannel {
    private final long request;
    private boolean over;

    private Waiting(long request) {
        this.request = request;
    }

    /** Called by the thread that interrupts; from Java 21 on perhaps after the wait is over. */
    @Override
    protected synchronized void implCloseChannel() {
        if (!over) {
            Native.requestCancel(request);
        }
    }

    private synchronized void free() {
        over = true;
        Native.requestFree(request);
    }

    /**
     * What comes of the request that {@code begin} makes: a hold, or EBUSY, ETIMEOUT. {@code begin}
     * gets the number of a callback, or 0.
     */
    static long interruptibly(LongUnaryOperator begin) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        if (Threads.isVirtual()) {
            return byFuture(begin);
        }
        Waiting waiting = new Waiting(begin.applyAsLong(0));
        try {
            return waiting.await();
        } finally {
            waiting.free();
        }
    }

    /** The same; an interrupt stays pending. */
    static long uninterruptibly(LongUnaryOperator begin) {
        if (Threads.isVirtual()) {
            CompletableFuture<Long> outcome = new CompletableFuture<>();
            long request = start(begin, outcome);
            try {
                return Threads.join(outcome);
            } finally {
                Native.requestFree(request);
            }
        }
        long request = begin.applyAsLong(0);
        try {
            return Native.requestWait(request, true);
        } finally {
            Native.requestFree(request);
        }
    }

    private long await() throws InterruptedException {
        long outcome = 0;
        try {
            begin();
            outcome = Native.requestWait(request, true);
        } finally {
            endQuietly();
        }
        if (outcome == Native.ECANCELED) {
            Thread.interrupted();
            throw new InterruptedException();
        }
        // Granted before the cancel arrived: the lock is held and the interrupt stays pending.
        return outcome;
    }

    private void endQuietly() {
        try {
            end(true);
        } catch (AsynchronousCloseException e) {
            // An interrupt; the request's outcome says what came of it.
        }
    }

    private static long byFuture(LongUnaryOperator begin) throws InterruptedException {
        CompletableFuture<Long> outcome = new CompletableFuture<>();
        long request = start(begin, outcome);
        try {
            return Threads.get(outcome, () -> Native.requestCancel(request));
        } finally {
            Native.requestFree(request);
        }
    }

    /** The request; its hold or refusal completes {@code outcome}, on a thread of the library. */
    static long start(LongUnaryOperator begin, CompletableFuture<Long> outcome) {
        long number = Native.newNumber();
        Native.DONE.put(
                number,
                (hold, failure) -> {
                    if (failure == null) {
                        outcome.complete(hold);
                    } else if (failure.code() == Native.EBUSY
                            || failure.code() == Native.ETIMEOUT
                            || failure.code() == Native.ECANCELED) {
                        outcome.complete((long) failure.code());
                    } else {
                        outcome.completeExceptionally(failure);
                    }
                });
        try {
            return begin.applyAsLong(number);
        } catch (RuntimeException e) {
            Native.DONE.remove(number);
            throw e;
        }
    }
}
