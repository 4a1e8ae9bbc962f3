/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** Another owner kept the lock until the wait ran out. */
public class LockTimeoutException extends HoldfastException {
    private static final long serialVersionUID = 1;

    LockTimeoutException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
