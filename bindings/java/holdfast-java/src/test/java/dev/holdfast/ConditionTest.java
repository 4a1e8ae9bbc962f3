/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The contract of {@link Condition}, on engines that have conditions. */
@Timeout(120)
class ConditionTest {
    private HoldfastClient client;
    private HoldfastClient other;
    private String name;

    @BeforeEach
    void open() {
        client = Store.open();
        other = Store.open();
        name = Store.name("condition");
    }

    @AfterEach
    void close() {
        client.close();
        other.close();
    }

    private boolean hasConditions() {
        return client.capabilities().contains(Capability.CONDITIONS);
    }

    private static <T> FutureTask<T> inThread(Callable<T> work) {
        FutureTask<T> task = new FutureTask<>(work);
        new Thread(task, "test").start();
        return task;
    }

    /** Takes the lock, once nobody holds it and the thread behind {@code task} waits. */
    private HoldfastLock whenParked(FutureTask<?> task) {
        HoldfastLock lock = other.lock(name);
        while (!task.isDone()) {
            lock.lock();
            if (other.show(name).stream().anyMatch(LockInfo::parked)) {
                return lock;
            }
            lock.unlock();
        }
        throw new AssertionError("nobody waits");
    }

    @Test
    void anEngineWithoutConditionsSaysSo() {
        assumeTrue(!hasConditions());
        assertThrows(UnsupportedOperationException.class, () -> client.lock(name).newCondition());
    }

    @Test
    void onlyExclusiveLocksHaveThem() {
        assumeTrue(hasConditions());
        assertThrows(
                UnsupportedOperationException.class,
                () -> client.readWriteLock(name).readLock().newCondition());
    }

    @Test
    void aSignalOfAnotherClientWakesOneThatWaits() throws Exception {
        assumeTrue(hasConditions());
        FutureTask<Boolean> waiter =
                inThread(
                        () -> {
                            HoldfastLock lock = client.lock(name);
                            lock.lock();
                            long token = lock.token();
                            lock.condition("ready").await();
                            boolean grown = token == 0 || lock.token() > token;
                            boolean held = lock.isHeldByCurrentThread();
                            lock.unlock();
                            return grown && held;
                        });
        HoldfastLock lock = whenParked(waiter);
        lock.condition("other").signal();
        lock.condition("ready").signal();
        assertFalse(waiter.isDone());
        lock.unlock();
        assertTrue(waiter.get());
    }

    @Test
    void conditionsMadeInTheSameOrderAreTheSame() throws Exception {
        assumeTrue(hasConditions());
        FutureTask<Boolean> waiter =
                inThread(
                        () -> {
                            HoldfastLock lock = client.lock(name);
                            lock.newCondition();
                            Condition second = lock.newCondition();
                            lock.lock();
                            second.awaitUninterruptibly();
                            lock.unlock();
                            return true;
                        });
        HoldfastLock lock = whenParked(waiter);
        lock.newCondition().signalAll();
        assertTrue(other.show(name).stream().anyMatch(LockInfo::parked));
        lock.newCondition().signalAll();
        lock.unlock();
        assertTrue(waiter.get());
    }

    @Test
    void itemsGoThroughABoundedQueue() throws Exception {
        assumeTrue(hasConditions());
        Deque<Integer> queue = new ArrayDeque<>();
        List<FutureTask<Integer>> consumers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            consumers.add(inThread(() -> consume(queue, 20)));
        }
        FutureTask<Void> producer = inThread(() -> produce(queue, 60));
        producer.get();
        int sum = 0;
        for (FutureTask<Integer> consumer : consumers) {
            sum += consumer.get();
        }
        assertEquals(60 * 61 / 2, sum);
    }

    private Integer consume(Deque<Integer> queue, int n) throws InterruptedException {
        HoldfastLock lock = other.lock(name);
        int sum = 0;
        for (int i = 0; i < n; i++) {
            lock.lock();
            try {
                while (queue.isEmpty()) {
                    lock.condition("not empty").await();
                }
                sum += queue.remove();
                lock.condition("not full").signal();
            } finally {
                lock.unlock();
            }
        }
        return sum;
    }

    private Void produce(Deque<Integer> queue, int n) throws InterruptedException {
        HoldfastLock lock = client.lock(name);
        for (int i = 1; i <= n; i++) {
            lock.lock();
            try {
                while (queue.size() == 4) {
                    lock.condition("not full").await();
                }
                queue.add(i);
                lock.condition("not empty").signal();
            } finally {
                lock.unlock();
            }
        }
        return null;
    }

    @Test
    void aWaitThatNobodyEndsTimesOutAndHolds() throws Exception {
        assumeTrue(hasConditions());
        HoldfastLock lock = client.lock(name);
        lock.lock();
        assertFalse(lock.newCondition().await(20, TimeUnit.MILLISECONDS));
        assertTrue(lock.newCondition().awaitNanos(1_000_000) <= 0);
        assertTrue(lock.isHeldByCurrentThread());
        lock.unlock();
    }

    @Test
    void aThreadThatReenteredHoldsAsOftenAgain() throws Exception {
        assumeTrue(hasConditions());
        HoldfastLock lock = client.lock(name);
        lock.lock();
        lock.lock();
        lock.lock();
        assertFalse(lock.newCondition().await(20, TimeUnit.MILLISECONDS));
        assertEquals(3, lock.holdCount());
        lock.unlock();
        lock.unlock();
        assertFalse(other.lock(name).tryLock());
        lock.unlock();
        assertTrue(other.lock(name).tryLock());
        other.lock(name).unlock();
    }

    @Test
    void anInterruptEndsTheWaitAndTheThreadHolds() throws Exception {
        assumeTrue(hasConditions());
        Thread[] thread = new Thread[1];
        FutureTask<Integer> waiter =
                new FutureTask<>(
                        () -> {
                            HoldfastLock lock = client.lock(name);
                            lock.lock();
                            lock.lock();
                            try {
                                lock.newCondition().await();
                                return 0;
                            } catch (InterruptedException e) {
                                return lock.isHeldByCurrentThread() ? lock.holdCount() : -1;
                            } finally {
                                lock.unlock();
                                lock.unlock();
                            }
                        });
        thread[0] = new Thread(waiter, "test");
        thread[0].start();
        whenParked(waiter).unlock();
        thread[0].interrupt();
        assertEquals(2, waiter.get());
        assertTrue(other.lock(name).tryLock());
        other.lock(name).unlock();
    }

    @Test
    void whoDoesNotHoldTheLockMayNotWaitOrSignal() {
        assumeTrue(hasConditions());
        Condition condition = client.lock(name).newCondition();
        assertThrows(IllegalMonitorStateException.class, condition::signal);
        assertThrows(IllegalMonitorStateException.class, condition::await);
    }

    @Test
    void aClientThatClosesEndsTheWait() throws Exception {
        assumeTrue(hasConditions());
        FutureTask<Void> waiter =
                inThread(
                        () -> {
                            HoldfastLock lock = client.lock(name);
                            lock.lock();
                            lock.newCondition().await();
                            return null;
                        });
        whenParked(waiter).unlock();
        client.shutdown(java.time.Duration.ofSeconds(5));
        ExecutionException e = assertThrows(ExecutionException.class, waiter::get);
        assertTrue(e.getCause() instanceof HoldfastException);
        assertTrue(other.lock(name).tryLock());
        other.lock(name).unlock();
    }
}
