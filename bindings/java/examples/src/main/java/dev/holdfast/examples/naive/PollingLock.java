/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples.naive;

import java.util.List;
import java.util.UUID;
import redis.clients.jedis.JedisPool;
import redis.clients.jedis.params.SetParams;

/**
 * The lock of many articles: SET NX PX with a random value, a script that deletes it, and a field
 * that remembers the thread. Do not use it; NaiveLockTest shows what goes wrong:
 *
 * <ul>
 *   <li>the lease ends while the work goes on, and nobody is told;
 *   <li>the field says who owns it, but does not count: the first unlock of two frees it;
 *   <li>a waiter sleeps 100 ms, so a free lock stays unused.
 * </ul>
 */
public class PollingLock {
    private static final String DELETE_IF_MINE =
            "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1])"
                    + " else return 0 end";

    private final ThreadLocal<String> value = new ThreadLocal<>();
    private volatile Thread owner;

    final JedisPool pool;
    final String key;
    final long leaseMs;

    public PollingLock(JedisPool pool, String key, long leaseMs) {
        this.pool = pool;
        this.key = key;
        this.leaseMs = leaseMs;
    }

    public void lock() throws InterruptedException {
        while (!tryLock()) {
            Thread.sleep(100);
        }
    }

    public boolean tryLock() {
        if (owner == Thread.currentThread()) {
            return true;
        }
        String mine = UUID.randomUUID().toString();
        try (var jedis = pool.getResource()) {
            synchronized (this) {
                if (owner != null
                        || jedis.set(key, mine, new SetParams().nx().px(leaseMs)) == null) {
                    return false;
                }
                value.set(mine);
                owner = Thread.currentThread();
            }
        }
        taken(mine);
        return true;
    }

    /** For a watchdog. */
    void taken(String mine) {}

    public void unlock() {
        if (owner != Thread.currentThread()) {
            throw new IllegalMonitorStateException();
        }
        try (var jedis = pool.getResource()) {
            jedis.eval(DELETE_IF_MINE, List.of(key), List.of(value.get()));
        } finally {
            value.remove();
            owner = null;
        }
    }

    /** What the program believes. */
    public boolean isMine() {
        return owner == Thread.currentThread();
    }
}
