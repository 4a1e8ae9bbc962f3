/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.HoldfastClient;
import java.time.Duration;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * {@code zk-lock.*}: the keys of a starter for ZooKeeper that many projects have in their files.
 * They count where {@code holdfast.url} is missing. A warning says what each became.
 */
@ConfigurationProperties(prefix = "zk-lock")
public record ZkLockProperties(
        String address,
        Long connectionTimeout,
        Long sessionTimeout,
        String retryPolicy,
        @DefaultValue Map<String, String> retryForever) {

    /** A session of more than this is a mistake in the file: nobody waits that long. */
    private static final Duration LONGEST = Duration.ofDays(1);

    private static final Logger LOG = LoggerFactory.getLogger(ZkLockProperties.class);

    void apply(HoldfastClient.Builder builder) {
        LOG.warn(
                "zk-lock.address is read as holdfast.url: zk://{}/locks. Please use holdfast.url",
                address);
        builder.url("zk://" + address.replace(" ", "") + "/locks");
        applyDuration(builder, "zk-lock.connection-timeout", connectionTimeout, "connect_timeout");
        applyDuration(builder, "zk-lock.session-timeout", sessionTimeout, "ttl");
        if (retryPolicy != null || !retryForever.isEmpty()) {
            LOG.warn(
                    "zk-lock.retry-policy has no meaning here: the library reconnects by itself,"
                            + " with pauses that grow (holdfast.options[retry.base])");
        }
    }

    private static void applyDuration(
            HoldfastClient.Builder builder, String from, Long ms, String key) {
        if (ms == null) {
            return;
        }
        if (ms <= 0 || ms > LONGEST.toMillis()) {
            LOG.warn("{}: {} ms is not used; the default holds (holdfast.options[{}])", from, ms, key);
            return;
        }
        LOG.warn("{} is read as holdfast.options[{}]: {}ms", from, key, ms);
        builder.option(key, ms + "ms");
    }
}
