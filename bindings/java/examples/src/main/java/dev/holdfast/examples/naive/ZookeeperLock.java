/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples.naive;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/** The annotation of an article's starter. */
@Target(ElementType.METHOD)
@Retention(RetentionPolicy.RUNTIME)
public @interface ZookeeperLock {
    String lockName();

    /** Seconds to wait for the lock; the article calls it the time until it expires. */
    long requireTime() default 3;
}
