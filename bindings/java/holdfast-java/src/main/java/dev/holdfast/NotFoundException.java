/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** There is nothing of that name. */
public class NotFoundException extends HoldfastException {
    private static final long serialVersionUID = 1;

    NotFoundException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
