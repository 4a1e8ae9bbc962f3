/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.HoldfastClient;
import io.micrometer.core.instrument.MeterRegistry;
import net.javacrumbs.shedlock.core.LockProvider;
import org.springframework.boot.actuate.health.HealthIndicator;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.support.locks.LockRegistry;

/** The client, {@link Locked}, and a bean for each neighbour that an application has. */
@AutoConfiguration
@EnableConfigurationProperties({HoldfastProperties.class, ZkLockProperties.class})
public class HoldfastAutoConfiguration {

    /** Closed with the context: that releases what is held, and cancels who waits. */
    @Bean(destroyMethod = "close")
    @ConditionalOnMissingBean
    public HoldfastClient holdfastClient(HoldfastProperties properties, ZkLockProperties zkLock) {
        HoldfastClient.Builder builder = HoldfastClient.builder();
        if (properties.url() != null) {
            builder.url(properties.url());
        } else if (zkLock.address() != null) {
            zkLock.apply(builder);
        }
        properties.options().forEach(builder::option);
        return builder.build();
    }

    @Bean
    @ConditionalOnMissingBean
    public LockedAspect holdfastLockedAspect(HoldfastClient client, HoldfastProperties properties) {
        return new LockedAspect(client, properties);
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(LockRegistry.class)
    static class Integration {
        @Bean
        @ConditionalOnMissingBean
        HoldfastLockRegistry holdfastLockRegistry(HoldfastClient client) {
            return new HoldfastLockRegistry(client);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(LockProvider.class)
    static class ShedLock {
        @Bean
        @ConditionalOnMissingBean(LockProvider.class)
        HoldfastLockProvider holdfastLockProvider(HoldfastClient client) {
            return new HoldfastLockProvider(client);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(MeterRegistry.class)
    static class Metrics {
        @Bean
        @ConditionalOnMissingBean
        HoldfastMetrics holdfastMetrics(HoldfastClient client) {
            return new HoldfastMetrics(client);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(HealthIndicator.class)
    static class Health {
        @Bean
        @ConditionalOnMissingBean
        HoldfastHealthIndicator holdfastHealthIndicator(HoldfastClient client) {
            return new HoldfastHealthIndicator(client);
        }
    }
}
