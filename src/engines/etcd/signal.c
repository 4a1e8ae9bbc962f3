/* SPDX-License-Identifier: MIT */
/*
 * signal.c - waking those who are parked.
 *
 * We read who is parked and who of them is called. Then one transaction adds a
 * stamp and touches the record that it calls, if our key is the one that we were
 * granted, nobody has changed the stamps, and that record still exists.
 * Otherwise we look again. A stamp is the revision behind the one that we read
 * at: it counts for the records that we saw. A broadcast is one stamp, too: it
 * touches the first records, and each one that is called tells the one behind it
 * (condition.c).
 *
 * Stamps that nobody is left for are dropped on this occasion.
 *
 * Failure: a signal whose answer was lost is repeated by the core, and may then
 * wake one more.
 */
#include "engines/etcd/etcd.h"

enum { TOUCHED = 100 }; /* records, by one broadcast: 128 parts are allowed */

/* Answer the first signal; the next one needs to look again. */
static void finish(struct hf__etcd *etcd, struct hf__etcd_condition *condition,
                   int rc, const hf_error *err)
{
    size_t woken = hf__signals_first(&condition->signals)->woken;
    struct hf__query *query = hf__signals_take(&condition->signals);
    hf_error copy;

    if (err)
        copy = *err;
    query->woken = rc == 0 ? (uint32_t)woken : 0;
    if (hf__signals_first(&condition->signals))
        hf__etcd_condition_look(etcd, condition);
    else
        hf__etcd_condition_tidy(etcd, condition);
    hf__up_answer(&etcd->base, query, rc, err ? &copy : NULL);
}

static void finish_lost(struct hf__etcd *etcd,
                        struct hf__etcd_condition *condition)
{
    hf_error err;
    int rc =
        hf__fail(&err, HF_ELOST, "'%s' is not held any more", condition->name);

    finish(etcd, condition, rc, &err);
}

void hf__etcd_signal_failed(struct hf__etcd *etcd,
                            struct hf__etcd_condition *condition,
                            const hf_error *err)
{
    uint64_t id = condition->id;
    const struct hf__signal *signal;

    while (condition &&
           (signal = hf__signals_first(&condition->signals)) != NULL &&
           !signal->sent) {
        hf__up_answer(&etcd->base, hf__signals_take(&condition->signals),
                      err->code != 0 ? err->code : HF_EUNAVAILABLE, err);
        condition = hf__etcd_condition_find(etcd, id);
    }
    if (condition)
        hf__etcd_condition_tidy(etcd, condition);
}

/* The code for a transaction without a good answer. */
static int code_of(const struct hf__etcd_reply *reply)
{
    if (reply->code == HF__ETCD_LOST)
        return HF_EUNKNOWN;
    return reply->err.code != 0 ? reply->err.code : HF_EUNAVAILABLE;
}

static void on_signalled(struct hf__etcd *etcd, struct hf__etcd_call *call,
                         const struct hf__etcd_reply *reply)
{
    struct hf__etcd_condition *condition =
        hf__etcd_condition_find(etcd, call->condition);
    struct hf__signal *signal =
        condition ? hf__signals_first(&condition->signals) : NULL;
    struct hf__pb own;
    hf_error err = reply->err;

    if (!signal)
        return;
    signal->sent = false;
    if (reply->code != HF__ETCD_OK) {
        err.code = code_of(reply);
        finish(etcd, condition, err.code, &err);
        return;
    }
    own = hf__etcd_queue_first_of(hf__etcd_queue_range_of(reply->root, 0));
    if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0) {
        finish(etcd, condition, 0, /* err= */ NULL);
    } else if (hf__etcd_queue_read(own).revision != call->n) {
        finish_lost(etcd, condition);
    } else if (++signal->tries < TOUCHED) {
        hf__etcd_condition_look(etcd, condition);
    } else {
        (void)hf__fail(&err, HF_EUNAVAILABLE,
                       "etcd %s: the wake-ups change again and again",
                       hf__etcd_connection_peer(etcd));
        finish(etcd, condition, err.code, &err);
    }
}

/* Add the parts that touch the records that are called now, if they are still
 * there. */
static void add_touches(struct hf__etcd *etcd, struct hf__buf *to,
                        const struct hf__etcd_view *view, size_t woken)
{
    size_t end = view->called + (woken < TOUCHED ? woken : TOUCHED);

    for (size_t i = view->called; i < end; i++) {
        hf__etcd_queue_key_of(etcd, view->line[i].key);
        hf__etcd_queue_add_compare(etcd, to, /* range= */ false,
                                   view->line[i].made);
        hf__etcd_condition_add_touch(to, view->line[i].key);
    }
}

static int send_stamp(struct hf__etcd *etcd,
                      struct hf__etcd_condition *condition,
                      struct hf__etcd_view *view, struct hf__ticket *ticket,
                      hf_error *err)
{
    struct hf__signal *signal = hf__signals_first(&condition->signals);
    struct hf__etcd_call *call;
    bool changed;
    int rc = hf__signals_stamp(signal, &view->wakes,
                               view->n > 0 ? view->made[0] : UINT64_MAX,
                               view->revision + 1, &changed, err);

    if (rc != 0)
        return rc;
    call = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_signalled);
    call->condition = condition->id;
    call->n = hf__etcd_ticket(etcd, ticket)->revision;
    hf__etcd_queue_key_ticket(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, &call->rpc.body, /* range= */ false,
                               call->n);
    hf__etcd_queue_add_get(etcd, &call->rpc.body, HF__TXN_FAILURE);
    hf__etcd_condition_add_stamps(etcd, &call->rpc.body, condition,
                                  &view->wakes, view->stamped, changed);
    add_touches(etcd, &call->rpc.body, view, signal->woken);
    rc = hf__etcd_connection_send(call, err);
    signal->sent = rc == 0;
    return rc;
}

void hf__etcd_signal_send(struct hf__etcd *etcd,
                          struct hf__etcd_condition *condition,
                          struct hf__etcd_view *view)
{
    struct hf__signal *signal = hf__signals_first(&condition->signals);
    size_t parked = view->n - view->called;
    struct hf__ticket *ticket;
    hf_error err;
    int rc;

    if (!signal || signal->sent)
        return;
    ticket = hf__ticket_table_find(&etcd->tickets, signal->query->ticket);
    if (!ticket || hf__etcd_ticket(etcd, ticket)->state != HF__ETCD_HELD) {
        finish_lost(etcd, condition);
        return;
    }
    signal->woken = signal->query->all || parked == 0 ? parked : 1;
    rc = send_stamp(etcd, condition, view, ticket, &err);
    if (rc != 0)
        finish(etcd, condition, rc, &err);
}

int hf__etcd_signal(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_condition *condition;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    condition = hf__etcd_condition_get(etcd, query->name, query->cond);
    if (!condition)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    if (hf__signals_add(&condition->signals, query) != 0) {
        hf__etcd_condition_tidy(etcd, condition);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    hf__etcd_condition_look(etcd, condition);
    return 0;
}
