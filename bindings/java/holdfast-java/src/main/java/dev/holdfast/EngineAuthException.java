/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The engine refused the credentials. */
public class EngineAuthException extends HoldfastException {
    private static final long serialVersionUID = 1;

    EngineAuthException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
