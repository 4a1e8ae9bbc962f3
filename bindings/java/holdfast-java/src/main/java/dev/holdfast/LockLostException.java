/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The lock was lost before it was released: somebody else may hold it. */
public class LockLostException extends HoldfastException {
    private static final long serialVersionUID = 1;

    LockLostException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
