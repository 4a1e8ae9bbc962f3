/* SPDX-License-Identifier: MIT */
/* redlock_quorum_test.c - the arithmetic of RedLock, for every count of votes. */
#include "base/world.h"
#include "engines/redis/redlock_quorum.h"
#include "test.h"

/* Call @body with every way in which @n nodes can stand. */
#define EACH_TALLY(n, tally)                                                   \
    for (struct hf__redlock_tally tally = {.out = (n)}; tally.yes <= (n);      \
         tally = next_tally(tally, n))

static struct hf__redlock_tally next_tally(struct hf__redlock_tally tally,
                                           uint32_t n)
{
    if (tally.out > 0) {
        tally.open++;
        tally.out--;
    } else if (tally.open > 0) {
        tally.out = tally.open - 1;
        tally.open = 0;
        tally.no++;
    } else {
        tally.yes++;
        tally.no = 0;
        tally.out = tally.yes <= n ? n - tally.yes : 0;
    }
    return tally;
}

TEST(quorum, is_more_than_half)
{
    ASSERT_EQ(hf__redlock_quorum(3), 2);
    ASSERT_EQ(hf__redlock_quorum(4), 3);
    ASSERT_EQ(hf__redlock_quorum(5), 3);
    ASSERT_EQ(hf__redlock_quorum(9), 5);
}

TEST(quorum, nobody_wins_beside_another)
{
    for (uint32_t n = 3; n <= 9; n++) {
        EACH_TALLY(n, tally)
        {
            /* The best that another can have: all that are not ours. */
            struct hf__redlock_tally other = {.yes = n - tally.yes,
                                              .no = tally.yes};

            if (hf__redlock_quorum_ask(&tally) == HF__REDLOCK_WON)
                ASSERT_NE(hf__redlock_quorum_ask(&other), HF__REDLOCK_WON);
        }
    }
}

TEST(quorum, is_open_exactly_while_it_can_still_be_won)
{
    for (uint32_t n = 3; n <= 9; n++) {
        EACH_TALLY(n, tally)
        {
            struct hf__redlock_tally best = tally;
            int verdict = (int)hf__redlock_quorum_ask(&tally);
            bool won;

            best.yes += best.open;
            best.open = 0;
            won = hf__redlock_quorum_ask(&best) == HF__REDLOCK_WON;
            ASSERT_EQ(verdict == HF__REDLOCK_OPEN || verdict == HF__REDLOCK_WON,
                      won);
        }
    }
}

TEST(quorum, says_whether_others_or_failures_prevented_it)
{
    struct hf__redlock_tally held = {.yes = 1, .no = 3, .out = 1};
    struct hf__redlock_tally split = {.yes = 2, .no = 1, .out = 2};
    struct hf__redlock_tally dead = {.yes = 1, .no = 1, .out = 3};

    ASSERT_EQ(hf__redlock_quorum_ask(&held), HF__REDLOCK_BUSY);
    ASSERT_EQ(hf__redlock_quorum_ask(&split), HF__REDLOCK_BUSY);
    ASSERT_EQ(hf__redlock_quorum_ask(&dead), HF__REDLOCK_TOO_FEW);
}

TEST(leaving, is_certain_only_when_no_majority_can_be_ours)
{
    for (uint32_t n = 3; n <= 9; n++) {
        EACH_TALLY(n, tally)
        {
            uint32_t perhaps = tally.open + tally.out;
            int left = (int)hf__redlock_quorum_release(&tally, false);
            int released = (int)hf__redlock_quorum_release(&tally, true);

            ASSERT_EQ(left == HF__REDLOCK_LEFT,
                      perhaps < hf__redlock_quorum(n));
            ASSERT_NE(left, HF__REDLOCK_LOST);
            if (released == HF__REDLOCK_LEFT)
                ASSERT_GE(tally.yes, hf__redlock_quorum(n));
            /* Who is late may still say that it was ours. */
            ASSERT_EQ(released == HF__REDLOCK_LOST,
                      tally.yes + perhaps < hf__redlock_quorum(n));
            if (tally.open == 0) {
                ASSERT_NE(left, HF__REDLOCK_OPEN);
                ASSERT_NE(released, HF__REDLOCK_OPEN);
            }
        }
    }
}

TEST(quarantine, lasts_until_the_longest_lease_has_ended)
{
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(0, HF_NEVER, 30000),
              30 * HF_SECOND);
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(11, HF_NEVER, 30000),
              20 * HF_SECOND);
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(31, HF_NEVER, 30000), 0);
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(INT64_MAX, HF_NEVER, 30000), 0);
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(-5, HF_NEVER, 30000),
              30 * HF_SECOND);
}

/* Its uptime comes from a clock that may have been set; we know better. */
TEST(quarantine, does_not_believe_an_uptime_that_cannot_be)
{
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(3600, 4 * HF_SECOND, 30000),
              26 * HF_SECOND);
    ASSERT_EQ(hf__redlock_quorum_quarantine_ns(INT64_MAX, 4 * HF_SECOND, 30000),
              26 * HF_SECOND);
}

#define LOOK(clock, server_s, sent_s, now_s)                                   \
    hf__redlock_quorum_clock_jumped(&(clock), (int64_t)((server_s)*HF_SECOND), \
                                    (int64_t)((sent_s)*HF_SECOND),             \
                                    (int64_t)((now_s)*HF_SECOND), 600 * HF_MS, \
                                    30 * HF_SECOND)

TEST(clock, that_goes_on_is_believed)
{
    struct hf__redlock_clock clock = {0};

    for (int i = 1; i < 200; i++)
        ASSERT_FALSE(LOOK(clock, 1000 + i, i, i + 0.4));
}

TEST(clock, that_jumps_ahead_is_caught_however_slow_the_answers)
{
    struct hf__redlock_clock clock = {0};

    ASSERT_FALSE(LOOK(clock, 1001, 1, 1.3));
    ASSERT_FALSE(LOOK(clock, 1004, 2, 4)); /* slow, but not ahead */
    ASSERT_TRUE(LOOK(clock, 1025, 5, 5.1));
    ASSERT_FALSE(LOOK(clock, 1026, 6, 6.1)); /* the new normal */
}

TEST(clock, that_jumps_in_small_steps_is_caught)
{
    struct hf__redlock_clock clock = {0};
    int caught = 0;

    for (int i = 1; i < 20; i++)
        caught += LOOK(clock, 1000 + i + i * 0.3, i, i + 0.01);
    ASSERT_GT(caught, 3);
}

TEST(clock, that_was_set_back_is_caught_when_it_returns)
{
    struct hf__redlock_clock clock = {0};

    ASSERT_FALSE(LOOK(clock, 1001, 1, 1.1));
    ASSERT_FALSE(LOOK(clock, 902, 2, 2.1));
    ASSERT_TRUE(LOOK(clock, 1003, 3, 3.1));
}
