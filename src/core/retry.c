/* SPDX-License-Identifier: MIT */
/*
 * retry.c - the retry policies: forever, ntimes, exponential, elapsed.
 *
 * A policy answers two questions: how long to pause, and whether to give up.
 * The pause is constant (retry.interval), or doubles from retry.base to
 * retry.max_interval; jitter spreads it so that clients that lost one server
 * together do not return together.
 */
#include "core/retry.h"

#include "base/world.h"

/* A waiter asks at least every 4 * retry.base: as often as other clients of
 * such locks do. */
enum { POLL_DOUBLINGS = 2 };

static int64_t doubled(int64_t base_ms, int64_t most_ms, uint32_t attempt)
{
    int64_t pause_ms = base_ms;

    while (attempt-- > 0 && pause_ms < most_ms)
        pause_ms *= 2;
    return pause_ms < most_ms ? pause_ms : most_ms;
}

int64_t hf__retry_pause_ns(const struct hf__settings *settings,
                           uint32_t attempt)
{
    int64_t pause_ns;
    uint64_t spread;

    if (settings->retry_policy == HF__RETRY_EXPONENTIAL)
        pause_ns = HF_MS * doubled(settings->retry_base_ms,
                                   settings->retry_max_interval_ms, attempt);
    else
        pause_ns = HF_MS * settings->retry_interval_ms;

    spread = (uint64_t)((double)pause_ns * settings->retry_jitter);
    return pause_ns - (int64_t)(spread / 2) +
           (int64_t)hf__random_below(spread + 1);
}

int64_t hf__retry_poll_ns(const struct hf__settings *settings, uint32_t attempt)
{
    return hf__retry_pause_ns(
        settings, attempt < POLL_DOUBLINGS ? attempt : POLL_DOUBLINGS);
}

bool hf__retry_over(const struct hf__settings *settings, uint32_t attempts,
                    int64_t since_ns, int64_t now_ns)
{
    bool counted = settings->retry_max_attempts > 0 &&
                   attempts >= (uint32_t)settings->retry_max_attempts;

    switch (settings->retry_policy) {
    case HF__RETRY_FOREVER:
        return false;
    case HF__RETRY_ELAPSED:
        return now_ns - since_ns >= HF_MS * settings->retry_max_elapsed_ms;
    default:
        return counted;
    }
}
