/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** Optimistic locking: a number that grows with every commit. */
public final class Version {
    private final HoldfastClient client;
    private final byte[] name;

    Version(HoldfastClient client, String name) {
        this.client = client;
        this.name = Native.bytes(name);
    }

    /** The version; 0 if it was never committed. */
    public long read() {
        return client.with(pointer -> Native.versionRead(pointer, name));
    }

    /**
     * Replaces the version if it still is {@code expected}, and returns the new one.
     *
     * @throws ConflictException it is another
     * @throws OutcomeUnknownException the answer was lost: read again
     */
    public long commit(long expected) {
        return client.with(pointer -> Native.versionCommit(pointer, name, expected));
    }
}
