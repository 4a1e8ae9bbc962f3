/* SPDX-License-Identifier: MIT */
/*
 * redlock_tls_test.c - redlocks://: a server that may not be believed has no
 * vote.
 *
 * The servers speak TLS, and the user has no more rights than holdfast(7) asks
 * for. One whose certificate has expired is as good as dead; a majority of them
 * is an error that waiting would not mend.
 */
#include <stdlib.h>

#include "../redis/certificates.h"
#include "redlock.h"

enum { VOTES = 3 };

struct set {
    const char *dir; /* of the certificates */
    struct server *servers[VOTES];
    int ports[VOTES];
    char url[512];
};

static struct server *start(struct set *set, int i)
{
    static const char *const more[] = {
        "--appendonly", "yes", "--appendfsync", "always", "--tls-auth-clients",
        "no",           NULL};

    set->ports[i] = server_free_port();
    return redis_start_tls(set->ports[i], set->dir, "server", more);
}

static void start_all(struct set *set)
{
    set->dir = certificates_new();
    certificates_make(set->dir, "server", "good", "IP:127.0.0.1", 2);
    certificates_make(set->dir, "expired", "good", "IP:127.0.0.1", -1);
    for (int i = 0; i < VOTES; i++) {
        set->servers[i] = start(set, i);
        ASSERT_EQ(
            redis_do(set->servers[i],
                     "ACL SETUSER locker on >s3cret ~* -@all +hello "
                     "+auth +info +select +script|load +evalsha +set "
                     "+get +del +pexpire +time +client|kill +config|get")[0],
            '+');
    }
}

static void expire(struct set *set, int i)
{
    ASSERT_EQ(redis_do(set->servers[i],
                       "CONFIG SET tls-cert-file %s/expired.crt tls-key-file "
                       "%s/expired.key",
                       set->dir, set->dir)[0],
              '+');
}

static const char *url(struct set *set, const char *password)
{
    (void)snprintf(
        set->url, sizeof(set->url),
        "redlocks://locker:%s@127.0.0.1:%d,127.0.0.1:%d,"
        "127.0.0.1:%d?retry.base=1ms&node_timeout=20s&tls.ca=%s/good.crt",
        password, set->ports[0], set->ports[1], set->ports[2], set->dir);
    return set->url;
}

static void works(struct set *set)
{
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_open(url(set, "s3cret"), NULL, &client, &err), &err);
    hold = client_acquire(client, "jobs");
    ASSERT_OK(hf_verify(hold, &err), &err);
    client_release(hold);
    hf_close(client);
    for (int i = 0; i < VOTES; i++)
        EVENTUALLY(redis_do(set->servers[i], "EXISTS jobs")[1] == '0');
}

static void is_refused(struct set *set, const char *password,
                       const char *because)
{
    hf_client *client;
    hf_error err;

    ASSERT_RC(hf_open(url(set, password), NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, because);
    ASSERT_NULL(strstr(err.text, "wr0ng"));
}

TEST(redlocks, believes_a_majority_of_good_certificates)
{
    struct set set = {0};

    start_all(&set);
    works(&set);
    is_refused(&set, "wr0ng", "password");
    expire(&set, 0);
    works(&set);
    expire(&set, 1);
    is_refused(&set, "s3cret", "expired");
}
