/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The client is closed. */
public class ClientClosedException extends HoldfastException {
    private static final long serialVersionUID = 1;

    ClientClosedException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
