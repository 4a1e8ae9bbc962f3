/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.util.Date;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;

/**
 * A condition of a {@link HoldfastLock}. A thread gives the lock up while it waits, however often it
 * has taken it, and has it as often again when it returns; a {@link Hold} that it took by re-entry
 * is released for good. Look at the predicate in a loop: spurious returns are allowed.
 *
 * <p>A wait during which the lock could not be had again, because the engine did not answer, throws
 * a {@link LockLostException} or an {@link EngineUnavailableException}: the lock is not held then.
 */
final class HoldfastCondition implements Condition {
    private final HoldfastLock lock;
    private final byte[] condition;

    HoldfastCondition(HoldfastLock lock, String condition) {
        this.lock = lock;
        this.condition = Native.bytes(condition);
    }

    @Override
    public void await() throws InterruptedException {
        awaitMillis(Native.FOREVER);
    }

    @Override
    public void awaitUninterruptibly() {
        int count = lock.holdCount();
        Hold hold = lock.giveUpReentries();
        hold.awaitConditionUninterruptibly(condition, Native.FOREVER);
        lock.reenter(hold, count);
    }

    @Override
    public long awaitNanos(long nanos) throws InterruptedException {
        long end = System.nanoTime() + nanos;
        await(nanos, TimeUnit.NANOSECONDS);
        return end - System.nanoTime();
    }

    @Override
    public boolean await(long time, TimeUnit unit) throws InterruptedException {
        return awaitMillis(Math.max(0, HoldfastLock.toMillis(time, unit)));
    }

    @Override
    public boolean awaitUntil(Date deadline) throws InterruptedException {
        return awaitMillis(Math.max(0, deadline.getTime() - System.currentTimeMillis()));
    }

    /** Whether somebody signalled in time. */
    private boolean awaitMillis(long ms) throws InterruptedException {
        if (Thread.interrupted()) {
            throw new InterruptedException();
        }
        int count = lock.holdCount();
        Hold hold = lock.giveUpReentries();
        try {
            long outcome = hold.awaitCondition(condition, ms);
            lock.reenter(hold, count);
            return outcome != Native.ETIMEOUT;
        } catch (InterruptedException e) {
            lock.reenter(lock.takeAgain(), count);
            throw e;
        }
    }

    @Override
    public void signal() {
        lock.mine().signalCondition(condition, false);
    }

    @Override
    public void signalAll() {
        lock.mine().signalCondition(condition, true);
    }
}
