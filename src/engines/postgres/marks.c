/* SPDX-License-Identifier: MIT */
/*
 * marks.c - two names that share a key are an error, not one lock.
 *
 * The server knows a lock by 64 bits. So that a name can be told from another
 * with the same ones, a session carries a mark as long as it asks for or has
 * a lock: a shared lock, among keys of the other kind, on 64 bits of a second
 * hash. It is had before the lock and given back after it. Hence whoever has
 * the key in a snapshot of pg_locks, and not the mark, has it under another
 * name; who finds a lock taken looks there, and who waits looks again and again
 * (keep.c). Nothing is written, and nothing stays when the session ends.
 *
 * The mark of the name that a session used last stays for a second, so that
 * taking a lock again and again costs no more than the lock. More of them would
 * take from the room that all sessions of the server share for locks.
 */
#include "engines/postgres/advisory.h"

/* A session that has been silent for so long gives its mark back. */
#define QUIET_NS HF_SECOND

static int add_mark(struct hf__postgres_ticket *mine,
                    enum hf__pg_statement statement, hf_error *err)
{
    char first[HF__PG_DIGITS];
    char second[HF__PG_DIGITS];
    const char *values[] = {
        hf__postgres_number((int32_t)((uint64_t)mine->mark >> 32), first),
        hf__postgres_number((int32_t)mine->mark, second)};

    return hf__session_add(mine->session, statement, values, 2, err);
}

int hf__advisory_mark(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session *session = mine->session;

    mine->marked = true;
    if (session->marked && session->mark == mine->mark) {
        session->marked = false; /* from now on it is the ticket's */
        return 0;
    }
    return add_mark(mine, HF__PG_MARK, err);
}

static bool keep(struct hf__postgres_ticket *mine)
{
    struct hf__session *session = mine->session;

    if (mine->unsure || session->marked)
        return false;
    session->marked = true;
    session->mark = mine->mark;
    hf__postgres_wake(mine->engine, hf__now() + QUIET_NS);
    return true;
}

int hf__advisory_unmark(struct hf__postgres_ticket *mine, hf_error *err)
{
    if (!mine->marked)
        return 0;
    mine->marked = false;
    return keep(mine) ? 0 : add_mark(mine, HF__PG_UNMARK, err);
}

void hf__advisory_drop_mark(struct hf__postgres_ticket *mine)
{
    struct hf__session_call call = {.done = hf__session_ignore};

    if (!mine->marked)
        return;
    mine->marked = false;
    if (mine->session->state == HF__SESSION_UP && !mine->session->closing &&
        !keep(mine) && add_mark(mine, HF__PG_UNMARK, NULL) == 0)
        (void)hf__session_send(mine->session, &call, NULL);
}

/* ---- looking ------------------------------------------------------------- */

void hf__advisory_collide(struct hf__postgres_ticket *mine, const char *by)
{
    hf_error err;

    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: the key of '%.80s' is held under another name, by %.80s"
                   ": rename one, or use mode=table",
                   mine->engine->peer, mine->ticket->name, by);
    mine->state = HF__PG_NOWHERE;
    hf__postgres_failed(mine->engine, mine, &err);
}

static void set_checked(struct hf__postgres_ticket *mine, int64_t when_ns)
{
    struct hf__postgres_name *name = hf__postgres_name(mine->engine, mine->key);

    name->mark = mine->mark;
    name->checked_ns = when_ns;
}

bool hf__advisory_is_checked(struct hf__postgres_ticket *mine)
{
    const struct hf__postgres_name *name =
        hf__postgres_name(mine->engine, mine->key);

    return name->checked_ns != 0 && name->mark == mine->mark &&
           hf__now() - name->checked_ns < HF__PG_CHECKED_NS;
}

int hf__advisory_add_check(struct hf__postgres_ticket *mine, hf_error *err)
{
    char key[HF__PG_DIGITS];
    char mark[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(mine->key, key),
                            hf__postgres_number(mine->mark, mark)};

    return hf__session_add(hf__advisory_main(mine), HF__PG_STRANGER, values, 2,
                           err);
}

void hf__advisory_add_checked(struct hf__postgres_ticket *mine,
                              const struct hf__pg_result *answer,
                              int64_t sent_ns)
{
    bool other = answer->rows > 0;

    set_checked(mine, other ? 0 : sent_ns);
    if (other)
        (void)hf__advisory_cancel(mine, NULL);
}

static void on_checked(struct hf__session *session,
                       const struct hf__session_call *call,
                       const struct hf__pg_answer *answer)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, call->ticket);
    char by[40];
    hf_error err;

    if (!mine || mine->state != HF__PG_CHECKING)
        return;
    mine->state = HF__PG_NOWHERE;
    if (!answer || answer->error) {
        hf__session_explain_lost(session, &err);
        hf__postgres_unknown(postgres, mine, &err);
        return;
    }
    if (answer->last->rows > 0) {
        (void)snprintf(by, sizeof(by), "the server's process %s",
                       hf__pg_text(answer->last, 0, 0));
        hf__advisory_collide(mine, by);
        return;
    }
    set_checked(mine, call->sent_ns);
    hf__advisory_checked(mine);
}

void hf__advisory_check(struct hf__postgres_ticket *mine)
{
    struct hf__session *main = hf__advisory_main(mine);
    struct hf__session_call call = {.done = on_checked,
                                    .ticket = mine->ticket->id};

    if (hf__advisory_is_checked(mine)) {
        hf__advisory_checked(mine);
        return;
    }
    mine->state = HF__PG_CHECKING;
    if (hf__advisory_add_check(mine, NULL) != 0 ||
        hf__session_send(main, &call, NULL) != 0)
        hf__advisory_cut(mine);
}

/* ---- tidying up ---------------------------------------------------------- */

/* Without locks it needs neither a lease, by which the server would end it, nor
 * a mark. */
static int64_t relax(struct hf__session *session, int64_t now_ns)
{
    struct hf__session_call call = {.done = hf__session_ignore};
    int64_t half_ns = hf__ms_to_ns(session->timeout_ms) / 2;
    int64_t quiet_ns = half_ns > 0 && half_ns < QUIET_NS ? half_ns : QUIET_NS;
    const char *values[] = {"0"};

    if (session->state != HF__SESSION_UP || session->closing ||
        (session->timeout_ms == 0 && !session->marked))
        return HF_NEVER;
    if (now_ns < session->spoke_ns + quiet_ns)
        return session->spoke_ns + quiet_ns;
    if (hf__session_add(session, HF__PG_TIMEOUT, values, 1, NULL) == 0 &&
        hf__session_add(session, HF__PG_UNLOCK_ALL, NULL, 0, NULL) == 0 &&
        hf__session_send(session, &call, NULL) == 0) {
        session->timeout_ms = 0;
        session->marked = false;
    }
    return HF_NEVER;
}

int64_t hf__advisory_relax(struct hf__postgres *postgres, int64_t now_ns)
{
    int64_t next_ns = postgres->held_n > 0 ? now_ns + QUIET_NS
                                           : relax(&postgres->main, now_ns);

    HF_LIST_EACH(&postgres->pool.all, link) {
        struct hf__session *session =
            HF_CONTAINER_OF(link, struct hf__session, link.all);
        int64_t due_ns = session->user ? HF_NEVER : relax(session, now_ns);

        if (due_ns < next_ns)
            next_ns = due_ns;
    }
    return next_ns;
}
