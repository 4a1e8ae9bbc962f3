/* SPDX-License-Identifier: MIT */
/* mysql_torture_test.c - the n-th allocation fails, for every n. */
#include <stdlib.h>

#include "heap.h"
#include "mysql.h"
#include "torture.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms&io_timeout=500ms&ttl=2s"

/* No row of a ticket, no holder, nobody in a session. */
static bool clean(void *port)
{
    return atoi(
               mysql_do(*(int *)port,
                        "SELECT (SELECT COUNT(*) FROM holdfast_ticket)+"
                        "(SELECT COUNT(*) FROM holdfast_lock WHERE until>0)"
                        "+(SELECT COUNT(*) FROM information_schema.processlist "
                        "WHERE USER='locker')")) == 0;
}

/* No row is held, in a table that was used, and nobody is in a session. */
static bool shedlock_clean(void *port)
{
    return strcmp(
               mysql_do(*(int *)port,
                        "SELECT (SELECT COUNT(*)>0 FROM shedlock),"
                        "(SELECT COUNT(*) FROM shedlock WHERE "
                        "lock_until>UTC_TIMESTAMP(3)),"
                        "(SELECT COUNT(*) FROM information_schema.processlist "
                        "WHERE USER='locker')"),
               "1\t0\t0\n") == 0;
}

static void torture_until(const char *query, bool (*is_clean)(void *port),
                          torture_fn *torture_by)
{
    int port = mysql_fresh();
    char url[512];
    hf_client *first;
    hf_hold *hold;
    hf_error err;

    heap_install();
    (void)snprintf(url, sizeof(url), "%s", mysql_url(port, query));
    /* The tables are made, and what is kept for good is loaded. */
    ASSERT_OK(hf_open(is_clean == clean ? mysql_url(port, NULL) : url, NULL,
                      &first, &err),
              &err);
    hold = client_acquire(first, "first");
    client_release(hold);
    hf_close(first);
    torture_by(&(struct torture){
        .url = url, .clean = is_clean, .ctx = &port, .every = 1000});
}

static void torture_with(const char *query)
{
    torture_until(query, clean, torture);
}

TEST_FORKED(torture, table)
{
    torture_with(QUICK);
}

TEST_FORKED(torture, get_lock)
{
    torture_with(QUICK "&mode=get_lock");
}

TEST_FORKED(torture, for_update)
{
    torture_with(QUICK "&mode=for_update");
}

TEST_FORKED(torture, shedlock)
{
    torture_until(QUICK "&dialect=shedlock", shedlock_clean, torture);
}

/* The pool has one connection. A ticket that kept it after its question could
 * not be sent would wait for another one until its time is over. */
TEST_FORKED(torture, a_pool_of_one_connection_serves_a_ticket_that_asks_again)
{
    int port = mysql_fresh();
    bool failed = true;
    long n;

    heap_install();
    for (n = 0; failed; n++) {
        hf_client *client =
            mysql_open(port, QUICK "&mode=for_update&pool.max=1");
        hf_hold *hold;
        int rc;

        heap_fail_at(n + 1);
        rc = hf_acquire(client, "jobs", WITHIN(5000), &hold, NULL);
        failed = heap_has_failed();
        heap_fail_at(0);
        ASSERT_NE(rc, HF_ETIMEOUT);
        if (rc == 0)
            ASSERT_EQ(hf_release(hold, NULL), 0);
    }
    test_note("%ld allocations", n - 1);
}

TEST_FORKED(torture, conditions)
{
    torture_until(QUICK "&mode=table", clean, torture_conditions);
}
