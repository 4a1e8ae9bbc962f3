/* SPDX-License-Identifier: MIT */
/*
 * mysql.c - the engine for MariaDB and MySQL: mysql://, mariadb://, mysqls:// (TLS)
 *
 * The ops table, and what all parts share: the URL, and one main connection.
 *
 * Failure: the main connection is lost. What was asked on it is unknown; the
 * next one first ends the session of the old one at the server, if it still
 * lives, and is up only when that session is gone.
 */
#include "engines/mysql/mysql.h"
#include "engines/common/caps.h"

#include <stdio.h>

static struct hf__mysql *mysql_of(struct hf__engine *engine)
{
    return (struct hf__mysql *)engine;
}

int hf__mysql_is_up(const struct hf__mysql *mysql, hf_error *err)
{
    if (mysql->up && mysql->main.step >= HF__MYSQL_STEP_IDLE)
        return 0;
    return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected", mysql->peer);
}

/* Watch for the end of a session that has held a lock for this long. */
static const int64_t listen_after_ns = 20 * HF_MS;

static void timer_fire(struct hf__timer *timer)
{
    struct hf__mysql *mysql = mysql_of(hf__link_of(timer)->engine);
    int64_t now_ns = hf__now();

    hf__mysql_connection_begin(&mysql->main);
    hf__link_wake(&mysql->link,
                  hf__mysql_connection_check(&mysql->main, now_ns));
    hf__mysql_pool_attend(mysql, now_ns);
    if (mysql->mode->attend)
        hf__link_wake(&mysql->link, mysql->mode->attend(mysql, now_ns));
}

/* ---- the main connection ----------------------------------------------- */

static void up(struct hf__mysql *mysql)
{
    mysql->up = true;
    mysql->old = mysql->main.session;
    if (mysql->mode->regained)
        mysql->mode->regained(mysql);
    hf__up_connected(&mysql->base);
}

static int end_old(struct hf__mysql *mysql, hf_error *err);

static void on_old_gone(struct hf__mysql *mysql, struct hf__mysql_call *call,
                        struct hf__mysql_reply *reply)
{
    hf_error err;

    (void)call;
    if (!reply)
        return;
    if (hf__mysql_orphans_is_ended(reply)) {
        up(mysql);
        return;
    }
    if (hf__mysql_orphans_is_ending(&mysql->old, reply) &&
        end_old(mysql, &err) == 0)
        return;
    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "%s: our lost session is still being ended", mysql->peer);
    hf__mysql_connection_fail(&mysql->main, &err);
}

static int end_old(struct hf__mysql *mysql, hf_error *err)
{
    struct hf__mysql_call *call = hf__mysql_call_new(on_old_gone, err);

    if (!call)
        return HF_ENOMEM;
    hf__mysql_orphans_put_end(mysql, &mysql->old, &call->sql);
    return hf__mysql_call_send(&mysql->main, call, err);
}

static void main_opened(struct hf__mysql_connection *connection)
{
    struct hf__mysql *mysql = connection->mysql;
    hf_error err;

    mysql->old.looks = 0;
    if (mysql->old.serial == 0)
        up(mysql);
    else if (end_old(mysql, &err) != 0)
        hf__mysql_connection_fail(connection, &err);
}

static void main_closed(struct hf__mysql_connection *connection,
                        const hf_error *err)
{
    struct hf__mysql *mysql = connection->mysql;

    mysql->up = false;
    if (mysql->mode->lost)
        mysql->mode->lost(mysql);
    hf__up_down(&mysql->base, err);
}

/* ---- opening ----------------------------------------------------------- */

static int read_url(struct hf__mysql *mysql, hf_error *err)
{
    const struct hf__url *url = mysql->base.host->url;

    if (url->n_hosts > 1)
        return hf__fail(err, HF_ECONFIG,
                        "%s:// is one server; several hosts are given",
                        url->scheme);
    if (url->path[0] == '\0' || url->path[1] == '\0' ||
        strchr(url->path + 1, '/'))
        return hf__fail(err, HF_ECONFIG,
                        "the path of a %s:// URL is the database, as in "
                        "%s://host/database",
                        url->scheme, url->scheme);
    mysql->database = url->path + 1;
    mysql->port = url->n_hosts == 1 && url->hosts[0].port != 0
                      ? url->hosts[0].port
                      : 3306;
    mysql->tls = strcmp(url->scheme, "mysqls") == 0;
    (void)snprintf(mysql->peer, sizeof(mysql->peer), "mysql %s:%d",
                   url->n_hosts == 1 ? url->hosts[0].host : "127.0.0.1",
                   mysql->port);
    return 0;
}

static int choose_mode(struct hf__mysql *mysql, hf_error *err)
{
    static const struct hf__mysql_mode *const modes[] = {
        &hf__mysql_table_acquire_mode, &hf__mysql_get_lock_mode,
        &hf__mysql_for_update_mode};
    const struct hf__settings *settings = mysql->base.host->settings;
    int rc = hf__sql_dialect_find(&mysql->base, &mysql->dialect, err);

    mysql->own_row = rc == 0 && hf__sql_dialect_own_row(settings);
    mysql->own_versions = rc == 0 && hf__sql_dialect_own_versions(settings);
    if (rc == 0 && mysql->dialect)
        hf__mysql_dialect_open(mysql);
    if (rc != 0 || mysql->dialect)
        return rc;
    mysql->mode = settings->mode[0] == '\0' ? modes[0] : NULL;
    for (size_t i = 0; !mysql->mode && i < HF_COUNT_OF(modes); i++) {
        if (strcmp(settings->mode, modes[i]->name) == 0)
            mysql->mode = modes[i];
    }
    if (!mysql->mode)
        return hf__fail(err, HF_ECONFIG,
                        "mode=%s: mysql has table, get_lock and for_update",
                        settings->mode);
    return 0;
}

static int mysql_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__mysql *mysql = mysql_of(engine);
    int rc;

    hf__link_init(&mysql->link, engine, timer_fire, listen_after_ns);
    hf__ticket_table_init(&mysql->tickets);
    rc = choose_mode(mysql, err);
    if (rc == 0)
        rc = read_url(mysql, err);
    if (rc == 0)
        rc = hf__mysql_library_load(err);
    if (rc != 0)
        return rc;
    mysql->base.caps =
        mysql->mode->caps | (mysql->own_versions ? HF_CAP_VERSIONS : 0);
    hf__mysql_connection_init(&mysql->main, mysql);
    mysql->main.opened = main_opened;
    mysql->main.closed = main_closed;
    hf__mysql_pool_open(mysql);
    return 0;
}

static int mysql_connect(struct hf__engine *engine, hf_error *err)
{
    struct hf__mysql *mysql = mysql_of(engine);

    return hf__mysql_connection_start(&mysql->main, err);
}

static void mysql_close_engine(struct hf__engine *engine, bool forked)
{
    struct hf__mysql *mysql = mysql_of(engine);

    hf__mysql_pool_close(mysql, forked);
    hf__mysql_connection_stop(&mysql->main, forked);
    if (forked)
        return;
    hf__link_stop(&mysql->link);
    hf__ticket_table_release(&mysql->tickets);
    hf__buf_release(&mysql->scratch);
}

/* ---- calls ------------------------------------------------------------- */

static int mysql_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct hf__mysql *mysql = mysql_of(engine);
    int rc = hf__mysql_is_up(mysql, err);

    return rc != 0 ? rc : mysql->mode->acquire(mysql, ticket, err);
}

static int leave(struct hf__engine *engine, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__mysql *mysql = mysql_of(engine);
    int rc;

    if (hf__mysql_ticket(mysql, ticket)->state == HF__MYSQL_IDLE) {
        hf__up_left(engine, ticket, releasing ? HF_ELOST : 0);
        return 0;
    }
    rc = hf__mysql_is_up(mysql, err);
    if (rc != 0)
        return rc;
    hf__mysql_tickets_leave(mysql, ticket, releasing);
    return mysql->mode->release(mysql, ticket, err);
}

static int mysql_withdraw(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    return leave(engine, ticket, /* releasing= */ false, err);
}

static int mysql_release(struct hf__engine *engine, struct hf__ticket *ticket,
                         hf_error *err)
{
    return leave(engine, ticket, /* releasing= */ true, err);
}

static int mysql_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                       size_t n, hf_error *err)
{
    struct hf__mysql *mysql = mysql_of(engine);
    int rc = hf__mysql_is_up(mysql, err);

    return rc != 0 ? rc : mysql->mode->renew(mysql, tickets, n, err);
}

static int mysql_downgrade(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    struct hf__mysql *mysql = mysql_of(engine);
    int rc = hf__mysql_is_up(mysql, err);

    if (!mysql->mode->downgrade)
        return hf__fail(err, HF_EUNSUPPORTED, "mode=%s cannot downgrade",
                        mysql->mode->name);
    return rc != 0 ? rc : mysql->mode->downgrade(mysql, ticket, err);
}

const struct hf__engine_ops hf__engine_mysql = {
    .name = "mysql",
    .schemes = "mysql mariadb mysqls",
    .dialects = "native shedlock spring row",
    .caps = HF__CAPS_QUEUE | HF_CAP_PUSH | HF_CAP_SURVIVES_RESTART |
            HF_CAP_CONDITIONS,
    .flags = HF__BEATS_PARKED,
    .size = sizeof(struct hf__mysql),
    .ticket_size = sizeof(struct hf__mysql_ticket),
    .open = mysql_open,
    .connect = mysql_connect,
    .close = mysql_close_engine,
    .acquire = mysql_acquire,
    .withdraw = mysql_withdraw,
    .release = mysql_release,
    .renew = mysql_renew,
    .downgrade = mysql_downgrade,
    .park = hf__mysql_table_condition_park,
    .unpark = hf__mysql_table_condition_unpark,
    .signal = hf__mysql_table_condition_signal,
    .list = hf__mysql_inspect_list,
    .check_token = hf__mysql_inspect_check,
    .break_lock = hf__mysql_inspect_break,
    .version_read = hf__mysql_versions_read,
    .version_commit = hf__mysql_versions_commit,
    .doctor = hf__mysql_doctor,
    .connection = hf__mysql_for_update_connection,
};
