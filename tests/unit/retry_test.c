/* SPDX-License-Identifier: MIT */
#include "core/retry.h"

#include "base/world.h"
#include "test.h"

static struct hf__settings settings(int policy)
{
    return (struct hf__settings){
        .retry_policy = policy,
        .retry_base_ms = 50,
        .retry_interval_ms = 100,
        .retry_max_interval_ms = 2000,
        .retry_max_elapsed_ms = 30000,
    };
}

TEST(retry, exponential_doubles_up_to_the_largest_pause)
{
    struct hf__settings with = settings(HF__RETRY_EXPONENTIAL);

    ASSERT_EQ(hf__retry_pause_ns(&with, 0), 50 * HF_MS);
    ASSERT_EQ(hf__retry_pause_ns(&with, 1), 100 * HF_MS);
    ASSERT_EQ(hf__retry_pause_ns(&with, 5), 1600 * HF_MS);
    ASSERT_EQ(hf__retry_pause_ns(&with, 6), 2000 * HF_MS);
    ASSERT_EQ(hf__retry_pause_ns(&with, UINT32_MAX), 2000 * HF_MS);
}

TEST(retry, a_lock_that_is_taken_is_asked_for_four_times_base_apart_at_most)
{
    struct hf__settings with = settings(HF__RETRY_EXPONENTIAL);

    ASSERT_EQ(hf__retry_poll_ns(&with, 0, -1), 50 * HF_MS);
    ASSERT_EQ(hf__retry_poll_ns(&with, 2, -1), 200 * HF_MS);
    ASSERT_EQ(hf__retry_poll_ns(&with, 9, -1), 200 * HF_MS);
    with.retry_max_interval_ms = 120;
    ASSERT_EQ(hf__retry_poll_ns(&with, 9, -1), 120 * HF_MS);
    with = settings(HF__RETRY_FOREVER);
    ASSERT_EQ(hf__retry_poll_ns(&with, 9, -1), 100 * HF_MS);
}

TEST(retry, a_grant_is_polled_for_more_often_the_younger_it_is)
{
    struct hf__settings with = settings(HF__RETRY_EXPONENTIAL);

    ASSERT_EQ(hf__retry_poll_ns(&with, 9, 0), 5 * HF_MS);
    ASSERT_EQ(hf__retry_poll_ns(&with, 0, 50 * HF_MS), 5 * HF_MS);
    ASSERT_EQ(hf__retry_poll_ns(&with, 0, 800 * HF_MS), 80 * HF_MS);
    ASSERT_EQ(hf__retry_poll_ns(&with, 0, 3600 * HF_SECOND), 200 * HF_MS);
    with = settings(HF__RETRY_FOREVER);
    ASSERT_EQ(hf__retry_poll_ns(&with, 0, 0), 100 * HF_MS);
}

TEST(retry, the_others_pause_for_the_interval)
{
    struct hf__settings with = settings(HF__RETRY_NTIMES);

    ASSERT_EQ(hf__retry_pause_ns(&with, 0), 100 * HF_MS);
    ASSERT_EQ(hf__retry_pause_ns(&with, 9), 100 * HF_MS);
}

TEST(retry, jitter_stays_within_its_share_and_differs)
{
    struct hf__settings with = settings(HF__RETRY_FOREVER);
    int64_t first_ns;
    bool differs = false;

    with.retry_jitter = 0.5;
    first_ns = hf__retry_pause_ns(&with, 0);
    for (int i = 0; i < 1000; i++) {
        int64_t pause_ns = hf__retry_pause_ns(&with, 0);

        ASSERT_GE(pause_ns, 75 * HF_MS);
        ASSERT_LE(pause_ns, 125 * HF_MS);
        differs |= pause_ns != first_ns;
    }
    ASSERT_TRUE(differs);
}

TEST(retry, each_policy_knows_when_it_is_over)
{
    struct hf__settings with = settings(HF__RETRY_FOREVER);

    with.retry_max_attempts = 3;
    ASSERT_FALSE(hf__retry_over(&with, 1000000, 0, HF_NEVER));
    with.retry_policy = HF__RETRY_NTIMES;
    ASSERT_FALSE(hf__retry_over(&with, 2, 0, 0));
    ASSERT_TRUE(hf__retry_over(&with, 3, 0, 0));
    with.retry_policy = HF__RETRY_EXPONENTIAL;
    ASSERT_TRUE(hf__retry_over(&with, 3, 0, 0));
    with.retry_max_attempts = 0;
    ASSERT_FALSE(hf__retry_over(&with, UINT32_MAX, 0, 0));
    with.retry_policy = HF__RETRY_ELAPSED;
    ASSERT_FALSE(hf__retry_over(&with, 5, 0, 29999 * HF_MS));
    ASSERT_TRUE(hf__retry_over(&with, 5, 0, 30000 * HF_MS));
}
