/* SPDX-License-Identifier: MIT */
/*
 * memcached_clock_test.c - leases of a server that reads its clock too late.
 */
#include <stdio.h>

#include "memcached.h"

/* A server whose CLOCK_MONOTONIC a test can move (clock_shim.c). */
static struct server *start_with_clock(void)
{
    static const char preload[] = "LD_PRELOAD=" CLOCK_SHIM;
    static const char *const words[] = {
        "env",       preload,     "CLOCK_SHIM={dir}/clock",
        "memcached", "-u",        "root",
        "-l",        "127.0.0.1", "-p",
        "{port}",    "-U",        "0",
        NULL};

    return server_start(words);
}

static void set_ahead(struct server *server, int64_t ns)
{
    FILE *file = fopen(test_text("%s/clock", server_dir(server)), "r+");

    ASSERT_NOT_NULL(file);
    ASSERT_EQ(fseek(file, 2 * sizeof(ns), SEEK_SET), 0);
    ASSERT_EQ(fwrite(&ns, sizeof(ns), 1, file), 1);
    ASSERT_EQ(fclose(file), 0);
}

/* What the server says that is left of the item, in its seconds. */
static int seconds_left(struct server *server)
{
    int left = 0;

    ASSERT_EQ(
        sscanf(memcached_do(server, "HD", "mg hf:jobs t"), "HD t%d", &left), 1);
    return left;
}

/* The server stores the lock by the time of its last reading, and finds at the
 * next one that two seconds have passed. */
TEST(lease, lasts_as_long_as_it_is_claimed_if_the_clock_is_read_late)
{
    struct server *server = start_with_clock();
    hf_client *client = memcached_open(server_port(server), "ttl=1s&renew=off");
    hf_client *rival = memcached_open(server_port(server), "retry.base=10ms");
    hf_hold *hold = client_acquire(client, "jobs");
    hf_hold *next;

    ASSERT_GE(seconds_left(server), 3); /* one may have ended meanwhile */
    set_ahead(server, 1000000000);
    next = client_acquire(rival, "jobs");
    ASSERT_EQ(hf_check(hold), HF_LOST);
    client_release(next);
    (void)hf_release(hold, NULL);
}
