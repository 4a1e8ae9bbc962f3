/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;

/** A standing candidacy. Close it to resign. */
public final class Election implements AutoCloseable {
    /**
     * What a listener hears.
     *
     * @param state HELD: elected; JEOPARDY; LOST: no longer the leader, a candidate again
     * @param term the fencing token of this leadership
     */
    public record Change(String name, State state, long term) {}

    private final String name;
    private final long number = Native.newNumber();
    private final Queue<Change> changes = new ConcurrentLinkedQueue<>();
    private final Handle handle;

    Election(
            HoldfastClient client, String name, LockOptions options, Consumer<Change> listener) {
        this.name = name;
        Native.EVENTS.put(
                number,
                (state, term) -> {
                    changes.add(new Change(name, State.of(state), term));
                    client.execute(() -> tell(listener));
                });
        handle = new Handle(start(client, options), this::stop);
    }

    /** One at a time, in their order, whatever threads the executor has. */
    private void tell(Consumer<Change> listener) {
        synchronized (changes) {
            Change change = changes.poll();
            if (change != null) {
                listener.accept(change);
            }
        }
    }

    private long start(HoldfastClient client, LockOptions options) {
        try {
            return client.with(
                    pointer ->
                            Native.electStart(
                                    pointer,
                                    Native.bytes(name),
                                    options.numbers(0, number),
                                    Threads.label(),
                                    options.noteBytes()));
        } catch (RuntimeException e) {
            Native.EVENTS.remove(number);
            throw e;
        }
    }

    private void stop(long election) {
        Native.EVENTS.remove(number);
        Native.electStop(election);
    }

    /** Whether this candidate leads now. */
    public boolean isLeader() {
        long election = handle.enter();
        if (election == 0) {
            return false;
        }
        try {
            int state = Native.electCheck(election);
            return state == State.HELD.ordinal() || state == State.JEOPARDY.ordinal();
        } finally {
            handle.leave();
        }
    }

    /** Resigns. A second call does nothing. */
    @Override
    public void close() {
        handle.drop();
    }
}
