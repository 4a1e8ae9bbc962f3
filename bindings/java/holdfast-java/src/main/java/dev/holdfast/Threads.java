/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

/** What depends on the thread that calls. */
final class Threads {
    /** {@code Thread.isVirtual}, where this Java has it. */
    private static final MethodHandle IS_VIRTUAL = findIsVirtual();

    /** Who re-enters: one owner per Java thread, virtual or not. */
    private static final ThreadLocal<Long> OWNER = ThreadLocal.withInitial(Native::ownerNew);

    private Threads() {}

    static long owner() {
        return OWNER.get();
    }

    static byte[] label() {
        Thread thread = Thread.currentThread();
        String name = thread.getName();
        return Native.bytes(name.isEmpty() ? "java-" + thread.getId() : printable(name));
    }

    /** A label of an owner has at most 127 bytes and no control characters. */
    private static String printable(String name) {
        StringBuilder text = new StringBuilder();
        int bytes = 0;
        for (int i = 0; i < name.length(); ) {
            int point = name.codePointAt(i);
            i += Character.charCount(point);
            boolean bad = Character.isISOControl(point)
                    || (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE);
            int shown = bad ? '?' : point;
            bytes += shown < 0x80 ? 1 : shown < 0x800 ? 2 : shown < 0x10000 ? 3 : 4;
            if (bytes > 127) {
                break;
            }
            text.appendCodePoint(shown);
        }
        return text.toString();
    }

    static boolean isVirtual() {
        if (IS_VIRTUAL == null) {
            return false;
        }
        try {
            return (boolean) IS_VIRTUAL.invokeExact(Thread.currentThread());
        } catch (Throwable e) {
            throw new AssertionError(e);
        }
    }

    /** Waits for a number; an interrupt runs {@code cancel} and waits for what comes of it. */
    static long get(CompletableFuture<Long> outcome, Runnable cancel) throws InterruptedException {
        boolean interrupted = false;
        while (true) {
            try {
                outcome.get();
                break;
            } catch (InterruptedException e) {
                interrupted = true;
                cancel.run();
            } catch (ExecutionException e) {
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
                throw (HoldfastException) e.getCause();
            }
        }
        long number = outcome.join();
        if (interrupted && number == Native.ECANCELED) {
            throw new InterruptedException();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
        return number;
    }

    /** The same; an interrupt stays pending. */
    static long join(CompletableFuture<Long> outcome) {
        try {
            return outcome.join();
        } catch (CompletionException e) {
            throw (HoldfastException) e.getCause();
        }
    }

    private static MethodHandle findIsVirtual() {
        try {
            return MethodHandles.lookup()
                    .findVirtual(Thread.class, "isVirtual", MethodType.methodType(boolean.class));
        } catch (NoSuchMethodException | IllegalAccessException e) {
            return null;
        }
    }
}
