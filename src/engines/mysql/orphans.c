/* SPDX-License-Identifier: MIT */
/*
 * orphans.c - sessions that were lost, and that the server may still have.
 *
 * The server's list has a session until nothing of it is left. So we KILL it,
 * and ask again until it is not in the list: then nothing that it was asked can
 * be carried out any more. Its number alone would not do, because a restarted
 * server gives it to another client: our port, or a lock of GET_LOCK that each
 * session of ours has, must fit it.
 *
 * Failure: one that cannot be ended ends by its wait_timeout.
 */
#include <mysqld_error.h>

#include "engines/mysql/mysql.h"

/* Check so often, every five milliseconds, whether a session has ended. */
enum { LOOKS = 200 };

/* Its locks may go a little before it goes from the list. One that is about to
 * go may have no owner already, and cannot be ended any more (error 1095). */
void hf__mysql_orphans_put_end(const struct hf__mysql *mysql,
                               struct hf__mysql_session *session,
                               struct hf__buf *to)
{
    if (session->looks++ > 0)
        hf__buf_add(to, "DO SLEEP(0.005);");
    hf__buf_printf(to,
                   "SELECT COALESCE(MAX(ID),0) INTO @holdfast "
                   "FROM information_schema.processlist WHERE ID=%llu AND "
                   "(HOST LIKE '%%:%u' OR IS_USED_LOCK('holdfast:%s:%llx')=ID);"
                   "KILL CONNECTION @holdfast",
                   (unsigned long long)session->id, (unsigned)session->port,
                   mysql->base.host->identity_hex,
                   (unsigned long long)session->serial);
}

bool hf__mysql_orphans_is_ended(const struct hf__mysql_reply *reply)
{
    return reply && reply->code == ER_NO_SUCH_THREAD;
}

bool hf__mysql_orphans_is_ending(const struct hf__mysql_session *session,
                                 const struct hf__mysql_reply *reply)
{
    return reply && (reply->code == 0 || reply->code == ER_KILL_DENIED_ERROR) &&
           session->looks < LOOKS;
}

/* ---- of a ticket --------------------------------------------------------- */

static void on_ended(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     struct hf__mysql_call *call, struct hf__mysql_reply *reply)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);

    (void)call;
    if (mine->orphan.serial == 0)
        return;
    mine->under_way = false;
    if (!hf__mysql_orphans_is_ended(reply)) {
        if (!hf__mysql_orphans_is_ending(&mine->orphan, reply) ||
            hf__mysql_orphans_end(mysql, ticket, NULL) != 0)
            hf__mysql_tickets_answer_lost(mysql, ticket);
        return;
    }
    mine->orphan.serial = 0;
    if (hf__mysql_tickets_leaves(mine))
        hf__mysql_session_left(mysql, ticket, /* held= */ false);
    else if (mine->state == HF__MYSQL_ASKING)
        hf__mysql_session_acquire_ask(mysql, ticket);
}

int hf__mysql_orphans_end(struct hf__mysql *mysql, struct hf__ticket *ticket,
                          hf_error *err)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_call *call = hf__mysql_call_new(NULL, err);
    int rc;

    if (!call)
        return HF_ENOMEM;
    call->answered = on_ended;
    call->ticket = ticket->id;
    hf__mysql_orphans_put_end(mysql, &mine->orphan, &call->sql);
    rc = hf__mysql_call_send(&mysql->main, call, err);
    mine->under_way = rc == 0;
    return rc;
}

/* ---- without a ticket ----------------------------------------------------------- */

void hf__mysql_orphans_add(struct hf__mysql *mysql,
                           const struct hf__mysql_session *session)
{
    memmove(mysql->orphans + 1, mysql->orphans,
            sizeof(mysql->orphans) - sizeof(mysql->orphans[0]));
    mysql->orphans[0] = (struct hf__mysql_orphan){.session = *session};
}

static void on_one_ended(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    for (size_t i = 0; i < HF_COUNT_OF(mysql->orphans); i++) {
        struct hf__mysql_orphan *orphan = &mysql->orphans[i];

        if (orphan->session.serial != call->ticket)
            continue;
        orphan->ending = false;
        if (reply && !hf__mysql_orphans_is_ending(&orphan->session, reply))
            orphan->session.serial =
                0; /* or the server ends it by wait_timeout */
    }
    hf__mysql_orphans_end_all(mysql);
}

void hf__mysql_orphans_end_all(struct hf__mysql *mysql)
{
    for (size_t i = 0; i < HF_COUNT_OF(mysql->orphans); i++) {
        struct hf__mysql_orphan *orphan = &mysql->orphans[i];
        struct hf__mysql_call *call = NULL;

        if (orphan->session.serial != 0 && !orphan->ending &&
            hf__mysql_is_up(mysql, NULL) == 0)
            call = hf__mysql_call_new(on_one_ended, NULL);
        if (!call)
            continue;
        call->ticket = orphan->session.serial;
        hf__mysql_orphans_put_end(mysql, &orphan->session, &call->sql);
        orphan->ending = hf__mysql_call_send(&mysql->main, call, NULL) == 0;
    }
}
