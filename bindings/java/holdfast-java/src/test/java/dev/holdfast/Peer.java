/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.concurrent.TimeUnit;

/** Another process that takes a lock: {@code held TOKEN}, then {@code lost} or end of input. */
final class Peer implements AutoCloseable {
    private final Process process;
    private final BufferedReader out;

    private Peer(Process process) {
        this.process = process;
        this.out = new BufferedReader(new InputStreamReader(process.getInputStream()));
    }

    /** A Java process with a lease of so long. */
    static Peer java(String name, Duration lease) throws IOException {
        return start(
                ProcessHandle.current().info().command().orElse("java"),
                "-cp",
                System.getProperty("java.class.path"),
                Peer.class.getName(),
                Store.testUrl(),
                name,
                Long.toString(lease.toMillis()));
    }

    /** The command {@code holdfast}; null where the build has none. */
    static Peer command(String name) throws IOException {
        String command = System.getenv("HOLDFAST_TEST_COMMAND");
        return command == null
                ? null
                : start(
                        command, "run", "-u", Store.testUrl(), name, "--", "sh", "-c",
                        "echo held 0; cat");
    }

    private static Peer start(String... command) throws IOException {
        return new Peer(
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start());
    }

    /** The rest of the next line that begins so. */
    String await(String word) throws IOException {
        for (String line = out.readLine(); line != null; line = out.readLine()) {
            if (line.startsWith(word)) {
                return line.substring(word.length()).trim();
            }
        }
        throw new AssertionError("the peer ended before it said \"" + word + "\"");
    }

    void signal(String signal) throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid())).start().waitFor();
    }

    /** Ends its input, and waits for its end. */
    void end() throws IOException, InterruptedException {
        process.getOutputStream().close();
        process.waitFor(60, TimeUnit.SECONDS);
    }

    @Override
    public void close() {
        process.destroyForcibly();
    }

    public static void main(String[] args) throws IOException {
        LockOptions options =
                LockOptions.DEFAULT.lease(Duration.ofMillis(Long.parseLong(args[2])));
        try (HoldfastClient client = HoldfastClient.open(args[0]);
                Hold hold = client.acquire(args[1], options)) {
            hold.onLost(lost -> System.out.println("lost " + lost.token()));
            System.out.println("held " + hold.token());
            while (System.in.read() >= 0) {
                // Until the end of input.
            }
        } catch (LockLostException e) {
            System.out.println("told " + e.getMessage());
        }
    }
}
