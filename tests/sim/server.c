/* SPDX-License-Identifier: MIT */
/*
 * server.c - the lock service of the simulation, and the network before it.
 *
 * The table is as plain as it can be: per name an array of holders, an array of
 * waiters, in order, and one of those that are parked. Leases end by the
 * service's own clock. A signal puts a mark on the ticket that it calls; the
 * mark ends when its bearer leaves in order, and calls the next one otherwise.
 *
 * The network keeps the order of requests and of replies of one connection,
 * as TCP does; pushes travel apart and may overtake replies. A lost message
 * makes the connection break after a while. When it breaks, replies under way
 * are gone, but requests may still arrive, until the client has opened a new
 * connection, which ends the old one at the service.
 */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>

#include "world.h"

enum { ENTRIES_MAX = 96, ACCEPT_MS = 500 };

struct entry {
    int client;
    uint32_t epoch;
    uint32_t seq;
    uint64_t ticket;
    int mode;
    int slots;
    int64_t ttl_ms;
    uint32_t reserve;
    uint64_t token;
    uint32_t tokens;
    int64_t heard_ns;
    int64_t granted_ns;
    int64_t expiry_ns;
    bool accepted;
    int cond; /* 1 + number; 0: none */
    bool mark;
};

struct lock {
    struct entry holders[ENTRIES_MAX];
    struct entry queue[ENTRIES_MAX];
    struct entry parked[ENTRIES_MAX];
    int n_holders;
    int n_queue;
    int n_parked;
    uint64_t last_token;
};

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
enum sim_kind sim_kind;
enum sim_bug sim_bug;
bool sim_verbose;
bool sim_impatient;
sim_broken_fn *sim_broken;

static struct lock locks[SIM_NAMES];
static struct client clients[SIM_CLIENTS];
static int n_clients;
static int64_t paused_until_ns;
static bool muted;               /* the answer is SIM_UNSURE instead */
static struct sim_message *pool; /* chained through the token */

static struct sim_machine *server_machine(void)
{
    return &sim_machines[SIM_MACHINES - 1];
}

/* How long @ms of the service's clock take. */
static int64_t true_span(int64_t ms)
{
    double speed = 1.0 + (double)server_machine()->drift_ppm * 1e-6;

    return (int64_t)((double)(ms * HF_MS) / speed);
}

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

static struct sim_message *message_new(const struct sim_message *from)
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

static void message_free(struct sim_message *message)
{
    message->token = (uintptr_t)pool;
    pool = message;
}

/* ---- the network -------------------------------------------------------- */

static int64_t travel_ns(void)
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
    message_free(message);
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
        message_free(message);
    }
}

static void break_later(int client, int64_t delay_ns)
{
    struct sim_message message = {
        .op = SIM_BROKEN, .client = client, .epoch = clients[client].epoch};

    sim_at(sim_now() + delay_ns, mark_broken, message_new(&message));
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

static void reply(const struct sim_message *request, enum sim_status status,
                  const struct entry *entry)
{
    struct client *client = &clients[request->client];
    struct sim_message message = *request;

    message.status = (uint8_t)(muted ? SIM_UNSURE : status);
    message.token = entry ? entry->token : 0;
    message.tokens = entry ? entry->tokens : 0;
    message.woken = entry && entry->mark;
    if (!survives(request->client))
        return;
    sim_at(in_order(sim_now() + travel_ns(), &client->last_reply_ns), deliver,
           message_new(&message));
}

static void push(int name, const struct entry *entry)
{
    struct sim_message message = {
        .op = SIM_PUSH,
        .client = entry->client,
        .epoch = clients[entry->client].served_epoch,
        .seq = entry->seq,
        .ticket = entry->ticket,
        .name = name,
        .ttl_ms = entry->ttl_ms,
        .token = entry->token,
        .tokens = entry->tokens,
        .woken = entry->mark,
    };
    int64_t delay_ns = travel_ns();

    if (sim_bug == SIM_BUG_PUSH_LOST && sim_chance(200))
        return;
    if (sim_bug == SIM_BUG_STALE_PUSH && sim_chance(300))
        delay_ns += (int64_t)sim_below(2 * HF_SECOND); /* give it a chance */
    if (survives(entry->client))
        sim_at(sim_now() + delay_ns, deliver, message_new(&message));
}

/* ---- the table ---------------------------------------------------------- */

static struct entry *find(struct entry *entries, int n, int client,
                          uint64_t ticket)
{
    for (int i = 0; i < n; i++)
        if (entries[i].client == client && entries[i].ticket == ticket)
            return &entries[i];
    return NULL;
}

static void take_out(struct entry *entries, int *n, struct entry *entry)
{
    int i = (int)(entry - entries);

    (*n)--;
    memmove(entry, entry + 1, (size_t)(*n - i) * sizeof(*entry));
}

static bool compatible(const struct lock *lock, const struct entry *entry)
{
    if (sim_bug == SIM_BUG_GRANTS_TWICE && sim_chance(50))
        return true;
    for (int i = 0; i < lock->n_holders; i++)
        if (lock->holders[i].mode != entry->mode || entry->mode == HF_EXCLUSIVE)
            return false;
    return entry->mode != HF_SLOT || lock->n_holders < entry->slots;
}

static void tick(void *arg);

static void expire_at(struct lock *lock, struct entry *entry, int64_t at_ns)
{
    entry->expiry_ns = at_ns;
    sim_at(at_ns, tick, lock);
}

/* The wall clock of the service, which is set forward and back, or one more. */
static uint64_t next_token(const struct lock *lock)
{
    uint64_t wall_us = (uint64_t)sim_wall_us(server_machine());

    if (sim_bug == SIM_BUG_TOKEN_OF_CLOCK || wall_us > lock->last_token)
        return wall_us;
    return lock->last_token + 1;
}

static struct entry *make_holder(struct lock *lock, const struct entry *from)
{
    struct entry *entry = &lock->holders[lock->n_holders++];

    *entry = *from;
    if (sim_bug == SIM_BUG_TOKEN_RESTARTS && lock->n_holders == 1 &&
        lock->n_queue == 0 && sim_chance(100))
        lock->last_token = 0;
    entry->token = next_token(lock);
    entry->tokens = entry->reserve;
    lock->last_token = entry->token + entry->tokens - 1;
    entry->granted_ns = sim_now();
    return entry;
}

static bool is_silent(const struct entry *entry)
{
    return sim_kind == SIM_BEATS &&
           entry->heard_ns + true_span(entry->ttl_ms) <= sim_now();
}

/* Put the first that is parked on @cond at the end of the line. */
static bool call_next(struct lock *lock, int cond)
{
    for (int i = 0; i < lock->n_parked; i++) {
        struct entry *entry = &lock->parked[i];

        if (entry->cond != cond || is_silent(entry))
            continue;
        lock->queue[lock->n_queue] = *entry;
        lock->queue[lock->n_queue++].mark = true;
        take_out(lock->parked, &lock->n_parked, entry);
        return true;
    }
    return false;
}

/* It leaves, and not in order. */
static void drop(struct lock *lock, struct entry *entries, int *n,
                 struct entry *entry)
{
    struct entry gone = *entry;

    take_out(entries, n, entry);
    if (gone.mark && sim_bug != SIM_BUG_MARK_DIES)
        (void)call_next(lock, gone.cond);
}

/* Drop what has expired, and give to the next. */
static void settle(struct lock *lock)
{
    int64_t now = sim_now();

    for (int i = lock->n_parked - 1; i >= 0; i--)
        if (is_silent(&lock->parked[i]))
            take_out(lock->parked, &lock->n_parked, &lock->parked[i]);
    for (int i = lock->n_holders - 1; i >= 0; i--)
        if (lock->holders[i].expiry_ns <= now)
            drop(lock, lock->holders, &lock->n_holders, &lock->holders[i]);
    for (int i = lock->n_queue - 1; i >= 0; i--)
        if (is_silent(&lock->queue[i]))
            drop(lock, lock->queue, &lock->n_queue, &lock->queue[i]);
    while (lock->n_queue > 0 && compatible(lock, &lock->queue[0])) {
        struct entry *entry = make_holder(lock, &lock->queue[0]);

        take_out(lock->queue, &lock->n_queue, &lock->queue[0]);
        if (sim_kind == SIM_BEATS)
            expire_at(lock, entry, entry->heard_ns + true_span(entry->ttl_ms));
        else
            expire_at(lock, entry, now + true_span(ACCEPT_MS));
        push((int)(lock - locks), entry);
    }
}

static void tick(void *arg)
{
    if (paused_until_ns > sim_now())
        sim_at(paused_until_ns, tick, arg);
    else
        settle(arg);
}

static void lease_anew(struct lock *lock, struct entry *entry)
{
    entry->accepted = true;
    entry->heard_ns = sim_now();
    expire_at(lock, entry, sim_now() + true_span(entry->ttl_ms));
}

/* ---- requests ----------------------------------------------------------- */

static bool slots_differ(const struct lock *lock, const struct sim_message *m)
{
    return lock->n_holders > 0 && m->mode == HF_SLOT &&
           lock->holders[0].mode == HF_SLOT &&
           lock->holders[0].slots != m->slots;
}

static void serve_new(struct lock *lock, const struct sim_message *m)
{
    struct entry entry = {.client = m->client,
                          .epoch = m->epoch,
                          .seq = m->seq,
                          .ticket = m->ticket,
                          .mode = m->mode,
                          .slots = m->slots,
                          .ttl_ms = m->ttl_ms,
                          .reserve = m->reserve,
                          .heard_ns = sim_now()};
    struct entry *holder;

    if (slots_differ(lock, m)) {
        reply(m, SIM_INVALID, NULL);
    } else if (lock->n_queue == 0 && compatible(lock, &entry)) {
        holder = make_holder(lock, &entry);
        lease_anew(lock, holder);
        reply(m, SIM_GRANTED, holder);
    } else if (m->nowait || sim_kind == SIM_BUSY) {
        reply(m, SIM_BUSY_NOW, NULL);
    } else {
        lock->queue[lock->n_queue++] = entry;
        if (sim_kind == SIM_BEATS)
            sim_at(sim_now() + true_span(m->ttl_ms), tick, lock);
        reply(m, SIM_QUEUED, NULL);
    }
    if (lock->n_queue == ENTRIES_MAX || lock->n_holders == ENTRIES_MAX)
        abort();
}

/* Does the ticket hold the lock, or stand in line? Then it is told so. */
static bool answer_placed(struct lock *lock, const struct sim_message *m)
{
    struct entry *holder =
        find(lock->holders, lock->n_holders, m->client, m->ticket);
    struct entry *waiter =
        find(lock->queue, lock->n_queue, m->client, m->ticket);

    if (holder) {
        holder->seq = m->seq;
        lease_anew(lock, holder);
        reply(m, SIM_GRANTED, holder);
    } else if (waiter) {
        waiter->seq = m->seq;
        waiter->heard_ns = sim_now();
        reply(m, SIM_QUEUED, NULL);
    }
    return holder || waiter;
}

static void serve_acquire(struct lock *lock, const struct sim_message *m)
{
    if (!answer_placed(lock, m))
        serve_new(lock, m);
}

static void hear_parked(struct lock *lock, struct entry *entry)
{
    entry->heard_ns = sim_now();
    if (sim_kind == SIM_BEATS)
        sim_at(sim_now() + true_span(entry->ttl_ms), tick, lock);
}

static void serve_renew(struct lock *lock, const struct sim_message *m)
{
    struct entry *holder =
        find(lock->holders, lock->n_holders, m->client, m->ticket);
    struct entry *waiter =
        find(lock->queue, lock->n_queue, m->client, m->ticket);
    struct entry *parked =
        find(lock->parked, lock->n_parked, m->client, m->ticket);

    if (holder) {
        lease_anew(lock, holder);
        reply(m, m->op == SIM_RENEW ? SIM_RENEWED : SIM_GRANTED, holder);
    } else if (waiter) {
        waiter->heard_ns = sim_now();
        reply(m, SIM_QUEUED, NULL);
    } else if (parked) {
        hear_parked(lock, parked);
        reply(m, SIM_PARKED, NULL);
    } else if (sim_bug == SIM_BUG_RENEW_LIES && m->op == SIM_RENEW) {
        reply(m, SIM_RENEWED, NULL);
    } else {
        reply(m, SIM_LOST, NULL);
    }
}

static void serve_leave(struct lock *lock, const struct sim_message *m)
{
    struct entry *holder =
        find(lock->holders, lock->n_holders, m->client, m->ticket);
    struct entry *waiter =
        find(lock->queue, lock->n_queue, m->client, m->ticket);
    struct entry *parked =
        find(lock->parked, lock->n_parked, m->client, m->ticket);
    bool forgets = sim_bug == SIM_BUG_WITHDRAW_FORGETS && m->op == SIM_WITHDRAW;

    if (holder && m->op == SIM_RELEASE)
        holder->mark = false; /* used up */
    if (parked && !forgets)
        take_out(lock->parked, &lock->n_parked, parked);
    if (waiter && !forgets)
        drop(lock, lock->queue, &lock->n_queue, waiter);
    if (holder && !forgets)
        drop(lock, lock->holders, &lock->n_holders, holder);
    if (sim_bug == SIM_BUG_RELEASE_FREES_ALL && m->op == SIM_RELEASE)
        lock->n_holders = 0;
    settle(lock);
    reply(m, m->op == SIM_RELEASE && !holder ? SIM_LEFT_LOST : SIM_LEFT, NULL);
}

static void serve_downgrade(struct lock *lock, const struct sim_message *m)
{
    struct entry *holder =
        find(lock->holders, lock->n_holders, m->client, m->ticket);

    if (!holder) {
        reply(m, SIM_LOST, NULL);
        return;
    }
    holder->mode = HF_SHARED;
    lease_anew(lock, holder);
    reply(m, SIM_RENEWED, holder);
    settle(lock);
}

/* Free what has this token, and nothing else. */
static void serve_break(struct lock *lock, const struct sim_message *m)
{
    for (int i = 0; i < lock->n_holders; i++) {
        struct entry *holder = &lock->holders[i];

        if ((m->token < holder->token ||
             m->token >= holder->token + holder->tokens) &&
            sim_bug != SIM_BUG_BREAK_FREES_ALL)
            continue;
        if (sim_bug != SIM_BUG_BREAK_FREES_ALL)
            sim_broken(m->name, holder->token, holder->token + holder->tokens,
                       holder->expiry_ns);
        drop(lock, lock->holders, &lock->n_holders, holder);
        settle(lock);
        reply(m, SIM_LEFT, NULL);
        return;
    }
    reply(m, lock->n_holders > 0 ? SIM_BUSY_NOW : SIM_LOST, NULL);
}

/* Is the answer that the service does not know what became of it? Half of
 * them were carried out. */
static bool is_unsure(const struct sim_message *m)
{
    switch (m->op) {
    case SIM_CONNECT:
    case SIM_CONFIRM:
    case SIM_BREAK:
    case SIM_PARK:
    case SIM_UNPARK:
    case SIM_SIGNAL:
        return false;
    default:
        return sim_chance(sim_network.unsure_per_mille);
    }
}

/* ---- conditions --------------------------------------------------------- */

/* What the ticket is by now; false: it is not here. */
static bool answer_known(struct lock *lock, const struct sim_message *m)
{
    struct entry *parked =
        find(lock->parked, lock->n_parked, m->client, m->ticket);

    if (answer_placed(lock, m))
        return true;
    if (parked) {
        parked->seq = m->seq;
        hear_parked(lock, parked);
        reply(m, SIM_PARKED, NULL);
    }
    return parked;
}

static void park_now(const struct sim_message *m)
{
    struct lock *lock = &locks[m->name];
    struct entry *entry = &lock->parked[lock->n_parked++];

    *entry = (struct entry){.client = m->client,
                            .epoch = m->epoch,
                            .seq = m->seq,
                            .ticket = m->ticket,
                            .mode = m->mode,
                            .ttl_ms = m->ttl_ms,
                            .reserve = m->reserve,
                            .cond = m->cond};
    if (lock->n_parked == ENTRIES_MAX)
        abort();
    hear_parked(lock, entry);
}

static void park_late(void *arg)
{
    struct sim_message *m = arg;

    park_now(m);
    message_free(m);
}

static void serve_park(struct lock *lock, const struct sim_message *m)
{
    struct entry *old = find(lock->holders, lock->n_holders, m->client, m->old);

    if (answer_known(lock, m))
        return;
    if (!old) {
        reply(m, SIM_LOST, NULL);
        return;
    }
    take_out(lock->holders, &lock->n_holders,
             old); /* in order, with its mark */
    if (sim_bug == SIM_BUG_PARKS_LATE)
        sim_at(sim_now() + (int64_t)sim_below(100 * HF_MS), park_late,
               message_new(m));
    else
        park_now(m);
    settle(lock);
    reply(m, SIM_PARKED, NULL);
}

static void serve_unpark(struct lock *lock, const struct sim_message *m)
{
    struct entry *parked =
        find(lock->parked, lock->n_parked, m->client, m->ticket);

    if (parked) {
        lock->queue[lock->n_queue++] = *parked;
        take_out(lock->parked, &lock->n_parked, parked);
        settle(lock);
    }
    if (!answer_known(lock, m))
        reply(m, SIM_LOST, NULL);
}

static void serve_signal(struct lock *lock, const struct sim_message *m)
{
    struct entry woken = {.tokens = 0};

    if (!find(lock->holders, lock->n_holders, m->client, m->ticket)) {
        reply(m, SIM_LOST, NULL);
        return;
    }
    while ((m->all || woken.tokens == 0) && call_next(lock, m->cond))
        woken.tokens++;
    settle(lock);
    reply(m, SIM_GRANTED, &woken);
}

static void serve(const struct sim_message *m)
{
    struct lock *lock = &locks[m->name];

    tell("asks", m);
    settle(lock);
    switch (m->op) {
    case SIM_ACQUIRE:
        serve_acquire(lock, m);
        break;
    case SIM_RENEW:
    case SIM_CONFIRM:
        serve_renew(lock, m);
        break;
    case SIM_DOWNGRADE:
        serve_downgrade(lock, m);
        break;
    case SIM_BREAK:
        serve_break(lock, m);
        break;
    case SIM_PARK:
        serve_park(lock, m);
        break;
    case SIM_UNPARK:
        serve_unpark(lock, m);
        break;
    case SIM_SIGNAL:
        serve_signal(lock, m);
        break;
    default:
        serve_leave(lock, m);
        break;
    }
}

static void receive(void *arg)
{
    struct sim_message *m = arg;
    struct client *client = &clients[m->client];

    if (sim_chance(sim_network.pause_per_mille) && paused_until_ns < sim_now())
        paused_until_ns =
            sim_now() + (int64_t)sim_below((uint64_t)sim_network.pause_max_ns);
    if (paused_until_ns > sim_now()) {
        sim_at(paused_until_ns, receive, m);
        return;
    }
    if ((m->epoch < client->epoch || client->broken) && !client->leaking) {
        message_free(m); /* lost with its connection */
        return;
    }
    if (m->op == SIM_CONNECT && m->epoch > client->served_epoch) {
        client->served_epoch = m->epoch;
        reply(m, SIM_LEFT, NULL);
    } else if (m->op != SIM_CONNECT && m->epoch == client->served_epoch) {
        muted = is_unsure(m);
        if (muted && sim_chance(500))
            reply(m, SIM_UNSURE, NULL);
        else
            serve(m);
        muted = false;
    }
    message_free(m);
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
    sim_at(in_order(sim_now() + travel_ns(), &client->last_request_ns), receive,
           message_new(message));
}

/* ---- the truth ---------------------------------------------------------- */

int sim_name_number(const char *name)
{
    return name[strlen(name) - 1] - '0';
}

bool sim_server_holds(int name, uint64_t token, int64_t *ret_granted_ns,
                      bool *ret_first)
{
    const struct lock *lock = &locks[name];

    for (int i = 0; i < lock->n_holders; i++) {
        const struct entry *entry = &lock->holders[i];

        if (token < entry->token || token >= entry->token + entry->tokens ||
            entry->expiry_ns <= sim_now())
            continue;
        *ret_granted_ns = entry->granted_ns;
        *ret_first = token == entry->token;
        return true;
    }
    return false;
}

static int add_rows(const struct entry *entries, int n, bool holds,
                    struct sim_row *rows, int max)
{
    int added = 0;

    for (int i = 0; i < n && added < max; i++)
        rows[added++] = (struct sim_row){.client = entries[i].client,
                                         .mode = entries[i].mode,
                                         .holds = holds,
                                         .token = entries[i].token};
    return added;
}

int sim_server_rows(int name, struct sim_row *rows, int max)
{
    const struct lock *lock = &locks[name];
    int n = add_rows(lock->holders, lock->n_holders, true, rows, max);

    return n + add_rows(lock->queue, lock->n_queue, false, rows + n, max - n);
}

int64_t sim_server_travel_ns(void)
{
    return travel_ns();
}

static int count_of(const struct entry *entries, int n, int machine)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += clients[entries[i].client].machine == machine;
    return count;
}

int sim_server_count(int machine)
{
    int count = 0;

    for (int i = 0; i < SIM_NAMES; i++)
        count += count_of(locks[i].holders, locks[i].n_holders, machine) +
                 count_of(locks[i].queue, locks[i].n_queue, machine) +
                 count_of(locks[i].parked, locks[i].n_parked, machine);
    return count;
}

static void print_entry(int name, const char *what, const struct entry *entry)
{
    printf("# server: lock %d: %s client %d ticket %llu mode %d token %llu+%u "
           "ttl %lld ms expires %.6f s\n",
           name, what, entry->client, (unsigned long long)entry->ticket,
           entry->mode, (unsigned long long)entry->token, entry->tokens,
           (long long)entry->ttl_ms, (double)entry->expiry_ns * 1e-9);
}

void sim_server_print(void)
{
    for (int i = 0; i < SIM_NAMES; i++) {
        for (int j = 0; j < locks[i].n_holders; j++)
            print_entry(i, "holder", &locks[i].holders[j]);
        for (int j = 0; j < locks[i].n_queue; j++)
            print_entry(i, locks[i].queue[j].mark ? "called" : "waiter",
                        &locks[i].queue[j]);
        for (int j = 0; j < locks[i].n_parked; j++)
            print_entry(i, "parked", &locks[i].parked[j]);
    }
}

void sim_server_reset(void)
{
    for (int i = 0; i < SIM_NAMES; i++) {
        locks[i].n_holders = 0;
        locks[i].n_queue = 0;
        locks[i].n_parked = 0;
        locks[i].last_token = 0;
    }
    n_clients = 0;
    paused_until_ns = 0;
    memset(&sim_network, 0, sizeof(sim_network));
}

void sim_server_release(void)
{
    while (pool) {
        struct sim_message *next = (struct sim_message *)(uintptr_t)pool->token;

        free(pool);
        pool = next;
    }
}
