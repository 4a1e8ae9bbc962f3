/* SPDX-License-Identifier: MIT */
/*
 * ghosts.c - sessions that hold locks, and what is left when one is lost.
 *
 * The main session has any number of locks, one of the pool has one.
 *
 * Failure: a session that ends takes its locks with it: LOST, at once. Its
 * backend may not know yet; it is ended from the main session (a ghost), and a
 * withdrawal is final when it has gone.
 */
#include "engines/postgres/advisory.h"

/* ---- where a ticket is --------------------------------------------------- */

void hf__advisory_on_main(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;

    mine->session = &postgres->main;
    hf__list_append(&postgres->held[(uint64_t)mine->key % HF__PG_BUCKETS],
                    &mine->link);
    postgres->held_n++;
}

void hf__advisory_leave_session(struct hf__postgres_ticket *mine)
{
    struct hf__session *session = mine->session;

    if (!session)
        return;
    hf__advisory_drop_mark(mine);
    mine->session = NULL;
    if (session == hf__advisory_main(mine)) {
        hf__list_remove(&mine->link);
        mine->engine->held_n--;
        return;
    }
    session->user = NULL;
    if (session->state == HF__SESSION_UP && !session->closing)
        hf__sql_pool_give(&mine->engine->pool, &session->link);
}

/* ---- ghosts -------------------------------------------------------------- */

int hf__advisory_about(struct hf__session *main,
                       enum hf__pg_statement statement,
                       const struct hf__ghost *ghost, uint64_t ticket,
                       hf__session_done_fn *done, hf_error *err)
{
    struct hf__session_call call = {.done = done, .ticket = ticket};
    char pid[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(ghost->pid, pid),
                            ghost->started};
    int rc = hf__session_add(main, statement, values, 2, err);

    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

static void end_ghosts(struct hf__postgres *postgres)
{
    for (size_t i = 0; i < HF__PG_GHOSTS; i++) {
        struct hf__ghost *ghost = &postgres->ghosts[i];

        if (ghost->pid != 0 &&
            hf__advisory_about(&postgres->main, HF__PG_END, ghost, 0,
                               hf__session_ignore, NULL) == 0)
            ghost->pid = 0;
    }
}

/* @session was lost, and its backend may live on. */
static void remember_ghost(struct hf__session *session)
{
    struct hf__ghost *ghosts = session->engine->ghosts;

    if (session->pid == 0)
        return;
    memmove(ghosts + 1, ghosts, (HF__PG_GHOSTS - 1) * sizeof(*ghosts));
    hf__session_ghost(session, &ghosts[0]);
}

static void become_ghostly(struct hf__postgres_ticket *mine)
{
    const struct hf__session *session = mine->session;

    mine->state = HF__PG_GHOSTLY;
    mine->queued = false;
    if (session) {
        mine->ghost.pid = session->pid;
        memcpy(mine->ghost.started, session->started, sizeof(session->started));
    }
    hf__advisory_leave_session(mine);
    hf__advisory_stopped(mine);
}

void hf__advisory_lose(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    hf__advisory_leave_session(mine);
    mine->state = HF__PG_NOWHERE;
    mine->queued = false;
    hf__postgres_forget(mine);
    hf__up_lost(&postgres->base, ticket, HF__LOST_SESSION);
}

void hf__advisory_cut(struct hf__postgres_ticket *mine)
{
    bool was_queued = mine->queued;
    hf_error err;

    hf__session_explain_lost(
        mine->session ? mine->session : hf__advisory_main(mine), &err);
    become_ghostly(mine);
    if (was_queued && !mine->asking && !mine->leaving)
        hf__advisory_lose(mine);
    else
        hf__postgres_unknown(mine->engine, mine, &err);
}

/* ---- sessions that come and go ------------------------------------------- */

static void lose(struct hf__postgres_ticket *mine)
{
    if (mine->state == HF__PG_HOLDING)
        hf__advisory_lose(mine);
    else
        hf__advisory_cut(mine);
}

static void main_down(struct hf__postgres *postgres, const hf_error *err)
{
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        while (!hf__list_empty(&postgres->held[i]))
            lose(HF_CONTAINER_OF(hf__list_first(&postgres->held[i]),
                                 struct hf__postgres_ticket, link));
    }
    remember_ghost(&postgres->main);
    hf__postgres_down(postgres, err);
}

void hf__advisory_down(struct hf__session *session, const hf_error *err)
{
    struct hf__postgres *postgres = session->engine;

    if (session == &postgres->main) {
        main_down(postgres, err);
        return;
    }
    if (session == postgres->opening) { /* the pool is told by open() */
        postgres->opening = NULL;
        return;
    }
    if (session->user)
        lose(session->user);
    if (!session->unpooled) {
        remember_ghost(session);
        end_ghosts(postgres);
        hf__sql_pool_gone(&postgres->pool, &session->link, err);
    }
    hf__session_stop(session, /* forked= */ false);
    hf__free(session);
}

void hf__advisory_up(struct hf__session *session)
{
    struct hf__postgres *postgres = session->engine;

    if (session != &postgres->main) {
        hf__sql_pool_ready(&postgres->pool, &session->link);
        return;
    }
    end_ghosts(postgres);
    hf__postgres_connected(postgres);
}
