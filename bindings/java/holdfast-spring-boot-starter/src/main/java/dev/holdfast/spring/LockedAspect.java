/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.Hold;
import dev.holdfast.HoldfastClient;
import dev.holdfast.LockBusyException;
import dev.holdfast.LockOptions;
import dev.holdfast.LockTimeoutException;
import dev.holdfast.Mode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.locks.Lock;
import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.lang.reflect.MethodSignature;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.util.ClassUtils;

/**
 * Runs methods with {@link Locked} under their lock.
 *
 * <p>It comes before a transaction: the lock is released after the commit.
 */
@Aspect
@Order(Ordered.LOWEST_PRECEDENCE - 100)
public class LockedAspect {
    private static final boolean HAS_REACTOR =
            ClassUtils.isPresent("reactor.core.publisher.Mono", LockedAspect.class.getClassLoader());

    private final HoldfastClient client;
    private final LockedNames names = new LockedNames();
    private final HoldfastProperties properties;

    LockedAspect(HoldfastClient client, HoldfastProperties properties) {
        this.client = client;
        this.properties = properties;
    }

    @Around("@annotation(locked)")
    public Object around(ProceedingJoinPoint call, Locked locked) throws Throwable {
        Method method = ((MethodSignature) call.getSignature()).getMethod();
        String name = names.of(locked, method, call.getTarget(), call.getArgs());
        Plan plan = Plan.of(name, locked, properties.locks().get(name));
        Class<?> result = method.getReturnType();
        if (HAS_REACTOR && ReactiveLocking.handles(result)) {
            return ReactiveLocking.run(this, plan, call, result);
        }
        if (result == CompletionStage.class || result == CompletableFuture.class) {
            return runLater(plan, call);
        }
        if (Future.class.isAssignableFrom(result)) {
            throw new IllegalStateException(
                    "@Locked on " + method + ": nobody can tell when a " + result.getSimpleName()
                            + " is done; return a CompletableFuture or a CompletionStage");
        }
        return plan.mode() == Mode.SLOT ? runInSlot(plan, call) : runNow(plan, call);
    }

    private Object runNow(Plan plan, ProceedingJoinPoint call) throws Throwable {
        Lock lock = client.lock(plan.name(), plan.options());
        try {
            lock.lock();
        } catch (LockBusyException | LockTimeoutException e) {
            return busy(plan, call, e);
        }
        return Released.after(call::proceed, lock::unlock);
    }

    private Object runInSlot(Plan plan, ProceedingJoinPoint call) throws Throwable {
        Hold hold;
        try {
            hold = client.acquire(plan.name(), plan.options());
        } catch (LockBusyException | LockTimeoutException e) {
            return busy(plan, call, e);
        }
        return Released.after(call::proceed, hold::release);
    }

    private CompletableFuture<Object> runLater(Plan plan, ProceedingJoinPoint call) {
        return client.acquireAsync(plan.name(), plan.options())
                .handle((hold, failure) -> later(plan, call, hold, failure))
                .thenCompose(stage -> stage);
    }

    private CompletionStage<Object> later(
            Plan plan, ProceedingJoinPoint call, Hold hold, Throwable failure) {
        try {
            if (failure != null) {
                return stageOf(refused(plan, call, failure));
            }
        } catch (Throwable e) {
            return CompletableFuture.failedFuture(e);
        }
        CompletionStage<Object> stage;
        try {
            stage = stageOf(call.proceed());
        } catch (Throwable e) {
            stage = CompletableFuture.failedFuture(e);
        }
        return stage.whenComplete((value, error) -> hold.release());
    }

    @SuppressWarnings("unchecked")
    private static CompletionStage<Object> stageOf(Object value) {
        return value instanceof CompletionStage
                ? (CompletionStage<Object>) value
                : CompletableFuture.completedFuture(value);
    }

    /** What a refused acquire becomes; other failures are thrown. */
    Object refused(Plan plan, ProceedingJoinPoint call, Throwable failure) throws Throwable {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        if (cause instanceof LockBusyException || cause instanceof LockTimeoutException) {
            return busy(plan, call, (RuntimeException) cause);
        }
        throw cause;
    }

    private Object busy(Plan plan, ProceedingJoinPoint call, RuntimeException refusal)
            throws Throwable {
        return switch (plan.onBusy()) {
            case THROW -> throw refusal;
            case SKIP -> Nothing.of(((MethodSignature) call.getSignature()).getMethod().getReturnType());
            case FALLBACK -> fallback(plan, call);
        };
    }

    private static Object fallback(Plan plan, ProceedingJoinPoint call) throws Throwable {
        MethodSignature signature = (MethodSignature) call.getSignature();
        Object target = call.getTarget();
        Method method = findFallback(plan, target.getClass(), signature);
        method.setAccessible(true);
        try {
            return method.invoke(target, call.getArgs());
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static Method findFallback(Plan plan, Class<?> type, MethodSignature signature) {
        for (Class<?> at = type; at != null; at = at.getSuperclass()) {
            try {
                Method method = at.getDeclaredMethod(plan.fallback(), signature.getParameterTypes());
                if (signature.getMethod().getReturnType().isAssignableFrom(method.getReturnType())) {
                    return method;
                }
            } catch (NoSuchMethodException e) {
                // Perhaps its superclass has it.
            }
        }
        throw new IllegalStateException(
                "@Locked on " + signature.getMethod() + ": no fallback \"" + plan.fallback()
                        + "\" with the same parameters and return type");
    }

    HoldfastClient client() {
        return client;
    }

    /** What one call asks for: the annotation, then the configuration of its name. */
    record Plan(String name, Mode mode, LockOptions options, OnBusy onBusy, String fallback) {
        static Plan of(String name, Locked locked, HoldfastProperties.LockSettings settings) {
            HoldfastProperties.LockSettings set =
                    settings != null ? settings : HoldfastProperties.LockSettings.NONE;
            LockType type = locked.type() != LockType.DEFAULT ? locked.type() : set.type();
            LockOptions options = optionsOf(type, locked.slots() > 0 ? locked.slots() : set.slots());
            Duration wait = duration(locked.waitFor(), set.waitFor());
            Duration lease = duration(locked.lease(), set.lease());
            if (wait != null) {
                options = options.waitFor(wait);
            }
            if (lease != null) {
                options = options.lease(lease);
            }
            return new Plan(name, modeOf(type), options, locked.onBusy(), locked.fallback());
        }

        private static Mode modeOf(LockType type) {
            return switch (type) {
                case READ -> Mode.SHARED;
                case SLOT -> Mode.SLOT;
                default -> Mode.EXCLUSIVE;
            };
        }

        private static LockOptions optionsOf(LockType type, int slots) {
            Mode mode = modeOf(type);
            return mode == Mode.SLOT
                    ? LockOptions.DEFAULT.slots(slots)
                    : LockOptions.DEFAULT.mode(mode);
        }

        private static Duration duration(String text, Duration otherwise) {
            return text.isEmpty()
                    ? otherwise
                    : org.springframework.boot.convert.DurationStyle.detectAndParse(text);
        }
    }
}
