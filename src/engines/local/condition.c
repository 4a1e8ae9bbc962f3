/* SPDX-License-Identifier: MIT */
/*
 * condition.c - waits on conditions: park, unpark, signal.
 *
 * Each is one swap of the bucket's word (change.c), so there is no instant at
 * which a waiter is neither holding nor parked. A parked record has no lease: it
 * lasts as long as its client lives, and whoever holds the name next drops the
 * records of the dead.
 *
 * WHO WATCHES WHOM (attend.c). The first that is parked on a condition watches
 * the clients that bear its wake-ups, because nobody else may be in line behind
 * them; each other one watches the one before it. A signal wakes two: the one
 * that it calls, and the one behind it, which is the first now.
 *
 * Failure: a full store refuses to park, and the lock stays held.
 */
#include "base/error.h"
#include "engines/local/local.h"

static int not_connected(hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "the local store is not open");
}

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
    struct hf__leave leave = {.id = old->id,
                              .used = hf__local_last_used(local, old),
                              .in_order = true};
    struct hf__asker asker;
    struct hf__result result;
    struct hf__key key;
    hf_error why;
    int rc;

    if (!local->connected || !hf__local_check_store(local, ticket->sent_ns))
        return not_connected(err);
    hf__local_key(local, ticket->name, ticket->name_len, &key);
    hf__local_asker(local, ticket, ticket->sent_ns, &asker);
    rc = hf__change_park(&local->store, &key, &asker, &leave, &result, &why);
    if (rc < 0) {
        hf__up_failed(engine, ticket, &why);
        return 0;
    }
    hf__local_forget(local, hf__engine_ticket(engine, old));
    hf__local_note(local, ticket, &key, rc, &result, asker.now_ns);
    if (rc != HF__ANSWER_HELD)
        hf__local_tell_watchers(local);
    if (rc == HF__ANSWER_PARKED)
        hf__up_parked(engine, ticket);
    else
        hf__local_condition_report(local, ticket, rc, ticket->sent_ns);
    return 0;
}

int hf__local_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    struct hf__asker asker;
    struct hf__result result;
    struct hf__key key;
    hf_error why;
    int rc;

    if (!local->connected)
        return not_connected(err);
    hf__local_key(local, ticket->name, ticket->name_len, &key);
    hf__local_asker(local, ticket, ticket->sent_ns, &asker);
    asker.unpark = true;
    rc = hf__change_ask(&local->store, &key, &asker, &result, &why);
    hf__local_note(local, ticket, &key, rc, &result, asker.now_ns);
    if (rc < 0) {
        hf__up_unknown(engine, ticket, &why);
        return 0;
    }
    if (rc == HF__ANSWER_WAITING)
        hf__local_tell_watchers(local);
    hf__local_condition_report(local, ticket, rc, ticket->sent_ns);
    return 0;
}

int hf__local_signal(struct hf__engine *engine, struct hf__query *query,
                     hf_error *err)
{
    struct hf__local *local = (struct hf__local *)engine;
    struct hf__key key;
    hf_error why;
    int rc;

    if (!local->connected)
        return not_connected(err);
    hf__local_key(local, query->name, strlen(query->name), &key);
    rc = hf__change_signal(&local->store, &key, query->ticket, query->cond,
                           query->all, &query->woken, &why);
    hf__up_answer(engine, query, rc, &why);
    return 0;
}
