/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.Locale;

/**
 * Loads the native part: the file that the system property {@code holdfast.library} names, else the
 * one inside the jar.
 *
 * <p>The one inside the jar is copied to a new directory that only this user can enter, and deleted
 * as soon as it is loaded; nobody can put another file in its place, and nothing is left behind.
 */
final class NativeLibrary {
    private static final String FILE = "libholdfast_jni.so";

    private NativeLibrary() {}

    static void load() {
        String named = System.getProperty("holdfast.library");
        if (named != null) {
            System.load(Path.of(named).toAbsolutePath().toString());
            return;
        }
        try {
            loadFromJar();
        } catch (IOException e) {
            throw new UncheckedIOException("cannot unpack " + FILE, e);
        }
    }

    private static void loadFromJar() throws IOException {
        String resource = "/native/" + platform() + "/" + FILE;
        try (InputStream from = NativeLibrary.class.getResourceAsStream(resource)) {
            if (from == null) {
                throw new UnsatisfiedLinkError(
                        "no " + resource + " in the jar: holdfast has no native library for this"
                                + " platform; build it and name it with -Dholdfast.library=FILE");
            }
            Path directory =
                    Files.createTempDirectory(
                            "holdfast-java-",
                            PosixFilePermissions.asFileAttribute(
                                    PosixFilePermissions.fromString("rwx------")));
            Path file = directory.resolve(FILE);
            try {
                Files.copy(from, file);
                System.load(file.toString());
            } finally {
                Files.deleteIfExists(file);
                Files.delete(directory);
            }
        }
    }

    /** "linux-x86_64". */
    private static String platform() {
        String os = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String arch = System.getProperty("os.arch");
        return os + "-" + (arch.equals("amd64") ? "x86_64" : arch);
    }
}
