/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples.naive;

import java.util.List;
import java.util.concurrent.TimeUnit;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.params.SetParams;

/**
 * The lock of an article with a JedisPool: a waiter keeps its connection while it polls. Do not use
 * it; NaiveLockTest shows that as many waiters as the pool has connections keep the holder from
 * its unlock.
 */
public class PoolLock {
    private static final String DELETE_IF_MINE =
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1])"
                    + " else return 0 end";

    private final JedisPool pool;
    private final String key;

    public PoolLock(JedisPool pool, String key) {
        this.pool = pool;
        this.key = key;
    }

    public boolean lock(String id, long patienceMs) throws InterruptedException {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(patienceMs);
        try (var jedis = pool.getResource()) {
            while (jedis.set(key, id, new SetParams().nx().px(30_000)) == null) {
                if (System.nanoTime() > end) {
                    return false;
                }
                Thread.sleep(100);
            }
            return true;
        }
    }

    public boolean unlock(String id) {
        try (var jedis = pool.getResource()) {
            return jedis.eval(DELETE_IF_MINE, List.of(key), List.of(id)).equals(1L);
        }
    }
}
