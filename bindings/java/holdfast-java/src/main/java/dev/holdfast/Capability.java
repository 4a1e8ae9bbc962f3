/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** What an engine can promise; holdfast(7) explains each. The order is that of the bits. */
public enum Capability {
    FENCED,
    FIFO,
    SHARED,
    SLOTS,
    PUSH,
    LEASED,
    SESSION_BOUND,
    SURVIVES_RESTART,
    SURVIVES_FAILOVER,
    DISTRIBUTED,
    DOWNGRADE,
    VERSIONS,
    LIST,
    BREAK,
    CHECK_TOKEN,
    DEATH_NOTICE,
    LOCK_DELAY,
    TOLD_BEFORE_REGRANT,
    CONDITIONS;

    long bit() {
        return 1L << ordinal();
    }
}
