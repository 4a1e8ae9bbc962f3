/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The contract of {@link Lock}, on the engine of {@link Store}. */
@Timeout(120)
class LockTest {
    private HoldfastClient client;

    @BeforeEach
    void open() {
        client = Store.open();
    }

    @AfterEach
    void close() {
        client.close();
    }

    private static <T> FutureTask<T> inThread(java.util.concurrent.Callable<T> work) {
        FutureTask<T> task = new FutureTask<>(work);
        new Thread(task, "test").start();
        return task;
    }

    /** Until somebody waits for {@code name}, where the engine shows waiters. */
    private void awaitWaiter(String name, Thread thread) {
        if (!client.capabilities().contains(Capability.LIST)) {
            return;
        }
        while (thread.isAlive() && client.show(name).stream().allMatch(LockInfo::holder)) {
            Thread.onSpinWait();
        }
    }

    @Test
    void excludesThreads() throws Exception {
        String name = Store.name("threads");
        int[] count = {0};
        List<FutureTask<Void>> tasks = new ArrayList<>();
        for (int i = 0; i < 6; i++) {
            tasks.add(
                    inThread(
                            () -> {
                                for (int turn = 0; turn < 50; turn++) {
                                    Lock lock = client.lock(name);
                                    lock.lock();
                                    try {
                                        count[0]++;
                                    } finally {
                                        lock.unlock();
                                    }
                                }
                                return null;
                            }));
        }
        for (FutureTask<Void> task : tasks) {
            task.get();
        }
        assertEquals(300, count[0]);
    }

    @Test
    void excludesTheCommand() throws Exception {
        String name = Store.name("command");
        try (Peer peer = Peer.command(name)) {
            assumeTrue(peer != null, "HOLDFAST_TEST_COMMAND names no command");
            peer.await("held");
            assertFalse(client.lock(name).tryLock());
            FutureTask<Boolean> waiter =
                    inThread(
                            () -> {
                                client.lock(name).lock();
                                client.lock(name).unlock();
                                return true;
                            });
            peer.end();
            assertTrue(waiter.get());
        }
    }

    @Test
    void isReenteredByItsThread() throws Exception {
        String name = Store.name("reentry");
        HoldfastLock lock = client.lock(name);
        lock.lock();
        long token = lock.token();
        assertTrue(client.lock(name).tryLock());
        assertEquals(token, lock.token());
        assertEquals(2, lock.holdCount());
        lock.unlock();
        assertFalse(inThread(() -> client.lock(name).tryLock()).get());
        assertTrue(lock.isHeldByCurrentThread());
        lock.unlock();
        assertFalse(lock.isHeldByCurrentThread());
        assertTrue(
                inThread(
                                () -> {
                                    boolean got = client.lock(name).tryLock();
                                    client.lock(name).unlock();
                                    return got;
                                })
                        .get());
    }

    @Test
    void isUnlockedOnlyByItsThread() throws Exception {
        HoldfastLock lock = client.lock(Store.name("unlock"));
        assertThrows(IllegalMonitorStateException.class, lock::unlock);
        lock.lock();
        FutureTask<Void> other =
                inThread(
                        () -> {
                            lock.unlock();
                            return null;
                        });
        Throwable cause = assertThrows(ExecutionException.class, other::get).getCause();
        assertTrue(cause instanceof IllegalMonitorStateException, cause.toString());
        lock.unlock();
    }

    @Test
    void timesOut() throws Exception {
        String name = Store.name("timeout");
        Lock lock = client.lock(name);
        lock.lock();
        assertFalse(inThread(() -> client.lock(name).tryLock(50, TimeUnit.MILLISECONDS)).get());
        assertFalse(inThread(() -> client.lock(name).tryLock(1, TimeUnit.MICROSECONDS)).get());
        FutureTask<Boolean> waiter =
                inThread(
                        () -> {
                            boolean got = client.lock(name).tryLock(1, TimeUnit.DAYS);
                            client.lock(name).unlock();
                            return got;
                        });
        lock.unlock();
        assertTrue(waiter.get());
    }

    @Test
    void aTimeoutNamesItsKind() {
        String name = Store.name("kinds");
        LockOptions now = LockOptions.DEFAULT.waitFor(Duration.ZERO);
        try (Hold hold = client.acquire(name)) {
            assertTrue(hold.isHeld());
            LockBusyException busy =
                    assertThrows(LockBusyException.class, () -> client.acquire(name, now));
            assertEquals(-1, busy.code());
            assertThrows(
                    LockTimeoutException.class,
                    () -> client.acquire(name, now.waitFor(Duration.ofMillis(20))));
        }
    }

    @Test
    void anInterruptEndsTheWaitAndLeavesNothing() throws Exception {
        String name = Store.name("interrupt");
        Lock lock = client.lock(name);
        lock.lock();
        CountDownLatch ended = new CountDownLatch(1);
        boolean[] flag = {true};
        Thread waiter =
                new Thread(
                        () -> {
                            try {
                                client.lock(name).lockInterruptibly();
                            } catch (InterruptedException e) {
                                flag[0] = Thread.currentThread().isInterrupted();
                                ended.countDown();
                            }
                        });
        waiter.start();
        awaitWaiter(name, waiter);
        waiter.interrupt();
        ended.await();
        assertFalse(flag[0], "the exception clears the flag");
        waiter.join();
        lock.unlock();
        assertTrue(lock.tryLock());
        if (client.capabilities().contains(Capability.LIST)) {
            while (!client.show(name).stream().allMatch(LockInfo::holder)) {
                Thread.onSpinWait();
            }
        }
        lock.unlock();
    }

    @Test
    void anInterruptBeforeTheWaitEndsIt() {
        Lock lock = client.lock(Store.name("before"));
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, lock::lockInterruptibly);
        assertFalse(Thread.currentThread().isInterrupted());
        Thread.currentThread().interrupt();
        assertThrows(InterruptedException.class, () -> lock.tryLock(1, TimeUnit.SECONDS));
    }

    @Test
    void lockIgnoresAnInterrupt() throws Exception {
        String name = Store.name("stubborn");
        Lock lock = client.lock(name);
        lock.lock();
        FutureTask<Boolean> task =
                new FutureTask<>(
                        () -> {
                            client.lock(name).lock();
                            client.lock(name).unlock();
                            return Thread.currentThread().isInterrupted();
                        });
        Thread waiter = new Thread(task);
        waiter.start();
        awaitWaiter(name, waiter);
        waiter.interrupt();
        lock.unlock();
        assertTrue(task.get(), "the flag stays set");
    }

    @Test
    void tokensGrow() {
        assumeTrue(client.capabilities().contains(Capability.FENCED));
        String name = Store.name("tokens");
        long last = 0;
        for (int i = 0; i < 5; i++) {
            try (Hold hold = client.acquire(name)) {
                assertTrue(hold.token() > last);
                last = hold.token();
            }
        }
    }

    @Test
    void aHoldOfItsOwnReentersNothing() {
        String name = Store.name("own");
        try (Hold hold = client.acquire(name)) {
            assertEquals(name, hold.name());
            assertFalse(client.lock(name).tryLock());
        }
        assertTrue(client.lock(name).tryLock());
        client.lock(name).unlock();
    }

    @Test
    void readersShareAndWritersDoNot() throws Exception {
        assumeTrue(client.capabilities().contains(Capability.SHARED));
        String name = Store.name("rw");
        Lock read = client.readWriteLock(name).readLock();
        read.lock();
        assertTrue(
                inThread(
                                () -> {
                                    boolean got = client.readWriteLock(name).readLock().tryLock();
                                    client.readWriteLock(name).readLock().unlock();
                                    return got;
                                })
                        .get());
        assertFalse(inThread(() -> client.readWriteLock(name).writeLock().tryLock()).get());
        read.unlock();
        assertTrue(client.readWriteLock(name).writeLock().tryLock());
        client.readWriteLock(name).writeLock().unlock();
    }

    @Test
    void aSemaphoreAdmitsSoMany() {
        assumeTrue(client.capabilities().contains(Capability.SLOTS));
        HoldfastSemaphore semaphore = client.semaphore(Store.name("slots"), 2);
        try (Hold first = semaphore.acquire();
                Hold second = semaphore.tryAcquire().orElseThrow()) {
            assertTrue(first.isHeld() && second.isHeld());
            assertTrue(semaphore.tryAcquire().isEmpty());
        }
        semaphore.tryAcquire().orElseThrow().close();
    }

    @Test
    void severalNamesAreOneHold() {
        String first = Store.name("many");
        String second = Store.name("many");
        try (Hold hold = client.lockAll(second, first)) {
            assertTrue(hold.isHeld());
            assertFalse(client.lock(first).tryLock());
            assertFalse(client.lock(second).tryLock());
        }
        client.acquire(first).close();
    }

    @Test
    void aFutureIsCompletedOrCancelled() throws Exception {
        String name = Store.name("future");
        Hold hold = client.acquireAsync(name, LockOptions.DEFAULT).get();
        var waiting = client.acquireAsync(name, LockOptions.DEFAULT);
        var cancelled = client.acquireAsync(name, LockOptions.DEFAULT);
        assertTrue(cancelled.cancel(false));
        hold.release();
        waiting.get().release();
        client.acquire(name).close();
    }

    @Test
    void oneCandidateLeads() throws Exception {
        String name = Store.name("election");
        CountDownLatch first = new CountDownLatch(1);
        CountDownLatch second = new CountDownLatch(1);
        try (HoldfastClient other = Store.open();
                Election one =
                        client.election(
                                name, change -> countIf(change.state() == State.HELD, first))) {
            first.await();
            assertTrue(one.isLeader());
            try (Election two =
                    other.election(
                            name, change -> countIf(change.state() == State.HELD, second))) {
                assertFalse(two.isLeader());
                one.close();
                second.await();
                assertTrue(two.isLeader());
            }
        }
    }

    private static void countIf(boolean condition, CountDownLatch latch) {
        if (condition) {
            latch.countDown();
        }
    }

    @Test
    void versionsConflict() {
        assumeTrue(client.capabilities().contains(Capability.VERSIONS));
        Version version = client.version(Store.name("version"));
        assertEquals(0, version.read());
        long one = version.commit(0);
        assertEquals(one, version.read());
        assertThrows(ConflictException.class, () -> version.commit(0));
        assertTrue(version.commit(one) > one);
    }

    @Test
    void aBrokenLockIsToldAsLost() throws Exception {
        assumeTrue(client.capabilities().contains(Capability.BREAK));
        assumeTrue(client.capabilities().contains(Capability.FENCED));
        String name = Store.name("broken");
        HoldfastLock lock =
                client.lock(name, LockOptions.DEFAULT.lease(Duration.ofSeconds(2)));
        CountDownLatch lost = new CountDownLatch(1);
        lock.lock();
        lock.onLost(hold -> lost.countDown());
        try (HoldfastClient other = Store.open()) {
            other.breakLock(name, lock.token());
        }
        lost.await();
        assertFalse(lock.isHeldByCurrentThread());
        assertThrows(LockLostException.class, lock::unlock);
        assertEquals(0, lock.holdCount());
    }

    @Test
    void aKilledHolderIsReplaced() throws Exception {
        String name = Store.name("killed");
        try (Peer peer = Peer.java(name, Duration.ofSeconds(2))) {
            long token = Long.parseLong(peer.await("held"));
            assertFalse(client.lock(name).tryLock());
            peer.signal("KILL");
            HoldfastLock lock = client.lock(name);
            lock.lock();
            assertTrue(token == 0 || lock.token() > token);
            lock.unlock();
        }
    }

    @Test
    void aStoppedHolderHearsThatItLost() throws Exception {
        String name = Store.name("stopped");
        try (Peer peer = Peer.java(name, Duration.ofSeconds(2))) {
            peer.await("held");
            assumeTrue(client.capabilities().contains(Capability.LEASED));
            peer.signal("STOP");
            client.lock(name).lock();
            peer.signal("CONT");
            peer.await("lost");
            peer.end();
            peer.await("told");
            client.lock(name).unlock();
        }
    }

    @Test
    void closeEndsWaiters() throws Exception {
        String name = Store.name("close");
        try (HoldfastClient other = Store.open();
                Hold hold = other.acquire(name)) {
            FutureTask<Void> waiter =
                    inThread(
                            () -> {
                                client.lock(name).lock();
                                return null;
                            });
            if (client.capabilities().contains(Capability.LIST)) {
                while (client.show(name).stream().allMatch(LockInfo::holder)) {
                    Thread.onSpinWait();
                }
            }
            client.close();
            Throwable cause = assertThrows(ExecutionException.class, waiter::get).getCause();
            assertTrue(cause instanceof ClientClosedException, cause.toString());
            assertThrows(ClientClosedException.class, () -> client.acquire(name));
            assertTrue(hold.isHeld());
        }
    }

    @Test
    void aHoldOutlivesItsClient() {
        Hold hold = client.acquire(Store.name("outlive"));
        client.close();
        assertFalse(hold.isHeld());
        try {
            hold.release();
        } catch (HoldfastException e) {
            // Released by close(): it says so, or nothing.
        }
        assertEquals(State.RELEASED, hold.state());
    }

    @Test
    void badNamesAreRefused() {
        for (String bad : List.of("", "a\0b", "a\nb", "a\ud800", "x".repeat(256))) {
            HoldfastException e =
                    assertThrows(HoldfastException.class, () -> client.acquire(bad));
            assertEquals(-9, e.code(), e.getMessage());
        }
        client.acquire(Store.name("中文")).close();
    }

    @Test
    void aForgottenHoldIsReleased() {
        String name = Store.name("forgotten");
        client.acquire(name);
        while (!client.lock(name).tryLock()) {
            System.gc();
        }
        client.lock(name).unlock();
    }

    @Test
    void listsHolders() {
        assumeTrue(client.capabilities().contains(Capability.LIST));
        String name = Store.name("list");
        try (Hold hold = client.acquire(name, LockOptions.DEFAULT.note("a note"))) {
            LockInfo row = client.show(name).get(0);
            assertEquals(name, row.name());
            assertTrue(row.holder());
            assertEquals(hold.token(), row.token());
            assertTrue(client.list(name.substring(0, 8)).stream().anyMatch(r -> r.name().equals(name)));
        }
    }
}
