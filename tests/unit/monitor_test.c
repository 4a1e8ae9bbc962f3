/* SPDX-License-Identifier: MIT */
/* Who sends, and when. */
#include "core_fixture.h"

static struct core_ask other;
static int flushes_before;
static int yields;

static void another_asks(void)
{
    yields++;
    flushes_before = core_count(CORE_FLUSH);
    core_ask(&other, "other", HF_FOREVER, NULL);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(core_count(CORE_FLUSH), flushes_before);
}

static void nobody_asks(void)
{
    yields++;
}

static void a_slice_is_gone(void)
{
    yields++;
    core_stop_ms(1);
}

/* A blocking call that is not served; @served: others were, just before. */
static void call_in_vain(hf_client *client, bool served)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    client->woke = served;
    opts.wait_ms = 1;
    ASSERT_RC(hf_acquire(client, "mine", &opts, &hold, &err), HF_EUNAVAILABLE,
              &err);
}

TEST(monitor, what_is_asked_while_the_driver_yields_travels_with_it)
{
    hf_client *client = core_open("");

    yields = 0;
    core_others(another_asks);
    call_in_vain(client, /* served= */ true);
    ASSERT_EQ(yields, 1);
    ASSERT_TRUE(core_count(CORE_FLUSH) > flushes_before);
    core_others(NULL);
    core_end(&other);
}

TEST(monitor, a_lone_caller_never_yields)
{
    hf_client *client = core_open("");

    yields = 0;
    core_others(nobody_asks);
    call_in_vain(client, /* served= */ false);
    ASSERT_EQ(yields, 0);
}

/* A dear yield begins a pause; 1 ms before its end there is none yet. */
static void assert_pause(hf_client *client, int pause_ms)
{
    yields = 0;
    core_others(a_slice_is_gone);
    call_in_vain(client, /* served= */ true);
    ASSERT_EQ(yields, 1);
    core_advance_ms(pause_ms - 1);
    call_in_vain(client, /* served= */ true);
    ASSERT_EQ(yields, 1);
}

TEST(monitor, after_a_dear_yield_nobody_yields_for_a_while_that_doubles)
{
    hf_client *client = core_open("");

    for (int pause_ms = 2; pause_ms < 100; pause_ms *= 2)
        assert_pause(client, pause_ms);
    assert_pause(client, 100);
    assert_pause(client, 100);
}

TEST(monitor, cheap_yields_make_the_pause_after_a_dear_one_short_again)
{
    hf_client *client = core_open("");

    assert_pause(client, 2);
    assert_pause(client, 4);
    core_others(nobody_asks);
    for (int i = 0; i < 2; i++)
        call_in_vain(client, /* served= */ true);
    ASSERT_EQ(yields, 3);
    assert_pause(client, 2);
}
