// SPDX-License-Identifier: MIT
//
// Orders.java - what every peer in Java shares: it reads orders, line by line,
// and writes an answer to each.
//
// The first word of an order is its thread: orders of one thread are carried out
// one after the other, in that thread. The answer begins with the same word.

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

final class Orders {
    interface Order {
        String carryOut(String[] words) throws Exception;
    }

    private Orders() {
    }

    /** Until there are no more; then the process ends. */
    static void obey(Order order) throws IOException {
        Map<String, ExecutorService> threads = new HashMap<>();
        say("ready");
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            threads.computeIfAbsent(words[0], id -> Executors.newSingleThreadExecutor())
                .execute(() -> say(words[0] + " " + answer(order, words)));
        }
        System.exit(0);
    }

    private static String answer(Order order, String[] words) {
        try {
            return order.carryOut(words);
        } catch (Exception e) {
            return "error " + e;
        }
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
