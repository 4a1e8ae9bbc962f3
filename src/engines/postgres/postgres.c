/* SPDX-License-Identifier: MIT */
/*
 * postgres.c - the engine for PostgreSQL: postgresql://, postgres://
 *
 * The table of the engine, and what its modes share: the main session, a pool
 * of others, and one timer. The timer is due when an answer or a connection is
 * overdue, or when a mode asked for it; it finds out what it was for.
 *
 * Failure: without the main session the engine is down, and the core connects
 * again. Sessions of the pool live on meanwhile, with what they hold.
 */
#include "engines/postgres/postgres.h"

#include <stdio.h>

/* ---- the timer ----------------------------------------------------------- */

void hf__postgres_wake(struct hf__postgres *postgres, int64_t due_ns)
{
    const struct hf__engine_host *host = postgres->base.host;

    if (hf__timer_running(&postgres->timer) && postgres->timer.due_ns <= due_ns)
        return;
    host->timer(host, &postgres->timer, due_ns);
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__postgres *postgres =
        HF_CONTAINER_OF(timer, struct hf__postgres, timer);
    int64_t now_ns = hf__now();
    int64_t due_ns = hf__session_overdue(&postgres->main, now_ns);

    HF_LIST_EACH(&postgres->pool.all, link) {
        due_ns = earlier(
            due_ns,
            hf__session_overdue(
                HF_CONTAINER_OF(link, struct hf__session, link.all), now_ns));
    }
    hf__sql_pool_expire(&postgres->pool, now_ns);
    due_ns = earlier(due_ns, postgres->mode->tick(postgres, now_ns));
    if (due_ns != HF_NEVER)
        hf__postgres_wake(postgres, due_ns);
}

/* ---- the pool ------------------------------------------------------------ */

static struct hf__sql_link *pool_open(void *owner, hf_error *err)
{
    struct hf__postgres *postgres = owner;
    struct hf__session *session = hf__calloc(1, sizeof(*session));
    int rc;

    if (!session) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    session->engine = postgres;
    postgres->opening = session;
    rc = hf__session_start(session, err);
    if (rc == 0 && !postgres->opening)
        rc = hf__fail_pass(err, &session->fatal); /* it failed at once */
    postgres->opening = NULL;
    if (rc == 0)
        return &session->link;
    hf__session_stop(session, /* forked= */ false);
    hf__free(session);
    return NULL;
}

static void on_checked(struct hf__session *session,
                       const struct hf__session_call *call,
                       const struct hf__pg_answer *answer)
{
    (void)call;
    if (answer)
        hf__sql_pool_ready(&session->engine->pool, &session->link);
}

static void pool_close(void *owner, struct hf__sql_link *link)
{
    struct hf__session *session = (struct hf__session *)link;

    (void)owner;
    if (session->reading) { /* its answer is being handled: soon */
        session->closing = true;
        session->unpooled = true;
        return;
    }
    hf__session_stop(session, /* forked= */ false);
    hf__free(session);
}

static int pool_check(void *owner, struct hf__sql_link *link)
{
    struct hf__session *session = (struct hf__session *)link;
    struct hf__session_call call = {.done = on_checked};

    if (hf__session_add(session, HF__PG_PING, NULL, 0, NULL) == 0 &&
        hf__session_send(session, &call, NULL) == 0)
        return 0;
    pool_close(owner, link);
    return HF_EUNAVAILABLE;
}

static void pool_wake(void *owner, int64_t due_ns)
{
    hf__postgres_wake(owner, due_ns);
}

static const struct hf__sql_pool_ops pool_ops = {
    .open = pool_open,
    .check = pool_check,
    .close = pool_close,
    .wake = pool_wake,
};

/* ---- opening ------------------------------------------------------------- */

static int choose_mode(struct hf__postgres *postgres, hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    const char *mode = settings->mode;
    int rc = hf__sql_dialect_find(&postgres->base, &postgres->dialect, err);

    if (rc == 0)
        rc = hf__postgres_own_open(postgres, err);
    if (rc == 0 && postgres->dialect && !postgres->dialect->table) {
        postgres->mode = &hf__postgres_by_hand;
        return 0;
    }
    if (rc == 0 && postgres->dialect)
        return hf__postgres_dialect_open(postgres, err);
    if (rc != 0)
        return rc;
    if (mode[0] == '\0' || strcmp(mode, "advisory") == 0)
        postgres->mode = &hf__postgres_advisory;
    else if (strcmp(mode, "table") == 0)
        postgres->mode = &hf__postgres_table;
    else if (strcmp(mode, "for_update") == 0)
        postgres->mode = &hf__postgres_for_update;
    else
        return hf__fail(
            err, HF_ECONFIG,
            "mode=%s: postgresql has advisory, table and for_update", mode);
    return 0;
}

static void describe(struct hf__postgres *postgres)
{
    const struct hf__url *url = postgres->base.host->url;

    if (url->n_hosts == 0)
        hf__text_copy(postgres->peer, sizeof(postgres->peer), "postgresql");
    else
        (void)snprintf(postgres->peer, sizeof(postgres->peer),
                       "postgresql %s:%d%s", url->hosts[0].host,
                       url->hosts[0].port ? url->hosts[0].port : 5432,
                       url->n_hosts > 1 ? " and others" : "");
}

static int postgres_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);
    const struct hf__engine_host *host = engine->host;
    int rc;

    postgres->timer.fire = timer_fire;
    postgres->main.engine = postgres;
    hf__postgres_tickets_init(postgres);
    hf__sql_pool_init(&postgres->pool, &pool_ops, postgres, host->settings);
    memcpy(postgres->identity, host->identity_hex, sizeof(postgres->identity));
    describe(postgres);
    rc = choose_mode(postgres, err);
    if (rc != 0)
        return rc;
    postgres->base.caps = postgres->mode->caps;
    return hf__pq_load(err);
}

static int postgres_connect(struct hf__engine *engine, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return hf__session_start(&postgres->main, err);
}

void hf__postgres_connected(struct hf__postgres *postgres)
{
    postgres->base.caps = postgres->mode->caps;
    if (!postgres->fenced)
        postgres->base.caps &= ~HF_CAP_FENCED;
    if (postgres->own_commit)
        postgres->base.caps |= HF_CAP_VERSIONS;
    else if (!postgres->tables)
        postgres->base.caps &= ~HF_CAP_VERSIONS;
    postgres->up = true;
    hf__up_connected(&postgres->base);
}

void hf__postgres_down(struct hf__postgres *postgres, const hf_error *err)
{
    postgres->up = false;
    hf__up_down(&postgres->base, err);
}

static void postgres_close(struct hf__engine *engine, bool forked)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    if (!postgres->main.engine)
        return;
    if (!forked)
        hf__timer_stop(engine->host->loop, &postgres->timer);
    hf__session_stop(&postgres->main, forked);
    HF_LIST_EACH(&postgres->pool.all, link) {
        struct hf__session *session =
            HF_CONTAINER_OF(link, struct hf__session, link.all);

        hf__session_stop(session, forked);
        if (!forked)
            hf__free(session);
    }
    if (forked)
        return;
    hf__postgres_dialect_close(postgres);
    hf__postgres_own_close(postgres);
    hf__buf_release(&postgres->record);
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        while (!hf__list_empty(&postgres->known[i]))
            hf__postgres_forget(
                HF_CONTAINER_OF(hf__list_first(&postgres->known[i]),
                                struct hf__postgres_ticket, bucket));
    }
}

/* ---- calls down ---------------------------------------------------------- */

static int postgres_acquire(struct hf__engine *engine,
                            struct hf__ticket *ticket, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    if ((ticket->mode == HF_SLOT &&
         (postgres->mode->caps & HF_CAP_SLOTS) == 0) ||
        (ticket->mode == HF_SHARED &&
         (postgres->mode->caps & HF_CAP_SHARED) == 0))
        return hf__fail(err, HF_EUNSUPPORTED,
                        "%s: mode=%s has no such locks; mode=table has",
                        postgres->peer, postgres->mode->name);
    return postgres->mode->acquire(postgres, ticket, err);
}

static int postgres_withdraw(struct hf__engine *engine,
                             struct hf__ticket *ticket, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->leave(postgres, ticket, /* releasing= */ false, err);
}

static int postgres_release(struct hf__engine *engine,
                            struct hf__ticket *ticket, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->leave(postgres, ticket, /* releasing= */ true, err);
}

static int postgres_renew(struct hf__engine *engine,
                          struct hf__ticket **tickets, size_t n, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->renew(postgres, tickets, n, err);
}

static int unsupported(const struct hf__postgres *postgres, hf_error *err)
{
    if (postgres->dialect)
        return hf__fail(err, HF_EUNSUPPORTED, "%s: dialect=%s cannot",
                        postgres->peer, postgres->dialect->name);
    return hf__fail(err, HF_EUNSUPPORTED, "%s: mode=%s cannot; mode=table can",
                    postgres->peer, postgres->mode->name);
}

static int postgres_downgrade(struct hf__engine *engine,
                              struct hf__ticket *ticket, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->downgrade
               ? postgres->mode->downgrade(postgres, ticket, err)
               : unsupported(postgres, err);
}

static int postgres_list(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->list ? postgres->mode->list(engine, query, err)
                                : unsupported(postgres, err);
}

static int postgres_check_token(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->check_token
               ? postgres->mode->check_token(engine, query, err)
               : unsupported(postgres, err);
}

static int postgres_break(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    struct hf__postgres *postgres = hf__postgres_of(engine);

    return postgres->mode->break_lock
               ? postgres->mode->break_lock(engine, query, err)
               : unsupported(postgres, err);
}

const struct hf__engine_ops hf__engine_postgres = {
    .name = "postgres",
    .schemes = "postgresql postgres",
    .dialects = "native shedlock spring row",
    .takes = hf__postgres_takes,
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_SURVIVES_RESTART |
            HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS |
            HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_CHECK_TOKEN |
            HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
    .flags = HF__BEATS_WAITERS,
    .size = sizeof(struct hf__postgres),
    .ticket_size = sizeof(struct hf__postgres_ticket),
    .open = postgres_open,
    .connect = postgres_connect,
    .close = postgres_close,
    .acquire = postgres_acquire,
    .withdraw = postgres_withdraw,
    .release = postgres_release,
    .renew = postgres_renew,
    .downgrade = postgres_downgrade,
    .list = postgres_list,
    .check_token = postgres_check_token,
    .break_lock = postgres_break,
    .version_read = hf__postgres_version_read,
    .version_commit = hf__postgres_version_commit,
    .doctor = hf__postgres_doctor,
    .connection = hf__postgres_connection,
};
