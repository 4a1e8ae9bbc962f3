/* SPDX-License-Identifier: MIT */
/*
 * advisory.c - mode=advisory: session locks of the server; and mode=for_update:
 * a row that a session's transaction holds.
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
 * In mode=for_update every lock has a session of the pool, and a transaction:
 * it inserts a row with the name, and deletes it at once. Until it ends nobody
 * else can insert that row, and however it ends, nothing of it stays.
 *
 * The lease of a grant counts from when the statement that waited was sent. If
 * that was long ago, one more trip makes sure that the session is still there.
 *
 * Failure: what ends in an error is undone before it is reported (unlock.c).
 */
#include "engines/postgres/advisory.h"

/* After so many grants at once, nobody seems to contend any more. */
enum { QUIET = 8 };
/* A wait that is not over by then is looked at: does it stand in line? */
#define LOOK_NS (20 * HF_MS)
/* Before a waiter that got no session asks again. */
#define REST_NS (100 * HF_MS)

/* ---- granted ------------------------------------------------------------- */

static void granted(struct hf__postgres_ticket *mine, int64_t sent_ns)
{
    struct hf__postgres_name *name = hf__postgres_name(mine->engine, mine->key);
    struct hf__grant grant = {
        .token = mine->token,
        .tokens = 1,
        .lease_ms = hf__advisory_lease(mine->ticket),
        .sent_ns = sent_ns,
    };

    if (mine->session == hf__advisory_main(mine) && name->contended > 0)
        name->contended--;
    mine->state = HF__PG_HOLDING;
    mine->asking = false;
    mine->queued = false;
    mine->confirmed_ns = sent_ns;
    mine->since_ns = hf__now();
    if (!mine->engine->listening)
        hf__postgres_wake(mine->engine, mine->since_ns + HF__PG_LISTEN_NS);
    hf__up_granted(&mine->engine->base, mine->ticket, &grant);
}

static void on_accepted(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || mine->state != HF__PG_ACCEPTING)
        return;
    if (!answer || (mine->leaving && hf__advisory_unlock(mine, NULL) != 0))
        hf__advisory_cut(mine);
    else if (!mine->leaving)
        granted(mine, call->sent_ns);
}

/* Granted, so long after it was asked for that the lease may be over. */
static void accept_it(struct hf__postgres_ticket *mine)
{
    struct hf__session_call call = {.done = on_accepted,
                                    .ticket = mine->ticket->id};

    mine->state = HF__PG_ACCEPTING;
    if (hf__session_add(mine->session, HF__PG_PING, NULL, 0, NULL) != 0 ||
        hf__session_send(mine->session, &call, NULL) != 0)
        hf__advisory_cut(mine);
}

/* ---- asking -------------------------------------------------------------- */

static void busy(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    hf__advisory_leave_session(mine);
    mine->state = HF__PG_NOWHERE;
    if (mine->leaving) {
        hf__postgres_forget(mine);
        hf__up_left(&postgres->base, ticket, 0);
        return;
    }
    if (!ticket->nowait)
        hf__postgres_name(postgres, mine->key)->contended = QUIET;
    mine->refused = true;
    hf__advisory_check(mine);
}

void hf__advisory_checked(struct hf__postgres_ticket *mine)
{
    struct hf__postgres *postgres = mine->engine;
    struct hf__ticket *ticket = mine->ticket;

    if (!mine->refused || !ticket->nowait) {
        hf__advisory_want_session(mine, mine->refused);
        return;
    }
    mine->asking = false;
    hf__postgres_forget(mine);
    hf__up_busy(&postgres->base, ticket, /* again_ns= */ 0, /* holder= */ NULL);
}

static void on_asked(struct hf__session *session,
                     const struct hf__session_call *call,
                     const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    bool transacts = hf__advisory_transacts(session->engine);
    const struct hf__pg_result *result;

    if (!mine ||
        (mine->state != HF__PG_TRYING && mine->state != HF__PG_WAITING))
        return;
    mine->watch_ns = 0;
    hf__advisory_stopped(mine);
    if (!answer) {
        hf__advisory_cut(mine);
        return;
    }
    result = answer->last;
    if (answer->error) {
        hf__advisory_undo(mine, answer->error);
    } else if (!transacts && result->rows == 0) {
        busy(mine);
    } else if (mine->leaving) {
        if (hf__advisory_unlock(mine, NULL) != 0)
            hf__advisory_cut(mine);
    } else {
        if (!transacts)
            mine->token = (uint64_t)hf__pg_number(result, 0, 0, 0);
        if (hf__now() - call->sent_ns >
            hf__ms_to_ns(hf__advisory_lease(mine->ticket)) / 3)
            accept_it(mine);
        else
            granted(mine, call->sent_ns);
    }
}

static int add_lock(struct hf__postgres_ticket *mine, bool wait, hf_error *err)
{
    bool shared = mine->ticket->mode == HF_SHARED;
    char key[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(mine->key, key)};
    int rc = hf__advisory_mark(mine, err);

    if (rc == 0)
        rc = hf__session_add(mine->session,
                             wait ? shared ? HF__PG_WAIT_SHARED : HF__PG_WAIT
                             : shared ? HF__PG_TRY_SHARED
                                      : HF__PG_TRY,
                             values, 1, err);
    return rc;
}

/* How long a transaction waits for a lock: for a try the least there is. */
static int add_patience(struct hf__session *session, bool wait, const char *ms,
                        hf_error *err)
{
    return wait ? 0 : hf__session_add(session, HF__PG_PATIENCE, &ms, 1, err);
}

static int add_transaction(struct hf__postgres_ticket *mine, bool wait,
                           hf_error *err)
{
    struct hf__session *session = mine->session;
    char whole[HF__PG_WHOLE];
    const char *values[] = {whole, whole};
    int rc = hf__session_add(session, HF__PG_BEGIN, NULL, 0, err);

    hf__postgres_whole(mine->engine, mine->ticket->name, whole);
    if (rc == 0)
        rc = add_patience(session, wait, "1", err);
    if (rc == 0 && mine->engine->own_lock)
        rc = hf__session_add(session, HF__PG_OWN_LOCK, values, 2, err);
    else if (rc == 0)
        rc = hf__session_add(session, HF__PG_INSERT, values, 1, err);
    if (rc == 0)
        rc = add_patience(session, wait, "0", err);
    if (rc == 0 && !mine->engine->own_lock)
        rc = hf__session_add(session, HF__PG_DELETE, values, 1, err);
    return rc;
}

/* Ask on @mine->session, which gets the ticket's lease if it has another. */
static int ask_session(struct hf__postgres_ticket *mine, bool wait)
{
    struct hf__session *session = mine->session;
    struct hf__session_call call = {
        .done = on_asked, .ticket = mine->ticket->id, .patient = wait};
    int64_t lease_ms = hf__advisory_lease(mine->ticket);
    char room[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(lease_ms, room)};
    int rc = 0;

    if (session->timeout_ms != lease_ms) {
        rc = hf__session_add(session, HF__PG_TIMEOUT, values, 1, NULL);
        session->timeout_ms = lease_ms;
        hf__postgres_wake(mine->engine, hf__now() + hf__ms_to_ns(lease_ms) / 2);
    }
    if (rc == 0)
        rc = hf__advisory_transacts(mine->engine)
                 ? add_transaction(mine, wait, NULL)
                 : add_lock(mine, wait, NULL);
    return rc == 0 ? hf__session_send(session, &call, NULL) : rc;
}

void hf__advisory_queued(struct hf__postgres_ticket *mine)
{
    bool told = mine->queued;

    mine->queued = true;
    mine->asking = false;
    mine->watch_ns = 0;
    if (!told && !mine->leaving)
        hf__up_queued(&mine->engine->base, mine->ticket);
}

void hf__advisory_rest(struct hf__postgres_ticket *mine)
{
    mine->state = HF__PG_RESTING;
    hf__advisory_watch(mine, REST_NS);
}

static void no_session(struct hf__postgres_ticket *mine, const hf_error *err)
{
    mine->state = HF__PG_NOWHERE;
    if (mine->asking)
        hf__postgres_failed(mine->engine, mine, err);
    else
        hf__advisory_rest(mine);
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
    mine->state = HF__PG_WAITING;
    if (ask_session(mine, wait) != 0) {
        hf__advisory_cut(mine);
        return;
    }
    if (wait)
        hf__advisory_watch(mine, LOOK_NS);
}

void hf__advisory_want_session(struct hf__postgres_ticket *mine, bool refused)
{
    hf_error err;

    mine->state = HF__PG_WANTING;
    mine->want.got = got_session;
    if (hf__sql_pool_take(&mine->engine->pool, &mine->want, &err) != 0)
        no_session(mine, &err);
    else if (refused && mine->state == HF__PG_WANTING)
        hf__advisory_queued(mine); /* somebody has it; a session will come */
}

/* ---- where to ask -------------------------------------------------------- */

/* Who has, or asks for, the key of @mine on the main session already. */
static struct hf__postgres_ticket *find_on_main(
    const struct hf__postgres_ticket *mine)
{
    struct hf__list *bucket =
        &mine->engine->held[(uint64_t)mine->key % HF__PG_BUCKETS];

    HF_LIST_EACH(bucket, link) {
        struct hf__postgres_ticket *other =
            HF_CONTAINER_OF(link, struct hf__postgres_ticket, link);

        if (other->key == mine->key)
            return other;
    }
    return NULL;
}

/* The main session has no transactions, and locks of one lease only. */
static bool fits_main(const struct hf__postgres_ticket *mine)
{
    const struct hf__postgres *postgres = mine->engine;

    return !hf__advisory_transacts(postgres) &&
           (postgres->held_n == 0 ||
            postgres->main.timeout_ms == hf__advisory_lease(mine->ticket));
}

static void ask_main(struct hf__postgres_ticket *mine)
{
    hf__advisory_on_main(mine);
    mine->state = HF__PG_TRYING;
    if (ask_session(mine, /* wait= */ false) != 0)
        hf__advisory_cut(mine);
}

static void ask(struct hf__postgres_ticket *mine)
{
    const struct hf__postgres_name *name =
        hf__postgres_name(mine->engine, mine->key);
    const struct hf__postgres_ticket *ours = find_on_main(mine);
    bool nowait = mine->ticket->nowait;

    mine->refused = false;
    mine->unsure = false;
    if (ours && strcmp(ours->ticket->name, mine->ticket->name) != 0)
        hf__advisory_collide(mine, ours->ticket->name);
    else if (ours) /* what we have exclusively ourselves is not free */
        hf__advisory_want_session(mine, mine->ticket->mode == HF_EXCLUSIVE &&
                                            !nowait);
    else if (name->contended > 0 && !nowait && mine->engine->pool.n_idle > 0)
        hf__advisory_check(mine);
    else if (!fits_main(mine))
        hf__advisory_want_session(mine, /* refused= */ false);
    else
        ask_main(mine);
}

int hf__advisory_acquire(struct hf__postgres *postgres,
                         struct hf__ticket *ticket, hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    hf__postgres_know(postgres, ticket);
    mine->asking = true;
    if (mine->state == HF__PG_HOLDING) { /* its answer was lost on the way */
        accept_it(mine);
        return 0;
    }
    if (mine->state == HF__PG_STUCK) /* first that has to be undone */
        return hf__advisory_unlock(mine, err);
    if (mine->state != HF__PG_NOWHERE && mine->state != HF__PG_GHOSTLY) {
        if (mine->queued) { /* it has kept its place */
            mine->asking = false;
            hf__up_queued(&postgres->base, ticket);
        }
        return 0;
    }
    mine->state = HF__PG_NOWHERE;
    ask(mine);
    return 0;
}

const struct hf__postgres_mode hf__postgres_advisory = {
    .name = "advisory",
    .caps = HF_CAP_FENCED | HF_CAP_SHARED | HF_CAP_PUSH | HF_CAP_LEASED |
            HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS,
    .acquire = hf__advisory_acquire,
    .leave = hf__advisory_leave,
    .renew = hf__advisory_renew,
    .downgrade = hf__advisory_downgrade,
    .up = hf__advisory_up,
    .down = hf__advisory_down,
    .tick = hf__advisory_tick,
};

const struct hf__postgres_mode hf__postgres_for_update = {
    .name = "for_update",
    /* A number that is taken from a sequence is on disk with the commit. */
    .caps = HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_VERSIONS,
    .tables = true,
    .acquire = hf__advisory_acquire,
    .leave = hf__advisory_leave,
    .renew = hf__advisory_renew,
    .up = hf__advisory_up,
    .down = hf__advisory_down,
    .tick = hf__advisory_tick,
};
