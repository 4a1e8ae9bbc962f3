/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.holdfast.ClientClosedException;
import dev.holdfast.Hold;
import dev.holdfast.HoldfastClient;
import dev.holdfast.LockBusyException;
import dev.holdfast.LockOptions;
import dev.holdfast.LockTimeoutException;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import java.time.Duration;
import java.time.Instant;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.Lock;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.actuate.health.Status;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.integration.support.locks.LockRegistry;
import reactor.core.publisher.Mono;

/** The starter's beans, in one process. */
@Timeout(120)
class StarterTest {
    private final ApplicationContextRunner runner =
            new ApplicationContextRunner()
                    .withConfiguration(
                            AutoConfigurations.of(
                                    AopAutoConfiguration.class, HoldfastAutoConfiguration.class))
                    .withBean(Orders.class)
                    .withPropertyValues("holdfast.url=" + Stores.testUrl());

    private static Hold holdOf(HoldfastClient client, String name) {
        return client.acquire(name, LockOptions.DEFAULT);
    }

    @Test
    void aMethodWithoutNameLocksItsPath() {
        runner.run(
                context -> {
                    Orders orders = context.getBean(Orders.class);
                    HoldfastClient client = context.getBean(HoldfastClient.class);
                    assertEquals("done", orders.withoutName());
                    try (Hold hold = holdOf(client, Orders.class.getName() + ".withoutName")) {
                        assertTrue(hold.isHeld());
                    }
                });
    }

    @Test
    void aNameIsConfigured() {
        runner.withPropertyValues("holdfast.locks.configured.wait=10ms")
                .run(
                        context -> {
                            Orders orders = context.getBean(Orders.class);
                            HoldfastClient client = context.getBean(HoldfastClient.class);
                            try (Hold hold = holdOf(client, "configured")) {
                                assertThrows(LockTimeoutException.class, orders::configured);
                            }
                            assertEquals("done", orders.configured());
                        });
    }

    @Test
    void aMistakeInAFileEndsTheStart() {
        runner.withPropertyValues("holdfast.ulr=local:")
                .run(context -> assertNotNull(context.getStartupFailure()));
        runner.withPropertyValues("holdfast.options.tttl=10s")
                .run(
                        context -> {
                            Throwable failure = context.getStartupFailure();
                            assertNotNull(failure);
                            while (failure.getCause() != null) {
                                failure = failure.getCause();
                            }
                            assertTrue(failure.getMessage().contains("tttl"), failure.getMessage());
                        });
    }

    @Test
    void slotsAdmitSoMany() {
        runner.run(
                context -> {
                    Orders orders = context.getBean(Orders.class);
                    String inner =
                            orders.inSlot(
                                    () ->
                                            orders.inSlot(
                                                    () ->
                                                            assertThrows(
                                                                    LockBusyException.class,
                                                                    () -> orders.inSlot(() -> {}))));
                    assertEquals("done", inner);
                });
    }

    @Test
    void aFutureHoldsTheLockUntilItCompletes() {
        runner.run(
                context -> {
                    Orders orders = context.getBean(Orders.class);
                    CompletableFuture<String> until = new CompletableFuture<>();
                    CompletableFuture<String> first = orders.later(until);
                    CompletionException busy =
                            assertThrows(
                                    CompletionException.class,
                                    () -> orders.later(new CompletableFuture<>()).join());
                    assertInstanceOf(LockBusyException.class, busy.getCause());
                    until.complete("done");
                    assertEquals("done", first.join());
                    assertEquals("again", orders.later(CompletableFuture.completedFuture("again")).join());
                });
    }

    @Test
    void aMonoHoldsTheLockWhileItIsSubscribed() {
        runner.run(
                context -> {
                    Orders orders = context.getBean(Orders.class);
                    CompletableFuture<String> until = new CompletableFuture<>();
                    CompletableFuture<String> first =
                            orders.reactive(Mono.fromFuture(until)).toFuture();
                    HoldfastClient client = context.getBean(HoldfastClient.class);
                    Lock lock = client.lock("reactive");
                    while (lock.tryLock()) {
                        lock.unlock();
                    }
                    assertNull(orders.reactive(Mono.just("second")).block());
                    until.complete("done");
                    assertEquals("done", first.join());
                    assertEquals("third", orders.reactive(Mono.just("third")).block());
                });
    }

    @Test
    void anExceptionReleases() {
        runner.run(
                context -> {
                    Orders orders = context.getBean(Orders.class);
                    assertThrows(IllegalStateException.class, orders::fails);
                    assertThrows(IllegalStateException.class, orders::fails);
                });
    }

    @Test
    void springIntegrationGetsItsLocks() throws Exception {
        runner.run(
                context -> {
                    LockRegistry registry = context.getBean(LockRegistry.class);
                    Lock lock = registry.obtain("integration");
                    assertTrue(lock.tryLock());
                    try (HoldfastClient other = HoldfastClient.open(Stores.testUrl())) {
                        assertFalse(other.lock("integration").tryLock());
                    }
                    registry.obtain("integration").unlock();
                });
    }

    @Test
    void shedLockGetsItsLocks() {
        runner.run(
                context -> {
                    LockProvider provider = context.getBean(LockProvider.class);
                    LockConfiguration configuration =
                            new LockConfiguration(
                                    Instant.now(), "task", Duration.ofMinutes(1), Duration.ZERO);
                    Optional<SimpleLock> lock = provider.lock(configuration);
                    assertTrue(lock.isPresent());
                    assertTrue(provider.lock(configuration).isEmpty());
                    lock.get().unlock();
                    Optional<SimpleLock> again = provider.lock(configuration);
                    assertTrue(again.isPresent());
                    again.get().unlock();
                });
    }

    @Test
    void aShortTaskKeepsItsLeastTime() {
        runner.run(
                context -> {
                    LockProvider provider = context.getBean(LockProvider.class);
                    LockConfiguration configuration =
                            new LockConfiguration(
                                    Instant.now(),
                                    "short",
                                    Duration.ofMinutes(1),
                                    Duration.ofMillis(500));
                    provider.lock(configuration).orElseThrow().unlock();
                    Instant begin = Instant.now();
                    Optional<SimpleLock> next = provider.lock(configuration);
                    while (next.isEmpty()) {
                        next = provider.lock(configuration);
                    }
                    assertTrue(
                            Instant.now().isAfter(begin.plusMillis(50)),
                            "it was free again at once");
                    next.get().unlock();
                });
    }

    @Test
    void healthAndMetricsLook() {
        runner.run(
                context -> {
                    assertEquals(
                            Status.UP,
                            context.getBean(HoldfastHealthIndicator.class).health().getStatus());
                    SimpleMeterRegistry registry = new SimpleMeterRegistry();
                    context.getBean(HoldfastMetrics.class).bindTo(registry);
                    HoldfastClient client = context.getBean(HoldfastClient.class);
                    try (Hold hold = holdOf(client, "metrics")) {
                        assertEquals(1, registry.get("holdfast.held").gauge().value());
                    }
                    assertEquals(0, registry.get("holdfast.held").gauge().value());
                    assertEquals(1, registry.get("holdfast.acquires").functionCounter().count());
                });
    }

    @Test
    void neighboursAreOptional() {
        runner.withClassLoader(
                        new FilteredClassLoader(
                                "org.springframework.integration",
                                "net.javacrumbs",
                                "io.micrometer",
                                "org.springframework.boot.actuate"))
                .run(
                        context -> {
                            assertNull(context.getStartupFailure());
                            assertNotNull(context.getBean(HoldfastClient.class));
                        });
    }

    @Test
    void closingTheContextReleases() {
        HoldfastClient[] client = new HoldfastClient[1];
        runner.run(
                context -> {
                    client[0] = context.getBean(HoldfastClient.class);
                    client[0].lock("graceful").lock();
                });
        assertThrows(ClientClosedException.class, () -> client[0].lock("x").tryLock());
        try (HoldfastClient other = HoldfastClient.open(Stores.testUrl())) {
            assertTrue(other.lock("graceful").tryLock());
            other.lock("graceful").unlock();
        }
    }

    @Test
    void theKeysOfTheZooKeeperStarterAreRead() {
        HoldfastClient.Builder builder = HoldfastClient.builder();
        ZkLockProperties properties =
                new ZkLockProperties(
                        "127.0.0.1:1", 1_500_000_000L, 600_000L, "retry-forever", Map.of());
        properties.apply(builder);
        try (HoldfastClient client = builder.option("connect", "lazy").build()) {
            assertEquals("zookeeper", client.engine());
            assertTrue(client.url().startsWith("zk://127.0.0.1:1/"), client.url());
        }
    }
}
