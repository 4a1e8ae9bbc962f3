/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** {@code holdfast.*}. A key that does not exist is an error at start. */
@ConfigurationProperties(prefix = "holdfast", ignoreUnknownFields = false)
public class HoldfastProperties {
    /** The engine: redis://…, zk://…, etcd://…, mysql://…, local:. */
    private String url;

    /** Keys of libholdfast(3) and their values: ttl, io_timeout, retry.base and so on. */
    private Map<String, String> options = new LinkedHashMap<>();

    /** What holds for single names. */
    private Map<String, LockSettings> locks = new LinkedHashMap<>();

    /** What holds for one name. */
    public static class LockSettings {
        /** How long to wait. */
        private Duration wait;

        /** The lease. */
        private Duration lease;

        /** How the name is held. */
        private LockType type = LockType.DEFAULT;

        /** How many holders a SLOT admits. */
        private int slots;

        public Duration getWait() {
            return wait;
        }

        public void setWait(Duration wait) {
            this.wait = wait;
        }

        public Duration getLease() {
            return lease;
        }

        public void setLease(Duration lease) {
            this.lease = lease;
        }

        public LockType getType() {
            return type;
        }

        public void setType(LockType type) {
            this.type = type;
        }

        public int getSlots() {
            return slots;
        }

        public void setSlots(int slots) {
            this.slots = slots;
        }
    }

    public String getUrl() {
        return url;
    }

    public void setUrl(String url) {
        this.url = url;
    }

    public Map<String, String> getOptions() {
        return options;
    }

    public void setOptions(Map<String, String> options) {
        this.options = options;
    }

    public Map<String, LockSettings> getLocks() {
        return locks;
    }

    public void setLocks(Map<String, LockSettings> locks) {
        this.locks = locks;
    }
}
