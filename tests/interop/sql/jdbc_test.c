/* SPDX-License-Identifier: MIT */
/*
 * jdbc_test.c - one table with ShedLock, one with Spring's JdbcLockRegistry.
 *
 * JDBC_DIR is what prepare.sh made. Java and the server are in zones of their
 * own: instants are UTC all the same.
 */
#include "interop/peer.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "live/sql/database.h"
#include "tempdir.h"

enum { X = HF_EXCLUSIVE, PATIENCE_MS = 60000 };

static struct proc *start_java(void)
{
    const char *const arguments[] = {database_jdbc(), NULL};

    return peer_start_java("JDBC_DIR", "-Duser.timezone=Asia/Tokyo", arguments);
}

/* As ShedLock's manual and Spring's scripts have them. */
static void make_their_tables(void)
{
    (void)database_do(
        "CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, "
        "lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL "
        "DEFAULT CURRENT_TIMESTAMP(3), locked_by VARCHAR(255) NOT NULL, "
        "PRIMARY KEY (name));"
        "CREATE TABLE INT_LOCK(LOCK_KEY CHAR(36) NOT NULL, "
        "REGION VARCHAR(100) NOT NULL, CLIENT_ID CHAR(36), "
        "CREATED_DATE %s NOT NULL, EXPIRED_AFTER %s NOT NULL, "
        "PRIMARY KEY (LOCK_KEY, REGION));",
        database_instant, database_instant);
}

static const char *url_of(const char *kind, const char *ttl)
{
    char query[128];

    (void)snprintf(query, sizeof(query),
                   "dialect=%s&ttl=%s&retry.base=1ms&retry.max_interval=20ms",
                   kind, ttl);
    return database_url(query);
}

/* ---- both ways ------------------------------------------------------------ */

static struct proc *start_with_their_tables(void)
{
    database_fresh();
    make_their_tables();
    return start_java();
}

/* … and a client of ours. */
static struct proc *start_both(const char *kind, hf_client **ret_client)
{
    struct proc *java = start_with_their_tables();

    *ret_client = client_open(url_of(kind, "60s"));
    return java;
}

static int see_java(const hf_lock_info *info, void *ctx)
{
    ASSERT_STREQ(info->name, ctx);
    ASSERT_EQ(info->role, HF_HOLDER);
    ASSERT_TRUE(info->owner[0] != '\0');
    ASSERT_TRUE(info->lease_ms > 0 && info->lease_ms <= 60000);
    return 42;
}

static void exclude(const char *kind, char *listed)
{
    hf_client *client;
    struct proc *java = start_both(kind, &client);
    hf_request *request;
    hf_hold *hold;

    (void)peer_ask(java, "1 ok", "1 lock %s my-lock 60000 0", kind);
    ASSERT_EQ(peer_try(client, "my-lock", X, 0), HF_EBUSY);
    ASSERT_EQ(hf_list(client, NULL, see_java, listed, NULL), 42);
    (void)peer_ask(java, "1 ok", "1 keep %s my-lock 60000", kind);
    request = peer_await(client, "my-lock", X, 0);
    ASSERT_TRUE(peer_is_waiting(request));
    (void)peer_ask(java, "1 ok", "1 unlock %s my-lock", kind);
    hold = peer_awaited(request, PATIENCE_MS);

    (void)peer_ask(java, "1 busy", "1 lock %s my-lock 60000 0", kind);
    ASSERT_EQ(hf_verify(hold, NULL), 0);
    (void)peer_ask(java, "2 busy", "2 lock %s my-lock 60000 50", kind);
    peer_tell(java, "2 lock %s my-lock 60000 60000", kind);
    client_release(hold);
    (void)proc_expect(java, "2 ok");
    ASSERT_EQ(peer_try(client, "my-lock", X, 0), HF_EBUSY);
    ASSERT_EQ(peer_try(client, "another", X, 0), 0);
    (void)peer_ask(java, "2 ok", "2 unlock %s my-lock", kind);
    ASSERT_EQ(peer_try(client, "my-lock", X, 0), 0);
}

TEST(shedlock, and_we_exclude_each_other)
{
    char listed[] = "my-lock";

    exclude("shedlock", listed);
}

TEST(spring, and_we_exclude_each_other)
{
    char listed[] = "eda23b8c-64b2-3f01-8c10-660455d15168";

    exclude("spring", listed);
}

/* ---- the dead --------------------------------------------------------------- */

static void hold_until_killed(struct proc *self, void *arg)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    (void)arg;
    ASSERT_OK(hf_open(proc_hear(self), NULL, &client, &err), &err);
    ASSERT_OK(hf_acquire(client, "jobs", NULL, &hold, &err), &err);
    proc_tell(self, "holding");
    (void)proc_hear(self);
}

static void succeed(const char *kind)
{
    struct proc *ours = proc_start(hold_until_killed, NULL);
    struct proc *java;

    java = start_with_their_tables();
    proc_say(ours, url_of(kind, "4s"));
    (void)proc_expect(ours, "holding");
    (void)peer_ask(java, "1 busy", "1 lock %s jobs 2000 0", kind);
    proc_kill(ours);
    (void)peer_ask(java, "1 ok", "1 lock %s jobs 2000 60000", kind);
    proc_kill(java);
    client_release(peer_take(client_open(url_of(kind, "60s")), "jobs", X, 0));
}

TEST(shedlock, a_killed_holder_of_either_side_is_succeeded)
{
    succeed("shedlock");
}

TEST(spring, a_killed_holder_of_either_side_is_succeeded)
{
    succeed("spring");
}

/* ---- the late --------------------------------------------------------------- */

/* Java unlocks and renews what has expired, and is ours by now. */
static void come_late(const char *kind, const char *unlocked)
{
    hf_client *client;
    struct proc *java = start_both(kind, &client);
    hf_hold *jobs;
    hf_hold *mail;

    (void)peer_ask(java, "1 ok", "1 lock %s jobs 100 0", kind);
    (void)peer_ask(java, "2 ok", "2 lock %s mail 100 0", kind);
    jobs = peer_take(client, "jobs", X, 0);
    mail = peer_take(client, "mail", X, 0);
    (void)peer_ask(java, unlocked, "1 unlock %s jobs", kind);
    (void)peer_ask(java, "2 lost", "2 keep %s mail 60000", kind);
    ASSERT_EQ(hf_verify(jobs, NULL), 0);
    ASSERT_EQ(hf_verify(mail, NULL), 0);
    (void)peer_ask(java, "3 busy", "3 lock %s jobs 60000 0", kind);
    (void)peer_ask(java, "3 busy", "3 lock %s mail 60000 0", kind);
}

TEST(shedlock, that_comes_too_late_does_not_touch_our_lock)
{
    come_late("shedlock", "1 ok"); /* it does not say */
}

TEST(spring, that_comes_too_late_does_not_touch_our_lock)
{
    come_late("spring", "1 lost");
}

/* ---- the counter ------------------------------------------------------------ */

enum { TIMES = 15, THREADS = 2 };

struct counter {
    const char *file;
    hf_client *client;
};

static int read_number(const char *file)
{
    char text[32] = "";
    FILE *from = fopen(file, "re");

    if (!from || !fgets(text, sizeof(text), from))
        FAIL("%s cannot be read", file);
    (void)fclose(from);
    return atoi(text);
}

static void write_number(const char *file, int number)
{
    FILE *to = fopen(file, "we");

    if (!to || fprintf(to, "%d\n", number) < 0 || fclose(to) != 0)
        FAIL("%s cannot be written", file);
}

static void *count(void *arg)
{
    const struct counter *counter = arg;

    for (int i = 0; i < TIMES; i++) {
        hf_hold *hold = client_acquire(counter->client, "counter");

        write_number(counter->file, read_number(counter->file) + 1);
        client_release(hold);
    }
    return NULL;
}

/* The tables are made by us. */
static void count_together(const char *kind)
{
    struct proc *java;
    struct counter counters[THREADS];
    pthread_t threads[THREADS];
    char file[256];

    database_fresh();
    (void)snprintf(file, sizeof(file), "%s/number", tempdir_new());
    write_number(file, 0);
    java = start_java();
    for (int i = 0; i < THREADS; i++)
        counters[i] = (struct counter){file, client_open(url_of(kind, "60s"))};
    client_release(peer_take(counters[0].client, "counter", X, 0));
    for (int i = 0; i < THREADS; i++) {
        peer_tell(java, "%d count %s counter %d %s", i, kind, TIMES, file);
        ASSERT_EQ(pthread_create(&threads[i], NULL, count, &counters[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        ASSERT_EQ(pthread_join(threads[i], NULL), 0);
        ASSERT_HAS(proc_next(java, PATIENCE_MS), " ok");
    }
    ASSERT_EQ(read_number(file), 2 * THREADS * TIMES);
}

TEST(shedlock, and_we_count_right_together)
{
    count_together("shedlock");
}

TEST(spring, and_we_count_right_together)
{
    count_together("spring");
}
