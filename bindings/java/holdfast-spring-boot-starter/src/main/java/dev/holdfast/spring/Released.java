/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

/** Runs something and then releases, so that neither failure hides the other. */
final class Released {
    interface Work {
        Object run() throws Throwable;
    }

    private Released() {}

    static Object after(Work work, Runnable release) throws Throwable {
        Object result;
        try {
            result = work.run();
        } catch (Throwable e) {
            try {
                release.run();
            } catch (RuntimeException lost) {
                e.addSuppressed(lost);
            }
            throw e;
        }
        release.run();
        return result;
    }
}
