/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The state of a {@link Hold}. The order is that of {@code holdfast.h}. */
public enum State {
    /** The lock is ours. */
    HELD,
    /** The lock is still ours, and a renewal is overdue. */
    JEOPARDY,
    /** The lock is no longer ours. */
    LOST,
    /** The lock was released. */
    RELEASED,
    /** Its thread waits for a condition and has given the lock up meanwhile. */
    WAITING;

    static State of(int number) {
        return number >= 0 && number < values().length ? values()[number] : LOST;
    }
}
