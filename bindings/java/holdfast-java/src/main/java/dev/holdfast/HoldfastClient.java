/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.lang.ref.Cleaner;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.function.Consumer;
import java.util.function.LongFunction;

/**
 * One connection to one engine, from which locks are taken. Threads share it; a program needs one.
 *
 * <pre>{@code
 * try (HoldfastClient client = HoldfastClient.open("redis://127.0.0.1:6379")) {
 *     Lock lock = client.lock("nightly-report");
 *     lock.lock();
 *     try {
 *         writeReport();
 *     } finally {
 *         lock.unlock();
 *     }
 * }
 * }</pre>
 */
public final class HoldfastClient implements AutoCloseable {
    private static final Cleaner CLEANER = Cleaner.create();

    private final Handle handle;
    private final Cleaner.Cleanable cleanable;
    private final Executor executor;
    private final Held held = new Held();

    private HoldfastClient(Builder builder) {
        byte[][] keys = new byte[2 * builder.options.size()][];
        int i = 0;
        for (Map.Entry<String, String> option : builder.options.entrySet()) {
            keys[i++] = Native.bytes(option.getKey());
            keys[i++] = Native.bytes(option.getValue());
        }
        String file = builder.file == null ? null : builder.file.toString();
        executor = builder.executor != null ? builder.executor : newExecutor();
        handle =
                new Handle(
                        Native.open(
                                Native.bytes(builder.url),
                                keys,
                                Native.bytes(file),
                                Native.bytes(builder.profile)),
                        Native::close);
        cleanable = CLEANER.register(this, handle);
    }

    /** Connects to the engine that the URL names. */
    public static HoldfastClient open(String url) {
        return builder().url(url).build();
    }

    /** A client with options. */
    public static Builder builder() {
        return new Builder();
    }

    /** The version of the native library. */
    public static String libraryVersion() {
        return Native.text(Native.libraryVersion());
    }

    /**
     * As many threads as there is work for; they end after ten idle seconds. A listener or a
     * continuation that blocks, perhaps for another lock, must not hold up the others.
     */
    private static Executor newExecutor() {
        return new ThreadPoolExecutor(
                0,
                Integer.MAX_VALUE,
                10,
                TimeUnit.SECONDS,
                new SynchronousQueue<>(),
                task -> {
                    Thread thread = new Thread(task, "holdfast-callbacks");
                    thread.setDaemon(true);
                    return thread;
                });
    }

    /** A lock: exclusive, re-entered by the thread that has it. The object costs nothing. */
    public HoldfastLock lock(String name) {
        return lock(name, LockOptions.DEFAULT);
    }

    /** A lock with options. Two objects of one name and mode are the same lock. */
    public HoldfastLock lock(String name, LockOptions options) {
        if (options.mode() == Mode.SLOT) {
            throw new IllegalArgumentException("a slot belongs to no thread: use semaphore()");
        }
        return new HoldfastLock(this, name, options);
    }

    /** A shared and an exclusive lock of one name. */
    public ReadWriteLock readWriteLock(String name) {
        return readWriteLock(name, LockOptions.DEFAULT);
    }

    /** A shared and an exclusive lock of one name, with options. */
    public ReadWriteLock readWriteLock(String name, LockOptions options) {
        Lock read = lock(name, options.mode(Mode.SHARED));
        Lock write = lock(name, options.mode(Mode.EXCLUSIVE));
        return new ReadWriteLock() {
            @Override
            public Lock readLock() {
                return read;
            }

            @Override
            public Lock writeLock() {
                return write;
            }
        };
    }

    /** A name that admits {@code slots} holders. Everybody has to say the same number. */
    public HoldfastSemaphore semaphore(String name, int slots) {
        return new HoldfastSemaphore(this, name, LockOptions.DEFAULT.slots(slots));
    }

    /**
     * Takes a lock of its own owner: it re-enters nothing, and any thread may release it.
     *
     * @throws LockBusyException with a wait of zero, when another holds it
     * @throws LockTimeoutException when the wait has run out
     */
    public Hold acquire(String name, LockOptions options) {
        return acquire(name, options, 0, false);
    }

    /** The same with everything as configured. */
    public Hold acquire(String name) {
        return acquire(name, LockOptions.DEFAULT);
    }

    /** The same without blocking. Cancelling the future withdraws the request. */
    public CompletableFuture<Hold> acquireAsync(String name, LockOptions options) {
        long number = Native.newNumber();
        CompletableFuture<Long> outcome = new CompletableFuture<>();
        long request = start(name, options, options.numbers(0, number), outcome);
        return new AcquireFuture(this, name, number, request, outcome);
    }

    /**
     * Takes several names as one hold: all or nothing, in one order for everybody, so that two such
     * holds never wait for each other.
     */
    public Hold lockAll(List<String> names, LockOptions options) {
        if (names.isEmpty()) {
            throw new IllegalArgumentException("no name to lock");
        }
        byte[][] texts = names.stream().map(Native::bytes).toArray(byte[][]::new);
        long number = Native.newNumber();
        long pointer =
                with(
                        client ->
                                Native.acquireMany(
                                        client,
                                        texts,
                                        options.numbers(0, number),
                                        Threads.label(),
                                        options.noteBytes(),
                                        false));
        return new Hold(this, names.get(0), pointer, number);
    }

    /** Takes several names as one hold, with everything as configured. */
    public Hold lockAll(String... names) {
        return lockAll(List.of(names), LockOptions.DEFAULT);
    }

    /**
     * Stands as a candidate for {@code name} until the election is closed. The listener hears each
     * change on the client's executor: {@link State#HELD} when elected.
     */
    public Election election(String name, Consumer<Election.Change> listener) {
        return new Election(this, name, LockOptions.DEFAULT, listener);
    }

    /** The optimistic version of a name. */
    public Version version(String name) {
        return new Version(this, name);
    }

    /** All holders and waiters whose names begin with {@code prefix}. */
    public List<LockInfo> list(String prefix) {
        return look(prefix, false);
    }

    /** The holders and waiters of one name. */
    public List<LockInfo> show(String name) {
        return look(name, true);
    }

    private List<LockInfo> look(String name, boolean exact) {
        List<LockInfo> rows = new ArrayList<>();
        run(client -> Native.list(client, Native.bytes(name), exact, rows));
        return rows;
    }

    /** Whether {@code token} is the current grant of {@code name}, as the engine sees it. */
    public boolean isCurrent(String name, long token) {
        try {
            run(client -> Native.checkToken(client, Native.bytes(name), token));
            return true;
        } catch (ConflictException | NotFoundException e) {
            return false;
        }
    }

    /** Takes {@code name} away from the holder with that token. */
    public void breakLock(String name, long token) {
        run(client -> Native.breakLock(client, Native.bytes(name), token, null));
    }

    /** What the engine behind this client promises. */
    public Set<Capability> capabilities() {
        long bits = with(Native::capabilities);
        EnumSet<Capability> set = EnumSet.noneOf(Capability.class);
        for (Capability capability : Capability.values()) {
            if ((bits & capability.bit()) != 0) {
                set.add(capability);
            }
        }
        return set;
    }

    /** "redis". */
    public String engine() {
        return text(Native::engineName);
    }

    /** The URL without its secrets. */
    public String url() {
        return text(Native::clientUrl);
    }

    /** The library's metrics of this client, as Prometheus reads them. */
    public String metrics() {
        return text(Native::metrics);
    }

    /**
     * Refuses new calls, cancels waiters, releases what is held and waits until the engine has
     * confirmed it all, at most so long.
     *
     * @throws LockTimeoutException something is unconfirmed; it ends with its lease
     */
    public void shutdown(Duration wait) {
        run(client -> Native.shutdown(client, Math.max(0, LockOptions.millis(wait))));
    }

    /** Releases everything and disconnects. A second call does nothing. */
    @Override
    public void close() {
        long client = handle.enter();
        if (client != 0) {
            try {
                Native.shutdown(client, CLOSE_WAIT_MS);
            } catch (HoldfastException e) {
                // What is unconfirmed ends with its lease, as close() of the library has it.
            } finally {
                handle.leave();
            }
        }
        cleanable.clean();
    }

    private static final long CLOSE_WAIT_MS = 5000;

    // For the other classes
    // ---------------------

    Held held() {
        return held;
    }

    /** On the executor; here, if that refuses: a loss must be told, and a hold must not be lost. */
    void execute(Runnable task) {
        try {
            executor.execute(task);
        } catch (RejectedExecutionException e) {
            task.run();
        }
    }

    /** The hold of {@code owner}; null when it is refused and {@code quiet}. */
    Hold acquire(String name, LockOptions options, long owner, boolean quiet) {
        if (Threads.isVirtual()) {
            return acquireParked(name, options, owner, quiet);
        }
        long number = Native.newNumber();
        long pointer =
                with(
                        client ->
                                Native.acquire(
                                        client,
                                        Native.bytes(name),
                                        options.numbers(owner, number),
                                        Threads.label(),
                                        options.noteBytes(),
                                        quiet));
        return pointer < 0 ? null : new Hold(this, name, pointer, number);
    }

    /** Begins to acquire; the outcome is a hold's pointer, or a code below zero. */
    private long start(
            String name, LockOptions options, long[] numbers, CompletableFuture<Long> outcome) {
        byte[] text = Native.bytes(name);
        byte[] note = options.noteBytes();
        byte[] label = Threads.label();
        return with(
                client ->
                        Waiting.start(
                                done ->
                                        Native.acquireStart(
                                                client, text, numbers, label, note, done),
                                outcome));
    }

    /** The same for a virtual thread; an interrupt stays pending. */
    private Hold acquireParked(String name, LockOptions options, long owner, boolean quiet) {
        CompletableFuture<Long> outcome = new CompletableFuture<>();
        long number = Native.newNumber();
        long request = start(name, options, options.numbers(owner, number), outcome);
        try {
            long pointer = Threads.join(outcome);
            if (pointer < 0 && !quiet) {
                throw HoldfastException.of((int) pointer, 0, name + " was not acquired");
            }
            return pointer < 0 ? null : new Hold(this, name, pointer, number);
        } finally {
            Native.requestFree(request);
        }
    }

    /** The same so that an interrupt ends the wait. */
    Hold acquireInterruptibly(String name, LockOptions options, long owner)
            throws InterruptedException {
        long number = Native.newNumber();
        byte[] text = Native.bytes(name);
        long[] numbers = options.numbers(owner, number);
        byte[] label = Threads.label();
        byte[] note = options.noteBytes();
        long client = enter();
        try {
            long pointer =
                    Waiting.interruptibly(
                            done -> Native.acquireStart(client, text, numbers, label, note, done));
            return pointer < 0 ? null : new Hold(this, name, pointer, number);
        } finally {
            handle.leave();
        }
    }

    long with(LongFunction<Long> call) {
        long client = enter();
        try {
            return call.apply(client);
        } finally {
            handle.leave();
        }
    }

    void run(java.util.function.LongConsumer call) {
        long client = enter();
        try {
            call.accept(client);
        } finally {
            handle.leave();
        }
    }

    private String text(LongFunction<byte[]> call) {
        long client = enter();
        try {
            return Native.text(call.apply(client));
        } finally {
            handle.leave();
        }
    }

    private long enter() {
        long client = handle.enter();
        if (client == 0) {
            throw HoldfastException.of(-15, 0, "the client is closed");
        }
        return client;
    }

    /** Collects what a client is opened with. */
    public static final class Builder {
        private String url;
        private Path file;
        private String profile;
        private Executor executor;
        private final Map<String, String> options = new LinkedHashMap<>();

        private Builder() {}

        /** The engine. Without one: HOLDFAST_URL, else the file's, else this machine alone. */
        public Builder url(String url) {
            this.url = url;
            return this;
        }

        /** A key of libholdfast(3) and its value: {@code option("ttl", "10s")}. */
        public Builder option(String key, String value) {
            options.put(key, value);
            return this;
        }

        /** A configuration file, and the section of it that applies (or null). */
        public Builder file(Path file, String profile) {
            this.file = file;
            this.profile = profile;
            return this;
        }

        /** Who runs listeners and completes futures; without it, daemon threads of the client. */
        public Builder executor(Executor executor) {
            this.executor = executor;
            return this;
        }

        /** Connects. */
        public HoldfastClient build() {
            return new HoldfastClient(this);
        }
    }

    /** A future whose cancel withdraws the request. */
    private static final class AcquireFuture extends CompletableFuture<Hold> {
        private final Handle request;

        AcquireFuture(
                HoldfastClient client,
                String name,
                long number,
                long pointer,
                CompletableFuture<Long> outcome) {
            request = new Handle(pointer, Native::requestFree);
            outcome.whenCompleteAsync(
                    (hold, failure) -> finish(client, name, number, hold, failure), client::execute);
        }

        private void finish(
                HoldfastClient client, String name, long number, Long hold, Throwable failure) {
            request.drop();
            if (failure != null) {
                completeExceptionally(failure);
            } else if (hold == Native.ECANCELED) {
                completeExceptionally(new CancellationException());
            } else if (hold < 0) {
                completeExceptionally(
                        HoldfastException.of(hold.intValue(), 0, name + " was not acquired"));
            } else {
                Hold granted = new Hold(client, name, hold, number);
                if (!complete(granted)) {
                    granted.release();
                }
            }
        }

        @Override
        public boolean cancel(boolean mayInterruptIfRunning) {
            long pointer = request.enter();
            if (pointer != 0) {
                Native.requestCancel(pointer);
                request.leave();
            }
            return super.cancel(mayInterruptIfRunning);
        }
    }
}
