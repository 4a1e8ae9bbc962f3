// SPDX-License-Identifier: MIT
//
// Peer.java - a Curator client that does what it is told, line by line.
//
//     java Peer PORT
//
// "THREAD lock KIND PATH WAIT_MS"   → "THREAD ok", "THREAD busy"
// "THREAD unlock KIND PATH"         → "THREAD ok"
//
// KIND is mutex, read, write, latch or semaphoreN (of N leases). Each thread is a thread: to Curator it is
// an owner. WAIT_MS 0 tries once.

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.retry.ExponentialBackoffRetry;

public final class Peer {
    private static final Map<String, InterProcessMutex> mutexes = new ConcurrentHashMap<>();
    private static final Map<String, InterProcessReadWriteLock> pairs = new ConcurrentHashMap<>();
    private static final Map<String, LeaderLatch> latches = new ConcurrentHashMap<>();
    private static final Map<String, Lease> leases = new ConcurrentHashMap<>();
    private static CuratorFramework client;

    public static void main(String[] args) throws Exception {
        client = CuratorFrameworkFactory.newClient(
            "127.0.0.1:" + args[0], 2000, 5000, new ExponentialBackoffRetry(50, 5));
        client.start();
        if (!client.blockUntilConnected(20, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not connected");
        }
        Orders.obey(Peer::carryOut);
    }

    private static String carryOut(String[] words) throws Exception {
        if (words[1].equals("lock")) {
            return lock(words[0], words[2], words[3], Long.parseLong(words[4]))
                ? "ok" : "busy";
        }
        unlock(words[0], words[2], words[3]);
        return "ok";
    }

    private static InterProcessMutex mutex(String kind, String path) {
        InterProcessReadWriteLock pair;
        switch (kind) {
        case "mutex":
            return mutexes.computeIfAbsent(path, p -> new InterProcessMutex(client, p));
        case "read":
            pair = pairs.computeIfAbsent(path, p -> new InterProcessReadWriteLock(client, p));
            return pair.readLock();
        case "write":
            pair = pairs.computeIfAbsent(path, p -> new InterProcessReadWriteLock(client, p));
            return pair.writeLock();
        default:
            throw new IllegalArgumentException(kind);
        }
    }

    private static boolean lock(String thread, String kind, String path, long waitMs)
        throws Exception {
        if (kind.startsWith("semaphore")) {
            int most = Integer.parseInt(kind.substring(9));
            Lease lease = new InterProcessSemaphoreV2(client, path, most)
                .acquire(waitMs, TimeUnit.MILLISECONDS);
            if (lease != null) {
                leases.put(thread + path, lease);
            }
            return lease != null;
        }
        if (!kind.equals("latch")) {
            return mutex(kind, path).acquire(waitMs, TimeUnit.MILLISECONDS);
        }
        LeaderLatch latch = new LeaderLatch(client, path, thread);
        latch.start();
        if (latch.await(waitMs, TimeUnit.MILLISECONDS)) {
            latches.put(thread + path, latch);
            return true;
        }
        latch.close();
        return false;
    }

    private static void unlock(String thread, String kind, String path) throws Exception {
        if (kind.startsWith("semaphore")) {
            leases.remove(thread + path).close();
        } else if (kind.equals("latch")) {
            latches.remove(thread + path).close();
        } else {
            mutex(kind, path).release();
        }
    }
}
