/* SPDX-License-Identifier: MIT */
/* histogram.h - many durations in little memory. */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include <stdint.h>
#include <stdio.h>

enum { HISTOGRAM_BUCKETS = 32 * 60 };

/* Nanoseconds, counted in buckets that are 3 % wide. Zeroed is empty. */
struct histogram {
    uint64_t counts[HISTOGRAM_BUCKETS];
    uint64_t total;
};

void histogram_add(struct histogram *histogram, uint64_t ns);
void histogram_merge(struct histogram *to, const struct histogram *from);
/* The duration, in microseconds, that @share of all do not exceed. */
double histogram_us(const struct histogram *histogram, double share);
/* Bars for a person. */
void histogram_print(const struct histogram *histogram, FILE *to);

#endif
