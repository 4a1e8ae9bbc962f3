/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;

/** What the caller of a skipped method gets. */
final class Nothing {
    private static final Map<Class<?>, Object> ZERO =
            Map.of(
                    boolean.class, false,
                    byte.class, (byte) 0,
                    short.class, (short) 0,
                    char.class, (char) 0,
                    int.class, 0,
                    long.class, 0L,
                    float.class, 0f,
                    double.class, 0d);

    private Nothing() {}

    static Object of(Class<?> type) {
        if (type.isPrimitive()) {
            return ZERO.get(type);
        }
        if (type == Optional.class) {
            return Optional.empty();
        }
        if (type == List.class) {
            return List.of();
        }
        if (type == Set.class) {
            return Set.of();
        }
        if (type == Map.class) {
            return Map.of();
        }
        if (type == Stream.class) {
            return Stream.empty();
        }
        if (type != Object.class && type.isAssignableFrom(CompletableFuture.class)) {
            return CompletableFuture.completedFuture(null);
        }
        return null;
    }
}
