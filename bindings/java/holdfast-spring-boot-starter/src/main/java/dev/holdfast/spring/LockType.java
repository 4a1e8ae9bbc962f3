/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

/** How {@link Locked} holds a name. */
public enum LockType {
    /** As {@code holdfast.locks.NAME.type} says, else REENTRANT. */
    DEFAULT,
    /** Exclusive; the thread that has it may take it again. */
    REENTRANT,
    /** Shared with other readers. */
    READ,
    /** Exclusive, beside READ. The same as REENTRANT. */
    WRITE,
    /** One of {@link Locked#slots} places. */
    SLOT
}
