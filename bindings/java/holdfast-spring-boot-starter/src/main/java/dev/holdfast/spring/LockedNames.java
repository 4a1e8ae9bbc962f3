/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.expression.MethodBasedEvaluationContext;
import org.springframework.core.DefaultParameterNameDiscoverer;
import org.springframework.core.ParameterNameDiscoverer;
import org.springframework.expression.Expression;
import org.springframework.expression.common.TemplateParserContext;
import org.springframework.expression.spel.standard.SpelExpressionParser;

/** The name that a call with {@link Locked} locks. */
final class LockedNames {
    private static final ParameterNameDiscoverer PARAMETERS = new DefaultParameterNameDiscoverer();

    private final SpelExpressionParser parser = new SpelExpressionParser();
    private final Map<String, Expression> expressions = new ConcurrentHashMap<>();

    String of(Locked locked, Method method, Object target, Object[] arguments) {
        if (locked.name().isEmpty()) {
            return AopUtils.getTargetClass(target).getName() + "." + method.getName();
        }
        if (!locked.name().contains("#{")) {
            return locked.name();
        }
        Expression expression =
                expressions.computeIfAbsent(
                        locked.name(),
                        text -> parser.parseExpression(text, new TemplateParserContext()));
        Method most = AopUtils.getMostSpecificMethod(method, AopUtils.getTargetClass(target));
        String name =
                expression.getValue(
                        new MethodBasedEvaluationContext(target, most, arguments, PARAMETERS),
                        String.class);
        if (name == null || name.isEmpty()) {
            throw new IllegalArgumentException(
                    "@Locked on " + method + ": the name " + locked.name() + " is empty");
        }
        return name;
    }
}
