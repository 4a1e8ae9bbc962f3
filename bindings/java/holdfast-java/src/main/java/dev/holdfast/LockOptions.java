/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.time.Duration;
import java.util.function.Consumer;

/**
 * How to take a lock. Immutable; each method returns a changed copy. What is not set is as the
 * client's configuration says.
 */
public final class LockOptions {
    /** Everything as configured: exclusive, renewed, waiting for ever unless configured. */
    public static final LockOptions DEFAULT = new LockOptions();

    static final long NO_RENEW = 2;
    static final long NEW_OWNER = 4;

    private Mode mode = Mode.EXCLUSIVE;
    private int slots;
    private long waitMs = Native.CONFIGURED;
    private long leaseMs;
    private long maxHoldMs;
    private boolean renew = true;
    private String note;

    private LockOptions() {}

    private LockOptions with(Consumer<LockOptions> change) {
        LockOptions copy = new LockOptions();
        copy.mode = mode;
        copy.slots = slots;
        copy.waitMs = waitMs;
        copy.leaseMs = leaseMs;
        copy.maxHoldMs = maxHoldMs;
        copy.renew = renew;
        copy.note = note;
        change.accept(copy);
        return copy;
    }

    /** Shared or exclusive. */
    public LockOptions mode(Mode mode) {
        return with(copy -> copy.mode = mode);
    }

    /** One of {@code slots} places. */
    public LockOptions slots(int slots) {
        return mode(Mode.SLOT).with(copy -> copy.slots = slots);
    }

    /** At most so long. Zero: try once. */
    public LockOptions waitFor(Duration wait) {
        return waitMs(Math.max(0, millis(wait)));
    }

    /** Without end, whatever is configured. */
    public LockOptions waitForever() {
        return waitMs(Native.FOREVER);
    }

    LockOptions waitMs(long ms) {
        return with(copy -> copy.waitMs = ms);
    }

    /**
     * The lease: how long the engine keeps the lock for a silent holder. A background thread renews
     * it, so it does not limit how long the lock can be held; {@link #maxHold} does.
     */
    public LockOptions lease(Duration lease) {
        long ms = atLeastOne(lease);
        return with(copy -> copy.leaseMs = ms);
    }

    /** After so long the lock is no longer renewed, and is lost when the lease ends. */
    public LockOptions maxHold(Duration maxHold) {
        long ms = atLeastOne(maxHold);
        return with(copy -> copy.maxHoldMs = ms);
    }

    /** The lease is not renewed: the lock is lost when it ends. */
    public LockOptions withoutRenewal() {
        return with(copy -> copy.renew = false);
    }

    /** Shown beside the lock in listings. */
    public LockOptions note(String note) {
        return with(copy -> copy.note = note);
    }

    Mode mode() {
        return mode;
    }

    long waitMs() {
        return waitMs;
    }

    byte[] noteBytes() {
        return Native.bytes(note);
    }

    /** In the order of lock.c. An owner of 0 is a new owner. */
    long[] numbers(long owner, long event) {
        long flags = (renew ? 0 : NO_RENEW) | (owner == 0 ? NEW_OWNER : 0);
        return new long[] {flags, mode.ordinal(), slots, waitMs, leaseMs, maxHoldMs, owner, event};
    }

    static long millis(Duration duration) {
        try {
            return duration.toMillis();
        } catch (ArithmeticException e) {
            return duration.isNegative() ? Long.MIN_VALUE : Long.MAX_VALUE;
        }
    }

    private static long atLeastOne(Duration duration) {
        long ms = millis(duration);
        if (ms < 1) {
            throw new IllegalArgumentException("a duration of at least 1 ms, not " + duration);
        }
        return ms;
    }
}
