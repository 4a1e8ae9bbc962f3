/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.util.Scanner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.ConfigurableApplicationContext;

/**
 * An application as a user writes it: started twice by {@link TwoInstancesTest}. Each line of its
 * input calls a method of {@link Orders}; it answers with what came of it.
 */
@SpringBootApplication
public class Application {
    public static void main(String[] args) {
        try (ConfigurableApplicationContext context =
                SpringApplication.run(Application.class, args)) {
            Orders orders = context.getBean(Orders.class);
            System.out.println("started");
            Scanner in = new Scanner(System.in);
            while (in.hasNextLine()) {
                System.out.println(answer(orders, in.nextLine().split(" "), in));
            }
        }
    }

    private static String answer(Orders orders, String[] words, Scanner in) {
        try {
            return switch (words[0]) {
                case "ship" -> orders.ship(words[1], in);
                case "skip" -> String.valueOf(orders.shipOrSkip(words[1]));
                case "fallback" -> orders.shipOrSay(words[1]);
                case "timeout" -> orders.shipSoon(words[1]);
                default -> "what is " + words[0] + "?";
            };
        } catch (RuntimeException e) {
            return e.getClass().getSimpleName();
        }
    }
}
