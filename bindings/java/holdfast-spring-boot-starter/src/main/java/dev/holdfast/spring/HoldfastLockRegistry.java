/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.HoldfastClient;
import java.util.concurrent.locks.Lock;
import org.springframework.integration.support.locks.LockRegistry;

/** Spring Integration's registry: a key is a name. */
public class HoldfastLockRegistry implements LockRegistry {
    private final HoldfastClient client;

    public HoldfastLockRegistry(HoldfastClient client) {
        this.client = client;
    }

    @Override
    public Lock obtain(Object lockKey) {
        return client.lock(lockKey.toString());
    }
}
