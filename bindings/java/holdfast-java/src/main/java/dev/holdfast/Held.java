/* SPDX-License-Identifier: MIT */
package dev.holdfast;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What each thread holds by {@link HoldfastLock}, so that unlock() finds it. */
final class Held {
    private record Key(String name, Mode mode, long owner) {}

    private final Map<Key, Deque<Hold>> holds = new ConcurrentHashMap<>();

    /** Only the owner itself adds and takes: its deque has one user. */
    void add(String name, Mode mode, long owner, Hold hold) {
        holds.computeIfAbsent(new Key(name, mode, owner), key -> new ArrayDeque<>(2)).push(hold);
    }

    /** The newest, or null. */
    Hold take(String name, Mode mode, long owner) {
        Key key = new Key(name, mode, owner);
        Deque<Hold> mine = holds.get(key);
        if (mine == null) {
            return null;
        }
        Hold hold = mine.pop();
        if (mine.isEmpty()) {
            holds.remove(key);
        }
        return hold;
    }

    /** The newest, or null. It stays. */
    Hold newest(String name, Mode mode, long owner) {
        Deque<Hold> mine = holds.get(new Key(name, mode, owner));
        return mine == null ? null : mine.peek();
    }

    /** Releases all but the oldest, which it returns. They stay listed, for unlock(). */
    Hold keepFirst(String name, Mode mode, long owner) {
        Hold first = null;
        for (Hold hold : holds.get(new Key(name, mode, owner))) {
            if (first != null) {
                first.release();
            }
            first = hold;
        }
        return first;
    }

    void clear(String name, Mode mode, long owner) {
        holds.remove(new Key(name, mode, owner));
    }

    int count(String name, Mode mode, long owner) {
        Deque<Hold> mine = holds.get(new Key(name, mode, owner));
        return mine == null ? 0 : mine.size();
    }
}
