/* SPDX-License-Identifier: MIT */
/* One name inside the process: order, the one place in line, re-entry, local
 * hand-over. */
#include "core_fixture.h"

static hf_opts with_mode(int mode, const char *owner)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.mode = mode;
    opts.owner = owner;
    opts.slots = mode == HF_SLOT ? 3 : 0;
    return opts;
}

TEST(gate, only_one_of_many_waiters_stands_at_the_engine)
{
    struct core_ask asks[5];

    core_open("");
    for (int i = 0; i < 5; i++)
        core_ask(&asks[i], "jobs", HF_FOREVER, NULL);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    core_queued(core_last(CORE_ACQUIRE));
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    for (int i = 0; i < 5; i++)
        core_end(&asks[i]);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
}

TEST(gate, serves_in_the_order_of_asking)
{
    struct core_ask asks[3];

    core_open("local_handover=0");
    for (int i = 0; i < 3; i++)
        core_ask(&asks[i], "jobs", HF_FOREVER, NULL);
    for (int i = 0; i < 3; i++) {
        core_granted(core_last(CORE_ACQUIRE), 10 + (uint64_t)i, 1);
        ASSERT_EQ(asks[i].outcomes, 1);
        ASSERT_EQ(hf_token(asks[i].hold), 10 + i);
        for (int k = i + 1; k < 3; k++)
            ASSERT_EQ(asks[k].outcomes, 0);
        core_end(&asks[i]);
        ASSERT_EQ(core_count(CORE_RELEASE), i + 1);
        core_left(core_last(CORE_RELEASE), 0);
    }
}

TEST(gate, the_next_waiter_inherits_the_place_of_one_that_gave_up)
{
    struct core_ask first;
    struct core_ask second;

    core_open("");
    core_ask(&first, "jobs", 100, NULL);
    core_ask(&second, "jobs", HF_FOREVER, NULL);
    core_queued(core_last(CORE_ACQUIRE));
    core_advance_ms(100);
    ASSERT_EQ(first.rc, HF_ETIMEOUT);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_granted(core_last(CORE_ACQUIRE), 5, 1);
    ASSERT_EQ(second.rc, 0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    core_end(&first);
    core_end(&second);
}

TEST(gate, a_waiter_that_wants_something_else_gets_its_own_place)
{
    struct core_ask first;
    struct core_ask second;
    hf_opts shared = with_mode(HF_SHARED, NULL);

    core_open("");
    core_ask(&first, "jobs", 100, NULL);
    core_ask_with(&second, "jobs", &shared);
    core_queued(core_last(CORE_ACQUIRE));
    core_advance_ms(100);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(core_last(CORE_ACQUIRE)->mode, HF_SHARED);
    core_end(&first);
    core_end(&second);
}

/* @ask is granted, then @again is asked for. */
static void enter_twice(const char *name, struct core_ask *ask,
                        const hf_opts *first, struct core_ask *again,
                        const hf_opts *then)
{
    core_ask_with(ask, name, first);
    core_granted(core_last(CORE_ACQUIRE), 9, 1);
    core_ask_with(again, name, then);
}

TEST(gate, an_owner_enters_again_and_the_last_release_frees)
{
    struct core_ask ask;
    struct core_ask again;
    hf_opts opts = with_mode(HF_EXCLUSIVE, "me");

    core_open("");
    enter_twice("jobs", &ask, &opts, &again, &opts);
    ASSERT_EQ(again.rc, 0);
    ASSERT_EQ(hf_token(again.hold), 9);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    core_end(&ask);
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    ASSERT_EQ(hf_check(again.hold), HF_HELD);
    core_end(&again);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
}

/* Who holds @name by @first and asks by @then waits for itself. */
static void deadlocks(const char *name, const hf_opts *first,
                      const hf_opts *then)
{
    struct core_ask ask;
    struct core_ask again;

    enter_twice(name, &ask, first, &again, then);
    ASSERT_EQ(again.rc, HF_EDEADLK);
    core_end(&again);
    core_end(&ask);
}

TEST(gate, shared_inside_exclusive_is_a_reentry_and_the_reverse_a_deadlock)
{
    struct core_ask writer;
    struct core_ask reader;
    hf_opts exclusive = with_mode(HF_EXCLUSIVE, "me");
    hf_opts shared = with_mode(HF_SHARED, "me");

    core_open("");
    enter_twice("a", &writer, &exclusive, &reader, &shared);
    ASSERT_EQ(reader.rc, 0);
    core_end(&reader);
    core_end(&writer);
    deadlocks("b", &shared, &exclusive);
}

TEST(gate, the_same_owner_that_will_not_reenter_is_told_of_the_deadlock)
{
    hf_opts opts = with_mode(HF_EXCLUSIVE, "me");

    core_open("");
    opts.flags = HF_NON_REENTRANT;
    deadlocks("jobs", &opts, &opts);
}

TEST(gate, a_try_does_not_ask_for_what_another_of_us_holds)
{
    struct core_ask ask;
    struct core_ask try;

    core_open("");
    (void)core_take(&ask, "jobs", 3, 1);
    core_ask(&try, "jobs", 0, NULL);
    ASSERT_EQ(try.rc, HF_EBUSY);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    core_end(&try);
    core_end(&ask);
}

TEST(gate, a_try_says_who_holds_it)
{
    struct core_ask try;

    core_open("");
    core_ask(&try, "jobs", 0, NULL);
    ASSERT_TRUE(core_last(CORE_ACQUIRE)->nowait);
    core_busy(core_last(CORE_ACQUIRE), 0, "db1:4211, \"vacuum\"");
    ASSERT_EQ(try.rc, HF_EBUSY);
    ASSERT_HAS(try.err.text, "db1:4211");
    core_end(&try);
}

TEST(gate, passes_a_seat_inside_the_process_with_a_larger_token_each_time)
{
    struct core_ask asks[4];
    uint64_t token = 0;

    core_open("");
    (void)core_take(&asks[0], "jobs", 1, 1);
    for (int i = 1; i < 4; i++)
        core_ask(&asks[i], "jobs", HF_FOREVER, NULL);
    ASSERT_EQ(core_last(CORE_ACQUIRE)->reserve, 17);
    core_end(&asks[0]); /* has no spare token: through the engine */
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    core_granted(core_last(CORE_ACQUIRE), 100, 17);
    for (int i = 1; i < 4; i++) {
        ASSERT_EQ(asks[i].rc, 0);
        ASSERT_EQ(asks[i].outcomes, 1);
        ASSERT_GT(hf_token(asks[i].hold), token);
        token = hf_token(asks[i].hold);
        if (i < 3) {
            core_end(&asks[i]);
            ASSERT_EQ(core_count(CORE_RELEASE), 1);
            core_advance_ms(0);
        }
    }
    core_end(&asks[3]);
    ASSERT_EQ(core_count(CORE_RELEASE), 2);
}

/* Two ask, and the first is granted a range of tokens. */
static void open_with_two(struct core_ask *asks)
{
    core_open("");
    core_ask(&asks[0], "jobs", HF_FOREVER, NULL);
    core_ask(&asks[1], "jobs", HF_FOREVER, NULL);
    core_granted(core_last(CORE_ACQUIRE), 100, 17);
}

TEST(gate, passes_on_no_longer_than_ten_milliseconds_in_a_row)
{
    struct core_ask asks[3];

    open_with_two(asks);
    core_advance_ms(10);
    core_end(&asks[0]);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    ASSERT_EQ(asks[1].outcomes, 0);
    core_end(&asks[1]);
}

TEST(gate, passes_on_no_more_often_than_configured)
{
    struct core_ask asks[4];

    core_open("local_handover=1");
    for (int i = 0; i < 4; i++)
        core_ask(&asks[i], "jobs", HF_FOREVER, NULL);
    core_granted(core_last(CORE_ACQUIRE), 100, 9);
    core_end(&asks[0]);
    core_advance_ms(0);
    ASSERT_EQ(asks[1].outcomes, 1);
    ASSERT_EQ(core_count(CORE_RELEASE), 0);
    core_end(&asks[1]);
    ASSERT_EQ(core_count(CORE_RELEASE), 1);
    core_end(&asks[2]);
    core_end(&asks[3]);
}

TEST(gate, does_not_pass_on_what_was_lost)
{
    struct core_ask asks[2];
    struct hf__ticket *seat;

    core_open("");
    core_ask(&asks[0], "jobs", HF_FOREVER, NULL);
    core_ask(&asks[1], "jobs", HF_FOREVER, NULL);
    seat = core_last(CORE_ACQUIRE);
    core_granted(seat, 100, 17);
    core_lost(seat);
    core_end(&asks[0]);
    core_advance_ms(0);
    ASSERT_EQ(asks[1].outcomes, 0);
    core_end(&asks[1]);
}

/* The server may have failed over, and granted it to another client. */
TEST(gate, does_not_pass_on_while_the_connection_is_down)
{
    struct core_ask asks[2];

    core_open("");
    core_ask(&asks[0], "jobs", HF_FOREVER, NULL);
    core_ask(&asks[1], "jobs", HF_FOREVER, NULL);
    core_granted(core_last(CORE_ACQUIRE), 100, 17);
    core_hold_connection(true);
    core_down(HF_EUNAVAILABLE);
    core_end(&asks[0]);
    core_advance_ms(0);
    ASSERT_EQ(asks[1].outcomes, 0);
    core_hold_connection(false);
    core_end(&asks[1]);
}

TEST(gate, gives_up_an_idle_place_soon)
{
    struct core_ask asks[2];

    open_with_two(asks);
    core_queued(core_last(CORE_ACQUIRE));
    core_end(&asks[0]);
    core_advance_ms(0);
    ASSERT_EQ(asks[1].outcomes, 1);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 0);
    core_advance_ms(10);
    ASSERT_EQ(core_count(CORE_WITHDRAW), 1);
    core_end(&asks[1]);
}

TEST(gate, readers_of_one_process_hold_together)
{
    struct core_ask asks[2];
    hf_opts shared = with_mode(HF_SHARED, NULL);

    core_open("");
    core_auto();
    core_ask_with(&asks[0], "jobs", &shared);
    core_ask_with(&asks[1], "jobs", &shared);
    ASSERT_EQ(asks[0].rc, 0);
    ASSERT_EQ(asks[1].rc, 0);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    core_end(&asks[0]);
    core_end(&asks[1]);
    ASSERT_EQ(core_count(CORE_RELEASE), 2);
}

TEST(gate, forgets_names_that_nobody_uses)
{
    struct core_ask ask;
    char name[300];
    hf_client *client = core_open("");
    uint32_t before = client->timer_users;

    core_auto();
    memset(name, 'x', sizeof(name));
    for (int i = 0; i < 200; i++) {
        (void)snprintf(name + 200, 20, "%d", i);
        core_ask(&ask, name, 0, NULL);
        ASSERT_EQ(ask.rc, 0);
        core_end(&ask);
    }
    ASSERT_EQ(client->gates_count, 1); /* the last one, in case */
    ASSERT_EQ(client->timer_users, before + 1);
}
