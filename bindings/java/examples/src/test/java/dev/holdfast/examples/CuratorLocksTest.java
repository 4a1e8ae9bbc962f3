/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples;

import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.holdfast.DeadlockException;
import dev.holdfast.HoldfastClient;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.retry.RetryOneTime;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Where a thread waits for itself with Curator's locks, and what ours say. Needs a ZooKeeper. */
@Timeout(120)
class CuratorLocksTest {
    private static CuratorFramework curator;
    private static HoldfastClient client;

    @BeforeAll
    static void open() {
        String url = System.getenv("HOLDFAST_TEST_URL");
        assumeTrue(url != null && url.startsWith("zk://"), "HOLDFAST_TEST_URL is no ZooKeeper");
        String servers = url.replaceFirst("zk://", "").replaceFirst("/.*", "");
        curator = CuratorFrameworkFactory.newClient(servers, new RetryOneTime(100));
        curator.start();
        client = HoldfastClient.open(url);
    }

    @AfterAll
    static void close() {
        if (curator != null) {
            client.close();
            curator.close();
        }
    }

    @Test
    void aSemaphoreMutexTakenTwiceWaitsForItself() throws Exception {
        var mutex = new InterProcessSemaphoreMutex(curator, "/naive/twice");
        mutex.acquire();
        assertFalse(mutex.acquire(1, TimeUnit.SECONDS), "acquire() would wait for ever");
        mutex.release();

        var lock = client.lock("twice");
        lock.lock();
        assertTrue(lock.tryLock(), "the thread that holds it goes in");
        lock.unlock();
        lock.unlock();
    }

    @Test
    void aReaderThatAsksToWriteWaitsForItself() throws Exception {
        var curators = new InterProcessReadWriteLock(curator, "/naive/upgrade");
        curators.readLock().acquire();
        assertFalse(
                curators.writeLock().acquire(1, TimeUnit.SECONDS),
                "acquire() would wait for ever");
        curators.readLock().release();

        var ours = client.readWriteLock("upgrade");
        ours.readLock().lock();
        assertThrows(DeadlockException.class, () -> ours.writeLock().lock());
        ours.readLock().unlock();
    }
}
