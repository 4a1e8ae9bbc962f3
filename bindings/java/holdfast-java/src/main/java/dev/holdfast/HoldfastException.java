/* SPDX-License-Identifier: MIT */
package dev.holdfast;

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

    static HoldfastException of(int code, int engineCode, String text) {
        return switch (code) {
            case -1 -> new LockBusyException(code, engineCode, text);
            case -2 -> new LockTimeoutException(code, engineCode, text);
            case -4 -> new LockLostException(code, engineCode, text);
            case -5 -> new OutcomeUnknownException(code, engineCode, text);
            case -6 -> new EngineUnavailableException(code, engineCode, text);
            case -7 -> new EngineAuthException(code, engineCode, text);
            case -8 -> new ConfigurationException(code, engineCode, text);
            case -10 -> new UnsupportedByEngineException(code, engineCode, text);
            case -11 -> new DeadlockException(code, engineCode, text);
            case -15 -> new ClientClosedException(code, engineCode, text);
            case -16 -> new ConflictException(code, engineCode, text);
            case -17 -> new NotFoundException(code, engineCode, text);
            default -> new HoldfastException(code, engineCode, text);
        };
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
