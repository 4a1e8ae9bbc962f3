/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** This owner would wait for itself. */
public class DeadlockException extends HoldfastException {
    private static final long serialVersionUID = 1;

    DeadlockException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
