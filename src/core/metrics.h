/* SPDX-License-Identifier: MIT */
/*
 * metrics.h - what a client counts, and how it is written down.
 *
 * Plain numbers, touched with the monitor held: a count is one addition, an
 * observation two and an index, and none of them reads a clock. The
 * caller passes the duration it has at hand.
 *
 * hf__metrics_render() works on a copy, so that text is made without the
 * monitor:  enter; copy = client->metrics; leave; render(&copy).
 */
#ifndef HF_METRICS_H
#define HF_METRICS_H

#include "base/base.h"
#include "base/buf.h"
#include "core/ticket.h"

/* How an acquire ended for the caller. */
enum hf__acquire_result {
    HF__ACQUIRE_HELD,
    HF__ACQUIRE_REENTERED,
    HF__ACQUIRE_BUSY,
    HF__ACQUIRE_TIMEOUT,
    HF__ACQUIRE_CANCELED,
    HF__ACQUIRE_UNAVAILABLE,
    HF__ACQUIRE_UNKNOWN,
    HF__ACQUIRE_DEADLOCK,
    HF__ACQUIRE_ERROR, /* everything else */
    HF__ACQUIRE_RESULTS
};

/* How a renewal of one ticket ended. */
enum hf__renewal_result {
    HF__RENEWAL_OK,
    HF__RENEWAL_LOST,    /* the engine said that it is not ours any more */
    HF__RENEWAL_OVERDUE, /* no answer when the next one was due */
    HF__RENEWAL_RESULTS
};

/*
 * Buckets by powers of two of 2^10 ns: the first ends at 1 µs (1024 ns), each
 * next at twice that, the last but one at 2^36 ns (69 s), the last has no end.
 */
enum { HF__BUCKETS = 28, HF__BUCKET_SHIFT = 10 };

struct hf__histogram {
    uint64_t buckets[HF__BUCKETS]; /* not cumulative */
    uint64_t sum_ns;
};

struct hf__metrics {
    uint64_t acquires[HF__ACQUIRE_RESULTS];
    uint64_t renewals[HF__RENEWAL_RESULTS];
    uint64_t lost[HF__LOST_REASONS];
    uint64_t releases;         /* of holds that were ours until then */
    uint64_t handovers_local;  /* passed on inside this process */
    uint64_t reconnects;       /* connections after the first */
    uint64_t deadlocks;        /* that requests of this client were part of */
    uint64_t reaped;           /* requests taken back after unknown, timeout or
                                 cancel, and confirmed */
    uint64_t held;             /* gauge: holds of callers */
    uint64_t waiting;          /* gauge: callers and requests that wait */
    uint64_t reaping;          /* gauge: tickets not yet confirmed gone; counted
                                 when it is asked for */
    bool engine_up;            /* gauge */
    struct hf__histogram wait; /* from entry to held */
    struct hf__histogram hold; /* from held to released or lost */
    struct hf__histogram margin; /* what was left of the claim when a renewal
                                    was confirmed */
};

static inline unsigned hf__histogram_place(uint64_t ns)
{
    uint64_t units = ns >> HF__BUCKET_SHIFT;
    unsigned place = units == 0 ? 0 : 64u - (unsigned)__builtin_clzll(units);

    return place < HF__BUCKETS ? place : HF__BUCKETS - 1;
}

/* Negative durations count as 0. */
static inline void hf__histogram_observe(struct hf__histogram *histogram,
                                         int64_t ns)
{
    uint64_t value = ns < 0 ? 0 : (uint64_t)ns;

    histogram->buckets[hf__histogram_place(value)]++;
    histogram->sum_ns += value;
}

/* The end of bucket @place in ns; the last has none: UINT64_MAX. */
static inline uint64_t hf__histogram_end(unsigned place)
{
    return place + 1 < HF__BUCKETS ? UINT64_C(1) << (place + HF__BUCKET_SHIFT)
                                   : UINT64_MAX;
}

/* What an acquire that returned @rc, an error, counts as. */
enum hf__acquire_result hf__metrics_failure(int rc);

/* An acquire is over for its caller; @rc as it is returned. A re-entry is
 * counted by hf__metrics_reentered() instead. */
static inline void hf__metrics_acquired(struct hf__metrics *metrics, int rc,
                                        int64_t waited_ns)
{
    if (HF_LIKELY(rc == 0)) {
        metrics->acquires[HF__ACQUIRE_HELD]++;
        hf__histogram_observe(&metrics->wait, waited_ns);
        return;
    }
    metrics->acquires[hf__metrics_failure(rc)]++;
}

static inline void hf__metrics_reentered(struct hf__metrics *metrics)
{
    metrics->acquires[HF__ACQUIRE_REENTERED]++;
}

/* A hold that was ours until now was let go. */
static inline void hf__metrics_released(struct hf__metrics *metrics,
                                        int64_t held_ns)
{
    metrics->releases++;
    hf__histogram_observe(&metrics->hold, held_ns);
}

/* @reason: HF__LOST_*. */
static inline void hf__metrics_lost(struct hf__metrics *metrics, int reason,
                                    int64_t held_ns)
{
    metrics->lost[reason]++;
    hf__histogram_observe(&metrics->hold, held_ns);
}

/* A renewal was confirmed, @margin_ns before our claim would have ended. */
static inline void hf__metrics_renewed(struct hf__metrics *metrics,
                                       int64_t margin_ns)
{
    metrics->renewals[HF__RENEWAL_OK]++;
    hf__histogram_observe(&metrics->margin, margin_ns);
}

/* @result: HF__RENEWAL_LOST or HF__RENEWAL_OVERDUE. */
static inline void hf__metrics_renewal_failed(struct hf__metrics *metrics,
                                              int result)
{
    metrics->renewals[result]++;
}

/* "expired" for HF__LOST_EXPIRED, …: the label, and the word in the log. */
const char *hf__metrics_lost_word(int reason);

/* Prometheus text (version 0.0.4) with the label engine=@engine on every
 * series. The caller checks hf__buf_failed(). */
void hf__metrics_render(const struct hf__metrics *metrics, const char *engine,
                        struct hf__buf *buf);

#endif
