/* SPDX-License-Identifier: MIT */
/*
 * advisory_release.c - releasing a lock that lives in a session, or withdrawing
 * a wait for one.
 *
 * The main connection cancels a wait. The grant may be quicker than that, and an
 * error may come when the lock is had already, so everything that did not end
 * well is unlocked before it is reported.
 *
 * Failure: without an answer the outcome is unknown; a withdrawal is final when the
 * backend that was lost has gone. A commit of the caller's statements whose
 * answer was lost is reported as unknown.
 */
#include "engines/postgres/advisory.h"

/* A cancel that came before its statement had begun is sent again. */
#define AGAIN_NS (20 * HF_MS)

static void left(struct hf__pg_ticket *mine, int rc)
{
    hf__advisory_session_leave(mine);
    hf__pg_tickets_left(mine, rc);
}

/* ---- unlocking ----------------------------------------------------------- */

/* Undone: now the report that was waiting for it. */
static void undone(struct hf__pg_ticket *mine, bool was_held)
{
    hf_error why;

    if (hf__pg_tickets_leaves(mine)) {
        left(mine, hf__pg_tickets_releases(mine) && !was_held ? HF_ELOST : 0);
        return;
    }
    hf__advisory_session_leave(mine);
    hf__pg_tickets_move(mine, HF__PG_NOWHERE);
    if (!hf__pg_tickets_asks(mine)) {
        hf__advisory_acquire_rest(mine);
    } else if (mine->known == HF__PG_KNOWN_TAKEN) {
        hf__advisory_acquire_checked(mine);
    } else if (mine->why) {
        why = *mine->why;
        hf__pg_tickets_failed(mine, &why);
    } else { /* cancelled, and not by us: ask again */
        hf__pg_tickets_lost_answer(mine, hf__pg_main(mine));
    }
}

/* A commit of what failed is a rollback. A transaction that the caller had is
 * compared. */
static bool was_held(const struct hf__pg_ticket *mine,
                     const struct hf__pg_answer *answer)
{
    if (hf__advisory_transacts(mine->engine) && mine->transaction[0] == '\0')
        return answer->last->committed;
    return hf__pg_answer_text(&answer->results[0], 0, 0)[0] == 't';
}

static void on_unlocked(struct hf__pg_conn *conn,
                        const struct hf__pg_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;
    bool again;
    hf_error err;

    if (mine->state != HF__PG_RELEASING)
        return;
    if (!answer || !answer->error) {
        if (answer)
            undone(mine, was_held(mine, answer));
        else
            hf__advisory_session_cut(mine);
        return;
    }
    /* A commit that failed is rolled back, and a late cancel hits once. Then
     * it is the core that asks again, in its own time. */
    again = !mine->unsure || hf__pg_errors_is(answer->error, "57014");
    mine->unsure = true;
    if (again) {
        hf__advisory_release_or_cut(mine);
    } else {
        (void)hf__pg_errors_explain(conn, answer->error, &err);
        hf__pg_tickets_move(mine, HF__PG_STUCK);
        hf__pg_tickets_unknown(mine, &err);
    }
}

static void add_unlock(struct hf__pg_ticket *mine)
{
    char key[HF__PG_DIGITS];
    const char *values[] = {hf__pg_names_decimal(mine->key, key)};

    hf__pg_calls_add(mine->conn,
                     mine->entry.ticket->mode == HF_SHARED
                         ? HF__STMT_ADVISORY_UNLOCK_SHARED
                         : HF__STMT_ADVISORY_UNLOCK,
                     values, 1);
    hf__advisory_names_unlock(mine);
}

int hf__advisory_release_unlock(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_call call = {.done = on_unlocked,
                               .ticket = mine->entry.ticket->id};
    int rc;

    if (hf__advisory_transacts(mine->engine))
        hf__pg_for_update_add_end(mine);
    else
        add_unlock(mine);
    rc = hf__pg_calls_send(mine->conn, &call, err);
    if (rc == 0)
        hf__pg_tickets_move(mine, HF__PG_RELEASING);
    return rc;
}

void hf__advisory_release_or_cut(struct hf__pg_ticket *mine)
{
    if (hf__advisory_release_unlock(mine, /* err= */ NULL) != 0)
        hf__advisory_session_cut(mine);
}

void hf__advisory_release_undo(struct hf__pg_ticket *mine,
                               const struct hf__pg_error *error)
{
    mine->unsure = true;
    /* 55P03: the row is taken. */
    mine->known = hf__pg_errors_is(error, "55P03") ? HF__PG_KNOWN_TAKEN
                                                   : HF__PG_KNOWN_NOTHING;
    if (!mine->why && !hf__pg_errors_is(error, "57014")) {
        mine->why = hf__malloc(sizeof(*mine->why));
        if (mine->why)
            (void)hf__pg_errors_explain(mine->conn, error, mine->why);
    }
    hf__advisory_release_or_cut(mine);
}

/* ---- waits that are given up --------------------------------------------- */

/* The server does not look at a cancel between two statements, so one that may
 * have come too early is repeated. */
int hf__advisory_release_cancel(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_orphan backend = {.pid = mine->conn->pid};
    struct hf__pg_call call = {.done = hf__pg_calls_ignore};
    int rc;

    memcpy(backend.started, mine->conn->started, sizeof(backend.started));
    rc = hf__advisory_session_about(hf__pg_main(mine), HF__STMT_BACKEND_CANCEL,
                                    &backend, &call, err);
    if (rc == 0)
        hf__pg_tickets_move(mine, HF__PG_CANCELLING);
    hf__advisory_wait_watch(mine, AGAIN_NS);
    return rc;
}

struct search {
    int64_t key;
    uint8_t state;
};

static bool is_wanted(struct hf__ticket_entry *entry, const void *what)
{
    const struct hf__pg_ticket *mine =
        HF_CONTAINER_OF(entry, struct hf__pg_ticket, entry);
    const struct search *search = what;

    return mine->key == search->key && mine->state == search->state;
}

/* A ticket for @key in @state. */
static struct hf__pg_ticket *find(struct hf__pg *postgres, int64_t key,
                                  enum hf__pg_state state)
{
    struct search search = {key, (uint8_t)state};
    size_t bucket = 0;
    struct hf__ticket *ticket =
        hf__ticket_table_next(&postgres->tickets, &bucket, is_wanted, &search);

    return ticket ? hf__pg_ticket(postgres, ticket) : NULL;
}

/* Unlock what is held, unless a wait of ours for it is being given up: the
 * server would grant it to the wait, for a moment in which nobody has it. */
static int part(struct hf__pg_ticket *mine, hf_error *err)
{
    if (mine->engine->cancelling == 0 ||
        !find(mine->engine, mine->key, HF__PG_CANCELLING))
        return hf__advisory_release_unlock(mine, err);
    if (mine->state != HF__PG_PARTING)
        hf__pg_tickets_move(mine, HF__PG_PARTING);
    return 0;
}

void hf__advisory_release_stopped(struct hf__pg *postgres, int64_t key)
{
    struct hf__pg_ticket *other;

    if (find(postgres, key, HF__PG_CANCELLING))
        return;
    while ((other = find(postgres, key, HF__PG_PARTING)) != NULL)
        hf__advisory_release_or_cut(other);
}

/* ---- release and withdraw ------------------------------------------------ */

/* What a caller hears whose lock went with its session. */
static int lost_rc(const struct hf__pg_ticket *mine)
{
    if (mine->owed == HF__PG_OWES_COMMIT)
        return HF_EUNKNOWN;
    return hf__pg_tickets_releases(mine) ? HF_ELOST : 0;
}

static void on_gone(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                    const struct hf__pg_answer *answer)
{
    struct hf__pg_ticket *mine = call->mine;

    if (mine->state != HF__PG_ORPHAN || !hf__pg_tickets_leaves(mine))
        return;
    if (answer && !answer->error && answer->last->rows == 0)
        left(mine, lost_rc(mine));
    else
        hf__pg_tickets_lost_answer(mine, conn);
}

static int ask_gone(struct hf__pg_ticket *mine, hf_error *err)
{
    struct hf__pg_call call = {.done = on_gone,
                               .ticket = mine->entry.ticket->id};

    return hf__advisory_session_about(hf__pg_main(mine), HF__STMT_BACKEND_END,
                                      &mine->orphan, &call, err);
}

/* A connection that the caller had is ours again, if it can be. */
static int end_holding(struct hf__pg_ticket *mine, hf_error *err)
{
    bool whole;

    if (mine->conn->state != HF__CONN_WITH_CALLER)
        return part(mine, err);
    hf__pg_tickets_move(mine, HF__PG_PARTING);
    if (hf__pg_connection_from_caller(mine->conn, &whole) != 0)
        return 0; /* it has ended, and that was told */
    mine->unsure = !whole;
    return part(mine, err);
}

/* What became of a caller's statements is told also if it takes longer: then a
 * withdrawal follows the release. */
static void set_owed(struct hf__pg_ticket *mine, enum hf__pg_owed owed)
{
    bool keeps = hf__pg_tickets_releases(mine) && mine->transaction[0] != '\0';

    if (!keeps)
        mine->owed = (uint8_t)owed;
}

int hf__advisory_release(struct hf__pg *postgres, struct hf__ticket *ticket,
                         enum hf__pg_owed owed, hf_error *err)
{
    struct hf__pg_ticket *mine = hf__pg_ticket(postgres, ticket);
    int gone = owed == HF__PG_OWES_RELEASE ? HF_ELOST : 0;

    if (!mine->entry.ticket) {
        hf__up_left(&postgres->base, ticket, gone);
        return 0;
    }
    set_owed(mine, owed);
    switch (mine->state) {
    case HF__PG_WAITING:
        return ticket->nowait ? 0 : hf__advisory_release_cancel(mine, err);
    case HF__PG_HELD:
        return end_holding(mine, err);
    case HF__PG_STUCK:
        return hf__advisory_release_unlock(mine, err);
    case HF__PG_ORPHAN:
        return ask_gone(mine, err);
    case HF__PG_ASKING:
    case HF__PG_CANCELLING:
    case HF__PG_ACCEPTING:
    case HF__PG_PARTING:
    case HF__PG_RELEASING:
        return 0; /* the answer that is under way ends it */
    default:
        hf__sql_pool_forget(&postgres->pool, &mine->want);
        left(mine, gone);
        return 0;
    }
}
