/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The engine does not answer. */
public class EngineUnavailableException extends HoldfastException {
    private static final long serialVersionUID = 1;

    EngineUnavailableException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
