/* SPDX-License-Identifier: MIT */
/* modes.c - shared locks, slots, downgrades; several locks at once. */
#include <pthread.h>

#include "contract.h"

TEST(modes, readers_share_and_exclude_writers)
{
    struct rivals at = contract_rivals("book");
    hf_hold *first;
    hf_hold *second;

    NEEDS(HF_CAP_SHARED);
    first = contract_acquire_mode(at.client, at.name, HF_SHARED, 0);
    second = contract_acquire_mode(at.rival, at.name, HF_SHARED, 0);
    if (contract_can(HF_CAP_FENCED))
        ASSERT_NE(hf_token(first), hf_token(second));
    ASSERT_EQ(contract_try(at.client, at.name, HF_SHARED, 0), 0);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(first);
    ASSERT_EQ(contract_try(at.client, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(second);
    ASSERT_EQ(contract_try(at.client, at.name, HF_EXCLUSIVE, 0), 0);
}

TEST(modes, a_writer_excludes_readers)
{
    struct rivals at = contract_rivals("book");
    hf_hold *hold;

    NEEDS(HF_CAP_SHARED);
    hold = contract_acquire(at.client, at.name);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_SHARED, 0), HF_EBUSY);
    ASSERT_EQ(contract_try(at.client, at.name, HF_SHARED, 0), HF_EBUSY);
    client_release(hold);
}

TEST(modes, a_missing_mode_is_refused)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("book");

    if (!contract_can(HF_CAP_SHARED))
        ASSERT_EQ(contract_try(client, name, HF_SHARED, 0), HF_EUNSUPPORTED);
    if (!contract_can(HF_CAP_SLOTS))
        ASSERT_EQ(contract_try(client, name, HF_SLOT, 2), HF_EUNSUPPORTED);
}

struct writer {
    hf_client *client;
    const char *name;
    struct event done;
};

static void *write_thread(void *arg)
{
    struct writer *writer = arg;
    hf_hold *hold = contract_acquire(writer->client, writer->name);

    event_tell(&writer->done, 0);
    client_release(hold);
    return NULL;
}

TEST(modes, a_waiting_writer_is_not_starved_by_readers)
{
    struct writer writer = {.name = contract_name("book"), .done = EVENT_INIT};
    hf_client *readers = contract_open(NULL);
    hf_hold *first;
    pthread_t thread;

    NEEDS(HF_CAP_SHARED | HF_CAP_FIFO | HF_CAP_LIST);
    writer.client = contract_open(NULL);
    first = contract_acquire_mode(readers, writer.name, HF_SHARED, 0);
    ASSERT_EQ(pthread_create(&thread, NULL, write_thread, &writer), 0);
    EVENTUALLY(client_count(readers, writer.name, HF_WAITER) == 1);
    ASSERT_EQ(contract_try(readers, writer.name, HF_SHARED, 0), HF_EBUSY);
    ASSERT_EQ(event_count(&writer.done), 0);
    client_release(first);
    event_await(&writer.done, 1, 5000);
    (void)pthread_join(thread, NULL);
}

TEST(modes, slots_admit_so_many_and_no_more)
{
    enum { SLOTS = 3 };
    hf_client *clients[2] = {contract_open(NULL), contract_open(NULL)};
    const char *name = contract_name("pool");
    hf_hold *holds[SLOTS];

    NEEDS(HF_CAP_SLOTS);
    for (int i = 0; i < SLOTS; i++) {
        hf_opts opts = HF_OPTS_INIT;
        char owner[16];
        hf_error err;

        (void)snprintf(owner, sizeof(owner), "o%d", i);
        opts.mode = HF_SLOT;
        opts.slots = SLOTS;
        opts.owner = owner;
        ASSERT_OK(hf_acquire(clients[i % 2], name, &opts, &holds[i], &err),
                  &err);
    }
    ASSERT_EQ(contract_try(clients[0], name, HF_SLOT, SLOTS), HF_EBUSY);
    ASSERT_EQ(contract_try(clients[1], name, HF_SLOT, SLOTS), HF_EBUSY);
    ASSERT_EQ(contract_try(clients[1], name, HF_EXCLUSIVE, 0), HF_EBUSY);
    client_release(holds[1]);
    ASSERT_EQ(contract_try(clients[0], name, HF_SLOT, SLOTS), 0);
    client_release(holds[0]);
    client_release(holds[2]);
    ASSERT_EQ(contract_try(clients[0], name, HF_EXCLUSIVE, 0), 0);
}

TEST(modes, a_reader_cannot_become_a_writer)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("book");
    hf_hold *hold;
    hf_hold *more;
    hf_error err;

    NEEDS(HF_CAP_SHARED);
    hold = contract_acquire_mode(client, name, HF_SHARED, 0);
    ASSERT_RC(hf_acquire(client, name, NULL, &more, &err), HF_EDEADLK, &err);
    client_release(hold);
}

TEST(modes, a_writer_may_read)
{
    hf_client *client = contract_open(NULL);
    const char *name = contract_name("book");
    hf_hold *outer;
    hf_hold *inner;

    NEEDS(HF_CAP_SHARED);
    outer = contract_acquire(client, name);
    inner = contract_acquire_mode(client, name, HF_SHARED, 0);
    ASSERT_EQ(hf_token(outer), hf_token(inner));
    client_release(inner);
    client_release(outer);
}

TEST(modes, a_downgrade_lets_readers_in_and_writers_wait)
{
    struct rivals at = contract_rivals("book");
    hf_hold *hold;
    hf_error err;

    NEEDS(HF_CAP_DOWNGRADE);
    hold = contract_acquire(at.client, at.name);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_SHARED, 0), HF_EBUSY);
    ASSERT_OK(hf_downgrade(hold, &err), &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_SHARED, 0), 0);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), HF_EBUSY);
    ASSERT_OK(hf_downgrade(hold, &err), &err); /* it is at.client already */
    client_release(hold);
    ASSERT_EQ(contract_try(at.rival, at.name, HF_EXCLUSIVE, 0), 0);
}

TEST(modes, a_downgrade_wakes_waiting_readers)
{
    struct rivals at = contract_rivals("book");
    hf_request *request;
    hf_hold *hold;
    hf_hold *reader;
    hf_error err;

    NEEDS(HF_CAP_DOWNGRADE);
    hold = contract_acquire(at.client, at.name);
    request = client_start_with(at.rival, at.name,
                                OPTS(HF_CONFIGURED, .mode = HF_SHARED));
    ASSERT_EQ(hf_request_wait(request, 20, &reader, &err), HF_ETIMEOUT);
    ASSERT_OK(hf_downgrade(hold, &err), &err);
    ASSERT_OK(hf_request_wait(request, 5000, &reader, &err), &err);
    hf_request_free(request);
    client_release(reader);
    client_release(hold);
}

TEST(modes, a_slot_cannot_be_downgraded)
{
    hf_client *client = contract_open(NULL);
    hf_hold *hold;

    NEEDS(HF_CAP_SLOTS);
    hold = contract_acquire_mode(client, contract_name("pool"), HF_SLOT, 2);
    ASSERT_EQ(hf_downgrade(hold, NULL), HF_EUNSUPPORTED);
    client_release(hold);
}

/* ---- several at once ---------------------------------------------------- */

TEST(multi, several_names_are_one_hold)
{
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    const char *names[3] = {contract_name("c"), contract_name("a"),
                            contract_name("b")};
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_acquire_many(client, names, 3, NULL, &hold, &err), &err);
    ASSERT_EQ(hf_check(hold), HF_HELD);
    ASSERT_STREQ(hf_hold_name(hold), names[0]);
    ASSERT_EQ(hf_token(hold), 0);
    for (size_t i = 0; i < 3; i++) {
        ASSERT_EQ(contract_try(rival, names[i], HF_EXCLUSIVE, 0), HF_EBUSY);
        if (contract_can(HF_CAP_CHECK_TOKEN))
            ASSERT_OK(
                hf_check_token(rival, names[i], hf_token_at(hold, i), &err),
                &err);
    }
    ASSERT_EQ(hf_token_at(hold, 3), 0);
    client_release(hold);
    for (size_t i = 0; i < 3; i++)
        ASSERT_EQ(contract_try(rival, names[i], HF_EXCLUSIVE, 0), 0);
}

TEST(multi, one_that_cannot_be_had_gives_back_the_others)
{
    hf_client *client = contract_open(NULL);
    hf_client *rival = contract_open(NULL);
    const char *names[3] = {contract_name("a"), contract_name("b"),
                            contract_name("c")};
    hf_hold *taken = contract_acquire(rival, names[2]);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold = NULL;
    hf_error err;

    opts.wait_ms = 0;
    ASSERT_RC(hf_acquire_many(client, names, 3, &opts, &hold, &err), HF_EBUSY,
              &err);
    ASSERT_NULL(hold);
    ASSERT_HAS(err.text, names[2]);
    opts.wait_ms = 2000;
    ASSERT_RC(hf_acquire_many(client, names, 3, &opts, &hold, &err),
              HF_ETIMEOUT, &err);
    EVENTUALLY(contract_try(rival, names[0], HF_EXCLUSIVE, 0) == 0);
    EVENTUALLY(contract_try(rival, names[1], HF_EXCLUSIVE, 0) == 0);
    client_release(taken);
}

TEST(multi, wrong_lists_are_refused)
{
    hf_client *client = contract_open(NULL);
    const char *twice[2] = {"a", "a"};
    const char *hole[2] = {"a", NULL};
    const char *empty[2] = {"a", ""};
    hf_hold *hold;

    ASSERT_EQ(hf_acquire_many(client, twice, 2, NULL, &hold, NULL), HF_EINVAL);
    ASSERT_EQ(hf_acquire_many(client, twice, 0, NULL, &hold, NULL), HF_EINVAL);
    ASSERT_EQ(hf_acquire_many(client, hole, 2, NULL, &hold, NULL), HF_EINVAL);
    ASSERT_EQ(hf_acquire_many(client, empty, 2, NULL, &hold, NULL), HF_EINVAL);
    ASSERT_EQ(hf_acquire_many(client, NULL, 2, NULL, &hold, NULL), HF_EINVAL);
}

struct pair {
    hf_client *client;
    const char *names[2];
};

static void *take_pairs(void *arg)
{
    struct pair *pair = arg;
    int64_t until = clock_ms() + 1000;

    for (int i = 0; i < 100 && (i < 10 || clock_ms() < until); i++) {
        hf_hold *hold;
        hf_error err;

        ASSERT_OK(
            hf_acquire_many(pair->client, pair->names, 2, NULL, &hold, &err),
            &err);
        client_release(hold);
    }
    return NULL;
}

TEST(multi, opposite_orders_do_not_deadlock)
{
    const char *a = contract_name("a");
    const char *b = contract_name("b");
    struct pair pairs[2] = {{contract_open(NULL), {a, b}},
                            {contract_open(NULL), {b, a}}};
    pthread_t thread;

    ASSERT_EQ(pthread_create(&thread, NULL, take_pairs, &pairs[1]), 0);
    (void)take_pairs(&pairs[0]);
    (void)pthread_join(thread, NULL);
}

TEST(multi, is_lost_with_its_first_lost_member)
{
    struct event events = EVENT_INIT;
    const char *names[2] = {contract_name("a"), contract_name("b")};
    hf_hold *hold;
    hf_error err;
    hf_client *client = contract_open_url(
        contract_wrapped_url("fault", "fault=hold:expire=100ms@2"));

    ASSERT_OK(hf_acquire_many(client, names, 2,
                              OPTS(HF_CONFIGURED, .on_event = client_on_event,
                                   .ctx = &events),
                              &hold, &err),
              &err);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_remaining_ms(hold), 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    EVENTUALLY(contract_try(client, names[0], HF_EXCLUSIVE, 0) == 0);
}

/* Each has a client of its own, so that the engine knows of all; and the name is
 * no other test's, since a semaphore of Redisson's keeps its first number. */
TEST(modes, a_slot_that_becomes_free_is_given_to_who_waits)
{
    enum { SLOTS = 2 };
    const char *name = contract_name("pool-of-two");
    hf_client *looks = contract_open(NULL);
    hf_hold *holds[SLOTS];
    hf_request *waits[SLOTS];

    NEEDS(HF_CAP_SLOTS);
    for (int i = 0; i < SLOTS; i++)
        holds[i] =
            contract_acquire_mode(contract_open(NULL), name, HF_SLOT, SLOTS);
    for (int i = 0; i < SLOTS; i++)
        waits[i] = client_start_with(
            contract_open(NULL), name,
            OPTS(HF_FOREVER, .mode = HF_SLOT, .slots = SLOTS));
    if (contract_can(HF_CAP_FIFO | HF_CAP_LIST))
        EVENTUALLY(client_count(looks, name, HF_WAITER) == SLOTS);
    /* Both holders release, in either order: each waiter gets a slot. */
    for (int i = 0; i < SLOTS; i++)
        client_release(holds[i]);
    for (int i = 0; i < SLOTS; i++)
        holds[i] = client_finish(waits[i]);
    ASSERT_EQ(contract_try(looks, name, HF_SLOT, SLOTS), HF_EBUSY);
    for (int i = 0; i < SLOTS; i++)
        client_release(holds[i]);
}
