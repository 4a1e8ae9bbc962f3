/* SPDX-License-Identifier: MIT */
/* postgres_torture_test.c - the n-th allocation fails, for every n. */
#include "heap.h"
#include "postgres.h"
#include "torture.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=500ms&ttl=2s"

static bool clean(void *server)
{
    return postgres_leftovers(server) == 0;
}

/* No row is held, in a table that was used. */
static bool shedlock_clean(void *server)
{
    return strcmp(postgres_do(server, "SELECT count(*) > 0, count(*) FILTER "
                                      "(WHERE lock_until > timezone('utc', "
                                      "clock_timestamp())) FROM shedlock"),
                  "t|0\n") == 0;
}

static void torture_until(const char *query, bool (*is_clean)(void *server),
                          torture_fn *torture_by)
{
    struct server *server;
    hf_client *first;
    char url[512];
    hf_error err;

    heap_install();
    server = postgres_start();
    (void)snprintf(url, sizeof(url), "%s",
                   postgres_url(server_port(server), query));
    /* The tables are made, and what is kept for good is loaded. */
    ASSERT_OK(hf_open(url, NULL, &first, &err), &err);
    hf_close(first);
    torture_by(&(struct torture){
        .url = url, .clean = is_clean, .ctx = server, .every = 1000});
}

static void torture_with(const char *query)
{
    torture_until(query, clean, torture);
}

TEST_FORKED(torture, advisory)
{
    torture_with(QUICK);
}

TEST_FORKED(torture, table)
{
    torture_with(QUICK "&mode=table");
}

TEST_FORKED(torture, for_update)
{
    torture_with(QUICK "&mode=for_update");
}

TEST_FORKED(torture, shedlock)
{
    torture_until(QUICK "&dialect=shedlock", shedlock_clean, torture);
}

TEST_FORKED(torture, conditions)
{
    torture_until(QUICK "&mode=table", clean, torture_conditions);
}
