/* SPDX-License-Identifier: MIT */
/*
 * keep.c - what is done for a lock in a session from time to time: waits are
 * looked at, leases renewed, sessions listened to.
 *
 * Failure: a ping that is not answered is silence; the core counts the time. A
 * session that ends takes its locks with it, and says so to whoever reads.
 */
#include "engines/postgres/advisory.h"

/* ---- in line ------------------------------------------------------------- */

void hf__advisory_watch(struct hf__postgres_ticket *mine, int64_t pause_ns)
{
    mine->watch_ns = hf__now() + pause_ns;
    hf__postgres_wake(mine->engine, mine->watch_ns);
}

static void on_looked(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);

    if (!mine || mine->state != HF__PG_WAITING || mine->leaving || !answer ||
        answer->error)
        return;
    if (answer->results[0].rows > 0)
        hf__advisory_queued(mine);
    if (!hf__advisory_transacts(mine->engine))
        hf__advisory_watch(mine, HF__PG_CHECKED_NS);
    if (answer->n > 1)
        hf__advisory_add_checked(mine, answer->last, call->sent_ns);
}

static void look(struct hf__postgres_ticket *mine)
{
    struct hf__session_call call = {.done = on_looked,
                                    .ticket = mine->ticket->id};
    char pid[HF__PG_DIGITS];
    const char *values[1];

    mine->watch_ns = 0;
    if (mine->state == HF__PG_RESTING) {
        hf__advisory_lose(mine);
        return;
    }
    if (mine->leaving) {
        (void)hf__advisory_cancel(mine, NULL);
        return;
    }
    values[0] = hf__postgres_number(mine->session->pid, pid);
    if (hf__session_add(hf__advisory_main(mine), HF__PG_IS_WAITING, values, 1,
                        NULL) == 0 &&
        (hf__advisory_transacts(mine->engine) ||
         hf__advisory_is_checked(mine) ||
         hf__advisory_add_check(mine, NULL) == 0))
        (void)hf__session_send(hf__advisory_main(mine), &call, NULL);
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
    if (mine->state == HF__PG_HOLDING)
        return mine->engine->listening ? HF_NEVER
                                       : mine->since_ns + HF__PG_LISTEN_NS;
    if ((mine->state != HF__PG_WAITING && mine->state != HF__PG_RESTING) ||
        mine->watch_ns == 0)
        return HF_NEVER;
    if (mine->watch_ns > now_ns)
        return mine->watch_ns;
    look(mine);
    return HF_NEVER;
}

int64_t hf__advisory_tick(struct hf__postgres *postgres, int64_t now_ns)
{
    int64_t next_ns = hf__advisory_relax(postgres, now_ns);
    bool long_held = false;

    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        HF_LIST_EACH(&postgres->known[i], link) {
            struct hf__postgres_ticket *mine =
                HF_CONTAINER_OF(link, struct hf__postgres_ticket, bucket);
            bool long_one = mine->state == HF__PG_HOLDING &&
                            now_ns - mine->since_ns >= HF__PG_LISTEN_NS;
            int64_t due_ns = long_one ? HF_NEVER : attend(mine, now_ns);

            long_held |= long_one;
            if (due_ns < next_ns)
                next_ns = due_ns;
        }
    }
    listen_on(postgres, long_held);
    return next_ns;
}

/* ---- renewing ------------------------------------------------------------ */

static void renewed(struct hf__postgres_ticket *mine, int64_t sent_ns)
{
    struct hf__grant grant = {.tokens = 1,
                              .lease_ms = hf__advisory_lease(mine->ticket),
                              .sent_ns = sent_ns};

    if (!mine->beating || mine->state != HF__PG_HOLDING)
        return;
    mine->beating = false;
    mine->confirmed_ns = sent_ns;
    hf__up_renewed(&mine->engine->base, mine->ticket, &grant);
}

static void on_pinged(struct hf__session *session,
                      const struct hf__session_call *call,
                      const struct hf__pg_answer *answer)
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

int hf__advisory_renew(struct hf__postgres *postgres,
                       struct hf__ticket **tickets, size_t n, hf_error *err)
{
    bool main_too = false;
    int sent = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__postgres_ticket *mine =
            hf__postgres_ticket(postgres, tickets[i]);

        if (!mine->known || mine->state != HF__PG_HOLDING)
            continue;
        if (hf__advisory_renews_lent(mine)) {
            sent++;
            continue;
        }
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
                          const struct hf__pg_answer *answer)
{
    struct hf__postgres_ticket *mine =
        hf__postgres_find(session->engine, call->ticket);
    hf_error err;

    if (!mine || mine->state != HF__PG_HOLDING || !answer)
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

int hf__advisory_downgrade(struct hf__postgres *postgres,
                           struct hf__ticket *ticket, hf_error *err)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);
    struct hf__session_call call = {.done = on_downgraded,
                                    .ticket = ticket->id};
    char key[HF__PG_DIGITS];
    const char *values[] = {hf__postgres_number(mine->key, key)};
    int rc;

    if (!mine->known || !mine->session)
        return hf__fail(err, HF_EUNAVAILABLE, "%s: not held", postgres->peer);
    rc = hf__session_add(mine->session, HF__PG_DOWNGRADE, values, 1, err);
    return rc == 0 ? hf__session_send(mine->session, &call, err) : rc;
}
