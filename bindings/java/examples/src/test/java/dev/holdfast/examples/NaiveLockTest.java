/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.holdfast.HoldfastClient;
import dev.holdfast.HoldfastLock;
import dev.holdfast.LockOptions;
import dev.holdfast.examples.naive.PollingLock;
import dev.holdfast.examples.naive.PoolLock;
import dev.holdfast.examples.naive.WatchdogLock;
import java.net.URI;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.JedisPoolConfig;
import redis.clients.jedis.exceptions.JedisException;

/** What is wrong with the locks of the articles, and what ours does instead. Needs a Redis. */
@Timeout(120)
class NaiveLockTest {
    private static final LockOptions SHORT = LockOptions.DEFAULT.lease(Duration.ofMillis(600));

    private static JedisPool pool;
    private static HoldfastClient client;

    @BeforeAll
    static void open() {
        String url = System.getenv("HOLDFAST_TEST_URL");
        assumeTrue(url != null && url.startsWith("redis://"), "HOLDFAST_TEST_URL is no Redis");
        pool = new JedisPool(URI.create(url.replaceFirst("[?].*", "")));
        client = HoldfastClient.open(url);
    }

    @AfterAll
    static void close() {
        if (pool != null) {
            pool.close();
            client.close();
        }
    }

    private static <T> T elsewhere(java.util.concurrent.Callable<T> work) throws Exception {
        FutureTask<T> task = new FutureTask<>(work);
        new Thread(task).start();
        return task.get();
    }

    /** Another process would have its own object. */
    private static PollingLock another(String key) {
        return new PollingLock(pool, key, 60_000);
    }

    @Test
    void theFirstUnlockOfTwoFreesThePollingLock() throws Exception {
        PollingLock naive = new PollingLock(pool, "twice", 60_000);
        naive.lock();
        naive.lock();
        naive.unlock();
        assertTrue(another("twice").tryLock(), "two have it: the inner unlock freed it");

        HoldfastLock lock = client.lock("twice");
        lock.lock();
        lock.lock();
        lock.unlock();
        assertFalse(elsewhere(() -> client.lock("twice").tryLock()));
        lock.unlock();
    }

    @Test
    void workLongerThanTheLeaseIsNotProtected() throws Exception {
        PollingLock naive = new PollingLock(pool, "long", 200);
        naive.lock();
        PollingLock other = another("long");
        other.lock();
        assertTrue(naive.isMine() && other.isMine(), "both believe that they have it");

        HoldfastLock lock = client.lock("long", SHORT);
        lock.lock();
        assertFalse(
                elsewhere(() -> client.lock("long").tryLock(2, TimeUnit.SECONDS)),
                "three leases long");
        assertTrue(lock.isHeldByCurrentThread());
        lock.unlock();
    }

    @Test
    void oneFailedRenewalEndsTheWatchdogInSilence() throws Exception {
        WatchdogLock naive = new WatchdogLock(pool, "dog", 600);
        naive.lock();
        try (var jedis = pool.getResource()) {
            // What a restart or a failover does to a client: one answer is an error.
            jedis.sendCommand(() -> "ACL".getBytes(), "SETUSER", "default", "-eval");
            naive.awaitEndOfDog();
            jedis.sendCommand(() -> "ACL".getBytes(), "SETUSER", "default", "+eval");
        }
        another("dog").lock();
        assertTrue(naive.isMine(), "it still believes that it has the lock");
    }

    private static JedisPool newSmallPool() {
        JedisPoolConfig two = new JedisPoolConfig();
        two.setMaxTotal(2);
        two.setMaxWait(Duration.ofMillis(200));
        String url = System.getenv("HOLDFAST_TEST_URL");
        return new JedisPool(two, URI.create(url.replaceFirst("[?].*", "")));
    }

    @Test
    void waitersTakeTheConnectionThatTheHolderNeeds() throws Exception {
        FutureTask<Boolean> waiter;
        try (JedisPool small = newSmallPool()) {
            PoolLock naive = new PoolLock(small, "pool");
            naive.lock("holder", 0);
            waiter = new FutureTask<>(() -> naive.lock("one", 2_000));
            new Thread(waiter).start();
            FutureTask<Boolean> other = new FutureTask<>(() -> naive.lock("two", 2_000));
            new Thread(other).start();
            while (small.getNumActive() < 2) {
                Thread.onSpinWait();
            }
            assertThrows(
                    JedisException.class, () -> naive.unlock("holder"), "it cannot unlock");
            assertFalse(waiter.get() || other.get(), "they waited for a lock that nobody used");
        }

        HoldfastLock lock = client.lock("pool");
        lock.lock();
        waiter = new FutureTask<>(() -> client.lock("pool").tryLock(60, TimeUnit.SECONDS));
        new Thread(waiter).start();
        while (!isWaiting()) {
            Thread.onSpinWait();
        }
        lock.unlock();
        assertTrue(waiter.get(), "one connection carries the waiters and the release");
    }

    @Test
    void aLostLockIsTold() throws Exception {
        CountDownLatch told = new CountDownLatch(1);
        HoldfastLock lock = client.lock("told", SHORT);
        lock.lock();
        lock.onLost(hold -> told.countDown());
        client.breakLock("told", lock.token());
        told.await();
        assertFalse(lock.isHeldByCurrentThread());
    }

    @Test
    void aSleepOf100MsIsLongerThanAWakeUp() throws Exception {
        PollingLock naive = new PollingLock(pool, "sleep", 60_000);
        long slow = Long.MAX_VALUE;
        long fast = Long.MAX_VALUE;
        for (int i = 0; i < 5; i++) {
            slow =
                    Math.min(
                            slow,
                            handOver(
                                    naive::lock,
                                    naive::unlock,
                                    waiter -> waiter.getState() == Thread.State.TIMED_WAITING));
            HoldfastLock lock = client.lock("sleep");
            fast =
                    Math.min(
                            fast,
                            handOver(
                                    lock::lock,
                                    lock::unlock,
                                    waiter -> isWaiting()));
        }
        assertTrue(fast < slow, "ours " + fast + " ns, naive " + slow + " ns");
    }

    private interface Step {
        void run() throws Exception;
    }

    private static boolean isWaiting() {
        return client.metrics()
                .lines()
                .anyMatch(line -> line.startsWith("holdfast_waiting{") && !line.endsWith(" 0"));
    }

    /** How long after an unlock a waiter, that waits already, has the lock. */
    private static long handOver(Step lock, Step unlock, Predicate<Thread> waits)
            throws Exception {
        lock.run();
        FutureTask<Long> waiter =
                new FutureTask<>(
                        () -> {
                            lock.run();
                            long now = System.nanoTime();
                            unlock.run();
                            return now;
                        });
        Thread thread = new Thread(waiter);
        thread.start();
        while (!waits.test(thread)) {
            Thread.onSpinWait();
        }
        long begin = System.nanoTime();
        unlock.run();
        return waiter.get() - begin;
    }
}
