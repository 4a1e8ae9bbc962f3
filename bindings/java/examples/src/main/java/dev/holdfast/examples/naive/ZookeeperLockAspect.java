/* SPDX-License-Identifier: MIT */
package dev.holdfast.examples.naive;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/**
 * What such an annotation does around a method. Do not use it; AnnotationTest shows what goes
 * wrong:
 *
 * <ul>
 *   <li>nobody looks at the answer of acquire: when requireTime has run out, the method runs
 *       without the lock;
 *   <li>the lock is a field of the one aspect: the next call, of whatever name, replaces it, and
 *       the first call releases the wrong one.
 * </ul>
 */
public final class ZookeeperLockAspect implements InvocationHandler {
    private final CuratorFramework curator;
    private final Object target;
    private volatile InterProcessMutex lock;

    private ZookeeperLockAspect(CuratorFramework curator, Object target) {
        this.curator = curator;
        this.target = target;
    }

    public static <T> T around(Class<T> type, T target, CuratorFramework curator) {
        return type.cast(
                Proxy.newProxyInstance(
                        type.getClassLoader(),
                        new Class<?>[] {type},
                        new ZookeeperLockAspect(curator, target)));
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] arguments) throws Throwable {
        ZookeeperLock how = method.getAnnotation(ZookeeperLock.class);
        lock = new InterProcessMutex(curator, "/naive/" + how.lockName());
        lock.acquire(how.requireTime(), TimeUnit.SECONDS);
        try {
            return method.invoke(target, arguments);
        } finally {
            lock.release();
        }
    }
}
