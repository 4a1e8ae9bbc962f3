/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Runs a method under a lock.
 *
 * <pre>{@code
 * @Locked(name = "order:#{#id}", waitFor = "5s", onBusy = OnBusy.SKIP)
 * public void ship(long id) { … }
 * }</pre>
 *
 * <p>A method that returns a CompletionStage, or a Mono or Flux of Reactor, holds the lock until
 * that has completed, and waits for it without blocking. Such a method re-enters nothing.
 *
 * <p>If the lock is lost while the method runs, the call ends with a LockLostException: what it
 * wrote may overlap with another's work. Long jobs look at {@code HoldfastClient.lock(name)}.
 */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
@Documented
public @interface Locked {
    /**
     * The name, with expressions in {@code #{…}} that see the arguments by name. Without one: the
     * class and the method, {@code com.example.Orders.ship}.
     */
    String name() default "";

    /** How the name is held. */
    LockType type() default LockType.DEFAULT;

    /** How many holders a SLOT admits. */
    int slots() default 0;

    /** How long to wait: "5s", "200ms"; "0s" tries once. Without one: as configured. */
    String waitFor() default "";

    /** The lease, renewed while the method runs. Without one: as configured. */
    String lease() default "";

    /** What happens when the wait has run out. */
    OnBusy onBusy() default OnBusy.THROW;

    /** With FALLBACK: a method of the same class with the same parameters and return type. */
    String fallback() default "";
}
