/* SPDX-License-Identifier: MIT */
/*
 * redis_contract_test.c - the contract on several servers.
 *
 * The suite is a program of its own (CONTRACT_PROGRAM); it is run against
 * servers that are started here. Over TLS, with a user that has no more rights
 * than it needs, a part of it: what differs there is which rights a user has.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "certificates.h"
#include "topology.h"

/* @parts: names of tests begin or go on so; NULL: all. They end with NULL. */
static void judge_parts(const char *url, const char *const *parts)
{
    const char *contract = getenv("CONTRACT_PROGRAM");
    char *words[16] = {NULL};
    int n = 0;
    pid_t pid;
    int status = -1;

    ASSERT_NOT_NULL(contract);
    words[n++] = test_text("%s", contract);
    words[n++] = test_text("--url");
    words[n++] = test_text("%s", url);
    for (; parts && *parts; parts++)
        words[n++] = test_text("%s", *parts);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execv(contract, words);
        _exit(127);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
}

static void judge(const char *url)
{
    judge_parts(url, /* parts= */ NULL);
}

TEST(contract, holds_on_a_sentinel_set)
{
    judge(sentinel_set_url(sentinel_set_start(), "retry.base=1ms"));
}

TEST(contract, holds_on_a_cluster)
{
    judge(cluster_url(cluster_start(), "retry.base=1ms"));
}

TEST(contract, holds_on_a_cluster_in_the_plain_dialect)
{
    judge(cluster_url(cluster_start(), "retry.base=1ms&dialect=plain"));
}

/* What differs there is where the keys are, and which node wakes a waiter. */
TEST(contract, holds_in_part_on_a_cluster_in_the_redisson_dialect)
{
    static const char *const parts[] = {"exclusion.two",
                                        "exclusion.many_processes_count",
                                        "modes.",
                                        "multi.",
                                        "hold.tokens",
                                        "wait.a_release",
                                        NULL};
    static const char *const modes[] = {"lock", "fenced", "fair", "rw",
                                        "permits"};
    struct cluster *cluster = cluster_start();

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        judge_parts(
            cluster_url(
                cluster,
                test_text("retry.base=1ms&dialect=redisson&mode=%s", modes[i])),
            parts);
}

/* ---- over TLS, as an ACL user -------------------------------------------- */

static const char *const secure_parts[] = {
    "exclusion.", "modes.", "multi.", "hold.", "look.", "wait.", NULL};

static const char *make_certificates(void)
{
    const char *dir = certificates_new();

    certificates_make(dir, "server", "good", "IP:127.0.0.1", 2);
    certificates_make(dir, "expired", "good", "IP:127.0.0.1", -1);
    return dir;
}

static const char *trusting(const char *dir)
{
    return test_text("retry.base=1ms&tls.ca=%s/good.crt", dir);
}

static void refused(const char *url, const char *because)
{
    hf_client *client;
    hf_error err;

    ASSERT_RC(hf_open(url, NULL, &client, &err), HF_EAUTH, &err);
    ASSERT_HAS(err.text, because);
    ASSERT_NULL(strstr(err.text, "wr0ng"));
}

TEST(secure, sentinel_set_keeps_the_contract_and_refuses_who_is_wrong)
{
    const char *dir = make_certificates();
    struct sentinel_set *set = sentinel_set_start_tls(dir);
    const char *query = trusting(dir);

    judge_parts(sentinel_set_tls_url(set, "locker:s3cret", query),
                secure_parts);
    refused(sentinel_set_tls_url(set, "locker:wr0ng", query), "password");
    /* A sentinel that nobody vouches for is not believed, either. */
    refused(sentinel_set_tls_url(set, "locker:s3cret", NULL), "certificate");
    for (int i = 0; i < SET_SERVERS; i++)
        topology_expire(set->servers[i], dir);
    refused(sentinel_set_tls_url(set, "locker:s3cret", query), "expired");
}

TEST(secure, cluster_keeps_the_contract_and_refuses_who_is_wrong)
{
    const char *dir = make_certificates();
    struct cluster *cluster = cluster_start_tls(dir);
    const char *query = trusting(dir);

    judge_parts(cluster_tls_url(cluster, "locker:s3cret", query), secure_parts);
    refused(cluster_tls_url(cluster, "locker:wr0ng", query), "password");
    refused(cluster_tls_url(cluster, "locker:s3cret", NULL), "certificate");
    for (int i = 0; i < CLUSTER_NODES; i++)
        topology_expire(cluster->nodes[i], dir);
    refused(cluster_tls_url(cluster, "locker:s3cret", query), "expired");
}
