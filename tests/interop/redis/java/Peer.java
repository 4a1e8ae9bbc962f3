// SPDX-License-Identifier: MIT
//
// Peer.java - a Redisson client that does what it is told, line by line.
//
//     java Peer PORT WATCHDOG_MS             "cluster:PORT": a node of a cluster
//
// "THREAD lock KIND NAME LEASE_MS WAIT_MS"   → "THREAD ok [TOKEN]", "THREAD busy"
// "THREAD unlock KIND NAME"                  → "THREAD ok", "THREAD lost"
// "THREAD permits KIND NAME COUNT"           → "THREAD ok"
//
// Each thread is a thread: to Redisson it is an owner. LEASE_MS -1 is Redisson's
// watchdog; WAIT_MS 0 tries once.

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

public final class Peer {
    private static final Map<String, String> permits = new HashMap<>();
    private static RedissonClient redisson;

    public static void main(String[] args) throws Exception {
        Config config = new Config();
        config.setThreads(4).setNettyThreads(4);
        config.setLockWatchdogTimeout(Long.parseLong(args[1]));
        connectTo(config, args[0]);
        redisson = Redisson.create(config);
        Orders.obey(Peer::carryOut);
    }

    private static void connectTo(Config config, String server) {
        if (server.startsWith("cluster:"))
            config.useClusterServers()
                .addNodeAddress("redis://127.0.0.1:" + server.substring(8))
                .setMasterConnectionMinimumIdleSize(1)
                .setMasterConnectionPoolSize(8)
                .setSlaveConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionMinimumIdleSize(1);
        else
            config.useSingleServer()
                .setAddress("redis://127.0.0.1:" + server)
                .setConnectionMinimumIdleSize(1)
                .setConnectionPoolSize(8)
                .setSubscriptionConnectionMinimumIdleSize(1);
    }

    private static String carryOut(String[] words) throws Exception {
        String kind = words[2];
        String name = words[3];
        switch (words[1]) {
            case "lock":
                return lock(words[0], kind, name, Long.parseLong(words[4]), Long.parseLong(words[5]));
            case "unlock":
                return unlock(words[0], kind, name);
            case "permits":
                if (kind.equals("permits"))
                    redisson.getPermitExpirableSemaphore(name).trySetPermits(Integer.parseInt(words[4]));
                else
                    redisson.getSemaphore(name).trySetPermits(Integer.parseInt(words[4]));
                return "ok";
            default:
                return "what?";
        }
    }

    private static RLock lockOf(String kind, String name) {
        switch (kind) {
            case "fair":
                return redisson.getFairLock(name);
            case "read":
                return redisson.getReadWriteLock(name).readLock();
            case "write":
                return redisson.getReadWriteLock(name).writeLock();
            case "fenced":
                return redisson.getFencedLock(name);
            default:
                return redisson.getLock(name);
        }
    }

    private static String lock(String thread, String kind, String name, long lease, long wait)
        throws InterruptedException {
        switch (kind) {
            case "semaphore":
                return redisson.getSemaphore(name).tryAcquire(1, wait, TimeUnit.MILLISECONDS) ? "ok" : "busy";
            case "permits":
                String permit = redisson.getPermitExpirableSemaphore(name)
                    .tryAcquire(wait, lease, TimeUnit.MILLISECONDS);
                permits.put(thread + name, permit);
                return permit != null ? "ok" : "busy";
            case "fenced":
                Long token = redisson.getFencedLock(name).tryLockAndGetToken(wait, lease, TimeUnit.MILLISECONDS);
                return token != null ? "ok " + token : "busy";
            default:
                return lockOf(kind, name).tryLock(wait, lease, TimeUnit.MILLISECONDS) ? "ok" : "busy";
        }
    }

    private static String unlock(String thread, String kind, String name) {
        switch (kind) {
            case "semaphore":
                redisson.getSemaphore(name).release();
                return "ok";
            case "permits":
                return redisson.getPermitExpirableSemaphore(name).tryRelease(permits.remove(thread + name))
                    ? "ok" : "lost";
            default:
                try {
                    lockOf(kind, name).unlock();
                    return "ok";
                } catch (IllegalMonitorStateException e) {
                    return "lost";
                }
        }
    }
}
