/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples;

import dev.holdfast.HoldfastClient;
import dev.holdfast.HoldfastLock;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;

/** The code of docs/guide/java.md; tests/docs compares it. */
public final class Guide {
    private Guide() {}

    public static void main(String[] args) throws InterruptedException {
        try (HoldfastClient client = HoldfastClient.open(args.length > 0 ? args[0] : "local:")) {
            shipOnce(client);
            report(client);
        }
    }

    private static void shipOnce(HoldfastClient client) throws InterruptedException {
        Lock lock = client.lock("order:7");
        if (lock.tryLock(5, TimeUnit.SECONDS)) {
            try {
                ship(7);
            } finally {
                lock.unlock();
            }
        }
    }

    private static void report(HoldfastClient client) {
        HoldfastLock lock = client.lock("nightly-report");
        lock.lock();
        lock.onLost(hold -> stopWriting());
        lock.unlock();
    }

    private static void ship(int id) {
        System.out.println("shipped " + id);
    }

    private static void stopWriting() {}
}
