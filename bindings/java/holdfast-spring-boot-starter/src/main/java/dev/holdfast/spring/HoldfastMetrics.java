/* SPDX-License-Identifier: MIT */
package dev.holdfast.spring;

import dev.holdfast.HoldfastClient;
import io.micrometer.core.instrument.FunctionCounter;
import io.micrometer.core.instrument.Gauge;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.binder.MeterBinder;

/** The library's own metrics, read when somebody looks. */
public class HoldfastMetrics implements MeterBinder {
    private final HoldfastClient client;

    public HoldfastMetrics(HoldfastClient client) {
        this.client = client;
    }

    @Override
    public void bindTo(MeterRegistry registry) {
        gauge(registry, "holdfast.held", "holdfast_held", "Locks held now");
        gauge(registry, "holdfast.waiting", "holdfast_waiting", "Requests that wait now");
        gauge(registry, "holdfast.engine.up", "holdfast_engine_up", "Whether the engine answers");
        counter(registry, "holdfast.lost", "holdfast_lost_total", "Locks lost");
        counter(registry, "holdfast.acquires", "holdfast_acquires_total", "Acquires, by any result");
        counter(registry, "holdfast.releases", "holdfast_releases_total", "Releases");
        Gauge.builder("holdfast.lease.margin.mean", this, HoldfastMetrics::margin)
                .description("What was left of the lease when a renewal arrived, on average")
                .baseUnit("seconds")
                .register(registry);
    }

    private void gauge(MeterRegistry registry, String name, String of, String description) {
        Gauge.builder(name, this, metrics -> metrics.sum(of))
                .description(description)
                .register(registry);
    }

    private void counter(MeterRegistry registry, String name, String of, String description) {
        FunctionCounter.builder(name, this, metrics -> metrics.sum(of))
                .description(description)
                .register(registry);
    }

    private double margin() {
        double count = sum("holdfast_lease_margin_seconds_count");
        return count == 0 ? Double.NaN : sum("holdfast_lease_margin_seconds_sum") / count;
    }

    /** All samples of one name, whatever their labels. */
    private double sum(String name) {
        return client.metrics()
                .lines()
                .filter(line -> line.startsWith(name + " ") || line.startsWith(name + "{"))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .sum();
    }
}
