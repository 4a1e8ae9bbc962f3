/* SPDX-License-Identifier: MIT */

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Watcher.Event.EventType;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooKeeper;

/**
 * The recipes of articles on a ZooKeeper, and what goes wrong with them.
 *
 * <p>{@code java -cp zookeeper.jar Znode.java HOST:PORT SCENE}; prints what happened.
 */
public final class Znode {
    private static final int WAITERS = 10;
    private static final int SESSION_MS = 10_000;

    private static String servers;

    private Znode() {}

    public static void main(String[] args) throws Exception {
        servers = args[0];
        System.out.println(play(args[1]));
        System.out.flush();
        Runtime.getRuntime().halt(0); // as a process that dies: no session is closed
    }

    private static String play(String scene) throws Exception {
        switch (scene) {
            case "persistent":
                return persistent();
            case "herd":
                return herd();
            case "predecessor":
                return predecessor();
            case "expired":
                return expired();
            case "ten-minutes":
                return take(open(600_000), "/articles-ten", CreateMode.EPHEMERAL);
            case "ten-minutes-later":
                return take(open(SESSION_MS), "/articles-ten", CreateMode.EPHEMERAL);
            default:
                throw new IllegalArgumentException(scene);
        }
    }

    private static ZooKeeper open(int sessionMs) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk =
                new ZooKeeper(
                        servers,
                        sessionMs,
                        event -> {
                            if (event.getState() == KeeperState.SyncConnected) {
                                connected.countDown();
                            }
                        });
        connected.await();
        return zk;
    }

    private static String create(ZooKeeper zk, String path, CreateMode kind) throws Exception {
        return zk.create(path, new byte[0], Ids.OPEN_ACL_UNSAFE, kind);
    }

    private static String take(ZooKeeper zk, String path, CreateMode kind) throws Exception {
        try {
            create(zk, path, kind);
            return "taken";
        } catch (KeeperException.NodeExistsException refused) {
            return "refused";
        }
    }

    /** A node that does not end with the session of who created it. */
    private static String persistent() throws Exception {
        ZooKeeper a = open(SESSION_MS);
        create(a, "/articles-persistent", CreateMode.PERSISTENT);
        a.close(); // A is gone
        ZooKeeper b = open(SESSION_MS);
        String answer = take(b, "/articles-persistent", CreateMode.PERSISTENT);
        b.delete("/articles-persistent", -1);
        return answer;
    }

    /** One ephemeral node that everybody watches. */
    private static final class Herd {
        final AtomicInteger creates = new AtomicInteger();
        final AtomicInteger wakeUps = new AtomicInteger();
        final Semaphore waiting = new Semaphore(0);
        final CountDownLatch won = new CountDownLatch(1);

        void lock(ZooKeeper zk) {
            try {
                creates.incrementAndGet();
                while (take(zk, "/articles-herd", CreateMode.EPHEMERAL).equals("refused")) {
                    await(zk);
                    creates.incrementAndGet();
                }
                won.countDown();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }

        private void await(ZooKeeper zk) throws Exception {
            Semaphore gone = new Semaphore(0);
            if (zk.exists("/articles-herd", event -> wake(event.getType(), gone)) != null) {
                waiting.release();
                gone.acquire();
            }
        }

        private void wake(EventType type, Semaphore gone) {
            if (type == EventType.NodeDeleted) {
                wakeUps.incrementAndGet();
            }
            gone.release();
        }
    }

    private static String herd() throws Exception {
        Herd herd = new Herd();
        ZooKeeper holder = open(SESSION_MS);
        create(holder, "/articles-herd", CreateMode.EPHEMERAL);
        for (int i = 0; i < WAITERS; i++) {
            ZooKeeper zk = open(SESSION_MS);
            new Thread(() -> herd.lock(zk)).start();
        }
        herd.waiting.acquire(WAITERS);
        herd.creates.set(0);
        holder.delete("/articles-herd", -1); // one release
        herd.won.await();
        herd.waiting.acquire(WAITERS - 1); // all but one wait again
        return herd.wakeUps + " wake-ups, " + herd.creates + " creates";
    }

    /** A numbered node each; who sees the node before its own go believes that it is first. */
    private static String predecessor() throws Exception {
        ZooKeeper zk = open(SESSION_MS);
        create(zk, "/articles-line", CreateMode.CONTAINER);
        List<String> nodes = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            nodes.add(create(zk, "/articles-line/n-", CreateMode.EPHEMERAL_SEQUENTIAL));
        }
        CountDownLatch mine = new CountDownLatch(1);
        zk.exists(nodes.get(1), event -> mine.countDown()); // the third watches the second
        zk.delete(nodes.get(1), -1); // the second gives up
        mine.await();
        boolean firstIsThere = zk.exists(nodes.get(0), false) != null;
        return firstIsThere ? "the first and the third are inside" : "only the third is inside";
    }

    /** The server ends the session, as after a pause; the holder does not look. */
    private static String expired() throws Exception {
        ZooKeeper a = open(SESSION_MS);
        boolean held = take(a, "/articles-expired", CreateMode.EPHEMERAL).equals("taken");
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper same =
                new ZooKeeper(
                        servers,
                        SESSION_MS,
                        event -> connected.countDown(),
                        a.getSessionId(),
                        a.getSessionPasswd());
        connected.await();
        same.close(); // ends the session of A
        String other = take(open(SESSION_MS), "/articles-expired", CreateMode.EPHEMERAL);
        return "A believes " + held + ", B " + other;
    }
}
