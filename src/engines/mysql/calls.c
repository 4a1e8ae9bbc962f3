/* SPDX-License-Identifier: MIT */
/*
 * calls.c - calls and their answers, in order, on one connection.
 *
 * libmariadb's functions come in pairs, start and cont, which say what they
 * wait for instead of waiting. A connection carries out one call at a time; the
 * others stand behind it. A call is a text of statements, or one statement that
 * is prepared with its first use on the connection: the server then parses it
 * once, and the values travel beside it. Frequent statements are prepared, and
 * return no rows.
 *
 *   text      QUERY ─▶ FETCH … ─▶ NEXT ─▶ FETCH …    for each statement
 *   prepared  PREPARE ─▶ EXECUTE                     PREPARE the first time
 *
 * A step of the library may be over when it has hardly begun, because the answer
 * came while it was being sent. The loop then finds the descriptor writable, and
 * the answer is handled there, after the call down has returned.
 *
 * Failure: an error of the server is an answer. An error of the library, or one
 * that says that the session is over, ends the connection.
 */
#include <errmsg.h>
#include <errno.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "engines/mysql/mysql.h"

struct hf__mysql_call *hf__mysql_call_new(hf__mysql_done_fn *done,
                                          hf_error *err)
{
    struct hf__mysql_call *call = hf__calloc(1, sizeof(*call));

    if (!call) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    call->done = done;
    return call;
}

void hf__mysql_call_free(struct hf__mysql_call *call)
{
    if (!call)
        return;
    hf__mysql_call_free(call->then);
    hf__buf_release(&call->sql);
    hf__free(call->tickets);
    hf__free(call);
}

void hf__mysql_call_tell(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply)
{
    struct hf__ticket *ticket;

    if (!call->answered) {
        call->done(mysql, call, reply);
        return;
    }
    ticket = hf__mysql_tickets_find(mysql, call->ticket);
    if (ticket)
        call->answered(mysql, ticket, call, reply);
}

/* Report the outcome, and free the call unless schema.c keeps it. */
static void tell(struct hf__mysql *mysql, struct hf__mysql_call *call,
                 struct hf__mysql_reply *reply)
{
    hf__mysql_call_tell(mysql, call, reply);
    if (call->tables != HF__TABLES_MAKING)
        hf__mysql_call_free(call);
}

struct hf__mysql_call *hf__mysql_call_first(
    const struct hf__mysql_connection *connection)
{
    return connection->calls.n > 0
               ? *(struct hf__mysql_call **)hf__calls_at(&connection->calls, 0)
               : NULL;
}

/* Remove the first one; NULL: there is none. */
static struct hf__mysql_call *take_first(
    struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *call;

    if (!hf__calls_take(&connection->calls, (void *)&call))
        return NULL;
    connection->mysql->base.under_way--;
    return call;
}

void hf__mysql_calls_end(struct hf__mysql_connection *connection, bool told)
{
    struct hf__mysql_call *call;

    hf__mysql_answer_release(&connection->reply);
    connection->step = HF__MYSQL_STEP_CLOSED;
    connection->later = HF__LATER_NOTHING;
    while ((call = take_first(connection))) {
        if (told)
            tell(connection->mysql, call, NULL);
        else
            hf__mysql_call_free(call);
    }
    hf__calls_release(&connection->calls);
}

/* ---- prepared statements ----------------------------------------------- */

/* The statement of @text on this connection: one that was used before, or the
 * next place. */
static struct hf__mysql_prepared *find_prepared(
    struct hf__mysql_connection *connection, const char *text)
{
    for (size_t i = 0; i < HF_COUNT_OF(connection->prepared); i++) {
        struct hf__mysql_prepared *prepared = &connection->prepared[i];

        if (!prepared->text) {
            prepared->handle = hf__mariadb.mysql_stmt_init(connection->handle);
            prepared->text = prepared->handle ? text : NULL;
        }
        if (prepared->text == text)
            return prepared;
        if (!prepared->text)
            break;
    }
    return NULL;
}

void hf__mysql_calls_free_prepared(struct hf__mysql_connection *connection)
{
    for (size_t i = 0; i < HF_COUNT_OF(connection->prepared); i++) {
        if (connection->prepared[i].handle)
            (void)hf__mariadb.mysql_stmt_close(connection->prepared[i].handle);
        hf__buf_release(&connection->prepared[i].sql);
    }
    memset(connection->prepared, 0, sizeof(connection->prepared));
}

/* Hand the values over, and begin. The server has said how many there are:
 * the library would read as many. */
static int execute(const struct hf__mysql_prepared *prepared,
                   struct hf__mysql_call *call, int *ret_rc)
{
    MYSQL_BIND binds[HF__MYSQL_PARAMS] = {{0}};

    *ret_rc = -1;
    if (hf__mariadb.mysql_stmt_param_count(prepared->handle) != call->n_params)
        return 0;
    for (unsigned i = 0; i < call->n_params; i++) {
        struct hf__mysql_param *param = &call->params[i];

        binds[i].buffer_type =
            param->is_number ? MYSQL_TYPE_LONGLONG : MYSQL_TYPE_BLOB;
        binds[i].is_unsigned = param->is_number;
        binds[i].buffer = param->is_number ? (void *)&param->number
                                           : call->sql.text + param->at;
        binds[i].buffer_length = param->len;
    }
    if (call->n_params > 0 &&
        hf__mariadb.mysql_stmt_bind_param(prepared->handle, binds) != 0)
        return 0;
    return hf__mariadb.mysql_stmt_execute_start(ret_rc, prepared->handle);
}

/* ---- one step after another -------------------------------------------- */

/* Does this error of the library or server mean that the session is over? */
static bool is_fatal(unsigned code)
{
    return (code >= CR_MIN_ERROR && code <= CR_MAX_ERROR) ||
           code == ER_SERVER_SHUTDOWN || code == ER_CONNECTION_KILLED ||
           code == 4031; /* MySQL 8: idle for longer than wait_timeout */
}

/* Begin the step that the connection is at; what it waits for, or 0. */
static int begin(struct hf__mysql_connection *connection, int *ret_rc)
{
    struct hf__mysql_call *call = hf__mysql_call_first(connection);
    const struct hf__mysql_prepared *prepared = connection->current;
    MYSQL *handle = connection->handle;

    *ret_rc = 0;
    switch (connection->step) {
    case HF__MYSQL_STEP_QUERY:
        return hf__mariadb.mysql_real_query_start(
            ret_rc, handle, call->sql.text, call->sql.len);
    case HF__MYSQL_STEP_FETCH:
        return hf__mariadb.mysql_fetch_row_start(&connection->row,
                                                 connection->result);
    case HF__MYSQL_STEP_NEXT:
        return hf__mariadb.mysql_next_result_start(ret_rc, handle);
    case HF__MYSQL_STEP_PREPARE:
        return hf__mariadb.mysql_stmt_prepare_start(
            ret_rc, prepared->handle, prepared->sql.text, prepared->sql.len);
    default: /* EXECUTE */
        return execute(prepared, call, ret_rc);
    }
}

static int resume(struct hf__mysql_connection *connection, int ready,
                  int *ret_rc)
{
    const struct hf__mysql_prepared *prepared = connection->current;
    MYSQL *handle = connection->handle;

    *ret_rc = 0;
    switch (connection->step) {
    case HF__MYSQL_STEP_QUERY:
        return hf__mariadb.mysql_real_query_cont(ret_rc, handle, ready);
    case HF__MYSQL_STEP_FETCH:
        return hf__mariadb.mysql_fetch_row_cont(&connection->row,
                                                connection->result, ready);
    case HF__MYSQL_STEP_NEXT:
        return hf__mariadb.mysql_next_result_cont(ret_rc, handle, ready);
    case HF__MYSQL_STEP_PREPARE:
        return hf__mariadb.mysql_stmt_prepare_cont(ret_rc, prepared->handle,
                                                   ready);
    default: /* EXECUTE */
        return hf__mariadb.mysql_stmt_execute_cont(ret_rc, prepared->handle,
                                                   ready);
    }
}

static bool is_in_transaction(const struct hf__mysql_connection *connection)
{
    unsigned status = 0;

    (void)hf__mariadb.mariadb_get_infov(
        connection->handle, MARIADB_CONNECTION_SERVER_STATUS, &status);
    return (status & SERVER_STATUS_IN_TRANS) != 0;
}

/* A statement has been carried out that has no rows, or whose rows were read:
 * is there another one? */
static int after_statement(struct hf__mysql_connection *connection)
{
    struct hf__mysql_reply *reply = &connection->reply;

    reply->in_transaction = is_in_transaction(connection);
    if (reply->n++ == 0)
        reply->was_in_transaction = reply->in_transaction;
    if (!hf__mariadb.mysql_more_results(connection->handle))
        return HF__MYSQL_STEP_IDLE;
    return reply->n < HF__MYSQL_BATCH ? HF__MYSQL_STEP_NEXT
                                      : HF__MYSQL_STEP_CLOSED;
}

static int begin_rows(struct hf__mysql_connection *connection)
{
    unsigned columns = hf__mariadb.mysql_field_count(connection->handle);

    if (connection->reply.columns != 0 || columns > HF__MYSQL_COLUMNS)
        return HF__MYSQL_STEP_CLOSED;
    connection->reply.columns = columns;
    connection->result = hf__mariadb.mysql_use_result(connection->handle);
    return connection->result ? HF__MYSQL_STEP_FETCH : HF__MYSQL_STEP_CLOSED;
}

static int after_fetch(struct hf__mysql_connection *connection)
{
    if (connection->row)
        return hf__mysql_answer_keep(
                   &connection->reply, connection->row,
                   hf__mariadb.mysql_fetch_lengths(connection->result))
                   ? HF__MYSQL_STEP_FETCH
                   : HF__MYSQL_STEP_CLOSED;
    if (hf__mariadb.mysql_errno(connection->handle) != 0)
        return HF__MYSQL_STEP_CLOSED;
    hf__mariadb.mysql_free_result(connection->result);
    connection->result = NULL;
    return after_statement(connection);
}

static void note_affected(struct hf__mysql_reply *reply, uint64_t affected)
{
    if (reply->n < HF__MYSQL_BATCH)
        reply->affected[reply->n] = affected;
}

/* A prepared statement answers without rows, and alone. */
static int after_execute(struct hf__mysql_connection *connection)
{
    MYSQL_STMT *handle = connection->current->handle;

    if (hf__mariadb.mysql_stmt_field_count(handle) > 0 ||
        hf__mariadb.mysql_more_results(connection->handle))
        return HF__MYSQL_STEP_CLOSED;
    note_affected(&connection->reply,
                  hf__mariadb.mysql_stmt_affected_rows(handle));
    connection->reply.number = hf__mariadb.mysql_stmt_insert_id(handle);
    connection->reply.n++;
    connection->reply.in_transaction = is_in_transaction(connection);
    return HF__MYSQL_STEP_IDLE;
}

/* A step is over: what comes next; IDLE when the answer is complete, and
 * CLOSED if it makes no sense. */
static int next_step(struct hf__mysql_connection *connection)
{
    struct hf__mysql_reply *reply = &connection->reply;
    struct hf__mysql_prepared *prepared = connection->current;

    switch (connection->step) {
    case HF__MYSQL_STEP_FETCH:
        return after_fetch(connection);
    case HF__MYSQL_STEP_PREPARE:
        prepared->ready = true;
        hf__buf_release(&prepared->sql);
        return HF__MYSQL_STEP_EXECUTE;
    case HF__MYSQL_STEP_EXECUTE:
        return after_execute(connection);
    default: /* QUERY, NEXT */
        if (hf__mariadb.mysql_field_count(connection->handle) > 0)
            return begin_rows(connection);
        note_affected(reply,
                      hf__mariadb.mysql_affected_rows(connection->handle));
        return after_statement(connection);
    }
}

static void start_call(struct hf__mysql_connection *connection);

static void on_undone(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      struct hf__mysql_reply *reply)
{
    (void)mysql;
    if (reply && reply->code != 0)
        hf__mysql_connection_break(call->connection);
}

/* Did a text on the main connection fail in the transaction that it began? */
static bool needs_undo(const struct hf__mysql_connection *connection,
                       const struct hf__mysql_call *call,
                       const struct hf__mysql_reply *reply)
{
    static const char begin[] = "START TRANSACTION;";

    return reply->code != 0 && connection == &connection->mysql->main &&
           !call->text && call->sql.len >= sizeof(begin) &&
           memcmp(call->sql.text, begin, sizeof(begin) - 1) == 0;
}

/* A ROLLBACK takes the place of the first call: nobody may send anything before
 * the transaction is undone. */
static void undo_first(struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *undo = hf__mysql_call_new(on_undone, NULL);

    if (undo)
        hf__buf_add(&undo->sql, "ROLLBACK");
    if (!undo || hf__buf_failed(&undo->sql)) {
        hf__mysql_call_free(undo);
        (void)take_first(connection);
        hf__mysql_connection_break(connection);
        return;
    }
    undo->connection = connection;
    *(struct hf__mysql_call **)hf__calls_at(&connection->calls, 0) = undo;
}

/* The first call is answered. */
static void finish(struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *call = hf__mysql_call_first(connection);
    struct hf__mysql_reply reply = connection->reply;

    memset(&connection->reply, 0, sizeof(reply));
    if (needs_undo(connection, call, &reply))
        undo_first(connection);
    else
        (void)take_first(connection);
    connection->step = HF__MYSQL_STEP_IDLE;
    if (connection->calls.n == 0 || connection->later == HF__LATER_BROKEN)
        hf__mysql_connection_watch_idle(connection);
    else
        start_call(connection);
    tell(connection->mysql, call, &reply);
    hf__mysql_answer_release(&reply);
}

static void failed(struct hf__mysql_connection *connection)
{
    struct hf__mysql_reply *reply = &connection->reply;

    if (connection->step >= HF__MYSQL_STEP_PREPARE) {
        MYSQL_STMT *handle = connection->current->handle;

        reply->code = hf__mariadb.mysql_stmt_errno(handle);
        hf__text_copy(reply->text, sizeof(reply->text),
                      hf__mariadb.mysql_stmt_error(handle));
    } else {
        reply->code = hf__mariadb.mysql_errno(connection->handle);
        hf__text_copy(reply->text, sizeof(reply->text),
                      hf__mariadb.mysql_error(connection->handle));
    }
    if (reply->code == 0)
        hf__text_copy(reply->text, sizeof(reply->text),
                      hf__mysql_answer_strange);
    if (reply->code == 0 || is_fatal(reply->code)) {
        char words[sizeof(reply->text)];

        memcpy(words, reply->text, sizeof(words));
        hf__mysql_connection_lost(connection, words);
    } else {
        finish(connection);
    }
}

/* A step waits, or is over: then the next one, until one waits. */
static void run(struct hf__mysql_connection *connection, int waits_for, int rc)
{
    while (waits_for == 0 && rc == 0) {
        int next = next_step(connection);

        if (next == HF__MYSQL_STEP_IDLE) {
            finish(connection);
            return;
        }
        if (next == HF__MYSQL_STEP_CLOSED) {
            rc = -1;
            break;
        }
        connection->step = (uint8_t)next;
        waits_for = begin(connection, &rc);
    }
    if (waits_for != 0)
        hf__mysql_connection_watch(connection, waits_for);
    else
        failed(connection);
}

void hf__mysql_calls_ready(struct hf__mysql_connection *connection, int ready)
{
    int rc;
    int waits_for = resume(connection, ready, &rc);

    run(connection, waits_for, rc);
}

void hf__mysql_calls_early(struct hf__mysql_connection *connection)
{
    connection->later = HF__LATER_NOTHING;
    run(connection, 0, connection->early_rc);
}

/* What a prepared call begins with. */
static int first_step(struct hf__mysql_connection *connection,
                      const struct hf__mysql_call *call)
{
    struct hf__mysql_prepared *prepared;

    connection->current = NULL;
    if (!call->text)
        return HF__MYSQL_STEP_QUERY;
    prepared = find_prepared(connection, call->text);
    if (!prepared)
        return HF__MYSQL_STEP_CLOSED;
    connection->current = prepared;
    if (prepared->ready)
        return HF__MYSQL_STEP_EXECUTE;
    hf__buf_release(&prepared->sql);
    hf__mysql_statement_template(&prepared->sql, call->text);
    return hf__buf_failed(&prepared->sql) ? HF__MYSQL_STEP_CLOSED
                                          : HF__MYSQL_STEP_PREPARE;
}

/* Send the first call. The loop handles an answer that comes at once. */
static void start_call(struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *call = hf__mysql_call_first(connection);
    const struct hf__settings *settings =
        connection->mysql->base.host->settings;
    int first = first_step(connection, call);
    int waits_for;

    call->sent_ns = hf__now();
    if (first == HF__MYSQL_STEP_CLOSED) {
        hf__mysql_connection_break(connection);
        return;
    }
    connection->step = (uint8_t)first;
    waits_for = begin(connection, &connection->early_rc);
    if (waits_for == 0) {
        connection->later = HF__LATER_ANSWERED;
        hf__mysql_connection_watch(connection, MYSQL_WAIT_WRITE);
        return;
    }
    hf__link_wake(
        &connection->mysql->link,
        hf__instant_add(call->sent_ns,
                        hf__ms_to_ns(settings->io_timeout_ms + call->wait_ms)));
    hf__mysql_connection_watch(connection, waits_for);
}

int hf__mysql_call_send(struct hf__mysql_connection *connection,
                        struct hf__mysql_call *call, hf_error *err)
{
    if (hf__buf_failed(&call->sql) ||
        !hf__calls_add(&connection->calls, &call)) {
        hf__mysql_call_free(call);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    call->connection = connection;
    connection->mysql->base.under_way++;
    if (connection->step == HF__MYSQL_STEP_IDLE &&
        connection->later != HF__LATER_BROKEN)
        start_call(connection);
    return 0;
}

int hf__mysql_call_say(struct hf__mysql_connection *connection,
                       const char *text, hf__mysql_done_fn *done)
{
    struct hf__mysql_call *call = hf__mysql_call_new(done, NULL);

    if (!call)
        return HF_ENOMEM;
    hf__buf_add(&call->sql, text);
    return hf__mysql_call_send(connection, call, NULL);
}

/* ---- for a ticket ------------------------------------------------------ */

static struct hf__mysql_call *new_for(const struct hf__ticket *ticket,
                                      hf__mysql_answered_fn *answered,
                                      hf_error *err)
{
    struct hf__mysql_call *call = hf__mysql_call_new(NULL, err);

    if (!call)
        return NULL;
    call->answered = answered;
    call->ticket = ticket->id;
    return call;
}

static int ask(struct hf__mysql_connection *connection,
               struct hf__ticket *ticket, const char *text, bool prepared,
               struct hf__mysql_call *call, hf_error *err)
{
    struct hf__mysql *mysql = connection->mysql;
    const struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__mysql_values values = {
        .ticket = ticket, .token = mine->token, .holder = mine->old};

    if (!call)
        return HF_ENOMEM;
    if (prepared)
        hf__mysql_statement_params(mysql, call, text, &values);
    else
        hf__mysql_statement(mysql, &call->sql, text, &values);
    return hf__mysql_call_send(connection, call, err);
}

int hf__mysql_call_ask(struct hf__mysql_connection *connection,
                       struct hf__ticket *ticket, const char *text,
                       hf__mysql_answered_fn *answered, hf_error *err)
{
    return ask(connection, ticket, text, /* prepared= */ false,
               new_for(ticket, answered, err), err);
}

int hf__mysql_call_prepared(struct hf__mysql_connection *connection,
                            struct hf__ticket *ticket, const char *text,
                            hf__mysql_answered_fn *answered, int64_t wait_ms,
                            hf_error *err)
{
    struct hf__mysql_call *call = new_for(ticket, answered, err);
    bool own = strstr(text, "$1"); /* the name of a table is no value */

    if (call)
        call->wait_ms = wait_ms;
    return ask(connection, ticket, text, !own, call, err);
}
