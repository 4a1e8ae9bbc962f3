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
#include "engines/common/caps.h"

#include <stdio.h>

/* A client that holds a lock for so long listens for the end of its session. */
#define LISTEN_NS (20 * HF_MS)

/* ---- the timer ----------------------------------------------------------- */

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__pg *postgres = hf__pg_of(hf__link_of(timer)->engine);
    int64_t now_ns = hf__now();
    int64_t due_ns = hf__pg_connection_overdue(&postgres->main, now_ns);

    HF_LIST_EACH(&postgres->pool.all, link) {
        due_ns = earlier(
            due_ns,
            hf__pg_connection_overdue(
                HF_CONTAINER_OF(link, struct hf__pg_conn, link.all), now_ns));
    }
    hf__sql_pool_expire(&postgres->pool, now_ns);
    if (postgres->mode->tick)
        due_ns = earlier(due_ns, postgres->mode->tick(postgres, now_ns));
    due_ns = earlier(due_ns, hf__link_listen_due(&postgres->link, now_ns));
    hf__pg_wake(postgres, due_ns);
}

/* ---- the pool ------------------------------------------------------------ */

static struct hf__sql_link *pool_open(void *owner, hf_error *err)
{
    struct hf__pg *postgres = owner;
    struct hf__pg_conn *conn = hf__calloc(1, sizeof(*conn));
    int rc;

    if (!conn) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    conn->engine = postgres;
    postgres->opening = conn;
    rc = hf__pg_connect_start(conn, err);
    if (rc == 0 && !postgres->opening)
        rc = hf__fail_pass(err, &conn->fatal); /* it failed at once */
    postgres->opening = NULL;
    if (rc == 0)
        return &conn->link;
    hf__pg_connection_stop(conn, /* forked= */ false);
    hf__free(conn);
    return NULL;
}

static void on_checked(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                       const struct hf__pg_answer *answer)
{
    (void)call;
    if (answer)
        hf__sql_pool_ready(&conn->engine->pool, &conn->link);
}

static void pool_close(void *owner, struct hf__sql_link *link)
{
    struct hf__pg_conn *conn = (struct hf__pg_conn *)link;

    (void)owner;
    if (conn->reading) { /* its answer is being handled: soon */
        conn->closing = true;
        conn->unpooled = true;
        return;
    }
    hf__pg_connection_stop(conn, /* forked= */ false);
    hf__free(conn);
}

static int pool_check(void *owner, struct hf__sql_link *link)
{
    struct hf__pg_conn *conn = (struct hf__pg_conn *)link;
    struct hf__pg_call call = {.done = on_checked};

    if (hf__pg_calls_send_one(conn, HF__STMT_PING, NULL, 0, &call, NULL) == 0)
        return 0;
    pool_close(owner, link);
    return HF_EUNAVAILABLE;
}

static void pool_wake(void *owner, int64_t due_ns)
{
    hf__pg_wake(owner, due_ns);
}

static const struct hf__sql_pool_ops pool_ops = {
    .open = pool_open,
    .check = pool_check,
    .close = pool_close,
    .wake = pool_wake,
};

/* ---- opening ------------------------------------------------------------- */

static int choose_mode(struct hf__pg *postgres, hf_error *err)
{
    const struct hf__settings *settings = postgres->base.host->settings;
    const char *mode = settings->mode;
    int rc = hf__sql_dialect_find(&postgres->base, &postgres->dialect, err);

    if (rc == 0)
        rc = hf__pg_own_tables_open(postgres, err);
    if (rc == 0 && postgres->dialect && !postgres->dialect->table) {
        postgres->mode = &hf__pg_mode_row;
        return 0;
    }
    if (rc == 0 && postgres->dialect)
        return hf__pg_dialect_open(postgres, err);
    if (rc != 0)
        return rc;
    if (mode[0] == '\0' || strcmp(mode, "advisory") == 0)
        postgres->mode = &hf__pg_mode_advisory;
    else if (strcmp(mode, "table") == 0)
        postgres->mode = &hf__pg_mode_table;
    else if (strcmp(mode, "for_update") == 0)
        postgres->mode = &hf__pg_mode_for_update;
    else
        return hf__fail(
            err, HF_ECONFIG,
            "mode=%s: postgresql has advisory, table and for_update", mode);
    return 0;
}

static void describe(struct hf__pg *postgres)
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
    struct hf__pg *postgres = hf__pg_of(engine);
    const struct hf__engine_host *host = engine->host;
    int rc;

    hf__link_init(&postgres->link, engine, timer_fire, LISTEN_NS);
    postgres->main.engine = postgres;
    hf__ticket_table_init(&postgres->tickets);
    for (size_t i = 0; i < HF__PG_BUCKETS; i++)
        hf__list_init(&postgres->held[i]);
    hf__sql_pool_init(&postgres->pool, &pool_ops, postgres, host->settings);
    memcpy(postgres->identity, host->identity_hex, sizeof(postgres->identity));
    describe(postgres);
    rc = choose_mode(postgres, err);
    if (rc != 0)
        return rc;
    postgres->base.caps = postgres->mode->caps;
    rc = hf__pq_load(err);
    return rc == 0 ? hf__pg_hosts_open(postgres, err) : rc;
}

static int postgres_connect(struct hf__engine *engine, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);

    return hf__pg_connect_start(&postgres->main, err);
}

void hf__pg_connected(struct hf__pg *postgres)
{
    postgres->base.caps = postgres->mode->caps;
    if (!postgres->fenced)
        postgres->base.caps &= ~HF_CAP_FENCED;
    if (postgres->own_texts[HF__PG_OWN_COMMIT])
        postgres->base.caps |= HF_CAP_VERSIONS;
    else if (!postgres->tables)
        postgres->base.caps &= ~HF_CAP_VERSIONS;
    if (!postgres->conditions)
        postgres->base.caps &= ~HF_CAP_CONDITIONS;
    postgres->up = true;
    hf__up_connected(&postgres->base);
}

void hf__pg_down(struct hf__pg *postgres, const hf_error *err)
{
    postgres->up = false;
    hf__up_down(&postgres->base, err);
}

static void forget(struct hf__ticket *ticket, void *postgres)
{
    hf__pg_tickets_forget(hf__pg_ticket(postgres, ticket));
}

static void postgres_close(struct hf__engine *engine, bool forked)
{
    struct hf__pg *postgres = hf__pg_of(engine);

    if (!postgres->main.engine)
        return;
    if (!forked)
        hf__link_stop(&postgres->link);
    hf__pg_connection_stop(&postgres->main, forked);
    HF_LIST_EACH(&postgres->pool.all, link) {
        struct hf__pg_conn *conn =
            HF_CONTAINER_OF(link, struct hf__pg_conn, link.all);

        hf__pg_connection_stop(conn, forked);
        if (!forked)
            hf__free(conn);
    }
    if (forked)
        return;
    hf__pg_own_tables_close(postgres);
    hf__pg_hosts_close(postgres);
    hf__buf_release(&postgres->record);
    hf__ticket_table_each(&postgres->tickets, forget, postgres);
    hf__ticket_table_release(&postgres->tickets);
}

/* ---- calls down ---------------------------------------------------------- */

static int postgres_acquire(struct hf__engine *engine,
                            struct hf__ticket *ticket, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);

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
    struct hf__pg *postgres = hf__pg_of(engine);

    return postgres->mode->release(postgres, ticket, HF__PG_OWES_WITHDRAWAL,
                                   err);
}

static int postgres_release(struct hf__engine *engine,
                            struct hf__ticket *ticket, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);

    return postgres->mode->release(postgres, ticket, HF__PG_OWES_RELEASE, err);
}

static int postgres_renew(struct hf__engine *engine,
                          struct hf__ticket **tickets, size_t n, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);

    return postgres->mode->renew(postgres, tickets, n, err);
}

static int unsupported(const struct hf__pg *postgres, hf_error *err)
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
    struct hf__pg *postgres = hf__pg_of(engine);

    return postgres->mode->downgrade
               ? postgres->mode->downgrade(postgres, ticket, err)
               : unsupported(postgres, err);
}

static int postgres_park(struct hf__engine *engine, struct hf__ticket *ticket,
                         struct hf__ticket *old, hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);

    return postgres->mode->park
               ? postgres->mode->park(postgres, ticket, old, err)
               : unsupported(postgres, err);
}

static int postgres_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    struct hf__pg *postgres = hf__pg_of(engine);

    return postgres->mode->unpark
               ? postgres->mode->unpark(postgres, ticket, err)
               : unsupported(postgres, err);
}

static int ask(struct hf__engine *engine, hf__engine_query_fn *fn,
               struct hf__query *query, hf_error *err)
{
    return fn ? fn(engine, query, err) : unsupported(hf__pg_of(engine), err);
}

static int postgres_signal(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return ask(engine, hf__pg_of(engine)->mode->signal, query, err);
}

static int postgres_list(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return ask(engine, hf__pg_of(engine)->mode->list, query, err);
}

static int postgres_check_token(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err)
{
    return ask(engine, hf__pg_of(engine)->mode->check_token, query, err);
}

static int postgres_break(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    return ask(engine, hf__pg_of(engine)->mode->break_lock, query, err);
}

const struct hf__engine_ops hf__engine_postgres = {
    .name = "postgres",
    .schemes = "postgresql postgres",
    .dialects = "native shedlock spring row",
    .takes = hf__pg_settings_takes,
    .caps = HF__CAPS_QUEUE | HF_CAP_PUSH | HF_CAP_SURVIVES_RESTART |
            HF_CAP_CONDITIONS,
    .flags = HF__BEATS_WAITERS,
    .size = sizeof(struct hf__pg),
    .ticket_size = sizeof(struct hf__pg_ticket),
    .open = postgres_open,
    .connect = postgres_connect,
    .close = postgres_close,
    .acquire = postgres_acquire,
    .withdraw = postgres_withdraw,
    .release = postgres_release,
    .renew = postgres_renew,
    .downgrade = postgres_downgrade,
    .park = postgres_park,
    .unpark = postgres_unpark,
    .signal = postgres_signal,
    .list = postgres_list,
    .check_token = postgres_check_token,
    .break_lock = postgres_break,
    .version_read = hf__pg_version_read,
    .version_commit = hf__pg_version_commit,
    .doctor = hf__pg_doctor,
    .board_post = hf__pg_board_post,
    .board_read = hf__pg_board_read,
    .connection = hf__pg_for_update_connection,
};
