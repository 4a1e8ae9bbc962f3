/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.lang.ref.Cleaner;
import java.lang.ref.WeakReference;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.LongConsumer;
import java.util.function.LongUnaryOperator;

/**
 * Proof of a granted lock. Any thread may use and release it. Close it, best by
 * try-with-resources; one that is forgotten is released when it is collected.
 *
 * <p>{@link #token()} is larger than that of every earlier grant of the same name: show it to the
 * resource on every write, and let the resource refuse a smaller one. No lock with a lease is safe
 * against a thread that is stopped between its last look and its next write; the token is.
 */
public final class Hold implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final HoldfastClient client;
    private final String name;
    private final long number;
    private final Handle handle;
    private final Cleaner.Cleanable cleanable;
    private final AtomicBoolean ended = new AtomicBoolean();
    private final AtomicReference<Consumer<? super Hold>> listener = new AtomicReference<>();
    private volatile long token;

    Hold(HoldfastClient client, String name, long pointer, long number) {
        this.client = client;
        this.name = name;
        this.number = number;
        this.token = Native.holdToken(pointer, -1);
        this.handle = new Handle(pointer, Native::holdUnref);
        this.cleanable = CLEANER.register(this, handle);
    }

    /** The name; of a multi-lock the first one. */
    public String name() {
        return name;
    }

    /** The fencing token; 0 if this engine has no honest one, and for a multi-lock. */
    public long token() {
        return token;
    }

    /** The token of one member of a multi-lock, in the order of the names. */
    public long token(int member) {
        return ask(0, pointer -> Native.holdToken(pointer, member));
    }

    /** Costs two loads and a look at the clock. */
    public State state() {
        return State.of((int) ask(State.RELEASED.ordinal(), Native::holdCheck));
    }

    /** Whether the lock is surely ours now. */
    public boolean isHeld() {
        State state = state();
        return state == State.HELD || state == State.JEOPARDY;
    }

    /** For how long the lock is surely ours without another renewal; empty: without end. */
    public Optional<Duration> remaining() {
        long ms = ask(0, Native::holdRemaining);
        return ms < 0 ? Optional.empty() : Optional.of(Duration.ofMillis(ms));
    }

    /** Asks the engine whether the lock is still ours, and renews it. */
    public void verify() {
        run(Native::holdVerify);
    }

    /** With {@code renew=beat}: says that this holder is alive. */
    public void beat() {
        if (ask(-4, Native::holdBeat) != 0) {
            throw lost();
        }
    }

    /**
     * Gives the lock up, waits for the condition, and has the lock again afterwards, under a larger
     * token. Returns ETIMEOUT if nobody signalled in time; it holds all the same.
     *
     * @throws InterruptedException the wait was ended, and the lock is released
     */
    long awaitCondition(byte[] condition, long waitMs) throws InterruptedException {
        return waitFor(
                pointer ->
                        Waiting.interruptibly(
                                done -> Native.condWaitStart(pointer, condition, waitMs, done)));
    }

    /** The same; an interrupt stays pending. */
    long awaitConditionUninterruptibly(byte[] condition, long waitMs) {
        return waitFor(
                pointer ->
                        Waiting.uninterruptibly(
                                done -> Native.condWaitStart(pointer, condition, waitMs, done)));
    }

    /** Wakes one that waits for the condition, or all. */
    void signalCondition(byte[] condition, boolean all) {
        run(pointer -> Native.condSignal(pointer, condition, all));
    }

    private interface Wait<E extends Exception> {
        long apply(long pointer) throws E;
    }

    private <E extends Exception> long waitFor(Wait<E> wait) throws E {
        long pointer = handle.enter();
        if (pointer == 0) {
            throw lost();
        }
        try {
            long outcome = wait.apply(pointer);
            token = Native.holdToken(pointer, -1);
            return outcome;
        } finally {
            handle.leave();
        }
    }

    /** Turns an exclusive hold into a shared one, without letting go in between. */
    public void downgrade() {
        run(Native::holdDowngrade);
    }

    /**
     * Calls {@code listener} once when the lock is lost, on the client's executor; at once if it is
     * lost already, never after it was released. The newest listener replaces an earlier one.
     */
    public void onLost(Consumer<? super Hold> listener) {
        this.listener.set(listener);
        WeakReference<Hold> weak = new WeakReference<>(this);
        Native.EVENTS.put(
                number,
                (state, ignored) -> {
                    Hold hold = weak.get();
                    if (hold != null && state == State.LOST.ordinal()) {
                        hold.tellLost();
                    }
                });
        State now = state();
        if (now == State.LOST) {
            tellLost();
        } else if (now == State.RELEASED) {
            Native.EVENTS.remove(number);
        }
    }

    private void tellLost() {
        Consumer<? super Hold> told = listener.getAndSet(null);
        Native.EVENTS.remove(number);
        if (told != null) {
            client.execute(() -> tellUnlessReleased(told));
        }
    }

    private void tellUnlessReleased(Consumer<? super Hold> listener) {
        if (!ended.get()) {
            listener.accept(this);
        }
    }

    /**
     * Releases the lock and waits for the engine's answer. A second call does nothing.
     *
     * @throws LockLostException it was lost before: somebody else may have held it meanwhile
     * @throws OutcomeUnknownException no answer came; the library goes on until it has one
     */
    public void release() {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        long pointer = handle.enter();
        try {
            Native.holdRelease(Native.holdRef(pointer));
        } finally {
            handle.leave();
            Native.EVENTS.remove(number);
            cleanable.clean();
        }
    }

    /** The same as {@link #release()}. */
    @Override
    public void close() {
        release();
    }

    @Override
    public String toString() {
        return "Hold[" + name + ", token " + token + ", " + state() + "]";
    }

    private HoldfastException lost() {
        return HoldfastException.of(-4, 0, "the lock " + name + " is lost or released");
    }

    private long ask(long otherwise, LongUnaryOperator question) {
        long pointer = handle.enter();
        if (pointer == 0) {
            return otherwise;
        }
        try {
            return question.applyAsLong(pointer);
        } finally {
            handle.leave();
        }
    }

    private void run(LongConsumer call) {
        long pointer = handle.enter();
        if (pointer == 0) {
            throw lost();
        }
        try {
            call.accept(pointer);
        } finally {
            handle.leave();
        }
    }
}
