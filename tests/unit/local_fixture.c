/* SPDX-License-Identifier: MIT */
/*
 * local_fixture.c - stands where the core stands: receives reports, owns the
 * tickets, collects the rows of answers.
 */
#include "local_fixture.h"

#include "lib/tempdir.h"

#include <stdarg.h>
#include <stdlib.h>

#include "lib/test.h"

struct ticket {
    struct ask ask;
    struct ticket *next; /* of the same side */
    struct hf__ticket base;
    char name[HF_NAME_MAX + 1];
    /* The engine's bytes follow. */
};

static struct ask *ask_of(struct hf__ticket *ticket)
{
    return &HF_CONTAINER_OF(ticket, struct ticket, base)->ask;
}

/* ---- reports ----------------------------------------------------------- */

static void on_connected(void *owner)
{
    struct side *side = owner;

    side->up = true;
}

static void on_down(void *owner, const hf_error *err)
{
    struct side *side = owner;

    side->up = false;
    side->downs++;
    side->down_err = *err;
}

static void on_granted(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    struct ask *ask = ask_of(ticket);

    (void)owner;
    ask->report = GRANTED;
    ask->grants++;
    ask->grant = *grant;
    ticket->token = grant->token;
}

static void on_queued(void *owner, struct hf__ticket *ticket)
{
    (void)owner;
    ask_of(ticket)->report = QUEUED;
}

static void on_parked(void *owner, struct hf__ticket *ticket)
{
    (void)owner;
    ask_of(ticket)->report = PARKED;
}

static void on_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                    const char *holder)
{
    struct ask *ask = ask_of(ticket);

    (void)owner;
    (void)again_ns;
    ask->report = BUSY;
    hf__text_copy(ask->holder, sizeof(ask->holder), holder);
}

static void on_failed(void *owner, struct hf__ticket *ticket,
                      const hf_error *err)
{
    (void)owner;
    ask_of(ticket)->report = FAILED;
    ask_of(ticket)->err = *err;
}

static void on_unknown(void *owner, struct hf__ticket *ticket,
                       const hf_error *err)
{
    (void)owner;
    ask_of(ticket)->report = UNKNOWN;
    ask_of(ticket)->err = *err;
}

static void on_renewed(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    (void)owner;
    ask_of(ticket)->report = RENEWED;
    ask_of(ticket)->grant = *grant;
}

static void on_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    (void)owner;
    ask_of(ticket)->report = LOST;
    ask_of(ticket)->reason = reason;
}

static void on_left(void *owner, struct hf__ticket *ticket, int rc)
{
    (void)owner;
    ask_of(ticket)->report = LEFT;
    ask_of(ticket)->rc = rc;
}

static void on_answer(void *owner, struct hf__query *query, int rc,
                      const hf_error *err)
{
    struct side *side = owner;

    (void)query;
    side->answer_rc = rc;
    if (rc != 0)
        side->answer_err = *err;
}

static void on_changed(void *owner, const char *name)
{
    (void)owner;
    (void)name;
}

static const struct hf__engine_up reports = HF__ENGINE_UP(on_);

/* ---- clients ----------------------------------------------------------- */

void side_free(void *arg)
{
    struct side *side = arg;

    if (side->engine)
        side->engine->ops->close(side->engine, /* forked= */ false);
    hf__free(side->engine);
    side->engine = NULL;
    while (side->tickets) {
        struct ticket *next = side->tickets->next;

        free(side->tickets);
        side->tickets = next;
    }
    hf__loop_release(&side->loop);
    hf__url_free(side->url);
    free(side);
}

struct side *side_prepare(const char *url)
{
    struct side *side = calloc(1, sizeof(*side));
    static char nothing[] = "";

    ASSERT_NOT_NULL(side);
    ASSERT_OK(hf__url_parse(url, &side->url, NULL), NULL);
    ASSERT_OK(hf__loop_init(&side->loop), NULL);
    side->settings.prefix = nothing;
    side->host.loop = &side->loop;
    side->host.settings = &side->settings;
    side->host.url = side->url;
    side->host.host = "testhost";
    side->host.identity_hex = "";
    side->host.pid = 4711;
    side->engine = hf__calloc(1, hf__engine_local.size);
    ASSERT_NOT_NULL(side->engine);
    side->local = (struct hf__local *)side->engine;
    side->engine->ops = &hf__engine_local;
    side->engine->host = &side->host;
    side->engine->up = &reports;
    side->engine->up_owner = side;
    side->engine->caps = hf__engine_local.caps;
    side->engine->ticket_offset =
        (sizeof(struct ticket) - offsetof(struct ticket, base) + 15) / 16 * 16;
    test_defer(side_free, side);
    return side;
}

int side_connect(struct side *side, hf_error *err)
{
    int rc = side->engine->ops->open(side->engine, err);

    if (rc == 0)
        rc = side->engine->ops->connect(side->engine, err);
    return rc;
}

struct side *side_new(const char *directory)
{
    struct side *side;
    hf_error err;
    char url[512];

    (void)snprintf(url, sizeof(url), "local://%s", directory);
    side = side_prepare(url);
    ASSERT_OK(side_connect(side, &err), &err);
    ASSERT_TRUE(side->up);
    return side;
}

struct sides sides_new(int n)
{
    const char *dir = tempdir_new();

    return (struct sides){side_new(dir), n > 1 ? side_new(dir) : NULL,
                          n > 2 ? side_new(dir) : NULL};
}

/* ---- tickets ----------------------------------------------------------- */

struct ask *side_ask_with(struct side *side, const char *name, int mode,
                          int slots, int64_t ttl_ms, uint32_t reserve,
                          bool nowait)
{
    size_t size = offsetof(struct ticket, base) + side->engine->ticket_offset +
                  hf__engine_local.ticket_size;
    struct ticket *ticket = calloc(1, size);

    ASSERT_NOT_NULL(ticket);
    ticket->next = side->tickets;
    side->tickets = ticket;
    ticket->ask.ticket = &ticket->base;
    (void)snprintf(ticket->name, sizeof(ticket->name), "%s", name);
    ticket->base.id = ++side->next_id;
    ticket->base.name = ticket->name;
    ticket->base.name_len = (uint32_t)strlen(ticket->name);
    ticket->base.mode = mode;
    ticket->base.slots = slots;
    ticket->base.ttl_ms = ttl_ms;
    ticket->base.reserve = reserve;
    ticket->base.nowait = nowait;
    ticket->base.owner = "owner";
    ticket->base.note = "note";
    ticket->base.sent_ns = hf__now();
    ASSERT_OK(side->engine->ops->acquire(side->engine, &ticket->base,
                                         &ticket->ask.err),
              &ticket->ask.err);
    return &ticket->ask;
}

struct ask *side_ask(struct side *side, const char *name, int mode, int slots)
{
    return side_ask_with(side, name, mode, slots, 30000, 1, false);
}

struct ask *side_take(struct side *side, const char *name)
{
    struct ask *ask = side_ask(side, name, HF_EXCLUSIVE, 0);

    ASSERT_EQ(ask->report, GRANTED);
    return ask;
}

enum report side_release(struct side *side, struct ask *ask)
{
    ASSERT_OK(side->engine->ops->release(side->engine, ask->ticket, NULL),
              NULL);
    return ask->report;
}

enum report side_withdraw(struct side *side, struct ask *ask)
{
    ASSERT_OK(side->engine->ops->withdraw(side->engine, ask->ticket, NULL),
              NULL);
    return ask->report;
}

enum report side_renew(struct side *side, struct ask *ask)
{
    struct hf__ticket *ticket = ask->ticket;

    ask->report = NOTHING;
    ASSERT_OK(side->engine->ops->renew(side->engine, &ticket, 1, NULL), NULL);
    return ask->report;
}

enum report side_downgrade(struct side *side, struct ask *ask)
{
    ASSERT_OK(side->engine->ops->downgrade(side->engine, ask->ticket, NULL),
              NULL);
    return ask->report;
}

void side_wait(struct side *side, int64_t wait_ms)
{
    side->engine->ops->wait(side->engine,
                            hf__instant_add(hf__now(), wait_ms * HF_MS));
    side->engine->ops->attend(side->engine);
}

bool side_wait_for(struct side *side, const struct ask *ask, enum report report,
                   int64_t wait_ms)
{
    int64_t until_ns = hf__instant_add(hf__now(), wait_ms * HF_MS);

    while (ask->report != report && hf__now() < until_ns) {
        side->engine->ops->wait(side->engine, until_ns);
        side->engine->ops->attend(side->engine);
    }
    return ask->report == report;
}

/* ---- questions --------------------------------------------------------- */

/* What the engine adds; there is one question at a time. */
static struct rows *collecting;

int hf__query_add_lock(struct hf__query *query, const hf_lock_info *row)
{
    (void)query;
    if (!collecting)
        return 0;
    if (row->role == HF_HOLDER)
        collecting->holders++;
    else
        collecting->waiters++;
    collecting->last = *row;
    hf__text_copy(collecting->owner, sizeof(collecting->owner), row->owner);
    hf__text_copy(collecting->note, sizeof(collecting->note), row->note);
    hf__text_copy(collecting->host, sizeof(collecting->host), row->host);
    return 0;
}

void hf__engine_log(const struct hf__engine *engine, int level,
                    const char *format, ...)
{
    (void)engine;
    (void)level;
    (void)format;
}

int hf__query_add_notice(struct hf__query *query, const char *text, size_t len)
{
    (void)query;
    (void)text;
    (void)len;
    return 0;
}

int hf__query_add_finding(struct hf__query *query, int status,
                          const char *check, const char *fix,
                          const char *detail_format, ...)
{
    va_list args;
    char detail[512];

    (void)query;
    (void)fix;
    va_start(args, detail_format);
    (void)vsnprintf(detail, sizeof(detail), detail_format, args);
    va_end(args);
    if (collecting && collecting->findings < HF_COUNT_OF(collecting->found)) {
        (void)snprintf(collecting->found[collecting->findings],
                       sizeof(collecting->found[0]), "%d %s: %s", status, check,
                       detail);
        collecting->findings++;
    }
    return 0;
}

int side_query(struct side *side, hf__engine_query_fn *ask, const char *name,
               uint64_t token, const char *owner, uint64_t *version)
{
    struct hf__query query = {
        .name = name, .prefix = "", .token = token, .owner = owner};

    ASSERT_OK(ask(side->engine, &query, NULL), NULL);
    if (version)
        *version = query.version;
    return side->answer_rc;
}

int side_doctor(struct side *side, struct rows *rows)
{
    memset(rows, 0, sizeof(*rows));
    collecting = rows;
    return side_query(side, hf__engine_local.doctor, NULL, 0, NULL, NULL);
}

int side_list(struct side *side, const char *name, struct rows *rows)
{
    memset(rows, 0, sizeof(*rows));
    collecting = rows;
    return side_query(side, hf__engine_local.list, name, 0, NULL, NULL);
}

const char *side_path(const char *dir, const char *name)
{
    char *path;

    ASSERT_GT(asprintf(&path, "%s/%s", dir, name), 0);
    test_defer(free, path);
    return path;
}

const char *side_url(const char *dir)
{
    char *url;

    ASSERT_GT(asprintf(&url, "local://%s", dir), 0);
    test_defer(free, url);
    return url;
}

static void restore_world(void *arg)
{
    (void)arg;
    hf__world = &hf__world_real;
}

struct hf__world *side_world(void)
{
    static struct hf__world world;

    world = *hf__world;
    hf__world = &world;
    test_defer(restore_world, NULL);
    return &world;
}
