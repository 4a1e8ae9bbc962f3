/* SPDX-License-Identifier: MIT */
/*
 * server.c - the lock service of the simulation.
 *
 * The table is as plain as it can be: per name an array of holders, an array of
 * waiters, in order, and one of those that are parked. Leases end by the
 * service's own clock. A signal puts a mark on the ticket that it calls; the
 * mark ends when its bearer leaves in order, and calls the next one otherwise.
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

enum sim_kind sim_kind;
enum sim_bug sim_bug;
bool sim_impatient;
sim_broken_fn *sim_broken;

static struct lock locks[SIM_NAMES];
static int64_t paused_until_ns;
static bool muted; /* the answer is SIM_UNSURE instead */

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

static void reply(const struct sim_message *request, enum sim_status status,
                  const struct entry *entry)
{
    struct sim_message message = *request;

    message.status = (uint8_t)(muted ? SIM_UNSURE : status);
    message.token = entry ? entry->token : 0;
    message.tokens = entry ? entry->tokens : 0;
    message.woken = entry && entry->mark;
    sim_network_reply(&message);
}

static void push(int name, const struct entry *entry)
{
    struct sim_message message = {
        .op = SIM_PUSH,
        .client = entry->client,
        .seq = entry->seq,
        .ticket = entry->ticket,
        .name = name,
        .ttl_ms = entry->ttl_ms,
        .token = entry->token,
        .tokens = entry->tokens,
        .woken = entry->mark,
    };
    int64_t delay_ns = sim_network_travel_ns();

    if (sim_bug == SIM_BUG_PUSH_LOST && sim_chance(200))
        return;
    if (sim_bug == SIM_BUG_STALE_PUSH && sim_chance(300))
        delay_ns += (int64_t)sim_below(2 * HF_SECOND); /* give it a chance */
    sim_network_push(&message, delay_ns);
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

/* Where the ticket of a request stands; NULL: not there. */
struct places {
    struct entry *holder;
    struct entry *waiter;
    struct entry *parked;
};

static struct places look_up(struct lock *lock, const struct sim_message *m)
{
    return (struct places){
        .holder = find(lock->holders, lock->n_holders, m->client, m->ticket),
        .waiter = find(lock->queue, lock->n_queue, m->client, m->ticket),
        .parked = find(lock->parked, lock->n_parked, m->client, m->ticket),
    };
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

static struct entry entry_of(const struct sim_message *m)
{
    return (struct entry){.client = m->client,
                          .epoch = m->epoch,
                          .seq = m->seq,
                          .ticket = m->ticket,
                          .mode = m->mode,
                          .slots = m->slots,
                          .ttl_ms = m->ttl_ms,
                          .reserve = m->reserve,
                          .cond = m->cond,
                          .heard_ns = sim_now()};
}

static void serve_new(struct lock *lock, const struct sim_message *m)
{
    struct entry entry = entry_of(m);
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
    struct places at = look_up(lock, m);

    if (at.holder) {
        at.holder->seq = m->seq;
        lease_anew(lock, at.holder);
        reply(m, SIM_GRANTED, at.holder);
    } else if (at.waiter) {
        at.waiter->seq = m->seq;
        at.waiter->heard_ns = sim_now();
        reply(m, SIM_QUEUED, NULL);
    }
    return at.holder || at.waiter;
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
    struct places at = look_up(lock, m);

    if (at.holder) {
        lease_anew(lock, at.holder);
        reply(m, m->op == SIM_RENEW ? SIM_RENEWED : SIM_GRANTED, at.holder);
    } else if (at.waiter) {
        at.waiter->heard_ns = sim_now();
        reply(m, SIM_QUEUED, NULL);
    } else if (at.parked) {
        hear_parked(lock, at.parked);
        reply(m, SIM_PARKED, NULL);
    } else if (sim_bug == SIM_BUG_RENEW_LIES && m->op == SIM_RENEW) {
        reply(m, SIM_RENEWED, NULL);
    } else {
        reply(m, SIM_LOST, NULL);
    }
}

static void serve_leave(struct lock *lock, const struct sim_message *m)
{
    struct places at = look_up(lock, m);
    bool forgets = sim_bug == SIM_BUG_WITHDRAW_FORGETS && m->op == SIM_WITHDRAW;

    if (at.holder && m->op == SIM_RELEASE)
        at.holder->mark = false; /* used up */
    if (at.parked && !forgets)
        take_out(lock->parked, &lock->n_parked, at.parked);
    if (at.waiter && !forgets)
        drop(lock, lock->queue, &lock->n_queue, at.waiter);
    if (at.holder && !forgets)
        drop(lock, lock->holders, &lock->n_holders, at.holder);
    if (sim_bug == SIM_BUG_RELEASE_FREES_ALL && m->op == SIM_RELEASE)
        lock->n_holders = 0;
    settle(lock);
    reply(m, m->op == SIM_RELEASE && !at.holder ? SIM_LEFT_LOST : SIM_LEFT,
          NULL);
}

static void serve_downgrade(struct lock *lock, const struct sim_message *m)
{
    struct places at = look_up(lock, m);

    if (!at.holder) {
        reply(m, SIM_LOST, NULL);
        return;
    }
    at.holder->mode = HF_SHARED;
    lease_anew(lock, at.holder);
    reply(m, SIM_RENEWED, at.holder);
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
    struct places at = look_up(lock, m);

    if (answer_placed(lock, m))
        return true;
    if (at.parked) {
        at.parked->seq = m->seq;
        hear_parked(lock, at.parked);
        reply(m, SIM_PARKED, NULL);
    }
    return at.parked;
}

static void park_now(const struct sim_message *m)
{
    struct lock *lock = &locks[m->name];
    struct entry *entry = &lock->parked[lock->n_parked++];

    *entry = entry_of(m);
    if (lock->n_parked == ENTRIES_MAX)
        abort();
    hear_parked(lock, entry);
}

static void park_late(void *arg)
{
    struct sim_message *m = arg;

    park_now(m);
    sim_message_free(m);
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
               sim_message_new(m));
    else
        park_now(m);
    settle(lock);
    reply(m, SIM_PARKED, NULL);
}

static void serve_unpark(struct lock *lock, const struct sim_message *m)
{
    struct places at = look_up(lock, m);

    if (at.parked) {
        lock->queue[lock->n_queue++] = *at.parked;
        take_out(lock->parked, &lock->n_parked, at.parked);
        settle(lock);
    }
    if (!answer_known(lock, m))
        reply(m, SIM_LOST, NULL);
}

static void serve_signal(struct lock *lock, const struct sim_message *m)
{
    struct entry woken = {.tokens = 0};

    if (!look_up(lock, m).holder) {
        reply(m, SIM_LOST, NULL);
        return;
    }
    while ((m->all || woken.tokens == 0) && call_next(lock, m->cond))
        woken.tokens++;
    settle(lock);
    reply(m, SIM_GRANTED, &woken);
}

typedef void serve_fn(struct lock *lock, const struct sim_message *m);

static serve_fn *const serves[] = {
    [SIM_ACQUIRE] = serve_acquire, [SIM_CONFIRM] = serve_renew,
    [SIM_WITHDRAW] = serve_leave,  [SIM_RELEASE] = serve_leave,
    [SIM_RENEW] = serve_renew,     [SIM_DOWNGRADE] = serve_downgrade,
    [SIM_BREAK] = serve_break,     [SIM_PARK] = serve_park,
    [SIM_UNPARK] = serve_unpark,   [SIM_SIGNAL] = serve_signal,
};

void sim_server_serve(const struct sim_message *m)
{
    struct lock *lock = &locks[m->name];

    muted = is_unsure(m);
    if (muted && sim_chance(500)) {
        reply(m, SIM_UNSURE, NULL);
    } else {
        settle(lock);
        serves[m->op](lock, m);
    }
    muted = false;
}

int64_t sim_server_pause(void)
{
    if (sim_chance(sim_network.pause_per_mille) && paused_until_ns < sim_now())
        paused_until_ns =
            sim_now() + (int64_t)sim_below((uint64_t)sim_network.pause_max_ns);
    return paused_until_ns;
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

static int count_of(const struct entry *entries, int n, int machine)
{
    int count = 0;

    for (int i = 0; i < n; i++)
        count += sim_client_machine(entries[i].client) == machine;
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
    paused_until_ns = 0;
    sim_network_reset();
}
