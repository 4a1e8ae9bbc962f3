/* SPDX-License-Identifier: MIT */
/* redlock.c - several Redis servers for a test. */
#include "redlock.h"

void redlock_start(struct server *servers[NODES])
{
    for (int i = 0; i < NODES; i++)
        servers[i] = redis_start_durable();
}

const char *redlock_url(const int ports[NODES], const char *query)
{
    return test_text(
        "redlock://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d,"
        "127.0.0.1:%d?%s",
        ports[0], ports[1], ports[2], ports[3], ports[4], query);
}

hf_client *redlock_open_ports(const int ports[NODES], const char *query)
{
    return client_open(redlock_url(ports, query));
}

hf_client *redlock_open(struct server *const servers[NODES], const char *query)
{
    int ports[NODES];

    for (int i = 0; i < NODES; i++)
        ports[i] = server_port(servers[i]);
    return redlock_open_ports(ports, query);
}

hf_client *redlock_begin(struct server *servers[NODES], const char *query)
{
    redlock_start(servers);
    return redlock_open(servers, query);
}

int redlock_votes(struct server *const servers[NODES], const char *name)
{
    int votes = 0;

    for (int i = 0; i < NODES; i++)
        votes += redis_do(servers[i], "EXISTS %s", name)[1] == '1';
    return votes;
}

void redlock_pairs(hf_client *client, const char *name, int n)
{
    for (int i = 0; i < n; i++)
        client_release(client_acquire(client, name));
}
