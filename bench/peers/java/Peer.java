// SPDX-License-Identifier: MIT
//
// Peer.java - the locks of Redisson and Curator, for ./dev bench --peers.
//
//     java Peer rlock|rfair|mutex PORT
//
// "pair SECONDS" and "handover SECONDS" are answered by "SCENARIO rate p50_us
// p99_us". A hand-over is between two threads, each with a client of its own.

import java.util.Arrays;
import java.util.Scanner;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.ExponentialBackoffRetry;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Peer {
    private interface Call {
        void run() throws Exception;
    }

    private record Lock(Call acquire, Call release) {}

    private static Lock redisson(String kind, String port) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + port);
        RedissonClient client = Redisson.create(config);
        RLock lock = kind.equals("rfair") ? client.getFairLock("bench") : client.getLock("bench");
        return new Lock(lock::lock, lock::unlock);
    }

    private static Lock curator(String port) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(
            "127.0.0.1:" + port, new ExponentialBackoffRetry(100, 3));
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, "/bench");
        return new Lock(mutex::acquire, mutex::release);
    }

    private static final class Samples {
        private final long[] ns = new long[1 << 20];
        private int n;

        synchronized void add(long took) {
            if (n < ns.length)
                ns[n++] = took;
        }

        void print(String scenario, double seconds) {
            Arrays.sort(ns, 0, n);
            System.out.printf("%s %.1f %.2f %.2f%n", scenario, n / seconds,
                n == 0 ? seconds * 1e6 : ns[n / 2] / 1e3,
                n == 0 ? seconds * 1e6 : ns[(int) (n * 99L / 100)] / 1e3);
        }
    }

    private static void pair(Lock lock, double seconds, boolean print) throws Exception {
        Samples samples = new Samples();
        long now = System.nanoTime();
        long end = now + (long) (seconds * 1e9);
        while (now < end) {
            long before = now;
            lock.acquire.run();
            lock.release.run();
            now = System.nanoTime();
            samples.add(now - before);
        }
        if (print)
            samples.print("pair", seconds);
    }

    private static final Semaphore door = new Semaphore(0);
    private static volatile long releasedNs;
    private static volatile int last = -1;

    private static void takeTurns(Lock lock, int me, long end, Samples samples) {
        try {
            while (System.nanoTime() < end) {
                door.release();
                lock.acquire.run();
                long now = System.nanoTime();
                door.acquire();
                if (last == 1 - me)
                    samples.add(now - releasedNs);
                last = me;
                if (door.tryAcquire(end - now, TimeUnit.NANOSECONDS))
                    door.release(); // the other one has come
                releasedNs = System.nanoTime();
                lock.release.run();
            }
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static void handover(Lock[] locks, double seconds) throws Exception {
        Samples samples = new Samples();
        long end = System.nanoTime() + (long) (seconds * 1e9);
        Thread other = new Thread(() -> takeTurns(locks[1], 1, end, samples));
        last = -1;
        other.start();
        takeTurns(locks[0], 0, end, samples);
        other.join();
        samples.print("handover", seconds);
    }

    public static void main(String[] args) throws Exception {
        Lock[] locks = new Lock[2];
        for (int i = 0; i < 2; i++)
            locks[i] = args[0].equals("mutex") ? curator(args[1]) : redisson(args[0], args[1]);
        pair(locks[0], 4, false); // the compiler needs some thousand of them
        System.out.println("ready");
        Scanner in = new Scanner(System.in);
        while (in.hasNext()) {
            if (in.next().equals("pair"))
                pair(locks[0], in.nextDouble(), true);
            else
                handover(locks, in.nextDouble());
        }
        System.exit(0);
    }
}
