/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.holdfast.HoldfastClient;
import dev.holdfast.LockTimeoutException;
import dev.holdfast.examples.naive.ZookeeperLock;
import dev.holdfast.examples.naive.ZookeeperLockAspect;
import dev.holdfast.spring.Locked;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.core.env.MapPropertySource;

/** What is wrong with the articles' annotation, and what ours does. Needs a ZooKeeper. */
@Timeout(120)
class AnnotationTest {
    /** What is called under a lock. */
    public interface Shop {
        @ZookeeperLock(lockName = "ship", requireTime = 1)
        void ship(Runnable work);

        @ZookeeperLock(lockName = "pack", requireTime = 1)
        void pack(Runnable work);

        @ZookeeperLock(lockName = "bill", requireTime = 1)
        void bill(Runnable work);
    }

    /** Runs what it is given. */
    public static class PlainShop implements Shop {
        @Override
        public void ship(Runnable work) {
            work.run();
        }

        @Override
        public void pack(Runnable work) {
            work.run();
        }

        @Override
        public void bill(Runnable work) {
            work.run();
        }
    }

    /** The same with our annotation. */
    public static class LockedShop {
        @Locked(name = "ship", waitFor = "1s")
        public void ship(Runnable work) {
            work.run();
        }

        @Locked(name = "pack", waitFor = "1s")
        public void pack(Runnable work) {
            work.run();
        }

        @Locked(name = "bill", waitFor = "1s")
        public void bill(Runnable work) {
            work.run();
        }
    }

    @EnableAutoConfiguration
    static class Application {}

    /** A call that stays inside until it is told to leave. */
    private static final class Guest implements Runnable {
        final CountDownLatch entered = new CountDownLatch(1);
        final CountDownLatch leave = new CountDownLatch(1);

        @Override
        public void run() {
            entered.countDown();
            try {
                leave.await();
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
    }

    private static CuratorFramework curator;
    private static Shop naive;
    private static AnnotationConfigApplicationContext context;
    private static LockedShop ours;

    @BeforeAll
    static void open() {
        String url = System.getenv("HOLDFAST_TEST_URL");
        assumeTrue(url != null && url.startsWith("zk://"), "HOLDFAST_TEST_URL is no ZooKeeper");
        curator = newCurator(url.replaceFirst("zk://", "").replaceFirst("/.*", ""));
        naive = ZookeeperLockAspect.around(Shop.class, new PlainShop(), curator);
        context = new AnnotationConfigApplicationContext();
        context.getEnvironment()
                .getPropertySources()
                .addFirst(new MapPropertySource("test", Map.of("holdfast.url", url)));
        context.register(Application.class, LockedShop.class);
        context.refresh();
        ours = context.getBean(LockedShop.class);
    }

    private static CuratorFramework newCurator(String servers) {
        CuratorFramework made = CuratorFrameworkFactory.newClient(servers, new RetryOneTime(100));
        made.start();
        return made;
    }

    @AfterAll
    static void close() {
        if (curator != null) {
            context.close();
            curator.close();
        }
    }

    private static FutureTask<Void> start(Runnable work) {
        FutureTask<Void> task = new FutureTask<>(work, null);
        new Thread(task).start();
        return task;
    }

    @Test
    void afterRequireTimeTheMethodRunsWithoutTheLock() throws Exception {
        AtomicInteger ran = new AtomicInteger();
        Guest first = new Guest();
        FutureTask<Void> inside = start(() -> naive.ship(first));
        first.entered.await();
        // The second one's own release throws; its work is done by then.
        assertThrows(RuntimeException.class, () -> naive.ship(ran::incrementAndGet));
        assertEquals(1, ran.get(), "two were inside");
        assertEquals(1, first.leave.getCount());
        first.leave.countDown();
        assertThrows(ExecutionException.class, inside::get, "the field has the second's lock");

        Guest holder = new Guest();
        inside = start(() -> ours.ship(holder));
        holder.entered.await();
        assertThrows(LockTimeoutException.class, () -> ours.ship(ran::incrementAndGet));
        assertEquals(1, ran.get(), "it did not run without the lock");
        holder.leave.countDown();
        inside.get();
    }

    @Test
    void theFieldIsReleasedThatTheLastCallLeftThere() throws Exception {
        Guest guest = new Guest();
        FutureTask<Void> inside = start(() -> naive.pack(guest));
        guest.entered.await();
        naive.bill(() -> {});
        guest.leave.countDown();
        Throwable why = assertThrows(ExecutionException.class, inside::get).getCause();
        assertInstanceOf(
                IllegalMonitorStateException.class,
                why instanceof java.lang.reflect.UndeclaredThrowableException
                        ? why.getCause()
                        : why,
                "pack released the lock of bill");
        assertFalse(
                new InterProcessMutex(curator, "/naive/pack").acquire(0, TimeUnit.SECONDS),
                "nobody is inside, and pack stays locked");

        Guest holder = new Guest();
        inside = start(() -> ours.pack(holder));
        holder.entered.await();
        ours.bill(() -> {});
        holder.leave.countDown();
        inside.get();
        HoldfastClient client = context.getBean(HoldfastClient.class);
        var lock = client.lock("pack");
        assertTrue(lock.tryLock());
        lock.unlock();
    }
}
