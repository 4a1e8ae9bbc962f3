/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** This engine, or this mode of it, cannot do that. */
public class UnsupportedByEngineException extends HoldfastException {
    private static final long serialVersionUID = 1;

    UnsupportedByEngineException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
