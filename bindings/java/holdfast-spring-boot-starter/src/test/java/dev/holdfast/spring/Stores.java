/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;

/** The engine under test: that of HOLDFAST_TEST_URL, else a directory of this machine. */
final class Stores {
    private static final String URL = url();

    private Stores() {}

    static String testUrl() {
        return URL;
    }

    private static String url() {
        String given = System.getenv("HOLDFAST_TEST_URL");
        if (given != null) {
            return given;
        }
        try {
            java.nio.file.Path directory = Files.createTempDirectory("holdfast-spring-test-");
            Runtime.getRuntime()
                    .addShutdownHook(
                            new Thread(
                                    () ->
                                            org.springframework.util.FileSystemUtils
                                                    .deleteRecursively(directory.toFile())));
            return "local://" + directory;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
