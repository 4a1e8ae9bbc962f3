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

/* A waiter asks at least every 4 * retry.base, as often as other clients of such
 * locks do, and at most POLL_SHARE times in one retry.base. It also asks
 * POLL_SHARE times while the age of a grant doubles. */
enum { POLL_DOUBLINGS = 2, POLL_SHARE = 10 };

static int64_t doubled(int64_t base_ms, int64_t most_ms, uint32_t attempt)
{
    int64_t pause_ms = base_ms;

    while (attempt-- > 0 && pause_ms < most_ms)
        pause_ms *= 2;
    return pause_ms < most_ms ? pause_ms : most_ms;
}

static int64_t pause_of(const struct hf__settings *settings, uint32_t attempt)
{
    if (settings->retry_policy == HF__RETRY_EXPONENTIAL)
        return HF_MS * doubled(settings->retry_base_ms,
                               settings->retry_max_interval_ms, attempt);
    return HF_MS * settings->retry_interval_ms;
}

static int64_t jittered(const struct hf__settings *settings, int64_t pause_ns)
{
    uint64_t spread = (uint64_t)((double)pause_ns * settings->retry_jitter);

    return pause_ns - (int64_t)(spread / 2) +
           (int64_t)hf__random_below(spread + 1);
}

int64_t hf__retry_pause_ns(const struct hf__settings *settings,
                           uint32_t attempt)
{
    return jittered(settings, pause_of(settings, attempt));
}

int64_t hf__retry_poll_ns(const struct hf__settings *settings, uint32_t attempt,
                          int64_t taken_ns)
{
    bool known =
        taken_ns >= 0 && settings->retry_policy == HF__RETRY_EXPONENTIAL;
    int64_t least_ns = HF_MS * settings->retry_base_ms / POLL_SHARE;
    int64_t share_ns = taken_ns / POLL_SHARE;
    int64_t most_ns = pause_of(
        settings, known || attempt > POLL_DOUBLINGS ? POLL_DOUBLINGS : attempt);

    if (!known || share_ns > most_ns)
        return jittered(settings, most_ns);
    return jittered(settings, share_ns < least_ns ? least_ns : share_ns);
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
