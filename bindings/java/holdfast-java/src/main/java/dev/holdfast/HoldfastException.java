/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.util.Map;

/**
 * A call failed. The text says what happened and, where the library knows it, what to do; {@link
 * #code()} is for programs. Each kind that a caller may want to catch has a class of its own.
 */
public class HoldfastException extends RuntimeException {
    private static final long serialVersionUID = 1;

    private final int code;
    private final int engineCode;

    HoldfastException(int code, int engineCode, String text) {
        super(text);
        this.code = code;
        this.engineCode = engineCode;
    }

    private interface Kind {
        HoldfastException make(int code, int engineCode, String text);
    }

    private static final Map<Integer, Kind> KINDS =
            Map.ofEntries(
                    Map.entry(-1, LockBusyException::new),
                    Map.entry(-2, LockTimeoutException::new),
                    Map.entry(-4, LockLostException::new),
                    Map.entry(-5, OutcomeUnknownException::new),
                    Map.entry(-6, EngineUnavailableException::new),
                    Map.entry(-7, EngineAuthException::new),
                    Map.entry(-8, ConfigurationException::new),
                    Map.entry(-10, UnsupportedByEngineException::new),
                    Map.entry(-11, DeadlockException::new),
                    Map.entry(-15, ClientClosedException::new),
                    Map.entry(-16, ConflictException::new),
                    Map.entry(-17, NotFoundException::new));

    static HoldfastException of(int code, int engineCode, String text) {
        return KINDS.getOrDefault(code, HoldfastException::new).make(code, engineCode, text);
    }

    /** The library's code, as in {@code holdfast.h}: -1 is {@code HF_EBUSY}. */
    public int code() {
        return code;
    }

    /** The engine's own code: an errno, a server's number, or 0. */
    public int engineCode() {
        return engineCode;
    }
}
