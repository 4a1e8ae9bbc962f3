/* SPDX-License-Identifier: MIT */
/* What a watch promises about looks, events and bounds, on a clock that stands
 * still. */
#include "core/watch.h"

#include "core_fixture.h"

enum { EVENTS_MAX = 4096 };

static hf_client *client;
static hf_watch *watch;
static int kinds[EVENTS_MAX];
static char owners[EVENTS_MAX][16];
static uint64_t missed;
static int n_events;

static void on_event(const hf_watch_event *event, void *ctx)
{
    (void)ctx;
    ASSERT_EQ(event->size, sizeof(hf_watch_event));
    ASSERT_LT(n_events, EVENTS_MAX);
    ASSERT_TRUE((event->row == NULL) == (event->kind == HF_EV_RESYNC));
    kinds[n_events] = event->kind;
    (void)snprintf(owners[n_events], sizeof(owners[0]), "%s",
                   event->row ? event->row->owner : "");
    missed = event->missed;
    n_events++;
}

static void stop_watch(void *arg)
{
    (void)arg;
    hf_watch_stop(watch);
    watch = NULL;
}

/* Dispatch until nothing is told any more. */
static void settle(void)
{
    while (hf_dispatch(client) > 0)
        continue;
}

static void start_with(bool push, const char *name, uint32_t flags)
{
    hf_error err;

    n_events = 0;
    core_traits(HF_CAP_FENCED | HF_CAP_LIST | HF_CAP_BREAK, 0);
    client = core_open("retry.base=100ms&retry.jitter=0");
    core_push(push);
    ASSERT_OK(hf_watch_start(client, name, flags, on_event, NULL, &watch, &err),
              &err);
    test_defer(stop_watch, NULL);
    settle();
}

static void start(const char *name, uint32_t flags)
{
    start_with(/* push= */ false, name, flags);
}

static void add(const char *name, int role, const char *owner, uint64_t token)
{
    hf_lock_info info = {.role = role,
                         .name = name,
                         .owner = owner,
                         .host = "",
                         .note = "",
                         .token = token,
                         .lease_ms = 30000,
                         .alive = HF_ALIVE_UNKNOWN};

    ASSERT_EQ(hf__query_add_lock(core_query(), &info), 0);
}

static void answer(void)
{
    core_answer(0);
    settle();
}

static void expect(int i, int kind, const char *owner)
{
    ASSERT_LT(i, n_events);
    ASSERT_EQ(kinds[i], kind);
    ASSERT_STREQ(owners[i], owner);
}

/* The first look, which finds nobody. */
static void start_empty(bool push, const char *name, uint32_t flags)
{
    start_with(push, name, flags);
    ASSERT_EQ(core_count(CORE_QUERY), 1);
    answer();
    ASSERT_EQ(n_events, 1);
    expect(0, HF_EV_RESYNC, "");
}

TEST(watch, begins_with_resync_and_the_rows_as_they_are)
{
    start("jobs", HF_EXACT);
    ASSERT_STREQ(core_query()->name, "jobs");
    add("jobs", HF_HOLDER, "alice", 1);
    add("jobs", HF_WAITER, "bob", 0);
    answer();
    ASSERT_EQ(n_events, 3);
    expect(0, HF_EV_RESYNC, "");
    expect(1, HF_EV_GRANTED, "alice");
    expect(2, HF_EV_QUEUED, "bob");
}

TEST(watch, without_hints_it_looks_every_second_faster_while_something_changes)
{
    start_empty(false, NULL, 0);
    core_comes_after_ms(CORE_QUERY, 1000);
    ASSERT_STREQ(core_query()->prefix, "");
    answer(); /* nothing: slower */
    core_comes_after_ms(CORE_QUERY, 2000);
    add("a", HF_HOLDER, "alice", 1);
    answer();
    expect(1, HF_EV_GRANTED, "alice");
    core_comes_after_ms(CORE_QUERY, 250);
    answer();
    expect(2, HF_EV_RELEASED, "alice");
}

TEST(watch, a_lease_that_was_over_makes_it_lost)
{
    start("jobs", HF_EXACT);
    add("jobs", HF_HOLDER, "alice", 1);
    answer();
    core_stop_ms(30000);
    core_advance_ms(0);
    answer();
    expect(2, HF_EV_LOST, "alice");
}

TEST(watch, a_hint_makes_it_look_at_most_every_50_ms)
{
    start_empty(true, NULL, 0);
    core_advance_ms(5000);
    ASSERT_EQ(core_count(CORE_QUERY), 1);
    core_changed("a");
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_QUERY), 2);
    ASSERT_STREQ(core_query()->name, "a");
    add("a", HF_HOLDER, "alice", 1);
    answer();
    expect(1, HF_EV_GRANTED, "alice");
    core_changed("a");
    core_comes_after_ms(CORE_QUERY, 50);
    answer();
    expect(2, HF_EV_RELEASED, "alice");
}

TEST(watch, a_lost_hint_is_made_good)
{
    start_empty(true, NULL, 0);
    core_comes_after_ms(CORE_QUERY, 10000);
    ASSERT_NULL(core_query()->name);
    answer();
    ASSERT_EQ(n_events, 1);
}

TEST(watch, hints_about_other_names_are_ignored)
{
    start_empty(true, "jobs/", 0);
    core_advance_ms(100);
    core_changed("job");
    core_changed("jabs/1");
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_QUERY), 1);
    core_changed("jobs/1");
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_QUERY), 2);
    answer();
}

TEST(watch, a_look_asks_for_64_names_singly_and_for_more_by_one_list)
{
    char name[16];

    start_empty(true, NULL, 0);
    for (int i = 0; i < HF__WATCH_NAMES; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        core_changed(name);
        core_changed(name);
    }
    core_advance_ms(50);
    for (int i = 0; i < HF__WATCH_NAMES; i++) {
        ASSERT_EQ(core_count(CORE_QUERY), 2 + i);
        ASSERT_NOT_NULL(core_query()->name);
        answer();
        core_advance_ms(1);
    }
    ASSERT_EQ(core_count(CORE_QUERY), 1 + HF__WATCH_NAMES);
    for (int i = 0; i <= HF__WATCH_NAMES; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        core_changed(name);
    }
    core_advance_ms(50);
    ASSERT_EQ(core_count(CORE_QUERY), 2 + HF__WATCH_NAMES);
    ASSERT_NULL(core_query()->name);
    answer();
}

TEST(watch, one_name_is_compared_with_its_own_rows_alone)
{
    start_with(true, NULL, 0);
    add("a", HF_HOLDER, "alice", 1);
    add("b", HF_HOLDER, "bob", 2);
    add("c", HF_HOLDER, "carol", 3);
    answer();
    ASSERT_EQ(n_events, 4);
    core_advance_ms(100);
    core_changed("b");
    core_advance_ms(0);
    ASSERT_STREQ(core_query()->name, "b");
    add("b", HF_HOLDER, "bert", 4);
    add("d", HF_HOLDER, "slipped in", 5);
    answer();
    ASSERT_EQ(n_events, 6);
    expect(4, HF_EV_RELEASED, "bob");
    expect(5, HF_EV_GRANTED, "bert");
    core_changed(NULL);
    core_advance_ms(50);
    ASSERT_NULL(core_query()->name);
    add("a", HF_HOLDER, "alice", 1);
    add("b", HF_HOLDER, "bert", 4);
    add("c", HF_HOLDER, "carol", 3);
    answer();
    ASSERT_EQ(n_events, 6);
}

TEST(watch, a_name_that_no_lock_can_have_is_no_name)
{
    start_empty(true, NULL, 0);
    core_advance_ms(100);
    core_changed("\x01\xff");
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_QUERY), 2);
    ASSERT_NULL(core_query()->name);
    answer();
}

TEST(watch, a_reconnect_begins_anew)
{
    start_with(true, "jobs", HF_EXACT);
    add("jobs", HF_HOLDER, "alice", 1);
    answer();
    ASSERT_EQ(core_count(CORE_WATCH), 1);
    core_down(HF_EUNAVAILABLE);
    core_advance_ms(1000);
    ASSERT_EQ(core_count(CORE_WATCH), 2);
    add("jobs", HF_HOLDER, "bob", 2);
    answer();
    ASSERT_EQ(n_events, 4);
    expect(2, HF_EV_RESYNC, "");
    expect(3, HF_EV_GRANTED, "bob");
}

TEST(watch, a_look_that_fails_is_made_again_with_pauses)
{
    start(NULL, 0);
    core_answer(HF_EUNAVAILABLE);
    core_comes_after_ms(CORE_QUERY, 1000);
    core_answer(HF_EUNAVAILABLE);
    core_advance_ms(1999);
    ASSERT_EQ(core_count(CORE_QUERY), 2);
    core_advance_ms(1);
    answer();
    ASSERT_EQ(n_events, 1);
    expect(0, HF_EV_RESYNC, "");
}

TEST(watch, a_look_without_answer_ends_in_time)
{
    struct hf__query *silent;

    start(NULL, 0);
    silent = core_query();
    core_advance_ms(20000);
    ASSERT_GT(core_count(CORE_QUERY), 1);
    ASSERT_FALSE(hf__query_wanted(silent));
    answer();
    expect(0, HF_EV_RESYNC, "");
    ASSERT_EQ(hf__monitor_enter(client, NULL), 0);
    hf__up_answer(core_engine(), silent, 0, NULL); /* late: nobody is told */
    hf__monitor_leave(client);
    settle();
    ASSERT_EQ(n_events, 1);
}

/* Change many names, and tell nothing of it. */
static void change_silently(int from, int n)
{
    char name[16];

    for (int i = from; i < from + n; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        add(name, HF_HOLDER, "many", 100 + (uint64_t)i);
    }
    ASSERT_EQ(hf__monitor_enter(client, NULL), 0);
    hf__up_answer(core_engine(), core_query(), 0, NULL);
    hf__monitor_leave(client);
}

TEST(watch, up_to_1024_events_wait_for_a_slow_application)
{
    start_empty(true, NULL, 0);
    core_changed(NULL);
    core_advance_ms(50);
    change_silently(0, HF__WATCH_EVENTS);
    settle();
    ASSERT_EQ(n_events, 1 + HF__WATCH_EVENTS);
    expect(n_events - 1, HF_EV_GRANTED, "many");
}

TEST(watch, more_are_dropped_and_told_by_a_resync)
{
    start_empty(true, NULL, 0);
    core_changed(NULL);
    core_advance_ms(50);
    change_silently(0, HF__WATCH_EVENTS + 7);
    settle();
    /* RESYNC and the rows: those are no changes, and may be more. */
    ASSERT_EQ(n_events, 1 + 1 + HF__WATCH_EVENTS + 7);
    expect(1, HF_EV_RESYNC, "");
    expect(2, HF_EV_GRANTED, "many");
    ASSERT_EQ(missed, 0);
}

static void see_missed(const hf_watch_event *event, void *ctx)
{
    if (event->kind == HF_EV_RESYNC)
        *(uint64_t *)ctx = event->missed;
}

TEST(watch, a_resync_says_how_many_were_dropped)
{
    uint64_t dropped = 77;
    hf_watch *counting;
    hf_error err;

    start_empty(true, NULL, 0);
    ASSERT_OK(
        hf_watch_start(client, NULL, 0, see_missed, &dropped, &counting, &err),
        &err);
    settle();
    answer();
    ASSERT_EQ(dropped, 0);
    hf_watch_stop(watch);
    watch = NULL;
    core_changed(NULL);
    core_advance_ms(50);
    change_silently(0, HF__WATCH_EVENTS + 7);
    settle();
    ASSERT_EQ(dropped, HF__WATCH_EVENTS + 7);
    hf_watch_stop(counting);
}

TEST(watch, a_lock_broken_by_this_client_is_told_so)
{
    struct hf__query *query = hf__query_new(NULL);

    start_with(true, "jobs", HF_EXACT);
    add("jobs", HF_HOLDER, "alice", 1);
    answer();
    query->token = 1;
    query->breaks = true;
    ASSERT_EQ(hf__query_name(query, "jobs", NULL), 0);
    ASSERT_EQ(hf__monitor_enter(client, NULL), 0);
    hf__watch_broke(client, query);
    hf__monitor_leave(client);
    hf__query_free(query);
    core_advance_ms(50);
    answer();
    expect(2, HF_EV_BROKEN, "alice");
}

TEST(watch, stopping_tells_the_engine_and_forgets_the_look)
{
    start(NULL, 0);
    hf_watch_stop(watch);
    watch = NULL;
    ASSERT_EQ(core_count(CORE_UNWATCH), 1);
    ASSERT_FALSE(hf__query_wanted(core_query()));
    answer();
    core_advance_ms(20000);
    ASSERT_EQ(core_count(CORE_QUERY), 1);
    ASSERT_EQ(n_events, 0);
}

TEST(watch, an_engine_that_cannot_list_everybody_is_refused)
{
    hf_watch *none = NULL;
    hf_error err;

    core_traits(HF_CAP_FENCED, 0);
    client = core_open("");
    ASSERT_RC(hf_watch_start(client, NULL, 0, on_event, NULL, &none, &err),
              HF_EUNSUPPORTED, &err);
    ASSERT_HAS(err.text, "cannot list everybody");
    ASSERT_NULL(none);
}

TEST(watch, hints_pass_the_wrappers)
{
    hf_error err;

    n_events = 0;
    core_traits(HF_CAP_FENCED | HF_CAP_LIST, 0);
    client = core_open_behind("trace+fault+", "");
    core_push(true);
    ASSERT_OK(hf_watch_start(client, NULL, 0, on_event, NULL, &watch, &err),
              &err);
    test_defer(stop_watch, NULL);
    settle();
    answer();
    ASSERT_EQ(core_count(CORE_WATCH), 1);
    core_advance_ms(100);
    core_changed("a");
    core_advance_ms(0);
    ASSERT_EQ(core_count(CORE_QUERY), 2);
    answer();
}
