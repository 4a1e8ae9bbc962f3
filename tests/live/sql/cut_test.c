/* SPDX-License-Identifier: MIT */
/*
 * cut_test.c - connections that end in every step, in the dialects and modes that
 * other programs share, on either database. What was asked may be done or not,
 * but who believes to hold is alone; a session takes its locks along, and who
 * has lost one so is told.
 */
#include "live/sql/database.h"

#include <stdlib.h>

#include "event.h"
#include "proxy.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&ttl=30s"
#define ROW QUICK "&dialect=row&table=database_lock&key=resource"

enum { CUTS = 25, WAIT_MS = 300 };

struct stage {
    struct proxy *proxy;
    hf_client *client; /* behind it */
    hf_client *rival;
    bool sessions; /* whose locks are gone before their holder hears of it */
};

/* @url with another port, or with the name of the host. */
static const char *url_with(const char *url, const char *host, int port)
{
    const char *at = strstr(url, "127.0.0.1:");

    ASSERT_NOT_NULL(at);
    return test_text("%.*s%s:%d%s", (int)(at - url), url, host, port,
                     strchr(at, '/'));
}

static struct stage set_up(const char *table, const char *query)
{
    struct stage stage = {.sessions = false};
    const char *url;

    database_fresh();
    if (table)
        (void)database_do("%s", table);
    url = database_url(query);
    stage.proxy = proxy_start(client_port_of(url));
    stage.client =
        client_open(url_with(url, "127.0.0.1", proxy_port(stage.proxy)));
    stage.rival = client_open(url);
    return stage;
}

static void hold_alone(const struct stage *stage)
{
    hf_hold *hold;

    if (hf_acquire(stage->client, "7", WITHIN(WAIT_MS), &hold, NULL) != 0)
        return;
    if (hf_verify(hold, NULL) == 0 && hf_check(hold) == HF_HELD &&
        client_try(stage->rival, "7", NULL) == 0) {
        ASSERT_TRUE(stage->sessions);
        EVENTUALLY(hf_check(hold) == HF_LOST);
    }
    (void)hf_release(hold, NULL);
}

/* Behind the rival, who goes. */
static void get_in_line(const struct stage *stage)
{
    hf_hold *first;
    hf_hold *hold = NULL;
    hf_request *request;

    if (hf_acquire(stage->rival, "7", WITHIN(WAIT_MS), &first, NULL) != 0)
        return; /* what was cut is not freed yet */
    if (hf_acquire_start(stage->client, "7", WITHIN(WAIT_MS), NULL, NULL,
                         &request, NULL) != 0)
        request = NULL;
    client_release(first);
    if (request &&
        hf_request_wait(request, EVENT_PATIENCE_MS, &hold, NULL) == 0)
        (void)hf_release(hold, NULL);
    hf_request_free(request);
}

static bool is_free(hf_client *rival)
{
    return client_try(rival, "7", NULL) == 0;
}

/* @clears: what nobody can know to be ours is deleted by hand. */
static void cut_in(const struct stage *stage, enum proxy_direction direction,
                   const char *clears)
{
    uint64_t before = proxy_bytes(stage->proxy, direction);
    size_t whole;

    hold_alone(stage);
    get_in_line(stage);
    whole = (size_t)(proxy_bytes(stage->proxy, direction) - before);
    for (size_t i = 0; i < CUTS; i++) {
        proxy_cut_after(stage->proxy, direction, whole * i / CUTS);
        hold_alone(stage);
        get_in_line(stage);
        proxy_pass(stage->proxy);
        if (clears)
            (void)database_run(clears);
    }
    EVENTUALLY(is_free(stage->rival));
    test_note("%d cuts in %zu bytes", (int)CUTS, whole);
}

static void cut(const char *table, const char *query, const char *clears)
{
    struct stage stage = set_up(table, query);

    stage.sessions = !table;
    cut_in(&stage, PROXY_TO_SERVER, clears);
    cut_in(&stage, PROXY_TO_CLIENT, clears);
}

TEST_CALL(cut, a_row_without_an_owner,
          cut(database_lock_table, ROW, "DELETE FROM database_lock"))
TEST_CALL(cut, a_row_with_an_owner,
          cut(database_described_table, ROW "&owner_column=description", NULL))
TEST_CALL(cut, a_session, cut(NULL, database_session, NULL))
TEST_CALL(cut, a_transaction, cut(NULL, QUICK "&mode=for_update", NULL))

/* The addresses of a name are tried in turn: nobody listens at ::1. */
TEST(host, by_its_name_is_found)
{
    const char *url;
    hf_client *client;

    database_fresh();
    url = database_url(QUICK);
    client = client_open(url_with(url, "localhost", client_port_of(url)));
    client_release(client_acquire(client, "7"));
}

TEST(host, that_nobody_knows_is_told)
{
    hf_client *client;
    hf_error err;

    database_fresh();
    ASSERT_RC(hf_open(url_with(database_url(QUICK "&connect_timeout=10s"),
                               "no-such-host.invalid", 1),
                      NULL, &client, &err),
              HF_EUNAVAILABLE, &err);
}
