/* SPDX-License-Identifier: MIT */
/*
 * redis_contract_test.c - the contract on several servers.
 *
 * The suite is a program of its own (CONTRACT_PROGRAM); it is run against
 * servers that are started here.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "topology.h"

static void judge(const char *url)
{
    const char *contract = getenv("CONTRACT_PROGRAM");
    pid_t pid;
    int status = -1;

    ASSERT_NOT_NULL(contract);
    (void)fflush(stdout);
    pid = fork();
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)execl(contract, contract, "--url", url, (char *)NULL);
        _exit(127);
    }
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    ASSERT_EQ(status, 0);
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
