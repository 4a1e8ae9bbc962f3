/* SPDX-License-Identifier: MIT */
/*
 * histogram.c - many durations in little memory.
 *
 * A bucket is the highest five bits behind the leading one of a number and its
 * exponent, so that every bucket is 3 % of its value wide. Adding is a few
 * instructions and no branch that depends on the past: the measurement must not
 * disturb what it measures.
 */
#include "histogram.h"

enum { FINE_BITS = 5, FINE = 1 << FINE_BITS, BAR_WIDTH = 50 };

static unsigned bucket_of(uint64_t ns)
{
    if (ns < FINE)
        return (unsigned)ns;

    unsigned exponent = 63 - (unsigned)__builtin_clzll(ns);
    unsigned fine = (unsigned)(ns >> (exponent - FINE_BITS)) & (FINE - 1);
    return (exponent - FINE_BITS + 1) * FINE + fine;
}

/* The middle of a bucket, in nanoseconds. */
static double middle_of(unsigned bucket)
{
    unsigned exponent = bucket / FINE;
    double fine = bucket % FINE;

    if (exponent == 0)
        return fine;
    return (FINE + fine + 0.5) * (double)(UINT64_C(1) << (exponent - 1));
}

void histogram_add(struct histogram *histogram, uint64_t ns)
{
    histogram->counts[bucket_of(ns)]++;
    histogram->total++;
}

void histogram_merge(struct histogram *to, const struct histogram *from)
{
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        to->counts[i] += from->counts[i];
    to->total += from->total;
}

double histogram_us(const struct histogram *histogram, double share)
{
    double wanted = share * (double)histogram->total;
    double seen = 0;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += (double)histogram->counts[i];
        if (histogram->counts[i] > 0 && seen >= wanted)
            return middle_of(i) / 1e3;
    }
    return 0;
}

/* One bar for a factor of two: enough to see a shape. */
void histogram_print(const struct histogram *histogram, FILE *to)
{
    uint64_t rows[64] = {0};
    uint64_t most = 1;

    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        rows[i / FINE] += histogram->counts[i];
    for (unsigned i = 0; i < 64; i++)
        most = rows[i] > most ? rows[i] : most;
    for (unsigned i = 0; i < 60; i++) {
        int width = (int)((rows[i] * BAR_WIDTH + most - 1) / most);

        if (rows[i] == 0)
            continue;
        fprintf(to, "  %10.1f us  %5.1f %%  ", middle_of(i * FINE) / 1e3,
                100.0 * (double)rows[i] / (double)histogram->total);
        for (int j = 0; j < width; j++)
            fputs("▇", to);
        fputc('\n', to);
    }
}
