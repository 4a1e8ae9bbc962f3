/* SPDX-License-Identifier: MIT */
/* redis_native_test.c - dialect=native: what clients do to each other. */
#include "event.h"
#include "proc.h"
#include "redis.h"

static void hold_until_killed(struct proc *self, void *arg)
{
    hf_client *client = redis_open(*(int *)arg, "ttl=200ms&lock_delay=600ms");

    (void)client_acquire(client, "jobs");
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

TEST(native, keeps_the_lock_of_a_vanished_holder_closed_for_lock_delay)
{
    struct server *server = redis_start();
    int port = server_port(server);
    struct proc *child = proc_start(hold_until_killed, &port);
    hf_client *client;
    int64_t killed_ms;
    hf_hold *hold;

    (void)proc_expect(child, "holding");
    proc_kill(child);
    killed_ms = clock_ms();
    client = redis_open(port, "ttl=200ms");
    hold = client_acquire(client, "jobs");
    /* Its last renewal was at most a lease ago. */
    ASSERT_GE(clock_ms() - killed_ms, 600 - 10);
    ASSERT_LT(clock_ms() - killed_ms, 3000);
    client_release(hold);
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* The client that waits listens on a channel that everybody may see; what a
 * user without a key publishes there is not believed. */
static void forge(struct server *server, const char *letter, unsigned ticket,
                  const char *rest)
{
    char channels[1024];
    const char *at = channels;

    (void)snprintf(channels, sizeof(channels), "%s",
                   redis_do(server, "PUBSUB CHANNELS hf:i:*"));
    ASSERT_NOT_NULL(strstr(at, "hf:i:"));
    while ((at = strstr(at, "hf:i:")) != NULL) {
        ASSERT_STREQ(redis_do(server, "PUBLISH %.37s %s%012x%s", at, letter,
                              ticket, rest),
                     ":1\r\n");
        at += 37;
    }
}

TEST(native, believes_no_push_of_who_cannot_read_its_keys)
{
    struct event events = EVENT_INIT;
    struct rivals at = redis_rivals(NULL);
    hf_hold *own = client_acquire_told(at.rival, "own", &events);
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_request *request = redis_stand_in_line(at.rival, at.server, "jobs");
    hf_hold *next;
    hf_error err;

    for (unsigned ticket = 0; ticket < 8; ticket++) {
        forge(at.server, "b", ticket, "");
        forge(at.server, "b", ticket, "0000000000000000");
        forge(at.server, "g", ticket, "0000000000000007");
        forge(at.server, "g", ticket, "00000000000000000000000000000007");
        forge(at.server, "g", ticket, "00000000000000007777777777777777");
    }
    /* This answer comes behind what was published. */
    ASSERT_OK(hf_verify(own, &err), &err);
    ASSERT_EQ(event_count(&events), 0);
    ASSERT_EQ(hf_request_wait(request, 0, &next, &err), HF_ETIMEOUT);
    client_release(hold);
    next = client_finish(request);
    ASSERT_LT(hf_token(next), UINT64_C(7777777777777777));
    ASSERT_OK(hf_verify(next, &err), &err);
    client_release(next);
    client_release(own);
    ASSERT_EQ(redis_leftovers(at.server), 0);
}

/* The nonce is read by one who may read the key, and a token that has been is
 * used again. */
TEST(native, believes_no_token_that_has_been)
{
    struct rivals at = redis_rivals(NULL);
    hf_hold *hold = client_acquire(at.rival, "jobs");
    char token[32];
    char record[512];
    char rest[64];
    hf_request *request;
    hf_hold *next;
    hf_error err;

    (void)snprintf(token, sizeof(token), "%016llu",
                   (unsigned long long)hf_token(hold));
    client_release(hold);
    hold = client_acquire(at.client, "jobs");
    request = redis_stand_in_line(at.rival, at.server, "jobs");
    (void)snprintf(record, sizeof(record), "%s",
                   strchr(redis_do(at.server, "LINDEX hf:{jobs}:q 0"), '\n') +
                       1);
    (void)snprintf(rest, sizeof(rest), "%.16s%s", record + 103, token);
    for (unsigned ticket = 0; ticket < 8; ticket++)
        forge(at.server, "g", ticket, rest);
    ASSERT_EQ(client_try(at.rival, "other", &err), 0);
    ASSERT_EQ(hf_request_wait(request, 0, &next, &err), HF_ETIMEOUT);
    client_release(hold);
    client_release(client_finish(request));
    ASSERT_EQ(redis_leftovers(at.server), 0);
}

TEST(native, tells_a_broken_holder)
{
    struct event events = EVENT_INIT;
    struct rivals at = redis_rivals(NULL);
    hf_request *request;
    hf_error err;
    hf_hold *hold = client_acquire_told(at.client, "jobs", &events);

    /* It hears while it waits for something else. */
    ASSERT_EQ(client_try(at.rival, "more", &err), 0);
    hf_hold *more = client_acquire(at.rival, "more");
    request = redis_stand_in_line(at.client, at.server, "more");
    ASSERT_OK(hf_break(at.rival, "jobs", hf_token(hold), NULL, &err), &err);
    event_await(&events, 1, EVENT_PATIENCE_MS);
    ASSERT_EQ(events.values[0], HF_LOST);
    ASSERT_EQ(hf_release(hold, &err), HF_ELOST);
    client_release(more);
    hf_request_free(request);
    EVENTUALLY(redis_leftovers(at.server) == 0);
}

/* A at.client counts, and dies before its script would have tidied up. */
TEST(client, that_died_after_counting_leaves_no_counter_behind)
{
    struct rivals at = redis_rivals("ttl=600ms");
    hf_hold *hold = client_acquire(at.client, "jobs");
    hf_hold *next;
    hf_request *request = redis_stand_in_line(at.rival, at.server, "jobs");

    ASSERT_STREQ(redis_do(at.server, "INCRBY hf:{jobs}:t 1"), ":1\r\n");
    /* The next beat of anybody there finds it. */
    EVENTUALLY(redis_do(at.server, "EXISTS hf:{jobs}:t")[1] == '0');
    client_release(hold);
    next = client_finish(request);
    client_release(next);
    ASSERT_EQ(redis_leftovers(at.server), 0);
}
