/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.HoldfastClient;
import java.time.Duration;
import java.util.Map;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.boot.context.properties.ConfigurationProperties;

/**
 * {@code zk-lock.*}: the keys of a starter for ZooKeeper that many projects have in their files.
 * They count where {@code holdfast.url} is missing. A warning says what each became.
 */
@ConfigurationProperties(prefix = "zk-lock")
public class ZkLockProperties {
    /** A session of more than this is a mistake in the file: nobody waits that long. */
    private static final Duration LONGEST = Duration.ofDays(1);

    private static final Logger LOG = LoggerFactory.getLogger(ZkLockProperties.class);

    private String address;
    private Long connectionTimeout;
    private Long sessionTimeout;
    private String retryPolicy;
    private Map<String, String> retryForever = Map.of();

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

    public String getAddress() {
        return address;
    }

    public void setAddress(String address) {
        this.address = address;
    }

    public Long getConnectionTimeout() {
        return connectionTimeout;
    }

    public void setConnectionTimeout(Long connectionTimeout) {
        this.connectionTimeout = connectionTimeout;
    }

    public Long getSessionTimeout() {
        return sessionTimeout;
    }

    public void setSessionTimeout(Long sessionTimeout) {
        this.sessionTimeout = sessionTimeout;
    }

    public String getRetryPolicy() {
        return retryPolicy;
    }

    public void setRetryPolicy(String retryPolicy) {
        this.retryPolicy = retryPolicy;
    }

    public Map<String, String> getRetryForever() {
        return retryForever;
    }

    public void setRetryForever(Map<String, String> retryForever) {
        this.retryForever = retryForever;
    }
}
