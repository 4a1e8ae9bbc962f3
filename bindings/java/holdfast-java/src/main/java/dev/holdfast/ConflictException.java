/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The version or token differs. */
public class ConflictException extends HoldfastException {
    private static final long serialVersionUID = 1;

    ConflictException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
