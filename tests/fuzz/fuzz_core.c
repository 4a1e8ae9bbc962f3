/* SPDX-License-Identifier: MIT */
/* fuzz_core.c - the core, played for the fuzz targets of whole engines. */
#include "fuzz_core.h"

/* The last ticket waits on a condition of what the one before it has got. */
enum { TICKETS = 6, PARKS = TICKETS - 1, PARTS = 3, QUERIES = 8, TIMERS = 512 };

static struct hf__ticket *tickets[TICKETS];
static struct hf__query queries[QUERIES];
static bool answered[QUERIES];
static bool leaving[TICKETS];
static bool beats[TICKETS]; /* it is in line, or held */
static bool parting;        /* the ticket PARTS is being given up by PARKS */
static bool holding;
static bool connected;
static struct hf__timer *timers[TIMERS];
static size_t n_timers;
static bool (*keeps)(struct hf__engine *engine, struct hf__ticket *ticket);

static int place_of(const struct hf__ticket *ticket)
{
    for (int i = 0; i < TICKETS; i++) {
        if (tickets[i] == ticket)
            return i;
    }
    abort(); /* a ticket that was given back */
}

/* Nothing is told of a ticket that another one parks for, unless it was
 * withdrawn as well. */
static void may_be_told(const struct hf__ticket *ticket)
{
    CHECK(!parting || ticket != tickets[PARTS] || leaving[PARTS]);
}

static void gone(struct hf__ticket *ticket)
{
    may_be_told(ticket);
    beats[place_of(ticket)] = false;
    tickets[place_of(ticket)] = NULL;
    free(ticket);
}

/* ---- waiting on a condition ----------------------------------------------- */

static struct hf__ticket *make(const struct hf__engine *engine, int i)
{
    struct hf__ticket *ticket =
        calloc(1, sizeof(*ticket) + engine->ops->ticket_size);

    CHECK(ticket);
    ticket->id = (uint64_t)i + 1;
    ticket->name = "jobs";
    ticket->name_len = 4;
    ticket->reserve = 1;
    ticket->mode = i == PARKS ? HF_EXCLUSIVE : i % 3;
    ticket->slots = ticket->mode == HF_SLOT ? 2 : 0;
    ticket->ttl_ms = 30000;
    ticket->owner = "fuzz";
    ticket->note = "";
    ticket->nowait = i == 1;
    ticket->cond = i == PARKS ? "ready" : NULL;
    tickets[i] = ticket;
    leaving[i] = false;
    return ticket;
}

/* The engine has one of the two, or neither. */
static void end_parting(bool old_too)
{
    if (!parting)
        return;
    parting = false;
    if (old_too && !leaving[PARTS])
        gone(tickets[PARTS]);
}

static bool park(struct hf__engine *engine, struct hf__ticket *old)
{
    if (old != tickets[PARTS] || tickets[PARKS] ||
        !(engine->caps & HF_CAP_CONDITIONS))
        return false;
    parting = true;
    if (engine->ops->park(engine, make(engine, PARKS), old, NULL) == 0)
        return true;
    parting = false;
    gone(tickets[PARKS]);
    return false;
}

/* ---- the core ------------------------------------------------------------ */

static void on_connected(void *owner)
{
    (void)owner;
    connected = true;
}

static void on_down(void *owner, const hf_error *err)
{
    (void)owner;
    CHECK(err->code < 0 && err->text[0]);
}

static void on_granted(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    struct hf__engine *engine = owner;

    CHECK(grant->tokens >= 1 && grant->lease_ms <= ticket->ttl_ms);
    CHECK(!leaving[place_of(ticket)]);
    may_be_told(ticket);
    if (ticket == tickets[PARKS])
        end_parting(/* old_too= */ true);
    ticket->token = grant->token;
    if (park(engine, ticket))
        return;
    if (holding && ticket->id % 2 == 1) {
        beats[place_of(ticket)] = true;
        if (ticket->mode == HF_EXCLUSIVE && engine->ops->downgrade)
            (void)engine->ops->downgrade(engine, ticket, NULL);
        return;
    }
    leaving[place_of(ticket)] = true;
    (void)engine->ops->release(engine, ticket, NULL);
}

static void on_queued(void *owner, struct hf__ticket *ticket)
{
    struct hf__engine *engine = owner;

    may_be_told(ticket);
    if (ticket == tickets[PARKS])
        end_parting(/* old_too= */ true);
    beats[place_of(ticket)] = true;
    (void)engine->ops->renew(engine, &ticket, 1, NULL);
}

static void on_parked(void *owner, struct hf__ticket *ticket)
{
    struct hf__engine *engine = owner;

    CHECK(ticket == tickets[PARKS]);
    end_parting(/* old_too= */ true);
    ticket->parked = true;
    (void)engine->ops->renew(engine, &ticket, 1, NULL);
    (void)engine->ops->unpark(engine, ticket, NULL);
}

static void on_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                    const char *holder)
{
    (void)owner;
    (void)again_ns;
    CHECK(!holder || strlen(holder) < 1000);
    gone(ticket);
}

static void on_failed(void *owner, struct hf__ticket *ticket,
                      const hf_error *err)
{
    struct hf__engine *engine = owner;
    bool kept = parting && ticket == tickets[PARKS];

    CHECK(err->code < 0);
    end_parting(/* old_too= */ false);
    gone(ticket);
    if (!kept)
        return;
    leaving[PARTS] = true; /* held as before, and not wanted */
    (void)engine->ops->release(engine, tickets[PARTS], NULL);
}

static void on_unknown(void *owner, struct hf__ticket *ticket,
                       const hf_error *err)
{
    static bool withdrawing;
    struct hf__engine *engine = owner;

    CHECK(err->code < 0);
    leaving[place_of(ticket)] = true;
    if (withdrawing)
        return; /* the core would pause before it does that again */
    withdrawing = true;
    (void)engine->ops->withdraw(engine, ticket, NULL);
    if (parting && ticket == tickets[PARKS] && !leaving[PARTS]) {
        leaving[PARTS] = true;
        (void)engine->ops->withdraw(engine, tickets[PARTS], NULL);
    }
    withdrawing = false;
}

static void on_renewed(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    (void)owner;
    (void)place_of(ticket);
    CHECK(grant->lease_ms <= ticket->ttl_ms);
}

static void on_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    struct hf__engine *engine = owner;

    CHECK(reason >= 0 && reason < HF__LOST_REASONS);
    may_be_told(ticket);
    if (ticket == tickets[PARKS])
        end_parting(/* old_too= */ true);
    if (keeps && keeps(engine, ticket)) {
        leaving[place_of(ticket)] = true; /* lost its place: not wanted */
        (void)engine->ops->withdraw(engine, ticket, NULL);
    } else {
        gone(ticket);
    }
}

static void on_left(void *owner, struct hf__ticket *ticket, int rc)
{
    (void)owner;
    CHECK(rc == 0 || rc == HF_ELOST);
    CHECK(leaving[place_of(ticket)]);
    gone(ticket);
}

static void on_answer(void *owner, struct hf__query *query, int rc,
                      const hf_error *err)
{
    size_t i = (size_t)(query - queries);

    (void)owner;
    (void)err;
    CHECK(i < QUERIES && !answered[i] && rc <= 0);
    answered[i] = true;
}

static void on_changed(void *owner, const char *name)
{
    (void)owner;
    (void)name;
}

static const struct hf__engine_up up = HF__ENGINE_UP(on_);

static void timer(const struct hf__engine_host *host, struct hf__timer *which,
                  int64_t due_ns)
{
    (void)host;
    (void)due_ns;
    for (size_t i = 0; i < n_timers; i++) {
        if (timers[i] == which)
            return;
    }
    CHECK(n_timers < TIMERS);
    timers[n_timers++] = which;
}

void fuzz_core_keeps(bool (*fn)(struct hf__engine *engine,
                                struct hf__ticket *ticket))
{
    keeps = fn;
}

void fuzz_core_hold(bool hold)
{
    holding = hold;
}

void fuzz_core_beat(struct hf__engine *engine)
{
    for (int i = 0; i < TICKETS; i++) {
        if (tickets[i] && beats[i] && !leaving[i])
            (void)engine->ops->renew(engine, &tickets[i], 1, NULL);
    }
}

bool fuzz_core_connected(void)
{
    return connected;
}

static int64_t clock_ns = HF_SECOND;

static int64_t own_now_ns(void)
{
    return clock_ns;
}

static int64_t own_wall_us(void)
{
    return clock_ns / 1000;
}

static int own_random(void *bytes, size_t len)
{
    memset(bytes, 0, len);
    return 0;
}

void fuzz_core_clock(int64_t (*now_ns)(void))
{
    static struct hf__world world;

    world = hf__world_real;
    if (now_ns)
        world.now_ns = now_ns;
    hf__world = &world;
}

void fuzz_core_own_world(void)
{
    static struct hf__world world;

    world = hf__world_real;
    world.now_ns = own_now_ns;
    world.wall_us = own_wall_us;
    world.random = own_random;
    hf__world = &world;
    clock_ns = HF_SECOND;
}

void fuzz_core_fire(void)
{
    clock_ns += HF_SECOND;
    for (size_t i = 0; i < n_timers; i++)
        timers[i]->fire(timers[i]);
}

static void ask(struct hf__engine *engine, int i)
{
    struct hf__ticket *ticket = make(engine, i);

    if (engine->ops->acquire(engine, ticket, NULL) != 0)
        gone(ticket);
}

void fuzz_core_ask(struct hf__engine *engine)
{
    const struct hf__engine_ops *ops = engine->ops;
    hf__engine_query_fn *const asks[QUERIES] = {
        ops->list,
        ops->check_token,
        ops->version_commit,
        ops->list,
        ops->doctor,
        ops->version_read,
        ops->break_lock,
        engine->caps & HF_CAP_CONDITIONS ? ops->signal : NULL};

    for (int i = 0; i < PARKS; i++)
        ask(engine, i);
    for (int i = 0; i < QUERIES; i++) {
        memset(&queries[i], 0, sizeof(queries[i]));
        queries[i].name = i == 3 ? NULL : "jobs";
        queries[i].prefix = "";
        queries[i].token = 7;
        queries[i].ticket = 1;
        queries[i].cond = "ready";
        queries[i].rows = NULL;
        queries[i].waiter = (struct hf__waiter *)&queries[i]; /* somebody */
        answered[i] = !asks[i] || asks[i](engine, &queries[i], NULL) != 0;
    }
}

/* ---- coming and going ------------------------------------------------------ */

void fuzz_core_open(struct fuzz_core *core, const struct hf__engine_ops *ops,
                    const char *url, const char *dialect, const char *mode)
{
    struct hf__engine *engine = calloc(1, ops->size);

    connected = false;
    n_timers = 0;
    for (int i = 0; i < QUERIES; i++)
        answered[i] = true;
    memset(core, 0, sizeof(*core));
    core->loop.epoll_fd = core->loop.event_fd = core->loop.timer_fd = -1;
    core->config = hf_config_new();
    CHECK(engine && core->config &&
          hf__config_resolve(core->config, &core->settings, NULL) == 0);
    free(core->settings.dialect);
    core->settings.dialect = strdup(dialect);
    free(core->settings.mode);
    core->settings.mode = strdup(mode);
    CHECK(hf__url_parse(url, &core->url, NULL) == 0);
    core->host = (struct hf__engine_host){
        .loop = &core->loop,
        .settings = &core->settings,
        .url = core->url,
        .identity_hex = "0123456789abcdef0123456789abcdef",
        .host = "here",
        .pid = 1,
        .timer = timer,
    };
    core->engine = engine;
    engine->ops = ops;
    engine->caps = ops->caps;
    engine->host = &core->host;
    engine->up = &up;
    engine->up_owner = engine;
    engine->ticket_offset = sizeof(struct hf__ticket);
    CHECK(ops->open(engine, NULL) == 0);
}

void fuzz_core_close(struct fuzz_core *core)
{
    for (int i = 0; i < QUERIES; i++)
        CHECK(answered[i]);
    core->engine->ops->close(core->engine, /* forked= */ false);
    free(core->engine);
    for (int i = 0; i < TICKETS; i++) {
        free(tickets[i]);
        tickets[i] = NULL;
        beats[i] = false;
    }
    parting = false;
    hf__loop_release(&core->loop);
    hf__url_free(core->url);
    hf__settings_release(&core->settings);
    hf_config_free(core->config);
}

void fuzz_core_feed(struct hf__stream *stream, const void *bytes, size_t len)
{
    if (stream->state != HF__STREAM_OPEN || len == 0)
        return;
    hf__buf_append(&stream->in, bytes, len);
    hf__stream_deliver(stream);
    if (stream->state != HF__STREAM_OPEN)
        return;
    memmove(stream->in.text, stream->in.text + stream->in_at,
            stream->in.len - stream->in_at);
    stream->in.len -= stream->in_at;
    stream->in_at = 0;
    stream->out.len = 0; /* nobody reads it */
}

void hf__engine_log(const struct hf__engine *engine, int level,
                    const char *format, ...)
{
    (void)engine;
    (void)level;
    (void)format;
}

int hf__query_add_lock(struct hf__query *query, const hf_lock_info *row)
{
    (void)query;
    CHECK(row->name && row->owner && row->host && row->note);
    return 0;
}

int hf__query_add_notice(struct hf__query *query, const char *text, size_t len)
{
    (void)query;
    CHECK(text || len == 0);
    return 0;
}

int hf__query_add_finding(struct hf__query *query, int status,
                          const char *check, const char *fix,
                          const char *detail_format, ...)
{
    (void)query;
    CHECK(status >= 0 && check && fix && detail_format);
    return 0;
}
