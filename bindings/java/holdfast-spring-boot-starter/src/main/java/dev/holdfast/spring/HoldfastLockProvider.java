/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.Hold;
import dev.holdfast.HoldfastClient;
import dev.holdfast.LockBusyException;
import dev.holdfast.LockOptions;
import java.time.Duration;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;

/**
 * ShedLock's provider. {@code lockAtMostFor} is the longest hold: unlike a row with a time in it,
 * the lock of a process that dies is free when the lease ends, and one that runs is renewed.
 */
public class HoldfastLockProvider implements LockProvider {
    private final HoldfastClient client;

    public HoldfastLockProvider(HoldfastClient client) {
        this.client = client;
    }

    @Override
    public Optional<SimpleLock> lock(LockConfiguration configuration) {
        LockOptions options =
                LockOptions.DEFAULT
                        .waitFor(Duration.ZERO)
                        .maxHold(configuration.getLockAtMostFor());
        try {
            Hold hold = client.acquire(configuration.getName(), options);
            return Optional.of(() -> unlock(hold, configuration.getLockAtLeastUntil()));
        } catch (LockBusyException e) {
            return Optional.empty();
        }
    }

    /** A short task keeps the lock until its least time, so that no other node runs it again. */
    private static void unlock(Hold hold, Instant notBefore) {
        long ms = Duration.between(ClockProvider.now(), notBefore).toMillis();
        if (ms <= 0) {
            hold.release();
        } else {
            CompletableFuture.delayedExecutor(ms, TimeUnit.MILLISECONDS).execute(hold::release);
        }
    }
}
