/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.Hold;
import org.aspectj.lang.ProceedingJoinPoint;
import org.reactivestreams.Publisher;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** {@link Locked} on methods of Reactor. Loaded only where Reactor is. */
final class ReactiveLocking {
    /** The acquire failed; a failure of the method itself is not for us. */
    private static final class Refused extends RuntimeException {
        private static final long serialVersionUID = 1;

        Refused(Throwable cause) {
            super(cause);
        }
    }

    private ReactiveLocking() {}

    static boolean handles(Class<?> type) {
        return type == Mono.class || type == Flux.class;
    }

    /** The lock is taken when somebody subscribes, each time, and released before it completes. */
    static Object run(
            LockedAspect aspect, LockedAspect.Plan plan, ProceedingJoinPoint call, Class<?> type) {
        Mono<Hold> hold =
                Mono.fromFuture(() -> aspect.client().acquireAsync(plan.name(), plan.options()))
                        .onErrorMap(Refused::new)
                        // A subscriber that left as the lock was granted.
                        .doOnDiscard(Hold.class, Hold::release);
        if (type == Mono.class) {
            return Mono.usingWhen(
                            hold, held -> Mono.from(publisher(call)), ReactiveLocking::release)
                    .onErrorResume(Refused.class, error -> Mono.from(otherwise(aspect, plan, call, error.getCause())));
        }
        return Flux.usingWhen(hold, held -> publisher(call), ReactiveLocking::release)
                .onErrorResume(Refused.class, error -> otherwise(aspect, plan, call, error.getCause()));
    }

    private static Mono<Void> release(Hold hold) {
        return Mono.<Void>fromRunnable(hold::release).subscribeOn(Schedulers.boundedElastic());
    }

    private static Publisher<Object> otherwise(
            LockedAspect aspect, LockedAspect.Plan plan, ProceedingJoinPoint call, Throwable error) {
        try {
            return publisherOf(aspect.refused(plan, call, error));
        } catch (Throwable e) {
            return Flux.error(e);
        }
    }

    private static Publisher<Object> publisher(ProceedingJoinPoint call) {
        try {
            return publisherOf(call.proceed());
        } catch (Throwable e) {
            return Flux.error(e);
        }
    }

    @SuppressWarnings("unchecked")
    private static Publisher<Object> publisherOf(Object value) {
        return value == null ? Flux.empty() : (Publisher<Object>) value;
    }
}
