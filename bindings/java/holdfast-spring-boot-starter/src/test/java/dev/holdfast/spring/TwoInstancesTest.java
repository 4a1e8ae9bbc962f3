/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Two instances of a real application on one engine. */
@Timeout(180)
class TwoInstancesTest {
    private static final class Instance implements AutoCloseable {
        final Process process;
        final BufferedReader out;
        final PrintWriter in;

        Instance() throws IOException {
            process =
                    new ProcessBuilder(
                                    ProcessHandle.current().info().command().orElse("java"),
                                    "-cp",
                                    System.getProperty("java.class.path"),
                                    Application.class.getName(),
                                    "--spring.main.banner-mode=off",
                                    "--logging.level.root=warn",
                                    "--holdfast.url=" + Stores.testUrl())
                            .redirectError(ProcessBuilder.Redirect.INHERIT)
                            .start();
            out = new BufferedReader(new InputStreamReader(process.getInputStream()));
            in = new PrintWriter(process.getOutputStream(), true);
        }

        String say(String line) throws IOException {
            in.println(line);
            return out.readLine();
        }

        @Override
        public void close() {
            process.destroyForcibly();
        }
    }

    @Test
    void takeTurnsSkipTimeOutAndRecover() throws Exception {
        try (Instance one = new Instance();
                Instance two = new Instance()) {
            assertEquals("started", one.out.readLine());
            assertEquals("started", two.out.readLine());

            assertEquals("shipping 7", one.say("ship 7"));
            assertEquals("null", two.say("skip 7"));
            assertEquals("another ships 7", two.say("fallback 7"));
            assertEquals("LockTimeoutException", two.say("timeout 7"));
            assertEquals("shipped 8", two.say("skip 8"));

            two.in.println("ship 7");
            assertEquals("shipped 7", one.say("enough"));
            assertEquals("shipping 7", two.out.readLine());
            assertEquals("null", one.say("skip 7"));

            // The one that has the lock dies: the other gets it when the lease ends.
            one.in.println("ship 7");
            two.process.destroyForcibly();
            assertEquals("shipping 7", one.out.readLine());
            assertEquals("shipped 7", one.say("enough"));
        }
    }
}
