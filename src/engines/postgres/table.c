/* SPDX-License-Identifier: MIT */
/*
 * table.c - mode=table: rows in the order they came, leases, NOTIFY.
 *
 * Each holder and each waiter is a row with the end of its lease by the
 * server's clock. Whoever changes the rows of a name does it in one transaction
 * (schema.c): take out what has expired, do its own, and grant to the first in
 * line, which is told by NOTIFY on its client's channel. So nobody polls, and
 * the cost of a hand-over does not grow with the line. Everything of a client
 * goes over one session.
 *
 * That is the long way. A name that nobody else wants is taken by one statement
 * and freed by another. Where others were met before, a writer stands behind
 * them by one statement, or takes it if they have just gone, and hands on to the
 * next by two. Each of them does nothing if it is not as it was thought to be.
 *
 * A waiter beats as a holder does: that proves its life, and finds a grant
 * whose notification was lost. It also looks when the lease of a row before it
 * ends: the dead do not release.
 *
 * A grant that is pushed counts from when the last answered request of its
 * ticket was sent.
 *
 * Failure: an error undoes the whole transaction; row.c has the rest.
 */
#include <stdlib.h>

#include "engines/postgres/postgres.h"
#include "engines/sql/record.h"

/* After so many grants at once, nobody seems to contend any more. */
enum { QUIET = 8 };

/* Who stands in line for so long looks whom it waits for. */
enum { LOOK_MS = 100 };

/* The parameters that most statements begin with: the name, and what the row
 * of a ticket is known by. */
struct words {
    char whole[HF__PG_WHOLE];
    char id[sizeof(((struct hf__postgres *)NULL)->identity) + HF__PG_DIGITS];
    const char *values[7];
};

static void begin(struct words *words, const struct hf__postgres_ticket *mine)
{
    const struct hf__postgres *postgres = mine->engine;
    size_t len = sizeof(postgres->identity) - 1;
    char room[HF__PG_DIGITS];

    hf__postgres_whole(postgres, mine->ticket->name, words->whole);
    memcpy(words->id, postgres->identity, len);
    hf__text_copy(words->id + len, sizeof(words->id) - len,
                  hf__postgres_number((int64_t)mine->ticket->id, room));
    words->values[0] = words->whole;
    words->values[1] = words->id;
}

/* Not the key of mode=advisory, which is held for long. */
static const char *key_of_rows(int64_t key, char room[HF__PG_DIGITS])
{
    return hf__postgres_number(~key, room);
}

int hf__postgres_row_lock(struct hf__postgres *postgres, int64_t key,
                          hf_error *err)
{
    char room[HF__PG_DIGITS];
    const char *values[] = {key_of_rows(key, room)};

    return hf__session_add(&postgres->main, HF__PG_ROW_LOCK, values, 1, err);
}

/* ---- asking -------------------------------------------------------------- */

/* Look again after @ms; less than 0: nobody is before us any more, and who has
 * left does not seem to have told. */
static void set_watch(struct hf__postgres_ticket *mine, int64_t ms)
{
    mine->watch_ns = 0;
    if (ms > HF_DURATION_MAX)
        return;
    mine->watch_ns = hf__now() + (ms < 0 ? LOOK_MS : ms + 1) * HF_MS;
    hf__postgres_wake(mine->engine, mine->watch_ns);
}

/* Others want it, too: it is not tried the short way for a while. */
static void set_contended(struct hf__postgres_ticket *mine)
{
    hf__postgres_name(mine->engine, mine->key)->contended = QUIET;
}

/* It was to be had at once. */
static void set_free(struct hf__postgres_ticket *mine)
{
    struct hf__postgres_name *name = hf__postgres_name(mine->engine, mine->key);

    if (name->contended > 0)
        name->contended--;
}

static void queued(struct hf__postgres_ticket *mine, int64_t look_ms,
                   int64_t sent_ns)
{
    mine->asking = false;
    mine->waiting = true;
    mine->unsure = false;
    mine->confirmed_ns = sent_ns;
    set_watch(mine, look_ms);
    hf__up_queued(&mine->engine->base, mine->ticket);
}

/* The row of ROW_LOOK: token, is there one, when to look, who holds it. */
static void looked(struct hf__postgres_ticket *mine,
                   const struct hf__pg_result *row, int64_t sent_ns)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;
    const char *record = hf__pg_text(row, 0, 3);
    int64_t token = hf__pg_number(row, 0, 0, 0);
    char holder[HF__SQL_TEXTS + 64];

    if (token != 0) {
        if (mine->asking)
            set_free(mine);
        hf__postgres_row_granted(mine, (uint64_t)token, sent_ns);
        return;
    }
    set_contended(mine);
    if (hf__pg_text(row, 0, 1)[0] == 't') {
        queued(mine, hf__pg_number(row, 0, 2, -1), sent_ns);
    } else {
        mine->asking = false;
        hf__postgres_forget(mine);
        hf__sql_record_holder(record, strlen(record), holder, sizeof(holder));
        hf__up_busy(&postgres->base, ticket, /* again_ns= */ 0,
                    record[0] ? holder : NULL);
    }
}

static void on_asked(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    hf_error err;

    if (!mine || mine->leaving || (!mine->asking && !mine->waiting))
        return; /* not wanted any more, or pushed meanwhile */
    if (answer && !answer->error) {
        looked(mine, answer->last, call->sent_ns);
    } else if (!mine->asking) {
        return; /* a look of our own; beats go on */
    } else if (answer) {
        hf__postgres_row_refused(mine, answer->error);
    } else {
        mine->unsure = true;
        hf__session_explain_lost(session, &err);
        hf__postgres_unknown(session->engine, mine, &err);
    }
}

/* ROW_JOIN, ROW_TAKE and ROW_ASK with more: a row with all that is to
 * be known of a ticket. Its record was put. */
static int add_row(struct hf__postgres_ticket *mine,
                   enum hf__pg_statement statement, int n, struct words *words,
                   hf_error *err)
{
    const struct hf__settings *settings = mine->engine->base.host->settings;
    char ttl[HF__PG_DIGITS];

    words->values[2] = hf__postgres_number(
        mine->ticket->ttl_ms + settings->lock_delay_ms, ttl);
    words->values[3] = hf__buf_text(&mine->engine->record);
    return hf__session_add(&mine->engine->main, statement, words->values, n,
                           err);
}

/* Before the first statement of a call is added: it cannot be taken back. */
static int put_record(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__buf *record = &mine->engine->record;

    record->len = 0;
    hf__sql_record_put(record, mine->engine->base.host, mine->ticket);
    if (!hf__buf_failed(record))
        return 0;
    hf__buf_release(record);
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

static int send_ask(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session *main = &mine->engine->main;
    struct hf__session_call call = {
        .done = on_asked, .ticket = mine->ticket->id, .sent_ns = hf__now()};
    char mode[HF__PG_DIGITS];
    char slots[HF__PG_DIGITS];
    struct words words;
    int rc = put_record(mine, err);

    begin(&words, mine);
    words.values[4] = mine->ticket->nowait ? "f" : "t";
    words.values[5] = hf__postgres_number(mine->ticket->mode, mode);
    words.values[6] = hf__postgres_number(mine->ticket->slots, slots);
    if (rc == 0)
        rc = hf__postgres_row_lock(mine->engine, mine->key, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_PURGE, words.values, 1, err);
    if (rc == 0)
        rc = add_row(mine, HF__PG_ROW_ASK, 7, &words, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_GRANT, words.values, 1, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_LOOK, words.values, 2, err);
    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

/* No row: the name is not quiet, and it is done the long way. */
static void on_taken(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    uint64_t token = 0;

    if (!mine || mine->leaving || !mine->asking)
        return; /* not wanted any more */
    if (!answer || answer->error) {
        on_asked(session, call, answer);
        return;
    }
    token = (uint64_t)hf__pg_number(answer->last, 0, 0, 0);
    if (token != 0) {
        set_free(mine);
        hf__postgres_row_granted(mine, token, call->sent_ns);
        return;
    }
    mine->alone = false;
    set_contended(mine);
    if (send_ask(mine, /* err= */ NULL) != 0)
        on_asked(session, call, /* answer= */ NULL);
}

static int send_take(struct hf__postgres_ticket *mine, bool alone,
                     hf_error *err)
{
    struct hf__session_call call = {
        .done = on_taken, .ticket = mine->ticket->id, .sent_ns = hf__now()};
    char room[HF__PG_DIGITS];
    struct words words;
    int rc = put_record(mine, err);

    begin(&words, mine);
    mine->alone = alone;
    words.values[4] = key_of_rows(mine->key, room);
    words.values[5] = alone ? "t" : "f";
    if (rc == 0)
        rc = add_row(mine, HF__PG_ROW_TAKE, 6, &words, err);
    return rc == 0 ? hf__session_send(&mine->engine->main, &call, err) : rc;
}

/* No row: there is nobody to stand behind any more. */
static void on_joined(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || mine->leaving || !mine->asking)
        return; /* not wanted any more, or pushed meanwhile */
    mine->waiting = false;
    if (!answer || answer->error)
        on_asked(session, call, answer);
    else if (answer->last->changed > 0)
        queued(mine, LOOK_MS, call->sent_ns);
    else if (send_take(mine, /* alone= */ false, /* err= */ NULL) != 0)
        on_asked(session, call, /* answer= */ NULL);
}

static int send_join(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session_call call = {
        .done = on_joined, .ticket = mine->ticket->id, .sent_ns = hf__now()};
    struct words words;
    int rc = put_record(mine, err);

    begin(&words, mine);
    if (rc == 0)
        rc = add_row(mine, HF__PG_ROW_JOIN, 4, &words, err);
    if (rc == 0)
        rc = hf__session_send(&mine->engine->main, &call, err);
    mine->confirmed_ns = call.sent_ns;
    mine->waiting = rc == 0; /* the grant may come before the answer */
    return rc;
}

static int send_first(struct hf__postgres_ticket *mine, hf_error *err)
{
    const struct hf__ticket *ticket = mine->ticket;
    bool plain = !mine->unsure && ticket->mode == HF_EXCLUSIVE;

    mine->alone = false;
    if (plain && hf__postgres_name(mine->engine, mine->key)->contended == 0)
        return send_take(mine, /* alone= */ true, err);
    return plain && !ticket->nowait ? send_join(mine, err)
                                    : send_ask(mine, err);
}

static int acquire(struct hf__postgres *postgres, struct hf__ticket *ticket,
                   hf_error *err)
{
    return hf__postgres_row_acquire(postgres, ticket, send_first, err);
}

/* ---- leaving ------------------------------------------------------------- */

static void on_left(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__pg_answer *answer)
{
    hf__postgres_row_left(session, call, answer, /* at= */ 1);
}

static int send_leave(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session_call call = {.done = on_left,
                                    .ticket = mine->ticket->id};
    struct hf__session *main = &mine->engine->main;
    struct words words;
    int rc = hf__postgres_row_lock(mine->engine, mine->key, err);

    begin(&words, mine);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_LEAVE, words.values, 2, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_GRANT, words.values, 1, err);
    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

/* The first in line has it in a mode that others behind it may share. Readers
 * who are not told find it at their next beat. */
static void grant_others(struct hf__postgres_ticket *mine)
{
    struct hf__session_call call = {.done = hf__session_ignore};
    struct hf__session *main = &mine->engine->main;
    struct words words;

    begin(&words, mine);
    if (hf__postgres_row_lock(mine->engine, mine->key, NULL) == 0 &&
        hf__session_add(main, HF__PG_ROW_GRANT, words.values, 1, NULL) == 0)
        (void)hf__session_send(main, &call, NULL);
}

static int send_free(struct hf__postgres_ticket *mine, hf_error *err);

/* No row has gone: others came, or it is not ours any more. */
static int free_again(struct hf__postgres_ticket *mine)
{
    if (!mine->alone)
        return send_leave(mine, /* err= */ NULL);
    mine->alone = false;
    set_contended(mine);
    return send_free(mine, /* err= */ NULL);
}

static void on_freed(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || !mine->leaving)
        return;
    if (answer && !answer->error && answer->results[0].changed == 0) {
        if (free_again(mine) == 0)
            return;
        answer = NULL;
    }
    if (answer && !answer->error && hf__pg_number(answer->last, 0, 1, 0) != 0)
        grant_others(mine);
    hf__postgres_row_left(session, call, answer, /* at= */ -1);
}

static int send_free(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session_call call = {.done = on_freed,
                                    .ticket = mine->ticket->id};
    struct hf__session *main = &mine->engine->main;
    char room[HF__PG_DIGITS];
    struct words words;
    int rc;

    begin(&words, mine);
    if (mine->alone) {
        rc = hf__session_add(main, HF__PG_ROW_FREE, words.values, 2, err);
    } else {
        words.values[2] = key_of_rows(mine->key, room);
        rc = hf__session_add(main, HF__PG_ROW_CEDE, words.values, 3, err);
        if (rc == 0)
            rc = hf__session_add(main, HF__PG_ROW_PASS, words.values, 1, err);
    }
    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

static int leave(struct hf__postgres *postgres, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    if (!hf__postgres_row_leaves(postgres, ticket, releasing))
        return 0;
    return releasing && ticket->mode == HF_EXCLUSIVE ? send_free(mine, err)
                                                     : send_leave(mine, err);
}

/* ---- beats --------------------------------------------------------------- */

/* What is left of it on the server goes: a look that is still under way may put
 * it in line once more. */
static void lose_and_leave(struct hf__postgres_ticket *mine)
{
    (void)send_leave(mine, /* err= */ NULL);
    hf__postgres_row_lose(mine, HF__LOST_TAKEN);
}

/* There is no such row any more. Who waits and has asked since has a place
 * again, or will hear that it has not. */
static void miss_row(struct hf__postgres_ticket *mine)
{
    bool asked =
        hf__session_awaits(&mine->engine->main, on_asked, mine->ticket->id);

    if (!asked)
        hf__postgres_row_lose(mine, HF__LOST_TAKEN);
    else if (!mine->waiting)
        lose_and_leave(mine);
}

/* A row of ROW_BEAT: ticket, token, when to look. */
static void beaten(struct hf__postgres *postgres,
                   const struct hf__pg_result *result, int row, int64_t sent_ns)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, (uint64_t)hf__pg_number(result, row, 0, 0));
    struct hf__grant grant = {.tokens = 1, .sent_ns = sent_ns};
    int64_t token = hf__pg_number(result, row, 1, 0);

    if (!mine || mine->beat == 0)
        return;
    mine->beat = 0;
    if (mine->asking || mine->leaving)
        return;
    if (token != 0 && mine->waiting) {
        hf__postgres_row_granted(mine, (uint64_t)token, sent_ns);
        return;
    }
    if (!mine->waiting && (uint64_t)token != mine->token) {
        lose_and_leave(mine); /* a place in line is no hold */
        return;
    }
    mine->confirmed_ns = sent_ns;
    if (mine->waiting)
        set_watch(mine, hf__pg_number(result, row, 2, -1));
    grant.lease_ms = mine->ticket->ttl_ms;
    hf__up_renewed(&postgres->base, mine->ticket, &grant);
}

static void on_beaten(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__postgres *postgres = session->engine;

    if (!answer || answer->error)
        return; /* silence: the core counts the time */
    for (int row = 0; row < answer->last->rows; row++)
        beaten(postgres, answer->last, row, call->sent_ns);
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&postgres->known[i], link) {
            struct hf__postgres_ticket *mine =
                HF_CONTAINER_OF(link, struct hf__postgres_ticket, bucket);

            if (mine->beat != call->ticket)
                continue;
            mine->beat = 0;
            if (!mine->asking && !mine->leaving)
                miss_row(mine);
        }
    }
}

/* Two arrays: a name may be anything, a ticket is a number. */
static void add_beat(const struct hf__postgres_ticket *mine,
                     struct hf__buf *names, struct hf__buf *tickets)
{
    char whole[HF__PG_WHOLE];

    hf__postgres_whole(mine->engine, mine->ticket->name, whole);
    hf__buf_add(names, names->len == 0 ? "{\"" : ",\"");
    for (const char *at = whole; *at; at++) {
        if (*at == '"' || *at == '\\')
            hf__buf_add_char(names, '\\');
        hf__buf_add_char(names, *at);
    }
    hf__buf_add_char(names, '"');
    hf__buf_add_char(tickets, tickets->len == 0 ? '{' : ',');
    hf__buf_add_number(tickets, mine->ticket->id);
}

static int send_beat(struct hf__postgres *postgres, struct hf__buf *names,
                     struct hf__buf *tickets, hf_error *err)
{
    /* The number of the beat stands where a ticket's would. */
    struct hf__session_call call = {.done = on_beaten,
                                    .ticket = postgres->beats};
    const char *values[3] = {postgres->identity};
    int rc;

    hf__buf_add_char(names, '}');
    hf__buf_add_char(tickets, '}');
    if (hf__buf_failed(names) || hf__buf_failed(tickets) || tickets->len == 1)
        return hf__fail(err, HF_ENOMEM, "out of memory, or nothing to renew");
    values[1] = hf__buf_text(names);
    values[2] = hf__buf_text(tickets);
    rc = hf__session_add(&postgres->main, HF__PG_ROW_BEAT, values, 3, err);
    return rc == 0 ? hf__session_send(&postgres->main, &call, err) : rc;
}

static int renew(struct hf__postgres *postgres, struct hf__ticket **tickets,
                 size_t n, hf_error *err)
{
    struct hf__buf names = {0};
    struct hf__buf numbers = {0};
    int rc;

    postgres->beats++;
    for (size_t i = 0; i < n; i++) {
        struct hf__postgres_ticket *mine =
            hf__postgres_ticket(postgres, tickets[i]);

        if (!mine->known)
            continue;
        mine->beat = postgres->beats;
        add_beat(mine, &names, &numbers);
    }
    rc = send_beat(postgres, &names, &numbers, err);
    hf__buf_release(&names);
    hf__buf_release(&numbers);
    return rc;
}

static int64_t tick(struct hf__postgres *postgres, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    if (!postgres->up)
        return next_ns; /* the core asks for all of them anew */
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&postgres->known[i], link) {
            struct hf__postgres_ticket *mine =
                HF_CONTAINER_OF(link, struct hf__postgres_ticket, bucket);

            if (mine->watch_ns == 0 || !mine->waiting)
                continue;
            if (mine->watch_ns <= now_ns) {
                mine->watch_ns = 0;
                (void)send_ask(mine, /* err= */ NULL);
            } else if (mine->watch_ns < next_ns) {
                next_ns = mine->watch_ns;
            }
        }
    }
    return next_ns;
}

/* ---- downgrade ----------------------------------------------------------- */

static void on_downgraded(struct hf__session *session,
                          const struct hf__session_call *call,
                          const struct hf__pg_answer *answer)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, call->ticket);
    struct hf__grant grant = {.tokens = 1, .sent_ns = call->sent_ns};
    hf_error err;

    if (!mine || mine->leaving)
        return;
    if (!answer || answer->error) {
        hf__session_explain_lost(session, &err);
        hf__up_unknown(&postgres->base, mine->ticket, &err);
    } else if (answer->results[1].rows == 0) {
        hf__postgres_row_lose(mine, HF__LOST_TAKEN);
    } else {
        mine->ticket->mode = HF_SHARED;
        grant.lease_ms = mine->ticket->ttl_ms;
        grant.sent_ns = mine->confirmed_ns;
        hf__up_renewed(&postgres->base, mine->ticket, &grant);
    }
}

static int downgrade(struct hf__postgres *postgres, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);
    struct hf__session_call call = {.done = on_downgraded,
                                    .ticket = ticket->id};
    struct hf__session *main = &postgres->main;
    struct words words;
    int rc;

    if (!mine->known)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not held", postgres->peer);
    begin(&words, mine);
    rc = hf__postgres_row_lock(postgres, mine->key, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_DOWNGRADE, words.values, 2, err);
    if (rc == 0)
        rc = hf__session_add(main, HF__PG_ROW_GRANT, words.values, 1, err);
    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

/* ---- pushes, and the session ---------------------------------------------- */

/* The ticket that @text is about: the second half of our identity, and the
 * number. NULL: none of ours, or somebody made it up. */
static struct hf__postgres_ticket *told_about(struct hf__postgres *postgres,
                                              const char *text, char **ret_end)
{
    const char *half = postgres->identity + HF__PG_CHANNEL;
    size_t len = strlen(half);

    if (strncmp(text, half, len) != 0 || text[len] < '0' || text[len] > '9')
        return NULL;
    return hf__postgres_find(postgres, strtoull(text + len, ret_end, 10));
}

/* A token that is not above the last is none: the server is asked. */
static void told_grant(struct hf__postgres_ticket *mine, const char *text)
{
    uint64_t last = hf__postgres_name(mine->engine, mine->key)->token;
    uint64_t token = strtoull(text, NULL, 10);

    if (token > last && token <= INT64_MAX)
        hf__postgres_row_granted(mine, token, mine->confirmed_ns);
    else
        set_watch(mine, 0);
}

/* "g TICKET TOKEN": granted. "b TICKET": somebody broke it. */
static void notified(struct hf__postgres *postgres, const char *text)
{
    struct hf__postgres_ticket *mine;
    char *end;

    if ((text[0] != 'g' && text[0] != 'b') || text[1] != ' ')
        return;
    mine = told_about(postgres, text + 2, &end);
    if (!mine || mine->leaving)
        return;
    if (text[0] == 'g' && mine->waiting)
        told_grant(mine, end);
    else if (text[0] == 'b' && !mine->waiting && !mine->asking)
        hf__postgres_row_lose(mine, HF__LOST_BROKEN);
}

const struct hf__postgres_mode hf__postgres_table = {
    .name = "table",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_SURVIVES_RESTART |
            HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS |
            HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_CHECK_TOKEN |
            HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
    .tables = true,
    .listens = true,
    .acquire = acquire,
    .leave = leave,
    .renew = renew,
    .downgrade = downgrade,
    .up = hf__postgres_row_up,
    .down = hf__postgres_row_down,
    .tick = tick,
    .notified = notified,
    .list = hf__postgres_row_list,
    .check_token = hf__postgres_row_check,
    .break_lock = hf__postgres_row_break,
};
