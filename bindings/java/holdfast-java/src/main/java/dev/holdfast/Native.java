/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The C calls, and the library's way back into Java.
 *
 * <p>A callback of the library brings a number; {@link #EVENTS} and {@link #DONE} say what it
 * belongs to. An acquire always has such a number, but the table has an entry only when somebody
 * wants to hear.
 */
final class Native {
    static final int EBUSY = -1;
    static final int ETIMEOUT = -2;
    static final int ECANCELED = -3;

    /** {@code HF_FOREVER} and {@code HF_CONFIGURED}. */
    static final long FOREVER = -1;

    static final long CONFIGURED = -2;

    interface Event {
        void happened(int state, long token);
    }

    interface Done {
        void done(long hold, HoldfastException failure);
    }

    static final Map<Long, Event> EVENTS = new ConcurrentHashMap<>();
    static final Map<Long, Done> DONE = new ConcurrentHashMap<>();
    private static final AtomicLong LAST_NUMBER = new AtomicLong();
    private static final Logger LOG = LoggerFactory.getLogger("dev.holdfast");

    static {
        NativeLibrary.load();
        setLog(logLevel());
    }

    private Native() {}

    static long newNumber() {
        return LAST_NUMBER.incrementAndGet();
    }

    /** Refuses half a surrogate pair: getBytes() would make another name of it. */
    static byte[] bytes(String text) {
        if (text == null) {
            return null;
        }
        for (int i = 0; i < text.length(); i++) {
            if (Character.isSurrogate(text.charAt(i))) {
                return encode(text);
            }
        }
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] encode(String text) {
        try {
            ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
            byte[] array = new byte[bytes.remaining()];
            bytes.get(array);
            return array;
        } catch (CharacterCodingException e) {
            throw HoldfastException.of(-9, 0, "the text is not valid Unicode");
        }
    }

    static String text(byte[] bytes) {
        return bytes == null ? null : new String(bytes, StandardCharsets.UTF_8);
    }

    // What C calls. These must not throw: there is nobody to catch it.

    static HoldfastException failure(int code, int engineCode, byte[] text) {
        return HoldfastException.of(code, engineCode, text(text));
    }

    private static HoldfastException outOfMemory() {
        return HoldfastException.of(-13, 0, "out of memory");
    }

    static void event(long number, int state, long token) {
        Event event = EVENTS.get(number);
        if (event != null) {
            event.happened(state, token);
        }
    }

    static void done(long number, long hold, HoldfastException failure) {
        Done done = DONE.remove(number);
        if (done != null) {
            // Neither: C could not even say what failed.
            done.done(hold, failure == null && hold == 0 ? outOfMemory() : failure);
        } else if (hold != 0) {
            holdUnref(hold);
        }
    }

    static void row(
            List<LockInfo> to, long[] numbers, byte[] name, byte[] owner, byte[] host, byte[] note) {
        to.add(LockInfo.of(numbers, text(name), text(owner), text(host), text(note)));
    }

    static void log(int level, byte[] text) {
        String line = text(text);
        switch (level) {
            case 0 -> LOG.error(line);
            case 1 -> LOG.warn(line);
            case 2 -> LOG.info(line);
            default -> LOG.debug(line);
        }
    }

    private static int logLevel() {
        if (LOG.isDebugEnabled()) {
            return 3;
        }
        if (LOG.isInfoEnabled()) {
            return 2;
        }
        if (LOG.isWarnEnabled()) {
            return 1;
        }
        return LOG.isErrorEnabled() ? 0 : -1;
    }

    // What C does. Handles are pointers; a call on a freed one is the caller's mistake.

    static native long open(byte[] url, byte[][] keysAndValues, byte[] file, byte[] profile);

    static native void shutdown(long client, long waitMs);

    static native void close(long client);

    static native long capabilities(long client);

    static native byte[] capabilityName(long bit);

    static native byte[] engineName(long client);

    static native byte[] clientUrl(long client);

    static native byte[] libraryVersion();

    static native void setLog(int level);

    static native byte[] metrics(long client);

    /** The hold, or with {@code quiet} EBUSY, ETIMEOUT, ECANCELED instead of an exception. */
    static native long acquire(
            long client, byte[] name, long[] numbers, byte[] owner, byte[] note, boolean quiet);

    static native long acquireMany(
            long client, byte[][] names, long[] numbers, byte[] owner, byte[] note, boolean quiet);

    /** The request. With a number the outcome goes to {@link #done}; 0: to requestWait. */
    static native long acquireStart(
            long client, byte[] name, long[] numbers, byte[] owner, byte[] note, long number);

    static native long requestWait(long request, boolean quiet);

    static native void requestCancel(long request);

    static native void requestFree(long request);

    static native long ownerNew();

    static native long holdRef(long hold);

    static native void holdUnref(long hold);

    static native void holdRelease(long hold);

    /** The request; its outcome brings the same hold, borrowed, or ETIMEOUT, ECANCELED. */
    static native long condWaitStart(long hold, byte[] condition, long waitMs, long number);

    /** How many were woken. */
    static native int condSignal(long hold, byte[] condition, boolean all);

    static native void holdDowngrade(long hold);

    static native void holdVerify(long hold);

    static native int holdBeat(long hold);

    static native int holdCheck(long hold);

    static native long holdToken(long hold, int member);

    static native long holdRemaining(long hold);

    static native long electStart(
            long client, byte[] name, long[] numbers, byte[] owner, byte[] note);

    static native int electCheck(long election);

    static native void electStop(long election);

    static native long versionRead(long client, byte[] name);

    static native long versionCommit(long client, byte[] name, long expected);

    static native void list(long client, byte[] name, boolean exact, List<LockInfo> to);

    static native void checkToken(long client, byte[] name, long token);

    static native void breakLock(long client, byte[] name, long token, byte[] owner);
}
