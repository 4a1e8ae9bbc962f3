/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The request was sent and its answer was lost. An acquire is taken back. */
public class OutcomeUnknownException extends HoldfastException {
    private static final long serialVersionUID = 1;

    OutcomeUnknownException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
