/* SPDX-License-Identifier: MIT */
/*
 * script_engine.c - the engine of the simulation: the client's side of
 * server.c.
 *
 * Written as an engine for a real server would be: one connection, requests
 * numbered per ticket, answers matched by ticket and number, pushes matched
 * from the moment of sending, a broken connection ends everything under way
 * as unknown. SIM_ACCEPT waits inside the engine (wait, attend, kick, sentry)
 * as the embedded engine does; the others wait in the loop.
 */
#include "script_engine.h"

#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "engines/engine.h"
#include "server.h"
#include "world.h"

struct inbox_item {
    struct sim_message message;
    struct inbox_item *next;
};

enum { QUERIES_MAX = 16 };
#define PATIENCE_NS (50 * HF_MS)
#define IMPATIENT_NS (30 * HF_MS)

/* A question under way. */
struct query {
    struct hf__query *query; /* NULL: not in use */
    uint32_t seq;
};

struct sim_engine {
    struct hf__engine base;
    struct hf__list tickets; /* those the service may know */
    struct query queries[QUERIES_MAX];
    struct hf__timer nudge; /* of an engine that is impatient */
    struct hf__io io;
    int client;
    uint32_t epoch;
    bool connected;
    bool kicked;
    bool sentry;
    bool waited_in; /* somebody sits in wait() */
    uint32_t next_query;
    struct inbox_item *first;
    struct inbox_item **last;
    struct query signals[QUERIES_MAX];
    uint32_t signal_seq;
};

/* Our bytes of every ticket. */
struct sim_ticket {
    struct hf__list link;
    struct hf__ticket *ticket; /* NULL: not used yet */
    uint32_t next_seq;
    uint32_t seq;         /* of the request under way; 0: none */
    uint8_t op;           /* its kind */
    uint32_t acquire_seq; /* of the last acquire */
    uint32_t renew_seq;   /* of the renewal under way; 0: none */
    int64_t sent_ns;      /* of the request under way */
    int64_t renew_sent_ns;
    int64_t answered_ns; /* when the last answered request was sent */
    bool granted;
    bool queued;
    bool overtaken;         /* a push came before the answer to the acquire */
    struct hf__ticket *old; /* what the park under way gives up */
};

static struct sim_engine *self_of(struct hf__engine *engine)
{
    return (struct sim_engine *)engine;
}

static struct sim_ticket *mine_of(struct sim_engine *self,
                                  struct hf__ticket *ticket)
{
    struct sim_ticket *mine = hf__engine_ticket(&self->base, ticket);

    if (!mine->ticket) {
        mine->ticket = ticket;
        hf__list_init(&mine->link);
    }
    if (hf__list_empty(&mine->link))
        hf__list_append(&self->tickets, &mine->link);
    return mine;
}

static struct sim_ticket *find_ticket(struct sim_engine *self, uint64_t id)
{
    HF_LIST_EACH(&self->tickets, link) {
        struct sim_ticket *mine =
            HF_CONTAINER_OF(link, struct sim_ticket, link);

        if (mine->ticket->id == id)
            return mine;
    }
    return NULL;
}

static void forget(struct sim_ticket *mine)
{
    hf__list_remove(&mine->link);
    mine->seq = 0;
    mine->renew_seq = 0;
    mine->granted = false;
    mine->queued = false;
}

/* ---- requests ----------------------------------------------------------- */

static void post(struct sim_engine *self, struct sim_ticket *mine,
                 enum sim_op op, uint32_t seq)
{
    const struct hf__ticket *ticket = mine->ticket;
    struct sim_message message = {
        .op = (uint8_t)op,
        .client = self->client,
        .epoch = self->epoch,
        .seq = seq,
        .ticket = ticket->id,
        .name = sim_name_number(ticket->name),
        .mode = ticket->mode,
        .slots = ticket->slots,
        .nowait = ticket->nowait,
        .ttl_ms = ticket->ttl_ms,
        .reserve = sim_kind == SIM_BEATS ? ticket->reserve : 1,
        .old = mine->old ? mine->old->id : 0,
        .cond = ticket->cond ? 1 + sim_name_number(ticket->cond) : 0,
    };

    sim_send(&message);
    if (sim_impatient && self->nudge.place == 0)
        self->base.host->timer(self->base.host, &self->nudge,
                               hf__now() + PATIENCE_NS);
}

/* When the oldest request without an answer was sent; HF_NEVER: there is none. */
static int64_t oldest_ns(struct sim_engine *self)
{
    int64_t oldest = HF_NEVER;

    HF_LIST_EACH(&self->tickets, link) {
        struct sim_ticket *mine =
            HF_CONTAINER_OF(link, struct sim_ticket, link);

        if (mine->seq != 0 && mine->sent_ns < oldest)
            oldest = mine->sent_ns;
        if (mine->renew_seq != 0 && mine->renew_sent_ns < oldest)
            oldest = mine->renew_sent_ns;
    }
    return oldest;
}

/* An engine that looks after an overdue answer sets its timer to an instant that
 * has passed, for a while: whatever it does, other timers go off. */
static void on_nudge(struct hf__timer *timer)
{
    struct sim_engine *self = HF_CONTAINER_OF(timer, struct sim_engine, nudge);
    int64_t due_ns = oldest_ns(self);
    int64_t now_ns = hf__now();

    if (due_ns == HF_NEVER)
        return;
    due_ns += PATIENCE_NS;
    if (now_ns > due_ns + IMPATIENT_NS)
        due_ns = now_ns + PATIENCE_NS;
    self->base.host->timer(self->base.host, timer, due_ns);
}

static int request(struct hf__engine *engine, struct hf__ticket *ticket,
                   enum sim_op op, hf_error *err)
{
    struct sim_engine *self = self_of(engine);
    struct sim_ticket *mine = mine_of(self, ticket);

    if (!self->connected)
        return hf__fail(err, HF_EUNAVAILABLE, "sim: not connected");
    mine->op = (uint8_t)op;
    mine->seq = ++mine->next_seq;
    mine->sent_ns = hf__now();
    mine->overtaken = false;
    if (op == SIM_ACQUIRE || op == SIM_PARK || op == SIM_UNPARK)
        mine->acquire_seq = mine->seq;
    post(self, mine, op, mine->seq);
    return 0;
}

#define REQUEST(name, op)                                                      \
    static int script_##name(struct hf__engine *engine,                        \
                             struct hf__ticket *ticket, hf_error *err)         \
    {                                                                          \
        return request(engine, ticket, op, err);                               \
    }
REQUEST(acquire, SIM_ACQUIRE)
REQUEST(withdraw, SIM_WITHDRAW)
REQUEST(release, SIM_RELEASE)
REQUEST(downgrade, SIM_DOWNGRADE)
REQUEST(unpark, SIM_UNPARK)

static int script_park(struct hf__engine *engine, struct hf__ticket *ticket,
                       struct hf__ticket *old, hf_error *err)
{
    mine_of(self_of(engine), ticket)->old = old;
    return request(engine, ticket, SIM_PARK, err);
}

static int script_signal(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    struct sim_engine *self = self_of(engine);
    struct sim_message message = {
        .op = SIM_SIGNAL,
        .client = self->client,
        .epoch = self->epoch,
        .seq = ++self->signal_seq,
        .ticket = query->ticket,
        .name = sim_name_number(query->name),
        .cond = 1 + sim_name_number(query->cond),
        .all = query->all,
    };

    if (!self->connected)
        return hf__fail(err, HF_EUNAVAILABLE, "sim: not connected");
    for (int i = 0; i < QUERIES_MAX; i++) {
        if (self->signals[i].query)
            continue;
        self->signals[i].query = query;
        self->signals[i].seq = message.seq;
        self->base.under_way++;
        sim_send(&message);
        return 0;
    }
    return hf__fail(err, HF_EUNAVAILABLE, "sim: too many signals");
}

/* The signal number @seq is answered; 0: all that are under way. */
static void answer_signals(struct sim_engine *self, uint32_t seq, int rc,
                           uint32_t woken)
{
    for (int i = 0; i < QUERIES_MAX; i++) {
        struct hf__query *query = self->signals[i].query;

        if (!query || (seq != 0 && self->signals[i].seq != seq))
            continue;
        self->signals[i].query = NULL;
        self->base.under_way--;
        query->woken = woken;
        hf__up_answer(&self->base, query, rc, NULL);
    }
}

static int script_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                        size_t n, hf_error *err)
{
    struct sim_engine *self = self_of(engine);
    int64_t now_ns = hf__now();

    if (!self->connected)
        return hf__fail(err, HF_EUNAVAILABLE, "sim: not connected");
    for (size_t i = 0; i < n; i++) {
        struct sim_ticket *mine = mine_of(self, tickets[i]);

        mine->renew_seq = ++mine->next_seq;
        mine->renew_sent_ns = now_ns;
        post(self, mine, SIM_RENEW, mine->renew_seq);
    }
    return 0;
}

/* ---- questions ---------------------------------------------------------- */

static int script_break(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    struct sim_engine *self = self_of(engine);
    struct query *free_one = self->queries;
    struct sim_message message = {
        .op = SIM_BREAK,
        .client = self->client,
        .epoch = self->epoch,
        .name = sim_name_number(query->name),
        .token = query->token,
    };

    while (free_one < self->queries + QUERIES_MAX && free_one->query)
        free_one++;
    if (!self->connected || free_one == self->queries + QUERIES_MAX)
        return hf__fail(err, HF_EUNAVAILABLE, "sim: not connected");
    free_one->query = query;
    free_one->seq = message.seq = ++self->next_query;
    sim_send(&message);
    return 0;
}

static void on_answer(struct sim_engine *self, const struct sim_message *m)
{
    for (int i = 0; i < QUERIES_MAX; i++) {
        struct hf__query *query = self->queries[i].query;
        hf_error err;

        if (!query || self->queries[i].seq != m->seq)
            continue;
        self->queries[i].query = NULL;
        if (m->status == SIM_LEFT)
            hf__up_answer(&self->base, query, 0, NULL);
        else if (m->status == SIM_LOST)
            hf__up_answer(&self->base, query,
                          hf__fail(&err, HF_ENOTFOUND, "sim: not held"), &err);
        else
            hf__up_answer(&self->base, query,
                          hf__fail(&err, HF_ECONFLICT, "sim: another token"),
                          &err);
    }
}

static void fail_queries(struct sim_engine *self, const hf_error *err)
{
    for (int i = 0; i < QUERIES_MAX; i++) {
        struct hf__query *query = self->queries[i].query;

        self->queries[i].query = NULL;
        if (query)
            hf__up_answer(&self->base, query, err->code, err);
    }
}

/* ---- answers ------------------------------------------------------------ */

/* The park is certain: the engine forgets what it gave up. */
static void forget_old(struct sim_engine *self, struct sim_ticket *mine)
{
    struct hf__ticket *old = HF_STEAL(mine->old);

    if (old)
        forget(mine_of(self, old));
}

static void report_granted(struct sim_engine *self, struct sim_ticket *mine,
                           const struct sim_message *m, int64_t sent_ns)
{
    struct hf__grant grant = {
        .woken = m->woken,
        .token = m->token,
        .tokens = m->tokens,
        .lease_ms = m->ttl_ms,
        .sent_ns = sim_bug == SIM_BUG_ARRIVAL_IS_START ? hf__now() : sent_ns,
    };

    forget_old(self, mine);
    mine->granted = true;
    mine->queued = false;
    hf__up_granted(&self->base, mine->ticket, &grant);
}

static void report_renewed(struct sim_engine *self, struct sim_ticket *mine,
                           const struct sim_message *m, int64_t sent_ns)
{
    struct hf__grant grant = {
        .lease_ms = m->ttl_ms,
        .sent_ns = sim_bug == SIM_BUG_ARRIVAL_IS_START ? hf__now() : sent_ns,
    };

    hf__up_renewed(&self->base, mine->ticket, &grant);
}

static void on_left(struct sim_engine *self, struct sim_ticket *mine, int rc)
{
    forget(mine);
    hf__up_left(&self->base, mine->ticket, rc);
}

static void on_lost(struct sim_engine *self, struct sim_ticket *mine)
{
    if (mine->overtaken && mine->op == SIM_CONFIRM && !mine->granted &&
        !mine->ticket->cond) {
        /* The acquire is under way still, for the core: ask again. */
        (void)request(&self->base, mine->ticket, SIM_ACQUIRE, NULL);
        return;
    }
    forget_old(self, mine);
    forget(mine);
    hf__up_lost(&self->base, mine->ticket, HF__LOST_TAKEN);
}

static bool is_leaving(const struct sim_ticket *mine)
{
    return mine->seq != 0 &&
           (mine->op == SIM_WITHDRAW || mine->op == SIM_RELEASE);
}

static void on_renewal(struct sim_engine *self, struct sim_ticket *mine,
                       const struct sim_message *m)
{
    int64_t sent_ns = mine->renew_sent_ns;
    bool leaving = is_leaving(mine);

    mine->renew_seq = 0;
    if (m->status == SIM_UNSURE)
        return; /* silence is no loss */
    mine->answered_ns = sent_ns;
    if (leaving)
        return;
    if (m->status == SIM_LOST)
        on_lost(self, mine);
    else if (m->status == SIM_RENEWED && !mine->granted)
        report_granted(self, mine, m, sent_ns);
    else
        report_renewed(self, mine, m, sent_ns);
}

static void on_denied(struct sim_engine *self, struct sim_ticket *mine,
                      enum sim_status status)
{
    struct hf__ticket *ticket = mine->ticket;
    hf_error err;

    forget(mine);
    if (status == SIM_BUSY_NOW) {
        hf__up_busy(&self->base, ticket, 0, "another");
        return;
    }
    (void)hf__fail(&err, HF_EINVAL, "sim: another number of slots");
    hf__up_failed(&self->base, ticket, &err);
}

static void on_reply(struct sim_engine *self, struct sim_ticket *mine,
                     const struct sim_message *m)
{
    hf_error err;

    mine->seq = 0;
    if (m->status == SIM_UNSURE) {
        (void)hf__fail(&err, HF_EUNKNOWN, "sim: the service is not sure");
        hf__up_unknown(&self->base, mine->ticket, &err);
        return;
    }
    mine->answered_ns = mine->sent_ns;
    switch (m->status) {
    case SIM_GRANTED:
        report_granted(self, mine, m, mine->sent_ns);
        break;
    case SIM_QUEUED:
        forget_old(self, mine);
        mine->queued = true;
        hf__up_queued(&self->base, mine->ticket);
        break;
    case SIM_PARKED:
        forget_old(self, mine);
        mine->queued = true; /* a grant may be pushed */
        hf__up_parked(&self->base, mine->ticket);
        break;
    case SIM_RENEWED:
        mine->ticket->mode = HF_SHARED;
        report_renewed(self, mine, m, mine->sent_ns);
        break;
    case SIM_LOST:
        on_lost(self, mine);
        break;
    case SIM_LEFT:
    case SIM_LEFT_LOST:
        on_left(self, mine, m->status == SIM_LEFT ? 0 : HF_ELOST);
        break;
    default:
        on_denied(self, mine, m->status);
        break;
    }
}

/* A grant was pushed: of the request under way, or of one that is in line. */
static void on_push(struct sim_engine *self, struct sim_ticket *mine,
                    const struct sim_message *m)
{
    bool asking =
        mine->seq != 0 && (mine->op == SIM_ACQUIRE || mine->op == SIM_PARK ||
                           mine->op == SIM_UNPARK);
    int64_t sent_ns = asking ? mine->sent_ns : mine->answered_ns;

    if (is_leaving(mine) || mine->granted || (!asking && !mine->queued) ||
        (m->seq != mine->acquire_seq && sim_bug != SIM_BUG_STALE_PUSH))
        return;
    if (sim_kind == SIM_ACCEPT) {
        mine->op = SIM_CONFIRM;
        mine->seq = ++mine->next_seq;
        mine->sent_ns = hf__now();
        mine->overtaken = asking;
        post(self, mine, SIM_CONFIRM, mine->seq);
        return;
    }
    mine->seq = 0;
    report_granted(self, mine, m, sent_ns);
}

/* ---- the connection ----------------------------------------------------- */

static int script_connect(struct hf__engine *engine, hf_error *err)
{
    struct sim_engine *self = self_of(engine);

    (void)err;
    sim_connect(self->client, ++self->epoch);
    return 0;
}

static struct sim_ticket *first_under_way(struct sim_engine *self)
{
    HF_LIST_EACH(&self->tickets, link) {
        struct sim_ticket *mine =
            HF_CONTAINER_OF(link, struct sim_ticket, link);

        if (mine->seq != 0)
            return mine;
    }
    return NULL;
}

static void on_broken(struct sim_engine *self)
{
    struct sim_ticket *mine;
    hf_error err;

    self->connected = false;
    HF_LIST_EACH(&self->tickets, link) {
        HF_CONTAINER_OF(link, struct sim_ticket, link)->renew_seq = 0;
    }
    (void)hf__fail(&err, HF_EUNKNOWN, "sim: the connection broke");
    while ((mine = first_under_way(self)) != NULL) {
        bool in_line = mine->op == SIM_CONFIRM && !mine->overtaken;

        mine->seq = 0;
        if (!in_line) /* else the core asks for it again by itself */
            hf__up_unknown(&self->base, mine->ticket, &err);
    }
    fail_queries(self, &err);
    answer_signals(self, 0, HF_EUNKNOWN, 0);
    (void)hf__fail(&err, HF_EUNAVAILABLE, "sim: the connection broke");
    hf__up_down(&self->base, &err);
}

static void handle(struct sim_engine *self, const struct sim_message *m)
{
    struct sim_ticket *mine;

    if (m->epoch != self->epoch)
        return;
    if (m->op == SIM_BROKEN) {
        on_broken(self);
        return;
    }
    if (m->op == SIM_CONNECT) {
        self->connected = true;
        hf__up_connected(&self->base);
        return;
    }
    if (m->op == SIM_BREAK) {
        on_answer(self, m);
        return;
    }
    if (m->op == SIM_SIGNAL) {
        answer_signals(self, m->seq, m->status == SIM_LOST ? HF_ELOST : 0,
                       m->tokens);
        return;
    }
    mine = find_ticket(self, m->ticket);
    if (!mine)
        return;
    if (m->op == SIM_PUSH)
        on_push(self, mine, m);
    else if (m->op == SIM_RENEW && m->seq == mine->renew_seq)
        on_renewal(self, mine, m);
    else if (m->op != SIM_RENEW && m->seq == mine->seq)
        on_reply(self, mine, m);
}

static void read_inbox(struct sim_engine *self)
{
    while (self->first) {
        struct inbox_item *item = self->first;
        struct sim_message message = item->message;

        self->first = item->next;
        if (!self->first)
            self->last = &self->first;
        free(item);
        handle(self, &message);
    }
    sim_loop_drained(self->base.host->loop);
}

static void on_ready(struct hf__io *io, uint32_t events)
{
    (void)events;
    read_inbox(HF_CONTAINER_OF(io, struct sim_engine, io));
}

/* The network brings a message, outside all threads. */
static void arrive(void *owner, const struct sim_message *message)
{
    struct sim_engine *self = owner;
    struct inbox_item *item = malloc(sizeof(*item));

    if (!item)
        abort();
    item->message = *message;
    item->next = NULL;
    *self->last = item;
    self->last = &item->next;
    if (sim_kind != SIM_ACCEPT) {
        sim_loop_ready(self->base.host->loop, &self->io);
        return;
    }
    sim_wake(self);
    /* Only grants come unasked; where answers are awaited, the loop is
     * polled. */
    if (self->sentry || (message->op != SIM_PUSH && !self->waited_in))
        hf__loop_kick(self->base.host->loop);
}

/* ---- waiting inside the engine ------------------------------------------ */

static void script_wait(struct hf__engine *engine, int64_t until_ns)
{
    struct sim_engine *self = self_of(engine);
    int64_t now_ns;

    hf__world->yield();
    now_ns = hf__now(); /* a stop may come here, but not below */
    self->waited_in = true;
    if (!self->first && !self->kicked && now_ns < until_ns)
        sim_wait_for(self, until_ns);
    self->waited_in = false;
    self->kicked = false; /* here, not in attend(): that may be another's */
}

static void script_attend(struct hf__engine *engine)
{
    read_inbox(self_of(engine));
}

static void script_kick(struct hf__engine *engine)
{
    self_of(engine)->kicked = true;
    sim_wake(engine);
}

static void script_sentry(struct hf__engine *engine, bool on)
{
    struct sim_engine *self = self_of(engine);

    self->sentry = on;
    if (on && self->first)
        hf__loop_kick(engine->host->loop);
}

/* ---- opening ------------------------------------------------------------ */

static int script_open(struct hf__engine *engine, hf_error *err)
{
    struct sim_engine *self = self_of(engine);

    hf__list_init(&self->tickets);
    self->last = &self->first;
    self->io.ready = on_ready;
    self->nudge.fire = on_nudge;
    self->io.fd = eventfd(0, EFD_CLOEXEC);
    self->client = -1;
    if (self->io.fd < 0)
        return hf__fail(err, HF_ENOMEM, "sim: no descriptor");
    if (hf__io_start(engine->host->loop, &self->io, EPOLLIN) != 0)
        return hf__fail(err, HF_ENOMEM, "sim: out of memory");
    self->client = sim_client_new(arrive, self);
    return 0;
}

static void script_close(struct hf__engine *engine, bool forked)
{
    struct sim_engine *self = self_of(engine);

    (void)forked;
    sim_loop_drained(engine->host->loop);
    hf__timer_stop(engine->host->loop, &self->nudge);
    if (self->client >= 0)
        sim_client_gone(self->client);
    while (self->first) {
        struct inbox_item *next = self->first->next;

        free(self->first);
        self->first = next;
    }
    hf__io_stop(engine->host->loop, &self->io);
    if (self->io.fd >= 0)
        (void)close(self->io.fd);
}

#define SIM_CAPS                                                               \
    (HF_CAP_FENCED | HF_CAP_SHARED | HF_CAP_SLOTS | HF_CAP_LEASED |            \
     HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_BREAK |                    \
     HF_CAP_TOLD_BEFORE_REGRANT)
#define SIM_OPS(caps_, flags_)                                                 \
    .name = "sim", .schemes = "sim", .dialects = "", .caps = (caps_),          \
    .flags = (flags_), .size = sizeof(struct sim_engine),                      \
    .ticket_size = sizeof(struct sim_ticket), .open = script_open,             \
    .connect = script_connect, .close = script_close,                          \
    .acquire = script_acquire, .withdraw = script_withdraw,                    \
    .release = script_release, .renew = script_renew,                          \
    .downgrade = script_downgrade, .break_lock = script_break

#define SIM_CONDITIONS                                                         \
    .park = script_park, .unpark = script_unpark, .signal = script_signal

static const struct hf__engine_ops kinds[SIM_KINDS] = {
    [SIM_BEATS] = {SIM_OPS(SIM_CAPS | HF_CAP_FIFO | HF_CAP_PUSH |
                               HF_CAP_CONDITIONS,
                           HF__BEATS_WAITERS | HF__RESERVES_TOKENS),
                   SIM_CONDITIONS},
    [SIM_ACCEPT] = {SIM_OPS(SIM_CAPS | HF_CAP_FIFO | HF_CAP_PUSH |
                                HF_CAP_CONDITIONS,
                            HF__JOINS_CALLS),
                    SIM_CONDITIONS, .wait = script_wait,
                    .attend = script_attend, .kick = script_kick,
                    .sentry = script_sentry},
    [SIM_BUSY] = {SIM_OPS(SIM_CAPS, 0)},
};

void sim_engine_register(void)
{
    hf__engine_register(&kinds[sim_kind]);
}
