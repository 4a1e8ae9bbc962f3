/* SPDX-License-Identifier: MIT */
/* Who sends, and when. */
#include "core_fixture.h"

static struct core_ask other;
static int flushes_before;
static int yields;

static hf_client *shared;

static void another_asks(void)
{
    yields++;
    flushes_before = core_count(CORE_FLUSH);
    core_ask(&other, "other", HF_FOREVER, NULL);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 2);
    ASSERT_EQ(core_count(CORE_FLUSH), flushes_before);
    shared->expected--;
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

/* A blocking call that is not served; @others were, just before, with it. */
static void call_in_vain(hf_client *client, uint32_t others)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    client->expected = others + 1;
    client->yields = others > 0 ? 3 : 0;
    opts.wait_ms = 1;
    ASSERT_RC(hf_acquire(client, "mine", &opts, &hold, &err), HF_EUNAVAILABLE,
              &err);
}

TEST(monitor, what_is_asked_while_the_driver_yields_travels_with_it)
{
    hf_client *client = core_open("");

    shared = client;
    yields = 0;
    core_others(another_asks);
    call_in_vain(client, /* others= */ 1);
    ASSERT_EQ(yields, 1);
    ASSERT_TRUE(core_count(CORE_FLUSH) > flushes_before);
    core_others(NULL);
    core_end(&other);
}

/* How often a caller yields where so many others are expected, in vain. */
static int yields_for(hf_client *client, uint32_t others)
{
    yields = 0;
    core_others(nobody_asks);
    call_in_vain(client, others);
    return (int)yields;
}

TEST(monitor, a_lone_caller_never_yields)
{
    ASSERT_EQ(yields_for(core_open(""), /* others= */ 0), 0);
}

TEST(monitor, a_driver_yields_for_who_is_late_but_not_for_ever)
{
    hf_client *client = core_open("");

    ASSERT_EQ(yields_for(client, /* others= */ 7), 3);
    ASSERT_EQ(client->expected, 0);
}

static void another_is_served(void)
{
    if (++yields < 5)
        shared->yields = 3;
}

TEST(monitor, a_driver_yields_while_others_are_served_by_each_other)
{
    shared = core_open("");
    yields = 0;
    core_others(another_is_served);
    call_in_vain(shared, /* others= */ 1);
    ASSERT_EQ(yields, 5 + 2);
}

TEST(monitor, what_is_asked_beside_one_who_is_on_its_way_out_goes_with_it)
{
    hf_client *client = core_open("");
    struct core_ask ask;
    int flushes;

    client->served = 1;
    flushes = core_count(CORE_FLUSH);
    core_ask(&ask, "other", HF_FOREVER, NULL);
    ASSERT_EQ(core_count(CORE_ACQUIRE), 1);
    ASSERT_EQ(core_count(CORE_FLUSH), flushes);
    client->served = 0;
    hf__monitor_enter_any(client, NULL);
    hf__monitor_leave(client);
    ASSERT_EQ(core_count(CORE_FLUSH), flushes + 1);
    core_end(&ask);
}

static int unparks;
static uint32_t unparked;

static void count_unpark(_Atomic uint32_t *word, uint32_t who)
{
    unparks++;
    unparked = who;
    ASSERT_PTR_EQ(word, &shared->bell);
}

TEST(monitor, those_who_are_served_together_are_woken_by_one_call)
{
    struct hf__waiter waiters[3];

    shared = core_open("");
    core_world()->unpark = count_unpark;
    unparks = 0;
    hf__monitor_enter_any(shared, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        hf__waiter_init(&waiters[i]);
        hf__list_append(&shared->waiters, &waiters[i].link);
        waiters[i].call = 1u << i;
        hf__waiter_done(shared, &waiters[i], 0);
        hf__list_remove(&waiters[i].link);
    }
    ASSERT_EQ(shared->served, 3);
    shared->served = 0;
    hf__monitor_leave(shared);
    ASSERT_EQ(unparks, 1);
    ASSERT_EQ(unparked, 7);
}

/* A dear yield begins a pause; 1 ms before its end there is none yet. */
static void assert_pause(hf_client *client, int pause_ms)
{
    yields = 0;
    core_others(a_slice_is_gone);
    call_in_vain(client, /* others= */ 1);
    ASSERT_EQ(yields, 1);
    core_advance_ms(pause_ms - 1);
    call_in_vain(client, /* others= */ 1);
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
    call_in_vain(client, /* others= */ 1);
    ASSERT_EQ(yields, 1 + 3);
    assert_pause(client, 2);
}

static int looks;
static int64_t look_takes_ms;

static int count_look(struct hf__loop *loop, struct hf__loop_batch *batch,
                      int64_t until_ns)
{
    looks += until_ns == 0;
    core_stop_ms(until_ns == 0 ? look_takes_ms : 1);
    return hf__world_real.poll(loop, batch, 0);
}

/* A blocking call whose answer is under way, and does not come: how often was
 * it looked for? The last time is before the call gives up. */
static int looks_in_vain(hf_client *client)
{
    core_world()->poll = count_look;
    looks = -1;
    core_engine()->under_way = 1;
    call_in_vain(client, /* others= */ 0);
    core_engine()->under_way = 0;
    return looks;
}

TEST(monitor, an_answer_under_way_is_looked_for_before_the_caller_sleeps)
{
    hf_client *client = core_open("");

    look_takes_ms = 0;
    client->spin.from_ns = 0; /* as if there were other processors */
    ASSERT_EQ(looks_in_vain(client), 256);
    ASSERT_EQ(looks_in_vain(client), 0); /* it was not worth it */
    core_stop_ms(2);
    ASSERT_EQ(looks_in_vain(client), 256);
    core_stop_ms(2);
    ASSERT_EQ(looks_in_vain(client), 0);
}

TEST(monitor, who_looks_for_an_answer_gives_up_when_its_time_is_over)
{
    hf_client *client = core_open("");

    look_takes_ms = 1;
    client->spin.from_ns = 0;
    ASSERT_EQ(looks_in_vain(client), 1);
}

TEST(monitor, nobody_looks_for_one_answer_beside_many_who_wait)
{
    hf_client *client = core_open("");

    look_takes_ms = 0;
    client->spin.from_ns = 0;
    client->waiters_n = 2;
    ASSERT_EQ(looks_in_vain(client), 0);
    client->waiters_n = 1;
    ASSERT_EQ(looks_in_vain(client), 256);
    client->waiters_n = 0;
}

TEST(monitor, who_looks_for_an_answer_lets_others_run_and_sends_for_them)
{
    hf_client *client = core_open("");

    shared = client;
    yields = 0;
    look_takes_ms = 1;
    client->spin.from_ns = 0;
    client->users++; /* another thread is inside a call */
    core_others(another_asks);
    ASSERT_TRUE(looks_in_vain(client) > 0);
    ASSERT_EQ(yields, 1);
    ASSERT_TRUE(core_count(CORE_FLUSH) > flushes_before);
    core_others(NULL);
    client->users--;
    core_end(&other);
}

TEST(monitor, a_dear_yield_ends_the_looks_for_a_while)
{
    hf_client *client = core_open("");

    yields = 0;
    look_takes_ms = 0;
    client->spin.from_ns = 0;
    client->users++;
    core_others(a_slice_is_gone);
    ASSERT_EQ(looks_in_vain(client), 1);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(looks_in_vain(client), 0);
    core_others(NULL);
    client->users--;
}

static struct hf__waiter mine;

static void it_is_done(void)
{
    yields++;
    hf__monitor_enter_any(shared, NULL);
    hf__waiter_done(shared, &mine, 0);
    hf__monitor_leave(shared);
}

TEST(monitor, who_looks_for_an_answer_notices_that_it_is_served)
{
    shared = core_open("");
    yields = 0;
    look_takes_ms = 0;
    shared->spin.from_ns = 0;
    core_world()->poll = count_look;
    looks = 0;
    hf__waiter_init(&mine);
    hf__monitor_enter_any(shared, NULL);
    shared->users++;
    core_engine()->under_way = 1;
    core_others(it_is_done);
    ASSERT_TRUE(hf__monitor_wait(shared, &mine, HF_NEVER));
    core_engine()->under_way = 0;
    core_others(NULL);
    shared->users--;
    hf__monitor_leave(shared);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(looks, 0);
}

TEST(monitor, nobody_looks_for_an_answer_with_spin_off)
{
    look_takes_ms = 0;
    ASSERT_EQ(looks_in_vain(core_open("spin=off")), 0);
}

static int parks;

static void park_until_done(_Atomic uint32_t *word, uint32_t value,
                            uint32_t who, int64_t until_ns)
{
    (void)until_ns;
    parks++;
    ASSERT_PTR_EQ(word, &shared->bell);
    ASSERT_EQ(value, atomic_load(&shared->bell));
    ASSERT_EQ(who, mine.call);
    it_is_done();
}

/* Wait beside a driver, as if there were other processors; at a yield @others
 * happens, and who parks is served. */
static void wait_beside_a_driver(void (*others)(void))
{
    struct hf__waiter driver;

    core_world()->park = park_until_done;
    core_world()->unpark = count_unpark;
    yields = 0;
    parks = 0;
    unparks = 0;
    hf__waiter_init(&driver);
    hf__waiter_init(&mine);
    hf__monitor_enter_any(shared, NULL);
    shared->driver = &driver;
    core_others(others);
    ASSERT_TRUE(hf__monitor_wait(shared, &mine, HF_NEVER));
    core_others(NULL);
    shared->driver = NULL;
    hf__monitor_leave(shared);
}

/* As if there were other processors. */
static hf_client *open_to_linger(void)
{
    hf_client *client = core_open("");

    client->spin.from_ns = 0;
    return client;
}

TEST(monitor, who_is_served_while_it_lingers_neither_parks_nor_is_unparked)
{
    shared = open_to_linger();
    wait_beside_a_driver(it_is_done);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(parks, 0);
    ASSERT_EQ(unparks, 0);
}

TEST(monitor, who_lingers_in_vain_parks_and_the_next_ones_do_so_at_once)
{
    shared = open_to_linger();
    wait_beside_a_driver(a_slice_is_gone);
    ASSERT_EQ(yields, 1 + 1);
    ASSERT_EQ(parks, 1);
    ASSERT_EQ(unparks, 1);
    wait_beside_a_driver(a_slice_is_gone);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(parks, 1);
    core_stop_ms(2);
    wait_beside_a_driver(a_slice_is_gone);
    ASSERT_EQ(yields, 1 + 1);
}

static void another_lingered_in_vain(void)
{
    a_slice_is_gone();
    shared->linger.from_ns = shared->now_ns + 9 * HF_SECOND;
}

TEST(monitor, those_who_linger_in_vain_together_count_as_one)
{
    int64_t pause_ns;

    shared = open_to_linger();
    pause_ns = shared->linger.pause_ns;
    wait_beside_a_driver(another_lingered_in_vain);
    ASSERT_EQ(parks, 1);
    ASSERT_EQ(shared->linger.pause_ns, pause_ns);
}

static void the_bell_rings(void)
{
    a_slice_is_gone();
    atomic_fetch_add(&shared->bell, 1);
}

TEST(monitor, who_lingers_while_others_are_woken_parks_all_the_same)
{
    shared = open_to_linger();
    wait_beside_a_driver(the_bell_rings);
    ASSERT_EQ(parks, 1);
}

TEST(monitor, nobody_lingers_where_a_spin_does_not_pay)
{
    shared = core_open("");
    hf__monitor_enter_any(shared, NULL);
    shared->spin.from_ns = shared->now_ns + HF_MS;
    hf__monitor_leave(shared);
    wait_beside_a_driver(nobody_asks);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(parks, 1);
}

TEST(monitor, sixteen_threads_linger_and_no_more)
{
    shared = open_to_linger();
    atomic_store(&shared->lingers, 16);
    wait_beside_a_driver(nobody_asks);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(parks, 1);
    atomic_store(&shared->lingers, 15);
    wait_beside_a_driver(it_is_done);
    ASSERT_EQ(parks, 0);
    ASSERT_EQ(atomic_load(&shared->lingers), 15);
    atomic_store(&shared->lingers, 0);
}

TEST(monitor, nobody_lingers_with_spin_off)
{
    shared = core_open("spin=off");
    wait_beside_a_driver(nobody_asks);
    ASSERT_EQ(yields, 1);
    ASSERT_EQ(parks, 1);
}

TEST(monitor, who_was_not_alone_a_moment_ago_lets_others_run)
{
    hf_client *client = core_open("");

    look_takes_ms = 0;
    client->spin.from_ns = 0;
    yields = 0;
    core_others(nobody_asks);
    client->crowded_ns = client->now_ns;
    ASSERT_EQ(looks_in_vain(client), 256);
    ASSERT_EQ(yields, 256);
    core_stop_ms(11);
    ASSERT_EQ(looks_in_vain(client), 256);
    ASSERT_EQ(yields, 256);
    core_others(NULL);
}

static void the_other_leaves(void)
{
    yields++;
    (void)pthread_mutex_unlock(&shared->monitor);
}

TEST(monitor, who_finds_it_taken_lets_its_owner_run_before_it_sleeps)
{
    shared = open_to_linger();
    atomic_store(&shared->dear, false);
    yields = 0;
    core_others(the_other_leaves);
    (void)pthread_mutex_lock(&shared->monitor);
    ASSERT_EQ(hf__monitor_enter_any(shared, NULL), 0);
    core_others(NULL);
    hf__monitor_leave(shared);
    ASSERT_EQ(yields, 1);
}

TEST(monitor, yields_are_dear_after_one_that_was)
{
    shared = open_to_linger();
    wait_beside_a_driver(it_is_done);
    ASSERT_TRUE(!atomic_load(&shared->dear));
    wait_beside_a_driver(a_slice_is_gone);
    ASSERT_TRUE(atomic_load(&shared->dear));
    ASSERT_TRUE(atomic_load(&core_open("spin=off")->dear));
}
