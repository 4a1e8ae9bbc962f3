/* SPDX-License-Identifier: MIT */
/*
 * calls.c - calls and their answers, in order, on one connection.
 *
 * libmariadb's functions come in pairs, start and cont, which say what they
 * wait for instead of waiting. A connection carries out one call at a time; the
 * others stand behind it. A call is a text of statements, or one statement that
 * is prepared with its first use on the connection: the server then parses it
 * once, and the values travel beside it. What is asked all day is prepared, and
 * answered without rows.
 *
 *   text      QUERY ─▶ STORE ─▶ NEXT ─▶ STORE …      for each statement
 *   prepared  PREPARE ─▶ EXECUTE                     PREPARE the first time
 *
 * A step of the library may be over when it has hardly begun, because the answer
 * came while it was being sent. Whoever sent it hears it by the timer.
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
    hf__list_init(&call->link);
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

/* Tell what became of it; then it is over, unless somebody keeps it. */
static void tell(struct hf__mysql *mysql, struct hf__mysql_call *call,
                 struct hf__mysql_reply *reply)
{
    call->done(mysql, call, reply);
    if (!call->kept)
        hf__mysql_call_free(call);
}

struct hf__mysql_call *hf__mysql_call_first(
    const struct hf__mysql_connection *connection)
{
    struct hf__list *first = hf__list_first(&connection->calls);

    return first ? HF_CONTAINER_OF(first, struct hf__mysql_call, link) : NULL;
}

static void take_out(struct hf__mysql_connection *connection,
                     struct hf__mysql_call *call)
{
    hf__list_remove(&call->link);
    connection->mysql->base.under_way--;
}

/* Empty: what is not looked at then may stay. */
static void reset_reply(struct hf__mysql_reply *reply)
{
    reply->code = 0;
    reply->text[0] = '\0';
    reply->rows = NULL;
    reply->n = 0;
}

static void drop_reply(struct hf__mysql_reply *reply)
{
    if (reply->rows)
        hf__mariadb.mysql_free_result(reply->rows);
    reset_reply(reply);
}

/* It has room for much that most answers do not need. */
static void move_reply(struct hf__mysql_reply *to, struct hf__mysql_reply *from)
{
    size_t n = from->n < HF__MYSQL_BATCH ? from->n : HF__MYSQL_BATCH;

    to->code = from->code;
    hf__text_copy(to->text, sizeof(to->text), from->text);
    to->rows = from->rows;
    to->n = from->n;
    memcpy(to->affected, from->affected, n * sizeof(to->affected[0]));
    to->number = from->number;
    to->in_transaction = from->in_transaction;
    reset_reply(from);
}

void hf__mysql_calls_end(struct hf__mysql_connection *connection, bool told)
{
    struct hf__mysql_call *call;

    drop_reply(&connection->reply);
    connection->step = HF__MYSQL_CLOSED;
    connection->broken = false;
    connection->early = false;
    while ((call = hf__mysql_call_first(connection))) {
        take_out(connection, call);
        if (told)
            tell(connection->mysql, call, NULL);
        else
            hf__mysql_call_free(call);
    }
}

/* ---- answers ----------------------------------------------------------- */

bool hf__mysql_row(struct hf__mysql_reply *reply, MYSQL_ROW *ret_row,
                   unsigned long **ret_lengths)
{
    if (!reply->rows)
        return false;
    *ret_row = hf__mariadb.mysql_fetch_row(reply->rows);
    if (!*ret_row)
        return false;
    *ret_lengths = hf__mariadb.mysql_fetch_lengths(reply->rows);
    return true;
}

uint64_t hf__mysql_number(const char *field)
{
    return field ? strtoull(field, NULL, 10) : 0;
}

/* ---- watching ---------------------------------------------------------- */

void hf__mysql_unwatch(struct hf__mysql_connection *connection)
{
    hf__io_stop(connection->mysql->base.host->loop, &connection->io);
    connection->events = 0;
}

static void watch(struct hf__mysql_connection *connection, uint32_t events)
{
    struct hf__loop *loop = connection->mysql->base.host->loop;
    int rc = 0;

    if (connection->events == events)
        return;
    if (connection->events == 0) {
        connection->io.fd = hf__mariadb.mysql_get_socket(connection->handle);
        rc = hf__io_start(loop, &connection->io, events);
    } else {
        rc = hf__io_change(loop, &connection->io, events);
    }
    connection->events = events;
    if (rc != 0)
        hf__mysql_connection_break(connection);
}

/* What is asked and what is not is watched alike, so that nothing has to be
 * changed between two calls. */
void hf__mysql_watch_idle(struct hf__mysql_connection *connection)
{
    watch(connection, EPOLLIN | EPOLLRDHUP);
}

void hf__mysql_watch_for(struct hf__mysql_connection *connection, int waits_for)
{
    watch(connection, (waits_for & MYSQL_WAIT_READ ? EPOLLIN | EPOLLRDHUP : 0) |
                          (waits_for & MYSQL_WAIT_WRITE ? EPOLLOUT : 0U) |
                          (waits_for & MYSQL_WAIT_EXCEPT ? EPOLLPRI : 0U));
}

int hf__mysql_ready_of(uint32_t events)
{
    int ready = (events & EPOLLIN ? MYSQL_WAIT_READ : 0) |
                (events & EPOLLOUT ? MYSQL_WAIT_WRITE : 0) |
                (events & EPOLLPRI ? MYSQL_WAIT_EXCEPT : 0);

    if (events & (EPOLLERR | EPOLLHUP | EPOLLRDHUP))
        ready |= MYSQL_WAIT_READ | MYSQL_WAIT_WRITE;
    return ready;
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

void hf__mysql_prepared_free(struct hf__mysql_connection *connection)
{
    for (size_t i = 0; i < HF_COUNT_OF(connection->prepared); i++) {
        if (connection->prepared[i].handle)
            (void)hf__mariadb.mysql_stmt_close(connection->prepared[i].handle);
        hf__buf_release(&connection->prepared[i].sql);
    }
    memset(connection->prepared, 0, sizeof(connection->prepared));
}

/* Ask for it ourselves: the library would look for the answer at once, in vain,
 * and keep a stack of its own while it waits. */
static int execute(struct hf__mysql_connection *connection,
                   const struct hf__mysql_call *call, int *ret_rc)
{
    const struct hf__mysql_prepared *prepared = connection->current;
    struct hf__buf *packet = &connection->mysql->scratch;

    packet->len = 0;
    connection->answer_len = 0;
    hf__mysql_put_execute(packet, (uint32_t)prepared->handle->stmt_id,
                          prepared->typed, call->sql.text, call->params,
                          call->n_params);
    *ret_rc = -1;
    if (hf__buf_failed(packet)) {
        hf__buf_release(packet);
        return 0;
    }
    /* The last one was answered, so there is room for it. */
    if (send(connection->io.fd, packet->text, packet->len,
             MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)packet->len)
        return 0;
    *ret_rc = 0;
    return MYSQL_WAIT_READ;
}

static int take_answer(struct hf__mysql_reply *reply,
                       const struct hf__mysql_answer *answer)
{
    reply->code = answer->code;
    reply->affected[0] = answer->affected;
    reply->number = answer->number;
    reply->in_transaction = answer->in_transaction;
    if (answer->code == 0)
        return 0;
    (void)snprintf(reply->text, sizeof(reply->text), "%.*s",
                   (int)answer->text_len, answer->text);
    return -1;
}

/* What has come of its answer. */
static int receive(struct hf__mysql_connection *connection, int *ret_rc)
{
    struct hf__mysql_answer answer;
    ssize_t n =
        recv(connection->io.fd, connection->answer + connection->answer_len,
             sizeof(connection->answer) - connection->answer_len, MSG_DONTWAIT);

    *ret_rc = -1;
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return MYSQL_WAIT_READ;
    if (n <= 0)
        return 0;
    connection->answer_len += (size_t)n;
    switch (hf__mysql_parse_answer(connection->answer, connection->answer_len,
                                   &answer)) {
    case HF__MYSQL_MORE:
        return MYSQL_WAIT_READ;
    case HF__MYSQL_WHOLE:
        connection->current->typed |= answer.code == 0;
        *ret_rc = take_answer(&connection->reply, &answer);
        return 0;
    default:
        return 0;
    }
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
    case HF__MYSQL_QUERY:
        return hf__mariadb.mysql_real_query_start(
            ret_rc, handle, call->sql.text, call->sql.len);
    case HF__MYSQL_STORE:
        return hf__mariadb.mysql_store_result_start(&connection->rows, handle);
    case HF__MYSQL_NEXT:
        return hf__mariadb.mysql_next_result_start(ret_rc, handle);
    case HF__MYSQL_PREPARE:
        return hf__mariadb.mysql_stmt_prepare_start(
            ret_rc, prepared->handle, prepared->sql.text, prepared->sql.len);
    default: /* EXECUTE */
        return execute(connection, call, ret_rc);
    }
}

static int resume(struct hf__mysql_connection *connection, int ready,
                  int *ret_rc)
{
    const struct hf__mysql_prepared *prepared = connection->current;
    MYSQL *handle = connection->handle;

    *ret_rc = 0;
    switch (connection->step) {
    case HF__MYSQL_QUERY:
        return hf__mariadb.mysql_real_query_cont(ret_rc, handle, ready);
    case HF__MYSQL_STORE:
        return hf__mariadb.mysql_store_result_cont(&connection->rows, handle,
                                                   ready);
    case HF__MYSQL_NEXT:
        return hf__mariadb.mysql_next_result_cont(ret_rc, handle, ready);
    case HF__MYSQL_PREPARE:
        return hf__mariadb.mysql_stmt_prepare_cont(ret_rc, prepared->handle,
                                                   ready);
    default: /* EXECUTE */
        return receive(connection, ret_rc);
    }
}

/* A statement has been carried out that has no rows, or whose rows were read:
 * is there another one? */
static int after_statement(struct hf__mysql_connection *connection)
{
    struct hf__mysql_reply *reply = &connection->reply;

    reply->n++;
    reply->number = hf__mariadb.mysql_insert_id(connection->handle);
    reply->in_transaction =
        (connection->handle->server_status & SERVER_STATUS_IN_TRANS) != 0;
    return hf__mariadb.mysql_more_results(connection->handle) ? HF__MYSQL_NEXT
                                                              : HF__MYSQL_IDLE;
}

static void note_affected(struct hf__mysql_reply *reply, uint64_t affected)
{
    if (reply->n < HF__MYSQL_BATCH)
        reply->affected[reply->n] = affected;
}

/* A step is over: what comes next; IDLE when the answer is complete, and
 * CLOSED if it makes no sense. */
static int next_step(struct hf__mysql_connection *connection)
{
    struct hf__mysql_reply *reply = &connection->reply;
    struct hf__mysql_prepared *prepared = connection->current;

    switch (connection->step) {
    case HF__MYSQL_STORE:
        if (!connection->rows)
            return HF__MYSQL_CLOSED;
        if (reply->rows)
            hf__mariadb.mysql_free_result(connection->rows);
        else
            reply->rows = connection->rows;
        connection->rows = NULL;
        return after_statement(connection);
    case HF__MYSQL_PREPARE:
        prepared->ready = true;
        hf__buf_release(&prepared->sql);
        return HF__MYSQL_EXECUTE;
    case HF__MYSQL_EXECUTE:
        reply->n++;
        return HF__MYSQL_IDLE;
    default: /* QUERY, NEXT */
        if (hf__mariadb.mysql_field_count(connection->handle) > 0)
            return HF__MYSQL_STORE;
        note_affected(reply,
                      hf__mariadb.mysql_affected_rows(connection->handle));
        return after_statement(connection);
    }
}

static bool start_call(struct hf__mysql_connection *connection);

/* The first call is answered. */
static void finish(struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *call = hf__mysql_call_first(connection);
    struct hf__mysql_reply reply;

    move_reply(&reply, &connection->reply);
    take_out(connection, call);
    connection->step = HF__MYSQL_IDLE;
    if (hf__list_empty(&connection->calls))
        hf__mysql_watch_idle(connection);
    else if (start_call(connection))
        hf__mysql_wake(connection->mysql, hf__now());
    tell(connection->mysql, call, &reply);
    drop_reply(&reply);
}

static void failed(struct hf__mysql_connection *connection)
{
    struct hf__mysql_reply *reply = &connection->reply;

    if (connection->step == HF__MYSQL_PREPARE) {
        MYSQL_STMT *handle = connection->current->handle;

        reply->code = hf__mariadb.mysql_stmt_errno(handle);
        hf__text_copy(reply->text, sizeof(reply->text),
                      hf__mariadb.mysql_stmt_error(handle));
    } else if (connection->step != HF__MYSQL_EXECUTE) {
        reply->code = hf__mariadb.mysql_errno(connection->handle);
        hf__text_copy(reply->text, sizeof(reply->text),
                      hf__mariadb.mysql_error(connection->handle));
    }
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

        if (next == HF__MYSQL_IDLE) {
            finish(connection);
            return;
        }
        if (next == HF__MYSQL_CLOSED) {
            rc = -1;
            break;
        }
        connection->step = (uint8_t)next;
        waits_for = begin(connection, &rc);
    }
    if (waits_for != 0)
        hf__mysql_watch_for(connection, waits_for);
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
    connection->early = false;
    run(connection, 0, connection->early_rc);
}

/* What a prepared call begins with. */
static int first_step(struct hf__mysql_connection *connection,
                      const struct hf__mysql_call *call)
{
    struct hf__mysql_prepared *prepared;

    connection->current = NULL;
    if (!call->text)
        return HF__MYSQL_QUERY;
    prepared = find_prepared(connection, call->text);
    if (!prepared)
        return HF__MYSQL_CLOSED;
    connection->current = prepared;
    if (prepared->ready)
        return HF__MYSQL_EXECUTE;
    hf__buf_release(&prepared->sql);
    hf__mysql_put_template(&prepared->sql, call->text);
    return hf__buf_failed(&prepared->sql) ? HF__MYSQL_CLOSED
                                          : HF__MYSQL_PREPARE;
}

/* Send the first call. True: the answer, or a failure, is there already. */
static bool start_call(struct hf__mysql_connection *connection)
{
    struct hf__mysql_call *call = hf__mysql_call_first(connection);
    const struct hf__settings *settings =
        connection->mysql->base.host->settings;
    int first = first_step(connection, call);
    int waits_for;

    call->sent_ns = hf__now();
    if (first == HF__MYSQL_CLOSED) {
        hf__mysql_connection_break(connection);
        return false;
    }
    connection->step = (uint8_t)first;
    waits_for = begin(connection, &connection->early_rc);
    connection->early = waits_for == 0;
    if (connection->early)
        return true;
    hf__mysql_wake(
        connection->mysql,
        hf__instant_add(call->sent_ns,
                        hf__ms_to_ns(settings->io_timeout_ms + call->wait_ms)));
    hf__mysql_watch_for(connection, waits_for);
    return false;
}

int hf__mysql_call_send(struct hf__mysql_connection *connection,
                        struct hf__mysql_call *call, hf_error *err)
{
    if (hf__buf_failed(&call->sql)) {
        hf__mysql_call_free(call);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    call->connection = connection;
    hf__list_append(&connection->calls, &call->link);
    connection->mysql->base.under_way++;
    if (connection->step != HF__MYSQL_IDLE || connection->broken ||
        !start_call(connection))
        return 0;
    hf__mysql_wake(connection->mysql, hf__now());
    return 0;
}

/* ---- for a ticket ------------------------------------------------------ */

static struct hf__mysql_call *new_for(const struct hf__ticket *ticket,
                                      hf__mysql_done_fn *done, hf_error *err)
{
    struct hf__mysql_call *call = hf__mysql_call_new(done, err);

    if (call)
        call->ticket = ticket->id;
    return call;
}

int hf__mysql_ask(struct hf__mysql_connection *connection,
                  struct hf__ticket *ticket, const char *text,
                  hf__mysql_done_fn *done, int64_t wait_ms, hf_error *err)
{
    struct hf__mysql_values values =
        hf__mysql_values_of(connection->mysql, ticket);
    struct hf__mysql_call *call = new_for(ticket, done, err);

    if (!call)
        return HF_ENOMEM;
    call->wait_ms = wait_ms;
    hf__mysql_statement(connection->mysql, &call->sql, text, &values);
    return hf__mysql_call_send(connection, call, err);
}

int hf__mysql_ask_prepared(struct hf__mysql_connection *connection,
                           struct hf__ticket *ticket, const char *text,
                           hf__mysql_done_fn *done, int64_t wait_ms,
                           hf_error *err)
{
    struct hf__mysql_values values =
        hf__mysql_values_of(connection->mysql, ticket);
    struct hf__mysql_call *call;

    if (connection->sealed)
        return hf__mysql_ask(connection, ticket, text, done, wait_ms, err);
    call = new_for(ticket, done, err);
    if (!call)
        return HF_ENOMEM;
    call->wait_ms = wait_ms;
    hf__mysql_put_params(connection->mysql, call, text, &values);
    return hf__mysql_call_send(connection, call, err);
}
