/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** Another owner holds the lock; the text says who. */
public class LockBusyException extends HoldfastException {
    private static final long serialVersionUID = 1;

    LockBusyException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
