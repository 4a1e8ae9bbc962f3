/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Opening, and what a long life costs. */
@Timeout(300)
class ClientTest {
    @Test
    void wrongUrlsAndKeysSayWhatIsWrong() {
        assertThrows(
                UnsupportedByEngineException.class, () -> HoldfastClient.open("nothing://here"));
        ConfigurationException e =
                assertThrows(
                        ConfigurationException.class,
                        () ->
                                HoldfastClient.builder()
                                        .url(Store.testUrl())
                                        .option("tttl", "10s")
                                        .build());
        assertTrue(e.getMessage().contains("tttl"), e.getMessage());
    }

    @Test
    void capabilitiesHaveTheLibrarysNames() {
        for (Capability capability : Capability.values()) {
            assertEquals(
                    capability.name().toLowerCase(Locale.ROOT),
                    Native.text(Native.capabilityName(capability.bit())));
        }
    }

    @Test
    void metricsAreText() {
        try (HoldfastClient client = Store.open()) {
            client.acquire(Store.name("metrics")).close();
            assertTrue(client.metrics().contains("holdfast_"), client.metrics());
            assertTrue(HoldfastClient.libraryVersion().startsWith("0."));
        }
    }

    @Test
    void manyAcquiresDoNotGrow() throws IOException {
        int pairs = Integer.getInteger("holdfast.test.pairs", 2000);
        try (HoldfastClient client = Store.open()) {
            String name = Store.name("growth");
            HoldfastLock lock = client.lock(name);
            turn(lock, pairs / 2);
            System.gc();
            long before = residentKiB();
            turn(lock, pairs);
            System.gc();
            long grown = residentKiB() - before;
            // 100,000 leaked holds would be 50 MB and more.
            assertTrue(grown < 24 * 1024 || grown < pairs / 4, "grew by " + grown + " KiB");
            assertTrue(Native.EVENTS.isEmpty() && Native.DONE.isEmpty());
        }
    }

    private static void turn(HoldfastLock lock, int pairs) {
        for (int i = 0; i < pairs; i++) {
            lock.lock();
            lock.unlock();
        }
    }

    private static long residentKiB() throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new AssertionError("no VmRSS");
    }
}
