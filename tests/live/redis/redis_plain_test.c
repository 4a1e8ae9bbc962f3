/* SPDX-License-Identifier: MIT */
/* redis_plain_test.c - dialect=plain: the lock that other clients see. */
#include <regex.h>
#include <stdlib.h>

#include "event.h"
#include "redis.h"

TEST(plain, is_the_lock_that_others_see)
{
    struct server *server = redis_start();
    hf_client *client =
        redis_open(server_port(server), "dialect=plain&prefix=app:");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_error err;

    ASSERT_STREQ(redis_do(server, "SET app:jobs other NX PX 1000"), "$-1\r\n");
    client_release(hold);
    ASSERT_STREQ(redis_do(server, "SET app:jobs other NX PX 60000"), "+OK\r\n");
    ASSERT_EQ(client_try(client, "jobs", &err), HF_EBUSY);
    ASSERT_EQ(hf_break(client, "jobs", 0, "somebody", &err), HF_ECONFLICT);
    ASSERT_OK(hf_break(client, "jobs", 0, "other", &err), &err);
    ASSERT_EQ(client_try(client, "jobs", &err), 0);
    ASSERT_EQ(redis_leftovers(server), 0);
}

static int see_foreign(const hf_lock_info *info, void *ctx)
{
    ASSERT_STREQ(info->owner, "other");
    ASSERT_TRUE(info->lease_ms > 0 && info->lease_ms <= 60000);
    ++*(int *)ctx;
    return 0;
}

TEST(plain, shows_whose_lock_it_is_and_for_how_long)
{
    struct server *server = redis_start();
    hf_client *client = redis_open(server_port(server), "dialect=plain");
    int rows = 0;
    hf_error err;

    ASSERT_OK(hf_show(client, "jobs", see_foreign, &rows, &err), &err);
    ASSERT_EQ(rows, 0);
    (void)redis_do(server, "SET jobs other PX 60000");
    ASSERT_OK(hf_show(client, "jobs", see_foreign, &rows, &err), &err);
    ASSERT_EQ(rows, 1);
    (void)redis_do(server, "DEL jobs");
    (void)redis_do(server, "HSET jobs mode read");
    ASSERT_EQ(hf_show(client, "jobs", see_foreign, &rows, &err), HF_ECONFIG);
}

TEST(plain, writes_values_in_the_shape_of_others)
{
    static const struct {
        const char *query;
        const char *pattern; /* of the whole value */
    } shapes[] = {
        {"dialect=plain&mode=hex", "^[0-9a-f]{32}$"},
        {"dialect=plain&mode=base64", "^[0-9A-Za-z+/]{22}==$"},
        {"dialect=plain&mode=uuid",
         "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"},
    };
    struct server *server = redis_start();

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        hf_client *client = redis_open(server_port(server), shapes[i].query);
        char value[64];
        regex_t pattern;

        for (int n = 0; n < 2; n++) {
            hf_hold *hold = client_acquire(client, "jobs");
            char last[64];
            hf_error err;

            (void)snprintf(last, sizeof(last), "%s", n > 0 ? value : "");
            ASSERT_EQ(sscanf(redis_do(server, "GET jobs"), "$%*d %63s", value),
                      1);
            ASSERT_STRNE(value, last);
            ASSERT_EQ(
                regcomp(&pattern, shapes[i].pattern, REG_EXTENDED | REG_NOSUB),
                0);
            ASSERT_EQ(regexec(&pattern, value, 0, NULL, 0), 0);
            regfree(&pattern);
            ASSERT_OK(hf_verify(hold, &err), &err);
            ASSERT_EQ(hf_break(client, "jobs", 0, "somebody", &err),
                      HF_ECONFLICT);
            client_release(hold);
        }
    }
    ASSERT_EQ(redis_leftovers(server), 0);
}

/* The grant in the way is young: it may be gone soon. Without a look at whose it
 * is, six polls would take 30 seconds. */
TEST(plain, is_polled_for_more_often_while_a_grant_is_young)
{
    struct server *server = redis_start();
    hf_client *client =
        redis_open(server_port(server), "dialect=plain&retry.base=2s");
    hf_request *request;
    hf_error err;
    int64_t began_ms;
    long before;

    (void)redis_do(server, "SET jobs other PX 600000");
    before = redis_calls(server, "set");
    began_ms = clock_ms();
    request = client_start(client, "jobs");
    EVENTUALLY(redis_calls(server, "set") >= before + 6);
    ASSERT_TRUE(clock_ms() - began_ms < 20000);
    (void)redis_do(server, "DEL jobs");
    ASSERT_OK(hf_release(client_finish(request), &err), &err);
}
