/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;

/** The engine under test: the one of HOLDFAST_TEST_URL, else a new directory of this machine. */
final class Store {
    private static final AtomicInteger LAST = new AtomicInteger();
    private static final String URL = url();

    private Store() {}

    private static String url() {
        String given = System.getenv("HOLDFAST_TEST_URL");
        if (given != null) {
            return given;
        }
        try {
            Path directory = Files.createTempDirectory("holdfast-java-test-");
            Runtime.getRuntime().addShutdownHook(new Thread(() -> remove(directory)));
            return "local://" + directory;
        } catch (java.io.IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
    }

    private static void remove(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        } catch (java.io.IOException e) {
            // It is a temporary directory.
        }
    }

    static String testUrl() {
        return URL;
    }

    static HoldfastClient open() {
        return HoldfastClient.open(URL);
    }

    /** A name that no other test has used. */
    static String name(String what) {
        return "java-" + what + "-" + ProcessHandle.current().pid() + "-" + LAST.incrementAndGet();
    }
}
