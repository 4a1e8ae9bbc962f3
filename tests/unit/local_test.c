/* SPDX-License-Identifier: MIT */
/*
 * local_test.c - the embedded engine as the core sees it: what is granted, in
 * which order, to whom; what is left behind; what is told.
 */
#include "lib/proc.h"
#include "lib/tempdir.h"
#include "lib/test.h"
#include "local_fixture.h"

/* ---- exclusive --------------------------------------------------------- */

TEST(local, one_holder_at_a_time_and_tokens_grow)
{
    struct sides at = sides_new(2);
    struct ask *first = side_take(at.a, "jobs");
    struct ask *second = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);

    ASSERT_EQ(second->report, QUEUED);
    ASSERT_EQ(side_release(at.a, first), LEFT);
    ASSERT_EQ(first->rc, 0);
    ASSERT_TRUE(side_wait_for(at.b, second, GRANTED, 1000));
    ASSERT_GT(second->grant.token, first->grant.token);
    ASSERT_EQ(second->grant.lease_ms, 30000);
}

TEST(local, a_try_is_busy_and_says_who_holds_it)
{
    struct sides at = sides_new(2);
    struct rows rows;

    (void)side_take(at.a, "jobs");
    struct ask *ask =
        side_ask_with(at.b, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true);
    ASSERT_EQ(ask->report, BUSY);
    ASSERT_HAS(ask->holder, "testhost:4711, \"note\"");
    ASSERT_OK(side_list(at.a, "jobs", &rows), NULL);
    ASSERT_EQ(rows.holders, 1);
    ASSERT_EQ(rows.waiters, 0);
}

TEST(local, waiters_are_served_in_the_order_in_which_they_came)
{
    const char *dir = tempdir_new();
    struct side *side[4];
    struct ask *ask[4];

    for (int i = 0; i < 4; i++) {
        side[i] = side_new(dir);
        ask[i] = side_ask(side[i], "jobs", HF_EXCLUSIVE, 0);
    }
    for (int i = 0; i < 4; i++) {
        ASSERT_TRUE(side_wait_for(side[i], ask[i], GRANTED, 1000));
        for (int later = i + 1; later < 4; later++) {
            side[later]->engine->ops->attend(side[later]->engine);
            ASSERT_EQ(ask[later]->report, QUEUED);
        }
        ASSERT_EQ(side_release(side[i], ask[i]), LEFT);
    }
}

TEST(local, asking_twice_is_asking_once)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct ask *waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    uint64_t token = held->grant.token;
    struct rows rows;

    ASSERT_OK(at.a->engine->ops->acquire(at.a->engine, held->ticket, NULL),
              NULL);
    ASSERT_EQ(held->grant.token, token);
    ASSERT_OK(at.b->engine->ops->acquire(at.b->engine, waits->ticket, NULL),
              NULL);
    ASSERT_OK(side_list(at.a, "jobs", &rows), NULL);
    ASSERT_EQ(rows.holders, 1);
    ASSERT_EQ(rows.waiters, 1);
}

TEST(local, a_withdrawal_leaves_nothing_behind_in_any_state)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct ask *waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    struct rows rows;

    ASSERT_EQ(side_withdraw(at.b, waits), LEFT);
    ASSERT_EQ(side_withdraw(at.b, waits), LEFT);
    ASSERT_EQ(side_withdraw(at.a, held), LEFT);
    ASSERT_OK(side_list(at.a, "jobs", &rows), NULL);
    ASSERT_EQ(rows.holders + rows.waiters, 0);
}

TEST(local, a_withdrawn_grant_goes_to_the_next)
{
    struct sides at = sides_new(3);
    struct ask *held = side_take(at.a, "jobs");
    struct ask *second = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    struct ask *third = side_ask(at.c, "jobs", HF_EXCLUSIVE, 0);

    (void)side_release(at.a, held); /* granted to at.b, which does not accept */
    ASSERT_EQ(side_withdraw(at.b, second), LEFT);
    ASSERT_TRUE(side_wait_for(at.c, third, GRANTED, 1000));
}

TEST(local, a_release_of_what_is_not_ours_says_so)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");

    ASSERT_OK(side_query(at.b, hf__engine_local.break_lock, "jobs",
                         held->grant.token, NULL, NULL),
              NULL);
    struct ask *other = side_take(at.b, "jobs");
    ASSERT_EQ(side_release(at.a, held), LEFT);
    ASSERT_EQ(held->rc, HF_ELOST);
    ASSERT_EQ(side_renew(at.b, other), RENEWED);
}

/* ---- shared, slots ----------------------------------------------------- */

static void the_third_waits(const struct ask *one, const struct ask *two,
                            const struct ask *three)
{
    ASSERT_EQ(one->report, GRANTED);
    ASSERT_EQ(two->report, GRANTED);
    ASSERT_EQ(three->report, QUEUED);
}

TEST(local, readers_share_and_a_writer_waits_for_all)
{
    struct sides at = sides_new(3);
    struct ask *one = side_ask(at.a, "data", HF_SHARED, 0);
    struct ask *two = side_ask(at.b, "data", HF_SHARED, 0);
    struct ask *writer = side_ask(at.c, "data", HF_EXCLUSIVE, 0);

    the_third_waits(one, two, writer);
    (void)side_release(at.a, one);
    at.c->engine->ops->attend(at.c->engine);
    ASSERT_EQ(writer->report, QUEUED);
    (void)side_release(at.b, two);
    ASSERT_TRUE(side_wait_for(at.c, writer, GRANTED, 1000));
}

TEST(local, a_reader_does_not_pass_a_waiting_writer)
{
    struct sides at = sides_new(3);
    struct ask *reader = side_ask(at.a, "data", HF_SHARED, 0);
    struct ask *writer = side_ask(at.b, "data", HF_EXCLUSIVE, 0);
    struct ask *late = side_ask(at.c, "data", HF_SHARED, 0);

    ASSERT_EQ(late->report, QUEUED);
    (void)side_release(at.a, reader);
    ASSERT_TRUE(side_wait_for(at.b, writer, GRANTED, 1000));
    at.c->engine->ops->attend(at.c->engine);
    ASSERT_EQ(late->report, QUEUED);
    (void)side_release(at.b, writer);
    ASSERT_TRUE(side_wait_for(at.c, late, GRANTED, 1000));
}

TEST(local, a_withdrawn_writer_lets_the_readers_behind_it_in)
{
    struct sides at = sides_new(3);
    struct ask *writer;
    struct ask *one;
    struct ask *two;

    (void)side_ask(at.a, "data", HF_SHARED, 0);
    writer = side_ask(at.b, "data", HF_EXCLUSIVE, 0);
    one = side_ask(at.c, "data", HF_SHARED, 0);
    two = side_ask(at.c, "data", HF_SHARED, 0);
    (void)side_withdraw(at.b, writer);
    ASSERT_TRUE(side_wait_for(at.c, one, GRANTED, 1000));
    ASSERT_TRUE(side_wait_for(at.c, two, GRANTED, 1000));
}

TEST(local, slots_admit_as_many_as_there_are)
{
    struct sides at = sides_new(2);
    struct ask *one = side_ask(at.a, "pool", HF_SLOT, 2);
    struct ask *two = side_ask(at.b, "pool", HF_SLOT, 2);
    struct ask *three = side_ask(at.b, "pool", HF_SLOT, 2);

    the_third_waits(one, two, three);
    (void)side_release(at.a, one);
    ASSERT_TRUE(side_wait_for(at.b, three, GRANTED, 1000));
}

TEST(local, of_two_numbers_of_slots_the_smaller_counts)
{
    struct side *a = side_new(tempdir_new());

    ASSERT_EQ(side_ask(a, "pool", HF_SLOT, 3)->report, GRANTED);
    ASSERT_EQ(side_ask(a, "pool", HF_SLOT, 1)->report, QUEUED);
    ASSERT_EQ(side_ask_with(a, "pool", HF_SHARED, 0, 100, 1, true)->report,
              BUSY);
}

TEST(local, a_downgrade_lets_readers_in_and_writers_not)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "data");
    struct ask *reader = side_ask(at.b, "data", HF_SHARED, 0);
    struct ask *writer = side_ask(at.b, "data", HF_EXCLUSIVE, 0);

    ASSERT_EQ(side_downgrade(at.a, held), RENEWED);
    ASSERT_EQ(held->ticket->mode, HF_SHARED);
    ASSERT_TRUE(side_wait_for(at.b, reader, GRANTED, 1000));
    ASSERT_EQ(writer->report, QUEUED);
    ASSERT_EQ(side_release(at.a, held), LEFT);
    ASSERT_EQ(held->rc, 0);
}

/* ---- leases ------------------------------------------------------------ */

TEST(local, an_expired_lock_goes_to_the_waiter_and_cannot_be_renewed)
{
    struct sides at = sides_new(2);
    struct ask *held =
        side_ask_with(at.a, "jobs", HF_EXCLUSIVE, 0, 50, 1, false);
    struct ask *waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);

    ASSERT_EQ(held->report, GRANTED);
    ASSERT_TRUE(side_wait_for(at.b, waits, GRANTED, 2000));
    ASSERT_EQ(side_renew(at.a, held), LOST);
    ASSERT_EQ(held->reason, HF__LOST_TAKEN);
}

TEST(local, an_expired_lease_is_not_revived_even_if_nobody_took_it)
{
    struct side *a = side_new(tempdir_new());
    struct ask *held = side_ask_with(a, "jobs", HF_EXCLUSIVE, 0, 20, 1, false);
    int64_t end_ns = hf__now() + 30 * HF_MS;

    while (hf__now() < end_ns)
        side_wait(a, 5);
    ASSERT_EQ(side_renew(a, held), LOST);
}

TEST(local, a_renewed_lease_lasts)
{
    struct sides at = sides_new(2);
    struct ask *held =
        side_ask_with(at.a, "jobs", HF_EXCLUSIVE, 0, 1500, 1, false);
    struct ask *waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    int64_t end_ns = hf__now() + 1800 * HF_MS;

    while (hf__now() < end_ns) {
        ASSERT_EQ(side_renew(at.a, held), RENEWED);
        side_wait(at.b, 50);
        ASSERT_EQ(waits->report, QUEUED);
    }
}

TEST(local, many_leases_are_renewed_in_one_call)
{
    enum { N = 200 };
    struct side *a = side_new(tempdir_new());
    struct hf__ticket *tickets[N];
    struct ask *asks[N];
    char name[32];

    for (int i = 0; i < N; i++) {
        (void)snprintf(name, sizeof(name), "lock-%d", i % 150);
        asks[i] = side_ask(a, name, HF_SHARED, 0);
        ASSERT_EQ(asks[i]->report, GRANTED);
        tickets[i] = asks[i]->ticket;
    }
    (void)side_release(a, asks[7]);
    ASSERT_OK(a->engine->ops->renew(a->engine, tickets, N, NULL), NULL);
    for (int i = 0; i < N; i++)
        ASSERT_EQ(asks[i]->report, i == 7 ? LOST : RENEWED);
}

TEST(local, lock_delay_keeps_an_expired_name_closed)
{
    struct sides at = sides_new(2);
    struct ask *held;
    struct ask *waits;
    int64_t begin_ns = hf__now();

    at.a->settings.lock_delay_ms = 300;
    held = side_ask_with(at.a, "jobs", HF_EXCLUSIVE, 0, 50, 1, false);
    waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    ASSERT_EQ(held->report, GRANTED);
    ASSERT_TRUE(side_wait_for(at.b, waits, GRANTED, 3000));
    ASSERT_GE(hf__now() - begin_ns, 350 * HF_MS);
}

/* Its holder was stopped, comes back and lets go: that opens nothing. */
TEST(local, lock_delay_outlives_the_release_of_what_was_lost)
{
    struct sides at = sides_new(2);
    struct ask *held;

    at.a->settings.lock_delay_ms = 60000;
    held = side_ask_with(at.a, "jobs", HF_EXCLUSIVE, 0, 20, 1, false);
    ASSERT_EQ(held->report, GRANTED);
    while (hf__now() <= held->grant.sent_ns + 20 * HF_MS)
        continue;
    ASSERT_EQ(side_release(at.a, held), LEFT);
    ASSERT_EQ(held->rc, HF_ELOST);
    ASSERT_EQ(
        side_ask_with(at.b, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true)->report,
        BUSY);
    ASSERT_EQ(side_release(at.a, held),
              LEFT); /* at.a second time, nothing either */
    ASSERT_EQ(
        side_ask_with(at.b, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true)->report,
        BUSY);
}

TEST(local, lock_delay_does_not_hold_up_a_release)
{
    struct sides at = sides_new(2);
    struct ask *held;

    at.a->settings.lock_delay_ms = 60000;
    held = side_take(at.a, "jobs");
    (void)side_release(at.a, held);
    (void)side_take(at.b, "jobs");
}

TEST(local, lease_process_has_no_end)
{
    struct side *a = side_new(tempdir_new());
    struct ask *held;
    struct rows rows;

    a->settings.lease = HF__LEASE_PROCESS;
    held = side_ask_with(a, "jobs", HF_EXCLUSIVE, 0, 20, 1, false);
    ASSERT_EQ(held->grant.lease_ms, 0);
    ASSERT_OK(side_list(a, "jobs", &rows), NULL);
    ASSERT_EQ(rows.last.lease_ms, -1);
}

/* ---- death ------------------------------------------------------------- */

struct scene {
    const char *dir;
    int mode;
};

static void hold_until_killed(struct proc *self, void *arg)
{
    const struct scene *scene = arg;
    struct side *side = side_new(scene->dir);
    struct ask *ask = side_ask(side, "jobs", scene->mode, 2);

    while (ask->report != GRANTED)
        side_wait(side, 1000);
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

static void wait_until_killed(struct proc *self, void *arg)
{
    const struct scene *scene = arg;
    struct side *side = side_new(scene->dir);
    struct ask *ask = side_ask(side, "jobs", scene->mode, 2);

    proc_tell(self, "waiting");
    while (ask->report != GRANTED)
        side_wait(side, 1000);
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

/* Another process that holds. */
static struct proc *start_holder(struct scene *scene)
{
    struct proc *holder = proc_start(hold_until_killed, scene);

    proc_expect(holder, "holding");
    return holder;
}

/* A process holds, @first waits, and so does a side of ours, whose request is
 * returned. */
static struct ask *ask_third(struct proc **ret_holder, struct proc **ret_first,
                             struct side **ret_side)
{
    struct scene scene = {tempdir_new(), HF_EXCLUSIVE};

    *ret_holder = start_holder(&scene);
    *ret_first = proc_start(wait_until_killed, &scene);
    proc_expect(*ret_first, "waiting");
    *ret_side = side_new(scene.dir);
    return side_ask(*ret_side, "jobs", HF_EXCLUSIVE, 0);
}

TEST(local, a_killed_holder_is_noticed_at_once)
{
    struct scene scene = {tempdir_new(), HF_EXCLUSIVE};
    struct proc *child = start_holder(&scene);
    struct side *side = side_new(scene.dir);
    struct ask *ask = side_ask(side, "jobs", HF_EXCLUSIVE, 0);
    int64_t killed_ns;

    ASSERT_EQ(ask->report, QUEUED);
    proc_kill(child);
    killed_ns = hf__now();
    ASSERT_TRUE(side_wait_for(side, ask, GRANTED, 5000));
    ASSERT_LT(hf__now() - killed_ns, 1000 * HF_MS);
}

TEST(local, a_killed_waiter_is_passed_over)
{
    struct proc *holder;
    struct proc *first;
    struct side *side;
    struct ask *ask = ask_third(&holder, &first, &side);

    proc_kill(first);
    side_wait(side, 1000);
    ASSERT_EQ(ask->report, QUEUED);
    proc_kill(holder);
    ASSERT_TRUE(side_wait_for(side, ask, GRANTED, 1000));
}

TEST(local, the_death_of_any_holder_concerns_the_first_waiter)
{
    struct scene scene = {tempdir_new(), HF_SLOT};
    struct proc *one = start_holder(&scene);
    struct ask *ask;
    struct side *side;

    (void)start_holder(&scene);
    side = side_new(scene.dir);
    ask = side_ask(side, "jobs", HF_SLOT, 2);
    ASSERT_EQ(ask->report, QUEUED);
    proc_kill(one);
    ASSERT_TRUE(side_wait_for(side, ask, GRANTED, 1000));
}

TEST(local, a_stopped_waiter_loses_its_grant_to_the_next)
{
    struct proc *holder;
    struct proc *stopped;
    struct side *side;
    struct ask *ask = ask_third(&holder, &stopped, &side);

    proc_stop(stopped);
    proc_kill(holder);
    ASSERT_TRUE(side_wait_for(side, ask, GRANTED, 5000));
    proc_continue(stopped);
    ASSERT_TRUE(proc_is_silent(stopped, 200));
    (void)side_release(side, ask);
    proc_expect(stopped, "holding");
}

TEST(local, without_futex_waitv_everything_still_works)
{
    struct scene scene = {tempdir_new(), HF_EXCLUSIVE};
    struct proc *child = start_holder(&scene);
    struct side *side = side_new(scene.dir);
    struct ask *ask;
    struct rows rows;

    hf__watch_forbid(true);
    ask = side_ask(side, "jobs", HF_EXCLUSIVE, 0);
    ASSERT_EQ(ask->report, QUEUED);
    proc_kill(child);
    ASSERT_TRUE(side_wait_for(side, ask, GRANTED, 1000));
    ASSERT_OK(side_doctor(side, &rows), NULL);
    ASSERT_HAS(rows.found[3], "1 waiting: no futex_waitv");
    hf__watch_forbid(false);
}

/* ---- looking ----------------------------------------------------------- */

TEST(local, list_shows_who_holds_and_who_waits)
{
    struct sides at = sides_new(2);
    struct rows rows;

    (void)side_take(at.a, "jobs");
    (void)side_take(at.a, "other");
    (void)side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    ASSERT_OK(side_list(at.a, NULL, &rows), NULL);
    ASSERT_EQ(rows.holders, 2);
    ASSERT_EQ(rows.waiters, 1);
    ASSERT_OK(side_list(at.b, "jobs", &rows), NULL);
    ASSERT_EQ(rows.holders, 1);
    ASSERT_EQ(rows.waiters, 1);
    ASSERT_EQ(rows.last.role, HF_WAITER);
    ASSERT_EQ(rows.last.place, 1);
    ASSERT_EQ(rows.last.pid, 4711);
    ASSERT_EQ(rows.last.alive, 1);
    ASSERT_STREQ(rows.owner, "owner");
    ASSERT_STREQ(rows.note, "note");
    ASSERT_STREQ(rows.host, "testhost");
}

TEST(local, a_prefix_separates_names)
{
    struct sides at = sides_new(2);
    static char prefix[] = "team/";
    struct rows rows;

    at.b->settings.prefix = prefix;
    at.b->local->prefix_len = strlen(prefix);
    (void)side_take(at.a, "jobs");
    (void)side_take(at.b, "jobs");
    ASSERT_EQ(side_ask(at.a, "team/jobs", HF_EXCLUSIVE, 0)->report, QUEUED);
    ASSERT_OK(side_list(at.b, NULL, &rows), NULL);
    ASSERT_EQ(rows.holders, 1);
    ASSERT_EQ(rows.waiters, 1);
}

TEST(local, check_token_knows_the_current_one_only)
{
    struct side *a = side_new(tempdir_new());
    struct ask *held = side_take(a, "jobs");
    uint64_t token = held->grant.token;

    ASSERT_EQ(
        side_query(a, hf__engine_local.check_token, "jobs", token, NULL, NULL),
        0);
    ASSERT_EQ(side_query(a, hf__engine_local.check_token, "jobs", token - 1,
                         NULL, NULL),
              HF_ECONFLICT);
    (void)side_release(a, held);
    ASSERT_EQ(
        side_query(a, hf__engine_local.check_token, "jobs", token, NULL, NULL),
        HF_ENOTFOUND);
}

TEST(local, break_takes_the_lock_from_the_one_that_is_meant)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct ask *waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    hf__engine_query_fn *break_lock = hf__engine_local.break_lock;

    ASSERT_EQ(
        side_query(at.b, break_lock, "jobs", held->grant.token + 1, NULL, NULL),
        HF_ECONFLICT);
    ASSERT_EQ(side_query(at.b, break_lock, "jobs", 0, "nobody", NULL),
              HF_ECONFLICT);
    ASSERT_EQ(side_query(at.b, break_lock, "none", 0, "owner", NULL),
              HF_ENOTFOUND);
    ASSERT_OK(side_query(at.b, break_lock, "jobs", 0, "owner", NULL), NULL);
    ASSERT_TRUE(side_wait_for(at.b, waits, GRANTED, 1000));
    at.a->engine->ops->attend(at.a->engine);
    ASSERT_EQ(held->report, LOST);
    ASSERT_EQ(held->reason, HF__LOST_BROKEN);
}

TEST(local, versions_are_compared_and_grow)
{
    struct sides at = sides_new(2);
    hf__engine_query_fn *commit = hf__engine_local.version_commit;
    uint64_t one;
    uint64_t two;
    uint64_t read;

    ASSERT_OK(
        side_query(at.a, hf__engine_local.version_read, "v", 0, NULL, &read),
        NULL);
    ASSERT_EQ(read, 0);
    ASSERT_OK(side_query(at.a, commit, "v", 0, NULL, &one), NULL);
    ASSERT_EQ(side_query(at.b, commit, "v", 0, NULL, NULL), HF_ECONFLICT);
    ASSERT_OK(side_query(at.b, commit, "v", one, NULL, &two), NULL);
    ASSERT_GT(two, one);
    ASSERT_OK(
        side_query(at.a, hf__engine_local.version_read, "v", 0, NULL, &read),
        NULL);
    ASSERT_EQ(read, two);
    (void)side_take(at.a, "v"); /* at.a lock of that name is another matter */
    ASSERT_OK(side_query(at.a, commit, "v", two, NULL, &one), NULL);
}

/* ---- the loop ---------------------------------------------------------- */

TEST(local, the_sentry_kicks_the_loop_when_a_grant_comes)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct ask *waits = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    struct hf__loop_batch batch = {.n = 0};

    at.b->engine->ops->attend(at.b->engine);
    at.b->engine->ops->sentry(at.b->engine, true);
    (void)side_release(at.a, held);
    (void)hf__loop_poll(&at.b->loop, &batch, hf__now() + 5 * HF_SECOND);
    hf__loop_handle(&at.b->loop, &batch);
    at.b->engine->ops->attend(at.b->engine);
    ASSERT_EQ(waits->report, GRANTED);
    at.b->engine->ops->sentry(at.b->engine, false);
}

TEST(local, a_kick_ends_this_wait_or_the_next)
{
    struct side *a = side_new(tempdir_new());
    int64_t begin_ns;

    a->engine->ops->attend(a->engine);
    a->engine->ops->kick(a->engine);
    begin_ns = hf__now();
    a->engine->ops->wait(a->engine, begin_ns + 5 * HF_SECOND);
    ASSERT_LT(hf__now() - begin_ns, HF_SECOND);
}

TEST(local, a_store_deleted_under_us_is_noticed_and_replaced)
{
    const char *dir = tempdir_new();
    struct side *a = side_new(dir);
    struct ask *held = side_take(a, "jobs");
    char path[512];
    hf_error err;

    (void)snprintf(path, sizeof(path), "%s/table", dir);
    ASSERT_EQ(remove(path), 0);
    ASSERT_EQ(side_renew(a, held), LOST);
    ASSERT_EQ(a->downs, 1);
    ASSERT_EQ(a->down_err.code, HF_EUNAVAILABLE);
    a->engine->ops->kick(a->engine);
    a->engine->ops->wait(a->engine, hf__now() + 5 * HF_SECOND);
    ASSERT_OK(a->engine->ops->connect(a->engine, &err), &err);
    ASSERT_GT(side_take(a, "jobs")->grant.token, held->grant.token);
}

TEST(local, a_store_deleted_under_us_is_noticed_by_who_only_asks)
{
    const char *dir = tempdir_new();
    struct side *a = side_new(dir);
    struct ask *ask = side_take(a, "jobs");
    char path[512];
    hf_error err;

    (void)side_release(a, ask);
    (void)snprintf(path, sizeof(path), "%s/table", dir);
    ASSERT_EQ(remove(path), 0);
    a->local->checked_ns -= 2 * HF_SECOND;
    ask->ticket->sent_ns = hf__now();
    ASSERT_RC(a->engine->ops->acquire(a->engine, ask->ticket, &err),
              HF_EUNAVAILABLE, &err);
    ASSERT_EQ(a->downs, 1);
    ASSERT_OK(a->engine->ops->connect(a->engine, &err), &err);
    (void)side_take(a, "jobs");
}
