/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples.naive;

import java.util.List;
import java.util.concurrent.CountDownLatch;
import redis.clients.jedis.JedisPool;

/**
 * The same with a thread that renews the lease. One exception ends that thread; then the lease ends
 * too, and nobody is told.
 */
public final class WatchdogLock extends PollingLock {
    private static final String RENEW_IF_MINE =
            "if redis.call('get', KEYS[1]) == ARGV[1] then"
                    + " return redis.call('pexpire', KEYS[1], ARGV[2]) else return 0 end";

    private Thread dog;
    private final CountDownLatch dogEnded = new CountDownLatch(1);

    public WatchdogLock(JedisPool pool, String key, long leaseMs) {
        super(pool, key, leaseMs);
    }

    @Override
    void taken(String mine) {
        dog = new Thread(() -> watch(mine), "watchdog");
        dog.setDaemon(true);
        dog.setUncaughtExceptionHandler((thread, error) -> {});
        dog.start();
    }

    private void watch(String mine) {
        try {
            boolean renewed = true;
            while (renewed) {
                Thread.sleep(leaseMs / 3);
                try (var jedis = pool.getResource()) {
                    Object done =
                            jedis.eval(
                                    RENEW_IF_MINE,
                                    List.of(key),
                                    List.of(mine, Long.toString(leaseMs)));
                    renewed = Long.valueOf(1).equals(done);
                }
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } finally {
            dogEnded.countDown();
        }
    }

    /** For the test: until the watchdog is gone. */
    public void awaitEndOfDog() throws InterruptedException {
        dogEnded.await();
    }
}
