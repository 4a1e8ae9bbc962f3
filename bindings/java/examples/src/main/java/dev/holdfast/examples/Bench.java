/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples;

import dev.holdfast.HoldfastClient;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.Lock;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryForever;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/**
 * Pairs of lock and unlock, and hand-overs between two clients, on one server: ours beside
 * Redisson's RLock or Curator's InterProcessMutex, in turns. {@code ./dev java bench} runs it.
 */
public final class Bench {
    private static final int ROUNDS = 5;
    private static final long ROUND_NS = 1_000_000_000;

    private interface Locker extends AutoCloseable {
        void lock() throws Exception;

        void unlock() throws Exception;

        @Override
        void close();
    }

    private interface Maker {
        Locker make(String name) throws Exception;
    }

    private Bench() {}

    public static void main(String[] args) throws Exception {
        String url = args[0];
        String peer = url.startsWith("redis") ? "redisson" : url.startsWith("zk") ? "curator" : null;
        compare("pair", url, peer, Bench::pairs);
        if (peer != null) {
            compare("hand-over", url, peer, Bench::handOvers);
        }
    }

    private interface Measure {
        double perSecond(Maker maker) throws Exception;
    }

    private static void compare(String what, String url, String peer, Measure measure)
            throws Exception {
        List<Double> ours = new ArrayList<>();
        List<Double> theirs = new ArrayList<>();
        for (int round = 0; round < ROUNDS; round++) {
            ours.add(measure.perSecond(name -> holdfast(url, name)));
            if (peer != null) {
                theirs.add(measure.perSecond(name -> peer(peer, url, name)));
            }
        }
        double own = median(ours);
        System.out.printf(Locale.ROOT, "%-10s holdfast %10.0f /s", what, own);
        if (peer != null) {
            double other = median(theirs);
            System.out.printf(
                    Locale.ROOT, "   %s %10.0f /s   ratio %.2f", peer, other, own / other);
        }
        System.out.println();
    }

    private static double median(List<Double> values) {
        double[] sorted = values.stream().mapToDouble(Double::doubleValue).sorted().toArray();
        return sorted[sorted.length / 2];
    }

    private static double pairs(Maker maker) throws Exception {
        try (Locker locker = maker.make("bench-pair")) {
            long count = 0;
            long begin = System.nanoTime();
            while (System.nanoTime() - begin < ROUND_NS) {
                locker.lock();
                locker.unlock();
                count++;
            }
            return 1e9 * count / (System.nanoTime() - begin);
        }
    }

    /** Two clients that take turns: each lock waits for the other's unlock. */
    private static double handOvers(Maker maker) throws Exception {
        long[] counts = new long[2];
        CountDownLatch ready = new CountDownLatch(2);
        Thread[] threads = new Thread[2];
        for (int i = 0; i < 2; i++) {
            int me = i;
            threads[i] =
                    new Thread(
                            () -> {
                                try (Locker locker = maker.make("bench-hand-over")) {
                                    ready.countDown();
                                    ready.await();
                                    long stop = System.nanoTime() + ROUND_NS;
                                    while (System.nanoTime() < stop) {
                                        locker.lock();
                                        counts[me]++;
                                        locker.unlock();
                                    }
                                } catch (Exception e) {
                                    throw new IllegalStateException(e);
                                }
                            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        // Who holds it often in a row makes no hand-over: twice the smaller count.
        return 2e9 * Arrays.stream(counts).min().orElse(0) / ROUND_NS;
    }

    private static Locker locker(Lock lock, Runnable close) {
        return new Locker() {
            @Override
            public void lock() {
                lock.lock();
            }

            @Override
            public void unlock() {
                lock.unlock();
            }

            @Override
            public void close() {
                close.run();
            }
        };
    }

    private static Locker holdfast(String url, String name) {
        HoldfastClient client = HoldfastClient.open(url);
        var lock = client.lock(name);
        return locker(lock, client::close);
    }

    private static Locker peer(String peer, String url, String name) {
        return peer.equals("redisson") ? redisson(url, name) : curator(url, name);
    }

    private static Locker redisson(String url, String name) {
        Config config = new Config();
        config.useSingleServer().setAddress(url.replaceFirst("[?].*", ""));
        RedissonClient client = Redisson.create(config);
        RLock lock = client.getLock("redisson-" + name);
        return locker(lock, client::shutdown);
    }

    private static Locker curator(String url, String name) {
        String hosts = url.replaceFirst("zk://", "").replaceFirst("/.*", "");
        CuratorFramework client = CuratorFrameworkFactory.newClient(hosts, new RetryForever(100));
        client.start();
        InterProcessMutex lock = new InterProcessMutex(client, "/curator-" + name);
        return new Locker() {
            @Override
            public void lock() throws Exception {
                lock.acquire();
            }

            @Override
            public void unlock() throws Exception {
                lock.release();
            }

            @Override
            public void close() {
                client.close();
            }
        };
    }
}
