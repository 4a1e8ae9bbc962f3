/* SPDX-License-Identifier: MIT */
/*
 * condition.c - waits on conditions: park, unpark, signal.
 *
 * Each is one swap of the bucket's word (change.c), so there is no instant at
 * which a waiter is neither holding nor parked. A parked record has no lease: it
 * lasts as long as its client lives, and the next change of its name
 * drops the records of dead clients.
 *
 * WATCHING (attend.c). The first that is parked on a condition watches
 * the clients that bear its wake-ups, because nobody else may be in line behind
 * them; each other one watches the one before it. A signal wakes two: the one
 * that it calls, and the one behind it, which is the first now.
 *
 * Failure: a full store refuses to park, and the lock stays held.
 */
#include "base/error.h"
#include "engines/local/local.h"

void hf__local_condition_report(struct hf__local *local,
                                struct hf__ticket *ticket, int answer,
                                int64_t sent_ns)
{
    struct hf__engine *engine = &local->base;
    struct hf__local_ticket *mine = hf__engine_ticket(engine, ticket);
    struct hf__grant alive = {.lease_ms = 0, .sent_ns = sent_ns};

    if (answer == HF__ANSWER_HELD) {
        hf__local_report_grant(local, ticket, sent_ns);
    } else if (answer == HF__ANSWER_WAITING) {
        hf__up_queued(engine, ticket);
    } else if (answer == HF__ANSWER_GONE) {
        hf__local_forget(local, mine);
        hf__up_lost(engine, ticket, HF__LOST_TAKEN);
    } else if (answer == HF__ANSWER_PARKED) {
        hf__up_renewed(engine, ticket, &alive);
    } /* else full, or damaged: it is checked again */
}

int hf__local_park(struct hf__engine *engine, struct hf__ticket *ticket,
                   struct hf__ticket *old, hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    int64_t sent_ns = ticket->sent_ns;
    hf_error why;
    int rc;

    if (!local->connected || !hf__local_check_store(local, sent_ns))
        return hf__local_not_open(err);
    rc = hf__local_ask(local, ticket, sent_ns, /* why= */ 0, old, &why);
    if (rc < 0) {
        hf__up_failed(engine, ticket, &why);
        return 0;
    }
    hf__local_forget(local, hf__engine_ticket(engine, old));
    if (rc != HF__ANSWER_HELD)
        hf__local_tell_watchers(local);
    if (rc == HF__ANSWER_PARKED)
        hf__up_parked(engine, ticket);
    else
        hf__local_condition_report(local, ticket, rc, sent_ns);
    return 0;
}

int hf__local_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    int64_t sent_ns = ticket->sent_ns;
    hf_error why;
    int rc;

    if (!local->connected)
        return hf__local_not_open(err);
    rc = hf__local_ask(local, ticket, sent_ns, HF__ASK_UNPARK, /* old= */ NULL,
                       &why);
    if (rc < 0) {
        hf__up_unknown(engine, ticket, &why);
        return 0;
    }
    if (rc == HF__ANSWER_WAITING)
        hf__local_tell_watchers(local);
    hf__local_condition_report(local, ticket, rc, sent_ns);
    return 0;
}

static int signal_one(struct hf__local *local, struct hf__query *query,
                      const struct hf__key *key, hf_error *err)
{
    return hf__change_signal(&local->store, key, query->ticket, query->cond,
                             query->all, &query->woken, err);
}

int hf__local_signal(struct hf__engine *engine, struct hf__query *query,
                     hf_error *err)
{
    return hf__local_answer(engine, query, signal_one, err);
}
