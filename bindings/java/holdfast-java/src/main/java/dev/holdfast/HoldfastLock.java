/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.Lock;
import java.util.function.Consumer;

/**
 * {@link Lock} over an engine: exclusion between threads, processes and machines.
 *
 * <p>A thread that has it may take it again, and unlocks as often. A lock that was lost (the engine
 * did not answer until the lease ended) is told by {@link #onLost} at once, and by {@link #unlock}
 * as a {@link LockLostException}.
 */
public final class HoldfastLock implements Lock {
    private final HoldfastClient client;
    private final String name;
    private final LockOptions options;
    private final AtomicInteger conditions = new AtomicInteger();

    HoldfastLock(HoldfastClient client, String name, LockOptions options) {
        this.client = client;
        this.name = name;
        this.options = options;
    }

    /** Waits as configured, for ever if nothing is; an interrupt does not end the wait. */
    @Override
    public void lock() {
        long owner = Threads.owner();
        keep(owner, client.acquire(name, options, owner, false));
    }

    /** An interrupt cancels the wait; nothing is left behind on the engine. */
    @Override
    public void lockInterruptibly() throws InterruptedException {
        long owner = Threads.owner();
        if (!keep(owner, client.acquireInterruptibly(name, options, owner))) {
            throw HoldfastException.of(
                    Native.ETIMEOUT, 0, "another owner kept " + name + " until the wait ran out");
        }
    }

    @Override
    public boolean tryLock() {
        long owner = Threads.owner();
        return keep(owner, client.acquire(name, options.waitMs(0), owner, true));
    }

    @Override
    public boolean tryLock(long time, TimeUnit unit) throws InterruptedException {
        long owner = Threads.owner();
        LockOptions bounded = options.waitMs(Math.max(0, toMillis(time, unit)));
        return keep(owner, client.acquireInterruptibly(name, bounded, owner));
    }

    /** Ends the re-entries of this thread, all but the first hold, which it returns. */
    Hold giveUpReentries() {
        mine();
        return client.held().keepFirst(name, options.mode(), Threads.owner());
    }

    /** Takes the lock as often again; {@code first} is what this thread holds of it. */
    void reenter(Hold first, int count) {
        long owner = Threads.owner();
        client.held().clear(name, options.mode(), owner);
        client.held().add(name, options.mode(), owner, first);
        while (holdCount() < count) {
            lock();
        }
    }

    /** Takes the lock once more after a wait that was ended, however long that takes. */
    Hold takeAgain() {
        return client.acquire(name, options.waitMs(Native.FOREVER), Threads.owner(), false);
    }

    /** Rounded up: a wait of 100 microseconds is not a try. */
    static long toMillis(long time, TimeUnit unit) {
        long ms = unit.toMillis(time);
        if (ms < MAX_WAIT_MS && unit.convert(ms, TimeUnit.MILLISECONDS) < time) {
            ms++;
        }
        return Math.min(ms, MAX_WAIT_MS);
    }

    /** HF_DURATION_MAX: a hundred years. */
    private static final long MAX_WAIT_MS = 3_155_760_000_000L;

    private boolean keep(long owner, Hold hold) {
        if (hold == null) {
            return false;
        }
        client.held().add(name, options.mode(), owner, hold);
        return true;
    }

    /**
     * Releases what this thread took last.
     *
     * @throws IllegalMonitorStateException this thread does not have the lock
     * @throws LockLostException the lock was lost before
     */
    @Override
    public void unlock() {
        Hold hold = client.held().take(name, options.mode(), Threads.owner());
        if (hold == null) {
            throw new IllegalMonitorStateException(
                    "this thread does not hold " + name + "; only the thread that took it unlocks");
        }
        hold.release();
    }

    /**
     * The next condition of this lock. It is known by its number: programs that make the conditions
     * of a lock in the same order share them. {@link #condition} takes a name instead.
     *
     * @throws UnsupportedOperationException the engine, or a lock of this mode, has no conditions
     */
    @Override
    public Condition newCondition() {
        return condition(Integer.toString(conditions.incrementAndGet()));
    }

    /**
     * The condition of that name, which belongs to this lock wherever it is used: threads of other
     * processes and machines signal it, and programs in other languages.
     *
     * @throws UnsupportedOperationException the engine, or a lock of this mode, has no conditions
     */
    public Condition condition(String condition) {
        if (options.mode() != Mode.EXCLUSIVE) {
            throw new UnsupportedOperationException("only an exclusive lock has conditions");
        }
        if (!client.capabilities().contains(Capability.CONDITIONS)) {
            throw new UnsupportedOperationException(
                    "the engine "
                            + client.engine()
                            + " has no conditions in this mode; local:, redis:// without dialect,"
                            + " zk://, etcd://, and mode=table of PostgreSQL and MySQL have"
                            + " them");
        }
        return new HoldfastCondition(this, condition);
    }

    /** Whether this thread has the lock, and has not lost it. */
    public boolean isHeldByCurrentThread() {
        Hold hold = newest();
        return hold != null && hold.isHeld();
    }

    /** How often this thread has taken it. */
    public int holdCount() {
        return client.held().count(name, options.mode(), Threads.owner());
    }

    /** What this thread holds. */
    public Optional<Hold> hold() {
        return Optional.ofNullable(newest());
    }

    /** The fencing token of what this thread holds. */
    public long token() {
        return mine().token();
    }

    /** For how long the lock is surely ours without another renewal; empty: without end. */
    public Optional<Duration> remaining() {
        return mine().remaining();
    }

    /** Calls the listener when what this thread holds now is lost. */
    public void onLost(Consumer<? super Hold> listener) {
        mine().onLost(listener);
    }

    /** The name. */
    public String name() {
        return name;
    }

    private Hold newest() {
        return client.held().newest(name, options.mode(), Threads.owner());
    }

    Hold mine() {
        Hold hold = newest();
        if (hold == null) {
            throw new IllegalMonitorStateException("this thread does not hold " + name);
        }
        return hold;
    }

    @Override
    public String toString() {
        return "HoldfastLock[" + name + ", " + options.mode() + "]";
    }
}
