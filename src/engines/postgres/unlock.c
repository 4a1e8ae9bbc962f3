/* SPDX-License-Identifier: MIT */
/*
 * unlock.c - leaving a lock that lives in a session, or a wait for one.
 *
 * A wait is left by a cancel, from the main session. The grant may be quicker
 * than that, and an error may come when the lock is had already, so everything
 * that did not end well is unlocked before it is reported.
 *
 * Failure: without an answer nobody knows; a withdrawal is final when the
 * backend that was lost has gone. A commit of the caller's statements whose
 * answer was lost is reported as unknown.
 */
#include "engines/postgres/advisory.h"

/* A cancel that came before its statement had begun is sent again. */
#define AGAIN_NS (20 * HF_MS)

static void left(struct hf__postgres_ticket *mine, int rc)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    hf__advisory_leave_session(mine);
    hf__postgres_forget(mine);
    hf__up_left(&postgres->base, ticket, rc);
}

/* ---- unlocking ----------------------------------------------------------- */

/* Undone: now the report that was waiting for it. */
static void undone(struct hf__postgres_ticket *mine, bool was_held)
{
    struct hf__postgres *postgres = mine->engine;
    hf_error why;

    if (mine->leaving) {
        left(mine, mine->releasing && !was_held ? HF_ELOST : 0);
        return;
    }
    hf__advisory_leave_session(mine);
    mine->state = HF__PG_NOWHERE;
    if (!mine->asking) {
        hf__advisory_rest(mine);
    } else if (mine->refused) {
        hf__advisory_checked(mine);
    } else if (mine->why) {
        why = *mine->why;
        hf__postgres_failed(postgres, mine, &why);
    } else { /* cancelled by nobody we know: ask again */
        hf__session_explain_lost(hf__advisory_main(mine), &why);
        hf__postgres_unknown(postgres, mine, &why);
    }
}

/* A commit of what failed is a rollback. A lent transaction is compared. */
static bool was_held(const struct hf__postgres_ticket *mine,
                     const struct hf__pg_answer *answer)
{
    if (hf__advisory_transacts(mine->engine) && !mine->lent)
        return answer->last->committed;
    return hf__pg_text(&answer->results[0], 0, 0)[0] == 't';
}

static void on_unlocked(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    bool again;
    hf_error err;

    if (!mine || mine->state != HF__PG_UNLOCKING)
        return;
    if (answer && !answer->error) {
        undone(mine, was_held(mine, answer));
        return;
    }
    if (!answer) {
        hf__advisory_cut(mine);
        return;
    }
    /* A commit that failed is rolled back, and a late cancel hits once. Then
     * it is the core that asks again, in its own time. */
    again = !mine->unsure || hf__pg_error_is(answer->error, "57014");
    mine->unsure = true;
    if (again && hf__advisory_unlock(mine, NULL) != 0) {
        hf__advisory_cut(mine);
    } else if (!again) {
        (void)hf__session_explain(session, answer->error, &err);
        mine->state = HF__PG_STUCK;
        hf__postgres_unknown(session->engine, mine, &err);
    }
}

static int add_unlock(struct hf__postgres_ticket *mine, hf_error *err)
{
    char key[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(mine->key, key)};
    int rc = hf__session_add(
        mine->session,
        mine->ticket->mode == HF_SHARED ? HF__PG_UNLOCK_SHARED : HF__PG_UNLOCK,
        values, 1, err);

    return rc == 0 ? hf__advisory_unmark(mine, err) : rc;
}

/* What was done in the transaction counts if it is the one that was begun with
 * the lock, and in order: a caller may have ended it. */
static int add_end(struct hf__postgres_ticket *mine, hf_error *err)
{
    const char *values[] = {mine->transaction};
    int rc = 0;

    if (!mine->releasing || mine->unsure)
        return hf__session_add(mine->session, HF__PG_ROLLBACK, NULL, 0, err);
    mine->committing = mine->lent;
    if (mine->lent)
        rc = hf__session_add(mine->session, HF__PG_SAME, values, 1, err);
    return rc == 0 ? hf__session_add(mine->session, HF__PG_COMMIT, NULL, 0, err)
                   : rc;
}

int hf__advisory_unlock(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session_call call = {.done = on_unlocked,
                                    .ticket = mine->ticket->id};
    int rc = hf__advisory_transacts(mine->engine) ? add_end(mine, err)
                                                  : add_unlock(mine, err);

    if (rc == 0)
        rc = hf__session_send(mine->session, &call, err);
    if (rc == 0)
        mine->state = HF__PG_UNLOCKING;
    return rc;
}

void hf__advisory_undo(struct hf__postgres_ticket *mine,
                       const struct hf__pg_error *error)
{
    hf_error err;

    (void)hf__session_explain(mine->session, error, &err);
    mine->unsure = true;
    mine->refused = hf__pg_error_is(error, "55P03"); /* the row is taken */
    if (!mine->why && !hf__pg_error_is(error, "57014")) {
        mine->why = hf__malloc(sizeof(*mine->why));
        if (mine->why)
            *mine->why = err;
    }
    if (hf__advisory_unlock(mine, NULL) != 0)
        hf__advisory_cut(mine);
}

/* ---- waits that are given up --------------------------------------------- */

/* The server does not look at a cancel between two statements, so one that may
 * have come too early is repeated. */
int hf__advisory_cancel(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__ghost who = {.pid = mine->session->pid};
    int rc;

    memcpy(who.started, mine->session->started, sizeof(who.started));
    rc = hf__advisory_about(hf__advisory_main(mine), HF__PG_CANCEL, &who, 0,
                            hf__session_ignore, err);
    if (rc == 0 && !mine->cancelling) {
        mine->cancelling = true;
        mine->engine->cancelling++;
    }
    hf__advisory_watch(mine, AGAIN_NS);
    return rc;
}

/* A ticket that @test is true of, among those with the key of @mine. */
static struct hf__postgres_ticket *find_beside(
    const struct hf__postgres_ticket *mine,
    bool (*test)(const struct hf__postgres_ticket *other))
{
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&mine->engine->known[i], link) {
            struct hf__postgres_ticket *other =
                HF_CONTAINER_OF(link, struct hf__postgres_ticket, bucket);

            if (other->key == mine->key && test(other))
                return other;
        }
    }
    return NULL;
}

static bool is_cancelling(const struct hf__postgres_ticket *mine)
{
    return mine->cancelling;
}

static bool is_parting(const struct hf__postgres_ticket *mine)
{
    return mine->state == HF__PG_PARTING;
}

/* Unlock what is held, unless a wait of ours for it is being given up: it would
 * get the lock, for a moment in which nobody has it. */
static int part(struct hf__postgres_ticket *mine, hf_error *err)
{
    if (mine->engine->cancelling == 0 || !find_beside(mine, is_cancelling))
        return hf__advisory_unlock(mine, err);
    mine->state = HF__PG_PARTING;
    return 0;
}

void hf__advisory_stopped(struct hf__postgres_ticket *mine)
{
    struct hf__postgres_ticket *other;

    if (!mine->cancelling)
        return;
    mine->cancelling = false;
    mine->engine->cancelling--;
    while ((other = find_beside(mine, is_parting)) != NULL) {
        other->state = HF__PG_HOLDING;
        if (part(other, NULL) != 0)
            hf__advisory_cut(other);
        else if (other->state == HF__PG_PARTING)
            return;
    }
}

/* ---- leaving ------------------------------------------------------------- */

/* What a caller hears whose lock went with its session. */
static int lost_rc(const struct hf__postgres_ticket *mine)
{
    if (mine->committing)
        return HF_EUNKNOWN;
    return mine->releasing ? HF_ELOST : 0;
}

static void on_gone(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    hf_error err;

    if (!mine || mine->state != HF__PG_GHOSTLY || !mine->leaving)
        return;
    if (answer && !answer->error && answer->last->rows == 0) {
        left(mine, lost_rc(mine));
        return;
    }
    hf__session_explain_lost(session, &err);
    hf__postgres_unknown(session->engine, mine, &err);
}

/* A connection that was lent is ours again, if it can be. */
static int end_holding(struct hf__postgres_ticket *mine, hf_error *err)
{
    bool whole;

    if (mine->session->state != HF__SESSION_LENT)
        return part(mine, err);
    mine->state = HF__PG_PARTING;
    if (hf__session_take_back(mine->session, &whole) != 0)
        return 0; /* it has ended, and that was told */
    mine->unsure = !whole;
    return part(mine, err);
}

int hf__advisory_leave(struct hf__postgres *postgres, struct hf__ticket *ticket,
                       bool releasing, hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    if (!mine->known) {
        hf__up_left(&postgres->base, ticket, releasing ? HF_ELOST : 0);
        return 0;
    }
    mine->asking = false;
    mine->leaving = true;
    /* What became of a caller's statements is told also if it takes longer. */
    mine->releasing = releasing || (mine->releasing && mine->lent);
    switch (mine->state) {
    case HF__PG_WAITING:
        return mine->ticket->nowait || mine->cancelling
                   ? 0
                   : hf__advisory_cancel(mine, err);
    case HF__PG_HOLDING:
        return end_holding(mine, err);
    case HF__PG_STUCK:
        return hf__advisory_unlock(mine, err);
    case HF__PG_GHOSTLY:
        return hf__advisory_about(hf__advisory_main(mine), HF__PG_IS_GONE,
                                  &mine->ghost, ticket->id, on_gone, err);
    case HF__PG_TRYING:
    case HF__PG_ACCEPTING:
    case HF__PG_PARTING:
    case HF__PG_UNLOCKING:
        return 0; /* the answer that is under way ends it */
    default:
        hf__sql_pool_forget(&postgres->pool, &mine->want);
        left(mine, releasing ? HF_ELOST : 0);
        return 0;
    }
}
