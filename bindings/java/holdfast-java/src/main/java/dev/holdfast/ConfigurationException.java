/* SPDX-License-Identifier: MIT */
package dev.holdfast;

/** The URL, an option or its value is wrong. */
public class ConfigurationException extends HoldfastException {
    private static final long serialVersionUID = 1;

    ConfigurationException(int code, int engineCode, String text) {
        super(code, engineCode, text);
    }
}
