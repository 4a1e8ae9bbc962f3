/* SPDX-License-Identifier: MIT */
/*
 * advisory.c - mode=advisory: session locks of the server.
 *
 * A lock lives as long as its session, so the session's idle_session_timeout is
 * the lease: a client that stands still is cut off by the server, with all that
 * the session held. Hence one session has locks of one lease only, and
 * renewing is one ping for all of them.
 *
 * A name that nobody contends for is tried on the main session, where any
 * number of locks is held. Who has to wait does it on a session of the pool,
 * inside the server, which serves waiters in their order; the lock then stays
 * on that session, alone. The server gives a session what it has already, so no
 * session is ever asked twice for one key, not even by two owners here.
 *
 * The lease of a grant counts from when the statement that waited was sent. If
 * that was long ago, one more trip makes sure that the session is still there.
 *
 * LEAVING a wait: the main session has the backend cancelled. The grant may be
 * quicker than that, and an error may come when the lock is had already, so
 * everything that did not end well is unlocked before it is reported.
 *
 * Failure: a session that ends takes its locks with it: LOST, at once. Its
 * backend may not know yet; it is ended from the main session (a ghost), and a
 * withdrawal is final when it has gone.
 */
#include <stdio.h>

#include "engines/postgres/postgres.h"

/* After so many grants at once, nobody seems to contend any more. */
enum { QUIET = 8 };
/* A key is claimed again after this time, so that its record stays. */
#define CLAIM_NS (INT64_C(3600) * HF_SECOND)
/* A wait that is not over by then is looked at: does it stand in line? */
#define LOOK_NS (20 * HF_MS)
/* A cancel that came before its statement had begun is sent again. */
#define AGAIN_NS (20 * HF_MS)
/* Before a waiter that got no session asks again. */
#define REST_NS (100 * HF_MS)
/* Who holds a lock for so long wants to hear when its session ends. */
#define LISTEN_NS (20 * HF_MS)

enum {
    NOWHERE,
    CLAIMING,  /* the key for the name */
    TRYING,    /* on the main session */
    WANTING,   /* a session of the pool */
    RESTING,   /* there was none: the core asks again after a pause */
    WAITING,   /* on it */
    ACCEPTING, /* granted long after it was asked for */
    HOLDING,
    PARTING, /* to be unlocked when a wait of ours for it has ended */
    UNLOCKING,
    GHOSTLY /* its session was lost */
};

static struct hf__session *main_of(struct hf__postgres_ticket *mine)
{
    return &mine->engine->main;
}

static const char *number(int64_t value, char to[24])
{
    (void)snprintf(to, 24, "%lld", (long long)value);
    return to;
}

static int64_t lease_of(const struct hf__ticket *ticket)
{
    return ticket->ttl_ms < INT32_MAX ? ticket->ttl_ms : INT32_MAX;
}

/* ---- where a ticket is --------------------------------------------------- */

static void on_main(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;

    mine->session = &postgres->main;
    hf__list_append(&postgres->held[(uint64_t)mine->key % HF__PG_BUCKETS],
                    &mine->link);
    postgres->held_n++;
}

/* Its session is free for others. */
static void leave_session(struct hf__postgres_ticket *mine)
{
    struct hf__session *session = mine->session;

    mine->session = NULL;
    if (session == main_of(mine)) {
        hf__list_remove(&mine->link);
        mine->engine->held_n--;
    } else if (session) {
        session->user = NULL;
        if (session->state == HF__SESSION_UP && !session->closing)
            hf__sql_pool_give(&mine->engine->pool, &session->link);
    }
}

/* Does the main session have, or ask for, the key of @mine already? */
static bool main_has_key(struct hf__postgres_ticket *mine)
{
    struct hf__list *bucket =
        &mine->engine->held[(uint64_t)mine->key % HF__PG_BUCKETS];

    HF_LIST_EACH(bucket, link) {
        if (HF_CONTAINER_OF(link, struct hf__postgres_ticket, link)->key ==
            mine->key)
            return true;
    }
    return false;
}

/* No lock of another lease is on the main session. */
static bool fits_main(const struct hf__postgres_ticket *mine)
{
    const struct hf__postgres *postgres = mine->engine;

    return postgres->held_n == 0 ||
           postgres->main.timeout_ms == lease_of(mine->ticket);
}

/* ---- ghosts -------------------------------------------------------------- */

static void ignore(struct hf__session *session,
                   const struct hf__session_call *call,
                   const struct hf__session_answer *answer)
{
    (void)session;
    (void)call;
    (void)answer;
}

static int send_ghost(struct hf__session *main, enum hf__pg_statement statement,
                      const struct hf__ghost *ghost, uint64_t ticket,
                      hf__session_done_fn *done, hf_error *err)
{
    struct hf__session_call call = {.done = done, .ticket = ticket};
    char pid[24];
    const char *values[] = {number(ghost->pid, pid), ghost->started};
    int rc = hf__session_add(main, statement, values, 2, err);

    return rc == 0 ? hf__session_send(main, &call, err) : rc;
}

static void end_ghosts(struct hf__postgres *postgres)
{
    for (size_t i = 0; i < HF__PG_GHOSTS; i++) {
        struct hf__ghost *ghost = &postgres->ghosts[i];

        if (ghost->pid != 0 && send_ghost(&postgres->main, HF__PG_END, ghost, 0,
                                          ignore, NULL) == 0)
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

static void stopped(struct hf__postgres_ticket *mine);

static void become_ghostly(struct hf__postgres_ticket *mine)
{
    const struct hf__session *session = mine->session;

    mine->state = GHOSTLY;
    mine->queued = false;
    if (session) {
        mine->ghost.pid = session->pid;
        memcpy(mine->ghost.started, session->started, sizeof(session->started));
    }
    leave_session(mine);
    stopped(mine);
}

/* ---- reports ------------------------------------------------------------- */

static void left(struct hf__postgres_ticket *mine, int rc)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    leave_session(mine);
    hf__postgres_forget(mine);
    hf__up_left(&postgres->base, ticket, rc);
}

/* A connection was lost with a request of ours on it. */
static void cut(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;
    bool was_queued = mine->queued;
    hf_error err;

    hf__session_explain_lost(mine->session ? mine->session : main_of(mine),
                             &err);
    become_ghostly(mine);
    if (was_queued && !mine->asking && !mine->leaving)
        hf__up_lost(&postgres->base, mine->ticket, HF__LOST_SESSION);
    else
        hf__postgres_unknown(postgres, mine, &err);
}

static void granted(struct hf__postgres_ticket *mine, int64_t sent_ns)
{
    struct hf__postgres_name *name = hf__postgres_name(mine->engine, mine->key);
    struct hf__grant grant = {
        .token = mine->token,
        .tokens = 1,
        .lease_ms = lease_of(mine->ticket),
        .sent_ns = sent_ns,
    };

    if (mine->session == main_of(mine) && name->contended > 0)
        name->contended--;
    mine->state = HOLDING;
    mine->asking = false;
    mine->queued = false;
    mine->confirmed_ns = sent_ns;
    mine->since_ns = hf__now();
    if (!mine->engine->listening)
        hf__postgres_wake(mine->engine, mine->since_ns + LISTEN_NS);
    hf__up_granted(&mine->engine->base, mine->ticket, &grant);
}

/* ---- unlocking ----------------------------------------------------------- */

static int unlock(struct hf__postgres_ticket *mine, hf_error *err);

/* Who counts as queued is not failed any more, but asked for again. */
static void rest(struct hf__postgres_ticket *mine)
{
    mine->state = RESTING;
    mine->watch_ns = hf__now() + REST_NS;
    hf__postgres_wake(mine->engine, mine->watch_ns);
}

/* Unlocked: now the report that was waiting for it. */
static void undone(struct hf__postgres_ticket *mine, bool was_held)
{
    struct hf__postgres *postgres = mine->engine;
    hf_error why;

    if (mine->leaving) {
        left(mine, mine->releasing && !was_held ? HF_ELOST : 0);
        return;
    }
    leave_session(mine);
    mine->state = NOWHERE;
    if (!mine->asking) {
        rest(mine);
        return;
    }
    if (!mine->why) { /* cancelled by nobody we know: ask again */
        hf__session_explain_lost(main_of(mine), &why);
        hf__postgres_unknown(postgres, mine, &why);
        return;
    }
    why = *mine->why;
    hf__postgres_failed(postgres, mine, &why);
}

static void on_unlocked(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__session_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || mine->state != UNLOCKING)
        return;
    if (answer && !answer->error)
        undone(mine, hf__session_text(answer->last, 0, 0)[0] == 't');
    else if (!answer || unlock(mine, NULL) != 0)
        cut(mine); /* after an error, a late cancel, it is tried once more */
}

static int unlock(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session_call call = {.done = on_unlocked,
                                    .ticket = mine->ticket->id};
    char key[24];
    const char *values[] = {number(mine->key, key)};
    int rc = hf__session_add(
        mine->session,
        mine->ticket->mode == HF_SHARED ? HF__PG_UNLOCK_SHARED : HF__PG_UNLOCK,
        values, 1, err);

    if (rc == 0)
        rc = hf__session_send(mine->session, &call, err);
    if (rc == 0)
        mine->state = UNLOCKING;
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
    return mine->state == PARTING;
}

/* Unlock what is held, unless a wait of ours for it is being given up: it would
 * get the lock, for a moment in which nobody has it. */
static int part(struct hf__postgres_ticket *mine, hf_error *err)
{
    if (mine->engine->cancelling == 0 || !find_beside(mine, is_cancelling))
        return unlock(mine, err);
    mine->state = PARTING;
    return 0;
}

/* The wait of @mine is over: who waited for that goes on. */
static void stopped(struct hf__postgres_ticket *mine)
{
    struct hf__postgres_ticket *other;

    if (!mine->cancelling)
        return;
    mine->cancelling = false;
    mine->engine->cancelling--;
    while ((other = find_beside(mine, is_parting)) != NULL) {
        other->state = HOLDING;
        if (part(other, NULL) != 0)
            cut(other);
        else if (other->state == PARTING)
            return;
    }
}

/* The statement failed; the lock may be had all the same. */
static void undo(struct hf__postgres_ticket *mine, const PGresult *error)
{
    hf_error err;

    (void)hf__session_explain(mine->session, error, &err);
    if (!mine->why && !hf__session_is(error, "57014")) {
        mine->why = hf__malloc(sizeof(*mine->why));
        if (mine->why)
            *mine->why = err;
    }
    if (unlock(mine, NULL) != 0)
        cut(mine);
}

/* ---- asking -------------------------------------------------------------- */

static void want_session(struct hf__postgres_ticket *mine, bool refused);

static void busy(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    leave_session(mine);
    if (mine->leaving) {
        left(mine, 0);
        return;
    }
    if (!ticket->nowait) {
        hf__postgres_name(postgres, mine->key)->contended = QUIET;
        want_session(mine, /* refused= */ true);
        return;
    }
    mine->asking = false;
    hf__postgres_forget(mine);
    hf__up_busy(&postgres->base, ticket, /* again_ns= */ 0, /* holder= */ NULL);
}

static void on_accepted(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__session_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || mine->state != ACCEPTING)
        return;
    if (!answer || (mine->leaving && unlock(mine, NULL) != 0))
        cut(mine);
    else if (!mine->leaving)
        granted(mine, call->sent_ns);
}

/* Granted, so long after it was asked for that the lease may be over. */
static void accept_it(struct hf__postgres_ticket *mine)
{
    struct hf__session_call call = {.done = on_accepted,
                                    .ticket = mine->ticket->id};

    mine->state = ACCEPTING;
    if (hf__session_add(mine->session, HF__PG_PING, NULL, 0, NULL) != 0 ||
        hf__session_send(mine->session, &call, NULL) != 0)
        cut(mine);
}

static void on_asked(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__session_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    const PGresult *result;

    if (!mine || (mine->state != TRYING && mine->state != WAITING))
        return;
    mine->watch_ns = 0;
    stopped(mine);
    if (!answer) {
        cut(mine);
        return;
    }
    result = answer->last;
    if (answer->error) {
        undo(mine, answer->error);
    } else if (hf__pq.PQntuples(result) == 0) {
        busy(mine);
    } else if (mine->leaving) {
        if (unlock(mine, NULL) != 0)
            cut(mine);
    } else {
        mine->token = (uint64_t)hf__session_number(result, 0, 0, 0);
        if (hf__now() - call->sent_ns >
            hf__ms_to_ns(lease_of(mine->ticket)) / 3)
            accept_it(mine);
        else
            granted(mine, call->sent_ns);
    }
}

/* Ask on @mine->session, which gets the ticket's lease if it has another. */
static int ask_session(struct hf__postgres_ticket *mine, bool wait,
                       hf_error *err)
{
    struct hf__session *session = mine->session;
    struct hf__session_call call = {
        .done = on_asked, .ticket = mine->ticket->id, .patient = wait};
    bool shared = mine->ticket->mode == HF_SHARED;
    int64_t lease_ms = lease_of(mine->ticket);
    char text[24];
    const char *values[] = {text};
    int rc = 0;

    if (session->timeout_ms != lease_ms) {
        (void)number(lease_ms, text);
        rc = hf__session_add(session, HF__PG_TIMEOUT, values, 1, err);
        session->timeout_ms = lease_ms;
        hf__postgres_wake(mine->engine, hf__now() + hf__ms_to_ns(lease_ms) / 2);
    }
    (void)number(mine->key, text);
    if (rc == 0)
        rc = hf__session_add(session,
                             wait ? shared ? HF__PG_WAIT_SHARED : HF__PG_WAIT
                             : shared ? HF__PG_TRY_SHARED
                                      : HF__PG_TRY,
                             values, 1, err);
    if (rc == 0)
        rc = hf__session_send(session, &call, err);
    return rc;
}

/* Certain: it waits in the server's queue. */
static void queued(struct hf__postgres_ticket *mine)
{
    bool told = mine->queued;

    mine->queued = true;
    mine->asking = false;
    mine->watch_ns = 0;
    if (!told && !mine->leaving)
        hf__up_queued(&mine->engine->base, mine->ticket);
}

static void no_session(struct hf__postgres_ticket *mine, const hf_error *err)
{
    mine->state = NOWHERE;
    if (mine->asking)
        hf__postgres_failed(mine->engine, mine, err);
    else
        rest(mine);
}

static void got_session(struct hf__sql_want *want, struct hf__sql_link *link,
                        const hf_error *err)
{
    struct hf__postgres_ticket *mine =
        HF_CONTAINER_OF(want, struct hf__postgres_ticket, want);
    struct hf__session *session = (struct hf__session *)link;
    bool wait = !mine->ticket->nowait;

    if (!session) {
        no_session(mine, err);
        return;
    }
    mine->session = session;
    session->user = mine;
    mine->state = WAITING;
    if (ask_session(mine, wait, NULL) != 0) {
        cut(mine);
        return;
    }
    if (wait && !mine->queued) {
        mine->watch_ns = hf__now() + LOOK_NS;
        hf__postgres_wake(mine->engine, mine->watch_ns);
    }
}

/* @refused: it was tried, and somebody has it. */
static void want_session(struct hf__postgres_ticket *mine, bool refused)
{
    hf_error err;

    mine->state = WANTING;
    mine->want.got = got_session;
    if (hf__sql_pool_take(&mine->engine->pool, &mine->want, &err) != 0)
        no_session(mine, &err);
    else if (refused && mine->state == WANTING)
        queued(mine); /* somebody has it, and a session will come */
}

/* The key is the name's. */
static void ask(struct hf__postgres_ticket *mine)
{
    struct hf__postgres_name *name = hf__postgres_name(mine->engine, mine->key);
    bool ours = main_has_key(mine);

    if (ours || !fits_main(mine) ||
        (name->contended > 0 && !mine->ticket->nowait)) {
        /* What we have exclusively ourselves is not free. */
        want_session(mine, ours && mine->ticket->mode == HF_EXCLUSIVE &&
                               !mine->ticket->nowait);
        return;
    }
    on_main(mine);
    mine->state = TRYING;
    if (ask_session(mine, /* wait= */ false, NULL) != 0)
        cut(mine);
}

/* ---- names --------------------------------------------------------------- */

static void collide(struct hf__postgres_ticket *mine, const char *other)
{
    hf_error err;

    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: the names '%.80s' and '%.80s' share one key of the "
                   "server: rename one, or use mode=table",
                   mine->engine->peer, mine->ticket->name, other);
    mine->state = NOWHERE;
    hf__postgres_failed(mine->engine, mine, &err);
}

static void on_claimed(struct hf__session *session,
                       const struct hf__session_call *call,
                       const struct hf__session_answer *answer)
{
    struct hf__postgres *postgres = session->engine;
    struct hf__postgres_ticket *mine =
        hf__postgres_find(postgres, call->ticket);
    char whole[HF__PG_WHOLE];
    const char *other;
    hf_error err;

    if (!mine || mine->state != CLAIMING)
        return;
    mine->state = NOWHERE;
    if (!answer) {
        hf__session_explain_lost(session, &err);
        hf__postgres_unknown(postgres, mine, &err);
        return;
    }
    if (answer->error) {
        (void)hf__session_explain(session, answer->error, &err);
        hf__postgres_failed(postgres, mine, &err);
        return;
    }
    if (hf__pq.PQntuples(answer->last) == 0) {
        /* Another client has just written it: look again. */
        hf__session_explain_lost(session, &err);
        hf__postgres_unknown(postgres, mine, &err);
        return;
    }
    hf__postgres_whole(postgres, mine->ticket->name, whole);
    other = hf__session_text(answer->last, 0, 0);
    if (strcmp(other, whole) != 0) {
        collide(mine, other);
        return;
    }
    hf__postgres_name(postgres, mine->key)->claimed_ns = call->sent_ns;
    ask(mine);
}

static int claim(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__session_call call = {.done = on_claimed,
                                    .ticket = mine->ticket->id};
    char whole[HF__PG_WHOLE];
    char key[24];
    const char *values[] = {number(mine->key, key), whole};
    int rc;

    hf__postgres_whole(mine->engine, mine->ticket->name, whole);
    rc = hf__session_add(main_of(mine), HF__PG_NAME, values, 2, err);
    if (rc == 0)
        rc = hf__session_send(main_of(mine), &call, err);
    if (rc == 0)
        mine->state = CLAIMING;
    return rc;
}

static int acquire(struct hf__postgres *postgres, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);
    struct hf__postgres_name *name;
    bool known = mine->known;
    int rc;

    hf__postgres_know(postgres, ticket);
    mine->asking = true;
    if (mine->state == HOLDING) { /* its answer was lost on the way to you */
        accept_it(mine);
        return 0;
    }
    if (mine->state != NOWHERE && mine->state != GHOSTLY) {
        if (mine->queued) /* it has kept its place */
            hf__up_queued(&postgres->base, ticket);
        return 0;
    }
    mine->state = NOWHERE;
    name = hf__postgres_name(postgres, mine->key);
    if (!postgres->tables || (name->claimed_ns != 0 &&
                              ticket->sent_ns - name->claimed_ns < CLAIM_NS)) {
        ask(mine);
        return 0;
    }
    rc = claim(mine, err);
    if (rc != 0 && !known)
        hf__postgres_forget(mine);
    return rc;
}

/* ---- in line ------------------------------------------------------------- */

static void on_looked(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__session_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || mine->state != WAITING || !answer || answer->error ||
        hf__pq.PQntuples(answer->last) == 0)
        return;
    queued(mine);
}

/* Stop a wait. The server does not look at a cancel between two statements, so
 * one that may have come too early is repeated. */
static int cancel(struct hf__postgres_ticket *mine, hf_error *err)
{
    struct hf__ghost who = {.pid = mine->session->pid};
    int rc;

    memcpy(who.started, mine->session->started, sizeof(who.started));
    rc = send_ghost(main_of(mine), HF__PG_CANCEL, &who, 0, ignore, err);
    if (rc == 0 && !mine->cancelling) {
        mine->cancelling = true;
        mine->engine->cancelling++;
    }
    mine->watch_ns = hf__now() + AGAIN_NS;
    hf__postgres_wake(mine->engine, mine->watch_ns);
    return rc;
}

static void look(struct hf__postgres_ticket *mine)
{
    struct hf__session_call call = {.done = on_looked,
                                    .ticket = mine->ticket->id};
    char pid[24];
    const char *values[] = {pid};

    mine->watch_ns = 0;
    if (mine->state == RESTING) {
        mine->state = NOWHERE;
        mine->queued = false;
        hf__up_lost(&mine->engine->base, mine->ticket, HF__LOST_SESSION);
        return;
    }
    if (mine->leaving) {
        (void)cancel(mine, NULL);
        return;
    }
    (void)number(mine->session->pid, pid);
    if (hf__session_add(main_of(mine), HF__PG_IS_WAITING, values, 1, NULL) == 0)
        (void)hf__session_send(main_of(mine), &call, NULL);
}

/* A main session without locks needs no lease; the server would end it. */
static int64_t relax_main(struct hf__postgres *postgres, int64_t now_ns)
{
    struct hf__session *main = &postgres->main;
    struct hf__session_call call = {.done = ignore};
    int64_t due_ns = main->spoke_ns + hf__ms_to_ns(main->timeout_ms) / 2;
    const char *values[] = {"0"};

    if (main->timeout_ms == 0 || main->state != HF__SESSION_UP)
        return HF_NEVER;
    if (postgres->held_n > 0)
        return now_ns + hf__ms_to_ns(main->timeout_ms) / 2;
    if (now_ns < due_ns)
        return due_ns;
    if (hf__session_add(main, HF__PG_TIMEOUT, values, 1, NULL) == 0 &&
        hf__session_send(main, &call, NULL) == 0)
        main->timeout_ms = 0;
    return HF_NEVER;
}

/* A session that ends says so to whoever reads: somebody has to, as long as
 * there is an answer to come. */
static void listen_on(struct hf__postgres *postgres, bool on)
{
    if (on == postgres->listening)
        return;
    postgres->listening = on;
    postgres->base.under_way += on ? 1u : -1u;
}

/* When @mine has something due next; what is due is done. */
static int64_t attend(struct hf__postgres_ticket *mine, int64_t now_ns)
{
    if (mine->state == HOLDING)
        return mine->engine->listening ? HF_NEVER : mine->since_ns + LISTEN_NS;
    if ((mine->state != WAITING && mine->state != RESTING) ||
        mine->watch_ns == 0)
        return HF_NEVER;
    if (mine->watch_ns > now_ns)
        return mine->watch_ns;
    look(mine);
    return HF_NEVER;
}

static int64_t tick(struct hf__postgres *postgres, int64_t now_ns)
{
    int64_t next_ns = relax_main(postgres, now_ns);
    bool long_held = false;

    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&postgres->known[i], link) {
            struct hf__postgres_ticket *mine =
                HF_CONTAINER_OF(link, struct hf__postgres_ticket, bucket);
            bool long_one =
                mine->state == HOLDING && now_ns - mine->since_ns >= LISTEN_NS;
            int64_t due_ns = long_one ? HF_NEVER : attend(mine, now_ns);

            long_held |= long_one;
            if (due_ns < next_ns)
                next_ns = due_ns;
        }
    }
    listen_on(postgres, long_held);
    return next_ns;
}

/* ---- leaving ------------------------------------------------------------- */

static void on_gone(struct hf__session *session,
                    const struct hf__session_call *call,
                    const struct hf__session_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    hf_error err;

    if (!mine || mine->state != GHOSTLY || !mine->leaving)
        return;
    if (answer && !answer->error && hf__pq.PQntuples(answer->last) == 0) {
        left(mine, mine->releasing ? HF_ELOST : 0);
        return;
    }
    hf__session_explain_lost(session, &err);
    hf__postgres_unknown(session->engine, mine, &err);
}

static int leave(struct hf__postgres *postgres, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    if (!mine->known) {
        hf__up_left(&postgres->base, ticket, releasing ? HF_ELOST : 0);
        return 0;
    }
    mine->asking = false;
    mine->leaving = true;
    mine->releasing = releasing;
    switch (mine->state) {
    case WAITING:
        return mine->ticket->nowait || mine->cancelling ? 0 : cancel(mine, err);
    case HOLDING:
        return part(mine, err);
    case GHOSTLY:
        return send_ghost(main_of(mine), HF__PG_IS_GONE, &mine->ghost,
                          ticket->id, on_gone, err);
    case TRYING:
    case ACCEPTING:
    case PARTING:
    case UNLOCKING:
        return 0; /* the answer that is under way ends it */
    default:
        hf__sql_pool_forget(&postgres->pool, &mine->want);
        left(mine, releasing ? HF_ELOST : 0);
        return 0;
    }
}

/* ---- renewing ------------------------------------------------------------ */

static void renewed(struct hf__postgres_ticket *mine, int64_t sent_ns)
{
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = lease_of(mine->ticket), .sent_ns = sent_ns};

    if (!mine->beating || mine->state != HOLDING)
        return;
    mine->beating = false;
    mine->confirmed_ns = sent_ns;
    hf__up_renewed(&mine->engine->base, mine->ticket, &grant);
}

static void on_pinged(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__session_answer *answer)
{
    struct hf__postgres *postgres = session->engine;

    if (!answer || answer->error)
        return;
    if (session != &postgres->main) {
        if (session->user)
            renewed(session->user, call->sent_ns);
        return;
    }
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&postgres->held[i], link) {
            renewed(HF_CONTAINER_OF(link, struct hf__postgres_ticket, link),
                    call->sent_ns);
        }
    }
}

static int ping(struct hf__session *session, hf_error *err)
{
    struct hf__session_call call = {.done = on_pinged};
    int rc = hf__session_add(session, HF__PG_PING, NULL, 0, err);

    return rc == 0 ? hf__session_send(session, &call, err) : rc;
}

static int renew(struct hf__postgres *postgres, struct hf__ticket **tickets,
                 size_t n, hf_error *err)
{
    bool main_too = false;
    int sent = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__postgres_ticket *mine =
            hf__postgres_ticket(postgres, tickets[i]);

        if (!mine->known || mine->state != HOLDING)
            continue;
        mine->beating = true;
        if (mine->session == &postgres->main)
            main_too = true;
        else
            sent += ping(mine->session, err) == 0;
    }
    if (main_too)
        sent += ping(&postgres->main, err) == 0;
    return sent > 0 ? 0 : hf__fail(err, HF_EUNAVAILABLE, "nothing to renew");
}

static void on_downgraded(struct hf__session *session,
                          const struct hf__session_call *call,
                          const struct hf__session_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    hf_error err;

    if (!mine || mine->state != HOLDING || !answer)
        return; /* lost with its session */
    if (answer->error) {
        (void)hf__session_explain(session, answer->error, &err);
        hf__up_unknown(&session->engine->base, mine->ticket, &err);
        return;
    }
    mine->ticket->mode = HF_SHARED;
    mine->beating = true;
    renewed(mine, call->sent_ns);
}

static int downgrade(struct hf__postgres *postgres, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);
    struct hf__session_call call = {.done = on_downgraded,
                                    .ticket = ticket->id};
    char key[24];
    const char *values[] = {number(mine->key, key)};
    int rc;

    if (!mine->known || !mine->session)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not held", postgres->peer);
    rc = hf__session_add(mine->session, HF__PG_DOWNGRADE, values, 1, err);
    return rc == 0 ? hf__session_send(mine->session, &call, err) : rc;
}

/* ---- sessions that come and go ------------------------------------------- */

static void lose(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    if (mine->state != HOLDING) {
        cut(mine);
        return;
    }
    leave_session(mine);
    hf__postgres_forget(mine);
    hf__up_lost(&postgres->base, ticket, HF__LOST_SESSION);
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

static void down(struct hf__session *session, const hf_error *err)
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

static void up(struct hf__session *session)
{
    struct hf__postgres *postgres = session->engine;

    if (session != &postgres->main) {
        hf__sql_pool_ready(&postgres->pool, &session->link);
        return;
    }
    end_ghosts(postgres);
    hf__postgres_connected(postgres);
}

const struct hf__postgres_mode hf__postgres_advisory = {
    .name = "advisory",
    .caps = HF_CAP_FENCED | HF_CAP_SHARED | HF_CAP_PUSH | HF_CAP_LEASED |
            HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS,
    .acquire = acquire,
    .leave = leave,
    .renew = renew,
    .downgrade = downgrade,
    .up = up,
    .down = down,
    .tick = tick,
};
