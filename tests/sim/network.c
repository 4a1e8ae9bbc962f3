/* SPDX-License-Identifier: MIT */
/*
 * network.c - between the clients of the simulation and its lock service.
 *
 * The network keeps the order of requests and of replies of one connection,
 * as TCP does; pushes travel apart and may overtake replies. A lost message
 * makes the connection break after a while. When it breaks, replies under way
 * are gone, but requests may still arrive, until the client has opened a new
 * connection, which ends the old one at the service.
 */
#include "network.h"

#include <stdio.h>
#include <stdlib.h>

#include "server.h"
#include "world.h"

struct client {
    sim_arrive_fn *arrive;
    void *owner;
    int machine;
    bool used;
    bool broken;             /* the connection, on the client's side */
    bool leaking;            /* requests under way still arrive */
    uint32_t epoch;          /* the client's newest connection */
    uint32_t served_epoch;   /* the service's */
    int64_t last_request_ns; /* arrival, for the order */
    int64_t last_reply_ns;
};

struct sim_network sim_network;
bool sim_verbose;

static struct client clients[SIM_CLIENTS];
static int n_clients;
static struct sim_message *pool; /* chained through the token */

static void tell(const char *what, const struct sim_message *m)
{
    static const char *const ops[] = {
        "connect", "acquire",   "confirm", "withdraw", "release",
        "renew",   "downgrade", "break",   "park",     "unpark",
        "signal",  "push",      "broken"};
    static const char *const states[] = {
        "granted", "queued",     "busy",    "renewed", "lost",
        "left",    "left: lost", "invalid", "unsure",  "parked"};

    if (sim_verbose)
        printf("# %.6f s machine %d %s %s lock %d ticket %llu.%u: %s token "
               "%llu\n",
               (double)sim_now() * 1e-9, clients[m->client].machine, what,
               ops[m->op], m->name, (unsigned long long)m->ticket, m->seq,
               states[m->status], (unsigned long long)m->token);
}

/* ---- memory of messages ------------------------------------------------- */

struct sim_message *sim_message_new(const struct sim_message *from)
{
    struct sim_message *message = pool;

    if (message)
        pool = (struct sim_message *)(uintptr_t)message->token;
    else
        message = malloc(sizeof(*message));
    if (!message)
        abort();
    *message = *from;
    return message;
}

void sim_message_free(struct sim_message *message)
{
    message->token = (uintptr_t)pool;
    pool = message;
}

/* ---- the network -------------------------------------------------------- */

int64_t sim_network_travel_ns(void)
{
    int64_t latency = sim_network.latency_ns;

    if (sim_chance(sim_network.slow_per_mille))
        return (int64_t)sim_below((uint64_t)sim_network.slow_max_ns);
    return latency / 10 + (int64_t)sim_below((uint64_t)latency * 2);
}

static int64_t in_order(int64_t at_ns, int64_t *last_ns)
{
    if (at_ns <= *last_ns)
        at_ns = *last_ns + 1;
    *last_ns = at_ns;
    return at_ns;
}

static void deliver(void *arg)
{
    struct sim_message *message = arg;
    struct client *client = &clients[message->client];

    if (client->used && client->epoch == message->epoch &&
        (!client->broken || message->op == SIM_BROKEN)) {
        tell("hears", message);
        client->arrive(client->owner, message);
    }
    sim_message_free(message);
}

/* The client's end of the connection breaks after @delay_ns. */
static void mark_broken(void *arg)
{
    struct sim_message *message = arg;
    struct client *client = &clients[message->client];

    if (client->used && client->epoch == message->epoch && !client->broken) {
        client->broken = true;
        client->leaking = sim_chance(500);
        deliver(message);
    } else {
        sim_message_free(message);
    }
}

static void break_later(int client, int64_t delay_ns)
{
    struct sim_message message = {
        .op = SIM_BROKEN, .client = client, .epoch = clients[client].epoch};

    sim_at(sim_now() + delay_ns, mark_broken, sim_message_new(&message));
}

/* True if a message gets through. */
static bool survives(int client)
{
    if (sim_chance(sim_network.break_per_mille)) {
        break_later(client, (int64_t)sim_below(HF_MS));
        return sim_chance(500);
    }
    if (sim_chance(sim_network.lost_per_mille)) {
        break_later(client, sim_network.io_timeout_ns);
        return false;
    }
    return true;
}

void sim_network_reply(const struct sim_message *message)
{
    struct client *client = &clients[message->client];

    if (survives(message->client))
        sim_at(in_order(sim_now() + sim_network_travel_ns(),
                        &client->last_reply_ns),
               deliver, sim_message_new(message));
}

void sim_network_push(struct sim_message *message, int64_t delay_ns)
{
    message->epoch = clients[message->client].served_epoch;
    if (survives(message->client))
        sim_at(sim_now() + delay_ns, deliver, sim_message_new(message));
}

/* A new connection ends the one before at the service. */
static void serve(struct client *client, struct sim_message *m)
{
    if (m->op == SIM_CONNECT && m->epoch > client->served_epoch) {
        client->served_epoch = m->epoch;
        m->status = SIM_LEFT;
        sim_network_reply(m);
    } else if (m->op != SIM_CONNECT && m->epoch == client->served_epoch) {
        tell("asks", m);
        sim_server_serve(m);
    }
}

static void receive(void *arg)
{
    struct sim_message *m = arg;
    struct client *client = &clients[m->client];
    int64_t paused_until_ns = sim_server_pause();

    if (paused_until_ns > sim_now()) {
        sim_at(paused_until_ns, receive, m);
        return;
    }
    if ((m->epoch >= client->epoch && !client->broken) || client->leaking)
        serve(client, m); /* otherwise it is lost with its connection */
    sim_message_free(m);
}

/* ---- the client's side -------------------------------------------------- */

int sim_client_new(sim_arrive_fn *arrive, void *owner)
{
    struct client *client = &clients[n_clients];

    if (n_clients == SIM_CLIENTS)
        abort();
    memset(client, 0, sizeof(*client));
    client->arrive = arrive;
    client->owner = owner;
    client->machine = (int)(sim_here() - sim_machines);
    client->used = true;
    client->broken = true;
    return n_clients++;
}

void sim_client_gone(int client)
{
    clients[client].used = false;
}

void sim_connect(int number, uint32_t epoch)
{
    struct client *client = &clients[number];
    struct sim_message message = {
        .op = SIM_CONNECT, .client = number, .epoch = epoch};

    client->epoch = epoch;
    client->broken = false;
    client->last_request_ns = 0;
    client->last_reply_ns = 0;
    sim_send(&message);
}

void sim_send(const struct sim_message *message)
{
    struct client *client = &clients[message->client];

    if (client->broken || !survives(message->client))
        return;
    sim_at(
        in_order(sim_now() + sim_network_travel_ns(), &client->last_request_ns),
        receive, sim_message_new(message));
}

int sim_client_machine(int client)
{
    return clients[client].machine;
}

void sim_network_reset(void)
{
    n_clients = 0;
    memset(&sim_network, 0, sizeof(sim_network));
}

void sim_network_release(void)
{
    while (pool) {
        struct sim_message *next = (struct sim_message *)(uintptr_t)pool->token;

        free(pool);
        pool = next;
    }
}
