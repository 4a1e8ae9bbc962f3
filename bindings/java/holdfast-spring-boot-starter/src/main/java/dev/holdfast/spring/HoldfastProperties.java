/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.time.Duration;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.boot.context.properties.bind.Name;

/**
 * {@code holdfast.*}. A key that does not exist is an error at start.
 *
 * @param url the engine: redis://…, zk://…, etcd://…, mysql://…, local:
 * @param options keys of libholdfast(3) and their values: ttl, io_timeout, retry.base and so on
 * @param locks what holds for single names
 */
@ConfigurationProperties(prefix = "holdfast", ignoreUnknownFields = false)
public record HoldfastProperties(
        String url,
        @DefaultValue Map<String, String> options,
        @DefaultValue Map<String, LockSettings> locks) {

    /**
     * What holds for one name.
     *
     * @param waitFor how long to wait; a component cannot be called wait
     * @param lease the lease
     * @param type how the name is held
     * @param slots how many holders a SLOT admits
     */
    public record LockSettings(
            @Name("wait") Duration waitFor,
            Duration lease,
            @DefaultValue("DEFAULT") LockType type,
            @DefaultValue("0") int slots) {

        static final LockSettings NONE = new LockSettings(null, null, LockType.DEFAULT, 0);
    }
}
