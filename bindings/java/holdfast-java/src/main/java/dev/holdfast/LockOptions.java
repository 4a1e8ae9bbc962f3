/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.time.Duration;

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

    private LockOptions copy() {
        LockOptions copy = new LockOptions();
        copy.mode = mode;
        copy.slots = slots;
        copy.waitMs = waitMs;
        copy.leaseMs = leaseMs;
        copy.maxHoldMs = maxHoldMs;
        copy.renew = renew;
        copy.note = note;
        return copy;
    }

    /** Shared or exclusive. */
    public LockOptions mode(Mode mode) {
        LockOptions copy = copy();
        copy.mode = mode;
        return copy;
    }

    /** One of {@code slots} places. */
    public LockOptions slots(int slots) {
        LockOptions copy = mode(Mode.SLOT);
        copy.slots = slots;
        return copy;
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
        LockOptions copy = copy();
        copy.waitMs = ms;
        return copy;
    }

    /**
     * The lease: how long the engine keeps the lock for a silent holder. A background thread renews
     * it, so it does not limit how long the lock can be held; {@link #maxHold} does.
     */
    public LockOptions lease(Duration lease) {
        LockOptions copy = copy();
        copy.leaseMs = atLeastOne(lease);
        return copy;
    }

    /** After so long the lock is no longer renewed, and is lost when the lease ends. */
    public LockOptions maxHold(Duration maxHold) {
        LockOptions copy = copy();
        copy.maxHoldMs = atLeastOne(maxHold);
        return copy;
    }

    /** The lease is not renewed: the lock is lost when it ends. */
    public LockOptions withoutRenewal() {
        LockOptions copy = copy();
        copy.renew = false;
        return copy;
    }

    /** Shown beside the lock in listings. */
    public LockOptions note(String note) {
        LockOptions copy = copy();
        copy.note = note;
        return copy;
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

    /** In the order of holdfast_jni.c. An owner of 0 is a new owner. */
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
