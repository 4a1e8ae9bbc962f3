/* SPDX-License-Identifier: MIT */
/*
 * session_release.c - a session or transaction frees its lock, or gives up its
 * wait.
 *
 * Failure: without an answer the lock is free when the session has ended, which
 * orphans.c sees to.
 */
#include "engines/mysql/mysql.h"

static void on_released(struct hf__mysql *mysql, struct hf__ticket *ticket,
                        struct hf__mysql_call *call,
                        struct hf__mysql_reply *reply)
{
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool callers = mine->stored == HF__MYSQL_HAS_TRANSACTION;

    if (!reply || mine->on != call->connection)
        return;
    if (reply->code == 0) {
        /* Nobody but us has used the session, so it was still ours; or the
         * caller's transaction was still open, and has been committed. */
        hf__mysql_session_left(mysql, ticket,
                               !callers || reply->was_in_transaction);
    } else if (callers && mine->state == HF__MYSQL_RELEASING) {
        hf__mysql_session_forget(mysql, ticket, /* clean= */ false);
        hf__up_left(&mysql->base, ticket, HF_ELOST); /* not committed */
    } else {                                         /* it may hold it still */
        hf__mysql_tickets_answer_lost(mysql, ticket);
    }
}

int hf__mysql_session_release_send(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool releasing = mine->state == HF__MYSQL_RELEASING;

    if (mysql->mode == &hf__mysql_get_lock_mode ||
        (releasing && mine->stored != HF__MYSQL_HAS_TRANSACTION))
        return hf__mysql_call_prepared(mine->on, ticket, mine->texts->release,
                                       on_released, 0, err);
    return hf__mysql_call_ask(mine->on, ticket,
                              releasing ? hf__mysql_sql_for_update_commit
                                        : hf__mysql_sql_for_update_undo,
                              on_released, err);
}

/* The connection cannot be asked any more, or waits inside the server: close it,
 * and end its session. */
static int abandon(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_connection *connection = mine->on;

    mine->orphan = connection->session;
    hf__mysql_session_unbind(mine);
    hf__mysql_pool_drop(connection);
    return hf__mysql_orphans_end(mysql, ticket, err);
}

int hf__mysql_session_release(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    bool held = mine->stored >= HF__MYSQL_HAS_LOCK;
    bool on_main = mine->on == &mysql->main;

    hf__sql_pool_forget(&mysql->pool, &mine->want);
    if (mine->orphan.serial != 0)
        return mine->under_way ? 0 : hf__mysql_orphans_end(mysql, ticket, err);
    if (on_main && mine->under_way)
        return 0; /* hf__mysql_session_acquire_tried() goes on */
    if (!mine->on || (on_main && !held)) {
        hf__mysql_session_left(mysql, ticket, /* held= */ false);
        return 0;
    }
    if (!held)
        return abandon(mysql, ticket, err);
    if (mine->on->with_caller) {
        mine->on->with_caller = false;
        hf__mysql_connection_watch_idle(mine->on);
    }
    return hf__mysql_session_release_send(mysql, ticket, err);
}
