/* SPDX-License-Identifier: MIT */
/*
 * memcached_fault_test.c - what caches, networks and strangers do to locks.
 */
#include <stdlib.h>

#include "base/base.h"
#include "event.h"
#include "memcached.h"
#include "proc.h"

#define QUICK "retry.base=1ms&retry.max_interval=20ms"

/* ---- the server ---------------------------------------------------------- */

TEST(server, that_is_flushed_is_told_as_lost)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK "&ttl=2s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    (void)memcached_do(server, "OK", "flush_all");
    EVENTUALLY(hf_check(hold) == HF_LOST); /* by the renewals, unasked */
    ASSERT_EQ(hf_token(hold), 0);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
}

/* Items of all sizes near that of a lock. */
static int fill(struct server *server, int i)
{
    char many[16384];
    size_t used = 0;

    for (; used < sizeof(many) - 300; i++)
        used += (size_t)snprintf(many + used, sizeof(many) - used,
                                 "ms x%d %d q\r\n%0*d\r\n", i, 40 + i % 160,
                                 40 + i % 160, i);
    (void)memcached_do(server, "MN", "%smn", many);
    return i;
}

TEST(server, that_throws_a_lock_away_is_told_as_lost)
{
    struct server *server = memcached_start("2", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK "&ttl=1h");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    for (int i = 0; i < 60000;)
        i = fill(server, i);
    ASSERT_EQ(hf_verify(hold, &err), HF_ELOST);
    ASSERT_EQ(hf_check(hold), HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
}

TEST(server, that_is_full_and_keeps_what_it_has_refuses)
{
    struct server *server = memcached_start("2", "-M");
    hf_client *client = memcached_open(server_port(server), QUICK "&ttl=1h");
    hf_client *rival = memcached_open(server_port(server), QUICK);
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    for (int i = 0; i < 60000;)
        i = fill(server, i);
    ASSERT_EQ(client_try(client, "another", &err), HF_ENOSPACE);
    /* A client that asks for a held lock does not delete it. */
    ASSERT_EQ(client_try(rival, "jobs", &err), HF_EBUSY);
    ASSERT_TRUE(memcached_has(server, "hf:jobs"));
    (void)hf_verify(hold, NULL); /* there may be no memory to renew it */
    ASSERT_TRUE(memcached_has(server, "hf:jobs"));
    client_release(hold);
}

TEST(doctor, says_whether_locks_are_thrown_away)
{
    struct server *small = memcached_start("2", NULL);
    hf_client *client = memcached_open(server_port(small), QUICK);
    struct server *careful = memcached_start("64", "-M");

    ASSERT_EQ(client_finding(client, "promise"), HF_FINDING_WARN);
    ASSERT_EQ(client_finding(client, "eviction"), HF_FINDING_WARN);
    ASSERT_EQ(client_finding(client, "evictions"), HF_FINDING_OK);
    for (int i = 0; i < 60000;)
        i = fill(small, i);
    ASSERT_EQ(client_finding(client, "evictions"), HF_FINDING_FAIL);
    client = memcached_open(server_port(careful), QUICK "&ttl=1h");
    ASSERT_EQ(client_finding(client, "eviction"), HF_FINDING_OK);
    ASSERT_EQ(client_finding(client, "uptime"), HF_FINDING_WARN);
}

TEST(server, restarted_while_held_is_told_as_lost)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK "&ttl=3s");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    server_kill(server);
    server_restart(server);
    EVENTUALLY(hf_check(hold) == HF_LOST);
    ASSERT_EQ(hf_release(hold, NULL), HF_ELOST);
    EVENTUALLY(client_try(client, "jobs", &err) == 0);
}

/* Item numbers start again with the server: the rival's item may have the
 * number that ours had. */
TEST(server, restarted_does_not_let_us_delete_anothers_lock)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client =
        memcached_open(server_port(server), QUICK "&ttl=30s&renew=off");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_client *rival;
    hf_hold *theirs;
    hf_error err;

    server_kill(server);
    server_restart(server);
    rival = memcached_open(server_port(server), QUICK);
    theirs = client_acquire(rival, "jobs");
    (void)hf_release(hold, NULL);
    ASSERT_TRUE(memcached_has(server, "hf:jobs"));
    ASSERT_OK(hf_verify(theirs, &err), &err);
    client_release(theirs);
}

TEST(server, a_waiter_survives_its_restart)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *holder = memcached_open(server_port(server), QUICK "&ttl=1s");
    hf_client *waiter = memcached_open(server_port(server), QUICK "&ttl=1s");
    hf_hold *hold = client_acquire(holder, "jobs");
    hf_hold *next;
    hf_error err;
    hf_request *request = client_start(waiter, "jobs");

    server_kill(server);
    server_restart(server);
    ASSERT_OK(hf_request_wait(request, 10000, &next, &err), &err);
    (void)hf_release(hold, NULL);
    client_release(next);
    hf_request_free(request);
    EVENTUALLY(!memcached_has(server, "hf:jobs"));
}

TEST(server, that_stands_still_is_unavailable_and_recovers)
{
    struct server *server = memcached_start("64", NULL);

    client_outlasts_pause(
        memcached_open(server_port(server), QUICK "&io_timeout=200ms"), server);
    EVENTUALLY(!memcached_has(server, "hf:jobs"));
}

/* ---- clients -------------------------------------------------------------- */

TEST(client, that_was_paused_past_its_lease_knows_that_it_has_lost)
{
    int port = server_port(memcached_start("64", NULL));

    client_loses_by_pause(memcached_url(port, QUICK "&ttl=1s"),
                          memcached_url(port, QUICK));
}

/* ---- the network ---------------------------------------------------------- */

TEST(network, cut_at_every_byte_leaves_nothing)
{
    struct server *server = memcached_start("64", NULL);
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = memcached_open(proxy_port(proxy), QUICK "&ttl=5s");
    hf_error err;

    for (size_t n = 1; n < 240; n += 3) {
        hf_hold *hold;

        proxy_cut_after(proxy, n % 2 ? PROXY_TO_SERVER : PROXY_TO_CLIENT, n);
        hold = client_acquire(client, "jobs");
        (void)hf_verify(hold, NULL);
        (void)hf_release(hold, &err);
        EVENTUALLY(!memcached_has(server, "hf:jobs"));
    }
}

TEST(network, a_lost_answer_is_found_out)
{
    struct server *server = memcached_start("64", NULL);
    struct proxy *proxy = proxy_start(server_port(server));
    hf_client *client = memcached_open(proxy_port(proxy), QUICK);
    hf_request *request;
    hf_hold *hold;
    hf_error err;

    proxy_hold(proxy, PROXY_TO_CLIENT, true);
    request = client_start(client, "jobs");
    EVENTUALLY(memcached_has(server, "hf:jobs"));
    proxy_reset(proxy);
    proxy_pass(proxy);
    /* It is ours already, and we are told so. */
    ASSERT_OK(hf_request_wait(request, 10000, &hold, &err), &err);
    hf_request_free(request);
    client_release(hold);
    ASSERT_FALSE(memcached_has(server, "hf:jobs"));
}

/* ---- strangers ------------------------------------------------------------ */

TEST(strangers, names_cannot_say_anything_to_the_server)
{
    static const char *const names[] = {
        "a b",       "jobs T0 MS", "%20",           "a%20b",
        ".",         "canary",     "jobs\xc2\xa0x", "x 1\xe2\x80\xa8y",
        "flush_all", "#",          "/../",          "ns:*",
    };
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK);
    hf_client *rival = memcached_open(server_port(server), QUICK);
    hf_hold *holds[HF_COUNT_OF(names)];
    hf_error err;

    (void)memcached_do(server, "HD", "ms canary 5\r\nalive");
    for (size_t i = 0; i < HF_COUNT_OF(names); i++) {
        ASSERT_EQ(client_try(rival, names[i], &err), 0);
        holds[i] = client_acquire(client, names[i]);
        ASSERT_EQ(client_try(rival, names[i], &err), HF_EBUSY);
    }
    for (size_t i = 0; i < HF_COUNT_OF(names); i++)
        client_release(holds[i]);
    ASSERT_HAS(memcached_do(server, "VA", "mg canary v"), "VA 5");
    ASSERT_HAS(memcached_do(server, "END", "stats"), "curr_items 1\r\n");
}

TEST(strangers, long_names_are_different_locks)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK);
    hf_client *rival = memcached_open(server_port(server), QUICK);
    char name[HF_NAME_MAX + 1];
    hf_hold *holds[8];
    hf_error err;

    memset(name, '~', HF_NAME_MAX);
    name[HF_NAME_MAX] = '\0';
    for (int i = 0; i < 8; i++) {
        name[250] = (char)('0' + i);
        holds[i] = client_acquire(client, name);
        ASSERT_EQ(client_try(rival, name, &err), HF_EBUSY);
    }
    for (int i = 0; i < 8; i++)
        client_release(holds[i]);
}

TEST(strangers, another_name_under_our_key_is_an_error_not_a_lock)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK);
    hf_error err;

    (void)memcached_do(server, "HD", "ms hf:jobs 55\r\n%044d:h\n1\no\nn\nno",
                       0);
    ASSERT_EQ(client_try(client, "jobs", &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "same hash");
}

TEST(strangers, values_of_others_are_respected)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), QUICK);
    hf_error err;

    (void)memcached_do(server, "HD", "ms hf:jobs 7\r\nanother");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    ASSERT_HAS(memcached_do(server, "VA", "mg hf:jobs v"), "VA 7");
}

TEST(strangers, a_list_of_servers_is_refused)
{
    hf_client *client;
    hf_error err;

    ASSERT_EQ(hf_open("memcached://a,b", NULL, &client, &err), HF_ECONFIG);
    ASSERT_HAS(err.text, "elsewhere");
    ASSERT_EQ(hf_open("memcached://u:p@a", NULL, &client, &err),
              HF_EUNSUPPORTED);
    ASSERT_EQ(hf_open("memcached://a?dialect=redisson", NULL, &client, &err),
              HF_ECONFIG);
}

static void assert_refused(struct server *server, int code, const char *why)
{
    hf_client *client;
    hf_error err;

    ASSERT_RC(
        hf_open(memcached_url(server_port(server), ""), NULL, &client, &err),
        code, &err);
    ASSERT_HAS(err.text, why);
}

TEST(strangers, another_kind_of_server_is_recognised)
{
    static const char *const redis[] = {
        "redis-server", "--port", "{port}", "--bind", "127.0.0.1",
        "--save",       "",       "--dir",  "{dir}",  NULL};
    struct server *server = server_start(redis);

    assert_refused(server, HF_ECONFIG, "not Memcached");
}

TEST(strangers, a_server_without_item_numbers_is_refused)
{
    struct server *server = memcached_start("64", "-C");

    assert_refused(server, HF_EUNSUPPORTED, "-C");
}

/* As OpenStack's tooz has it: flags 1, the member's name as value, no more. */
TEST(tooz, has_the_layout_of_tooz)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client =
        memcached_open(server_port(server), QUICK "&dialect=tooz");
    hf_error err;
    hf_hold *hold = client_acquire(client, "jobs");

    ASSERT_HAS(memcached_do(server, "END", "get __TOOZ_LOCK_jobs"),
               "VALUE __TOOZ_LOCK_jobs 1 44\r\n");
    client_release(hold);
    /* Theirs excludes ours. */
    (void)memcached_do(server, "STORED",
                       "add __TOOZ_LOCK_jobs 1 30 7\r\nmember1");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    (void)memcached_do(server, "DELETED", "delete __TOOZ_LOCK_jobs");
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
    ASSERT_EQ(client_try(client, "a b", &err), HF_EINVAL);
}

/* ---- waiting --------------------------------------------------------------- */

static long count_adds(struct server *server)
{
    const char *at = strstr(memcached_do(server, "END", "stats"), "cmd_set ");

    return at ? strtol(at + strlen("cmd_set "), NULL, 10) : 0;
}

/* The grant in the way is young: it may be gone soon. Without a look at whose it
 * is, six polls would take 30 seconds. */
TEST(waiter, polls_more_often_while_a_grant_is_young)
{
    struct server *server = memcached_start("64", NULL);
    hf_client *client = memcached_open(server_port(server), "retry.base=2s");
    hf_hold *hold =
        client_acquire(memcached_open(server_port(server), "ttl=10m"), "jobs");
    hf_request *request;
    hf_error err;
    int64_t began_ms = clock_ms();
    long before = count_adds(server);

    request = client_start(client, "jobs");
    EVENTUALLY(count_adds(server) >= before + 6);
    ASSERT_TRUE(clock_ms() - began_ms < 20000);
    ASSERT_OK(hf_release(hold, &err), &err);
    ASSERT_OK(hf_release(client_finish(request), &err), &err);
}
