/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

/** What {@link Locked} does when it does not get the lock. */
public enum OnBusy {
    /** LockBusyException or LockTimeoutException. */
    THROW,
    /** The method does not run; the caller gets null, 0, false, or something empty. */
    SKIP,
    /** {@link Locked#fallback} runs instead, without the lock. */
    FALLBACK
}
