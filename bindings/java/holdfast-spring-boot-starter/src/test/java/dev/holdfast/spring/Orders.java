/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import org.springframework.stereotype.Service;
import reactor.core.publisher.Mono;

/** A service whose methods lock. */
@Service
public class Orders {
    /** Says that it runs, and runs until the next line of input. */
    @Locked(name = "order:#{#id}", lease = "2s")
    public String ship(String id, Scanner in) {
        System.out.println("shipping " + id);
        in.nextLine();
        return "shipped " + id;
    }

    @Locked(name = "order:#{#id}", waitFor = "0s", onBusy = OnBusy.SKIP)
    public String shipOrSkip(String id) {
        return "shipped " + id;
    }

    @Locked(name = "order:#{#id}", waitFor = "0s", onBusy = OnBusy.FALLBACK, fallback = "say")
    public String shipOrSay(String id) {
        return "shipped " + id;
    }

    private String say(String id) {
        return "another ships " + id;
    }

    @Locked(name = "order:#{#id}", waitFor = "100ms")
    public String shipSoon(String id) {
        return "shipped " + id;
    }

    @Locked
    public String withoutName() {
        return "done";
    }

    @Locked(name = "configured")
    public String configured() {
        return "done";
    }

    @Locked(name = "slots", type = LockType.SLOT, slots = 2, waitFor = "0s")
    public String inSlot(Runnable work) {
        work.run();
        return "done";
    }

    @Locked(name = "later", waitFor = "0s")
    public CompletableFuture<String> later(CompletableFuture<String> until) {
        return until;
    }

    @Locked(name = "reactive", waitFor = "0s", onBusy = OnBusy.SKIP)
    public Mono<String> reactive(Mono<String> until) {
        return until;
    }

    @Locked(name = "fails")
    public String fails() {
        throw new IllegalStateException("as it should");
    }
}
