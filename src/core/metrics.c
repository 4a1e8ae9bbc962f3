/* SPDX-License-Identifier: MIT */
/*
 * metrics.c - a client's counters as Prometheus text.
 *
 * Successes are counted inline, in metrics.h. Each family of the text has a
 * HELP and a TYPE line, then its series. Histograms are kept by powers of two
 * and written cumulatively, in seconds, up to the last bucket that has
 * anything in it; what follows would repeat the total.
 *
 * Failure: only memory, and the buffer remembers that.
 */
#include "core/metrics.h"

#include <inttypes.h>

static const char *const acquire_words[HF__ACQUIRE_RESULTS] = {
    [HF__ACQUIRE_HELD] = "held",
    [HF__ACQUIRE_REENTERED] = "reentered",
    [HF__ACQUIRE_BUSY] = "busy",
    [HF__ACQUIRE_TIMEOUT] = "timeout",
    [HF__ACQUIRE_CANCELED] = "canceled",
    [HF__ACQUIRE_UNAVAILABLE] = "unavailable",
    [HF__ACQUIRE_UNKNOWN] = "unknown",
    [HF__ACQUIRE_DEADLOCK] = "deadlock",
    [HF__ACQUIRE_ERROR] = "error",
};

static const char *const renewal_words[HF__RENEWAL_RESULTS] = {
    [HF__RENEWAL_OK] = "ok",
    [HF__RENEWAL_LOST] = "lost",
    [HF__RENEWAL_OVERDUE] = "overdue",
};

static const char *const lost_words[HF__LOST_REASONS] = {
    [HF__LOST_EXPIRED] = "expired",   [HF__LOST_TAKEN] = "taken",
    [HF__LOST_SESSION] = "session",   [HF__LOST_BROKEN] = "broken",
    [HF__LOST_MAX_HOLD] = "max_hold", [HF__LOST_NO_BEAT] = "no_beat",
};

enum hf__acquire_result hf__metrics_failure(int rc)
{
    switch (rc) {
    case HF_EBUSY:
        return HF__ACQUIRE_BUSY;
    case HF_ETIMEOUT:
        return HF__ACQUIRE_TIMEOUT;
    case HF_ECANCELED:
        return HF__ACQUIRE_CANCELED;
    case HF_EUNAVAILABLE:
        return HF__ACQUIRE_UNAVAILABLE;
    case HF_EUNKNOWN:
        return HF__ACQUIRE_UNKNOWN;
    case HF_EDEADLK:
        return HF__ACQUIRE_DEADLOCK;
    default:
        return HF__ACQUIRE_ERROR;
    }
}

const char *hf__metrics_lost_word(int reason)
{
    return reason >= 0 && reason < HF__LOST_REASONS ? lost_words[reason]
                                                    : "unknown";
}

/* What every line needs. */
struct page {
    struct hf__buf *buf;
    const char *engine;
};

static void family(const struct page *page, const char *name, const char *type,
                   const char *help)
{
    hf__buf_printf(page->buf, "# HELP holdfast_%s %s\n# TYPE holdfast_%s %s\n",
                   name, help, name, type);
}

static void single(const struct page *page, const char *name, const char *type,
                   const char *help, uint64_t value)
{
    family(page, name, type, help);
    hf__buf_printf(page->buf, "holdfast_%s{engine=\"%s\"} %" PRIu64 "\n", name,
                   page->engine, value);
}

static void labelled(const struct page *page, const char *name,
                     const char *label, const char *const *words,
                     const uint64_t *values, size_t n, const char *help)
{
    family(page, name, "counter", help);
    for (size_t i = 0; i < n; i++)
        hf__buf_printf(page->buf,
                       "holdfast_%s{engine=\"%s\",%s=\"%s\"} %" PRIu64 "\n",
                       name, page->engine, label, words[i], values[i]);
}

static unsigned last_used(const struct hf__histogram *histogram)
{
    unsigned place = HF__BUCKETS - 1;

    while (place > 0 && histogram->buckets[place] == 0)
        place--;
    return place;
}

static void histogram_lines(const struct page *page, const char *name,
                            const char *help,
                            const struct hf__histogram *histogram)
{
    unsigned last = last_used(histogram);
    uint64_t total = 0;

    family(page, name, "histogram", help);
    for (unsigned i = 0; i < HF__BUCKETS; i++) {
        total += histogram->buckets[i];
        if (i <= last && i + 1 < HF__BUCKETS)
            hf__buf_printf(page->buf,
                           "holdfast_%s_bucket{engine=\"%s\",le=\"%.9g\"} "
                           "%" PRIu64 "\n",
                           name, page->engine,
                           (double)hf__histogram_end(i) / 1e9, total);
    }
    hf__buf_printf(page->buf,
                   "holdfast_%s_bucket{engine=\"%s\",le=\"+Inf\"} %" PRIu64 "\n"
                   "holdfast_%s_sum{engine=\"%s\"} %.9f\n"
                   "holdfast_%s_count{engine=\"%s\"} %" PRIu64 "\n",
                   name, page->engine, total, name, page->engine,
                   (double)histogram->sum_ns / 1e9, name, page->engine, total);
}

void hf__metrics_render(const struct hf__metrics *metrics, const char *engine,
                        struct hf__buf *buf)
{
    const struct page page = {.buf = buf, .engine = engine};

    labelled(&page, "acquires_total", "result", acquire_words,
             metrics->acquires, HF__ACQUIRE_RESULTS,
             "Acquires that ended, by how.");
    histogram_lines(&page, "wait_seconds",
                    "How long a successful acquire took.", &metrics->wait);
    histogram_lines(&page, "hold_seconds",
                    "How long a lock was held until released or lost.",
                    &metrics->hold);
    single(&page, "releases_total", "counter",
           "Releases of locks that were ours until then.", metrics->releases);
    labelled(&page, "renewals_total", "result", renewal_words,
             metrics->renewals, HF__RENEWAL_RESULTS,
             "Lease renewals, one per lock and turn.");
    histogram_lines(&page, "lease_margin_seconds",
                    "What was left of the lease when a renewal was confirmed.",
                    &metrics->margin);
    labelled(&page, "lost_total", "reason", lost_words, metrics->lost,
             HF__LOST_REASONS, "Locks lost before they were released.");
    single(&page, "handovers_local_total", "counter",
           "Locks passed on inside the process, without the engine.",
           metrics->handovers_local);
    single(&page, "reaped_total", "counter",
           "Unwanted or unclear requests taken back from the engine.",
           metrics->reaped);
    single(&page, "deadlocks_total", "counter",
           "Deadlocks found that acquires of this client were part of.",
           metrics->deadlocks);
    single(&page, "reconnects_total", "counter",
           "Connections to the engine after the first.", metrics->reconnects);
    single(&page, "engine_up", "gauge", "1 while the engine is connected.",
           metrics->engine_up ? 1 : 0);
    single(&page, "held", "gauge", "Locks held now.", metrics->held);
    single(&page, "waiting", "gauge", "Acquires that wait now.",
           metrics->waiting);
    single(&page, "reaping", "gauge",
           "Requests not yet confirmed as taken back.", metrics->reaping);
}
