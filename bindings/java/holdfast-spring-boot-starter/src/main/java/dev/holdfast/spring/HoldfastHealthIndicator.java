/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.Capability;
import dev.holdfast.HoldfastClient;
import org.springframework.boot.actuate.health.AbstractHealthIndicator;
import org.springframework.boot.actuate.health.Health;

/** One look at the engine, where it can be looked at. */
public class HoldfastHealthIndicator extends AbstractHealthIndicator {
    private final HoldfastClient client;

    public HoldfastHealthIndicator(HoldfastClient client) {
        super("the engine does not answer");
        this.client = client;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) {
        builder.withDetail("engine", client.engine()).withDetail("url", client.url());
        if (client.capabilities().contains(Capability.LIST)) {
            client.show("holdfast-health");
            builder.up();
        } else {
            builder.unknown().withDetail("reason", "this engine shows no locks");
        }
    }
}
