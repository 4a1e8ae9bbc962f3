/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Virtual threads, where this Java has them: each is an owner, and none blocks its carrier. */
@Timeout(120)
class VirtualThreadTest {
    private static Method start;

    @BeforeAll
    static void needsJava21() {
        try {
            start = Thread.class.getMethod("startVirtualThread", Runnable.class);
        } catch (NoSuchMethodException e) {
            Assumptions.abort("this Java has no virtual threads");
        }
    }

    private static Thread start(Runnable task) throws ReflectiveOperationException {
        return (Thread) start.invoke(null, task);
    }

    @Test
    void eachIsAnOwner() throws Exception {
        String name = Store.name("virtual");
        int[] count = {0};
        List<Thread> threads = new ArrayList<>();
        try (HoldfastClient client = Store.open()) {
            for (int i = 0; i < 200; i++) {
                threads.add(
                        start(
                                () -> {
                                    HoldfastLock lock = client.lock(name);
                                    lock.lock();
                                    lock.lock();
                                    count[0]++;
                                    lock.unlock();
                                    lock.unlock();
                                }));
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        assertEquals(200, count[0]);
    }

    @Test
    void manyMayWaitAtOnce() throws Exception {
        String name = Store.name("crowd");
        try (HoldfastClient client = Store.open()) {
            HoldfastLock lock = client.lock(name);
            lock.lock();
            List<Thread> waiters = new ArrayList<>();
            for (int i = 0; i < 100; i++) {
                waiters.add(
                        start(
                                () -> {
                                    client.lock(name).lock();
                                    client.lock(name).unlock();
                                }));
            }
            // More waiters than carriers: one that runs shows that they are not blocked.
            CountDownLatch ran = new CountDownLatch(1);
            start(ran::countDown);
            assertTrue(ran.await(60, TimeUnit.SECONDS));
            lock.unlock();
            for (Thread waiter : waiters) {
                waiter.join();
            }
        }
    }

    @Test
    void anInterruptEndsTheWait() throws Exception {
        String name = Store.name("virtual-interrupt");
        AtomicBoolean interrupted = new AtomicBoolean();
        try (HoldfastClient client = Store.open()) {
            client.lock(name).lock();
            Thread waiter =
                    start(
                            () -> {
                                try {
                                    client.lock(name).tryLock(1, TimeUnit.HOURS);
                                } catch (InterruptedException e) {
                                    interrupted.set(true);
                                }
                            });
            waiter.interrupt();
            waiter.join();
            assertTrue(interrupted.get());
            client.lock(name).unlock();
            assertFalse(client.lock(name).isHeldByCurrentThread());
        }
    }
}
