/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** How a name is held. The order is that of {@code holdfast.h}. */
public enum Mode {
    /** One holder. */
    EXCLUSIVE,
    /** Many readers. */
    SHARED,
    /** Up to N holders. */
    SLOT
}
