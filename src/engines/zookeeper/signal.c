/* SPDX-License-Identifier: MIT */
/*
 * signal.c - waking those who are parked.
 *
 * We read who is parked and who of them is called. Then one transaction adds a
 * stamp and touches the record that it calls, if our lock's node is still there,
 * nobody has changed the stamps, and that record still exists. Otherwise we look
 * again. A broadcast is one stamp, too: it touches the first records, and each
 * one that is called tells the one behind it (condition.c).
 *
 * Stamps that nobody is left for are dropped on this occasion.
 *
 * Failure: a signal whose answer was lost is repeated by the core, and may then
 * wake one more.
 */
#include "engines/zookeeper/zookeeper.h"

enum { TOUCHED = 100 }; /* records, by one broadcast */

/* Answer the first signal; the next one needs to look again. */
static void finish(struct hf__zk *zk, struct hf__zk_condition *condition,
                   int rc, const hf_error *err)
{
    size_t woken = hf__signals_first(&condition->signals)->woken;
    struct hf__query *query = hf__signals_take(&condition->signals);

    query->woken = rc == 0 ? (uint32_t)woken : 0;
    if (hf__signals_first(&condition->signals))
        hf__zk_condition_look(zk, condition);
    else
        hf__zk_condition_tidy(condition);
    hf__up_answer(&zk->base, query, rc, err);
}

static void finish_lost(struct hf__zk *zk, struct hf__zk_condition *condition)
{
    const struct hf__query *query =
        hf__signals_first(&condition->signals)->query;
    hf_error err;
    int rc = hf__fail(&err, HF_ELOST, "'%s' is not held any more", query->name);

    finish(zk, condition, rc, &err);
}

static void finish_unavailable(struct hf__zk *zk,
                               struct hf__zk_condition *condition, int code)
{
    hf_error err;

    (void)hf__zk_errors_lost(zk, &err);
    err.code = code;
    finish(zk, condition, code, &err);
}

void hf__zk_signal_failed(struct hf__zk *zk, struct hf__zk_condition *condition)
{
    uint64_t id = condition->id;
    const struct hf__signal *signal;

    while (condition &&
           (signal = hf__signals_first(&condition->signals)) != NULL &&
           !signal->sent) {
        hf_error err;
        int rc = hf__zk_errors_lost(zk, &err);

        hf__up_answer(&zk->base, hf__signals_take(&condition->signals), rc,
                      &err);
        condition = hf__zk_condition_find(zk, id);
    }
    if (condition)
        hf__zk_condition_tidy(condition);
}

/* Part 0 compares the lock's node, part 1 the stamps; the others touch. */
static void on_signalled(struct hf__zk *zk, const struct hf__zk_call *call,
                         struct hf__zk_reply *reply)
{
    struct hf__zk_condition *condition =
        hf__zk_condition_find(zk, call->condition);
    struct hf__signal *signal =
        condition ? hf__signals_first(&condition->signals) : NULL;
    struct hf__zk_multi_result result;
    hf_error err;

    if (!signal)
        return;
    signal->sent = false;
    if (!reply) {
        finish_unavailable(zk, condition, HF_EUNKNOWN);
        return;
    }
    result = hf__zk_multi_result(reply);
    if (result.error == HF__ZK_OK) {
        finish(zk, condition, 0, /* err= */ NULL);
    } else if (result.error == HF__ZK_NO_NODE && result.failed == 0) {
        finish_lost(zk, condition);
    } else if ((result.error == HF__ZK_NO_NODE ||
                result.error == HF__ZK_BAD_VERSION) &&
               ++signal->tries < TOUCHED) {
        hf__zk_condition_look(zk, condition);
    } else {
        (void)hf__zk_errors_read(zk, result.error, &err);
        finish(zk, condition, err.code, &err);
    }
}

/* Add the parts that touch the records that are called now. */
static void add_touches(struct hf__zk *zk,
                        const struct hf__zk_condition *condition,
                        const struct hf__zk_view *view, size_t woken)
{
    uint32_t end = view->called + (uint32_t)(woken < TOUCHED ? woken : TOUCHED);

    for (uint32_t i = view->called; i < end; i++)
        hf__zk_multi_set(zk,
                         hf__zk_nodes_below(zk, hf__zk_condition_dir(condition),
                                            view->line.all[i].name),
                         hf__zk_wire_text_of(""), HF__ZK_ANY_VERSION);
}

static int send_stamp(struct hf__zk *zk, struct hf__zk_condition *condition,
                      struct hf__zk_view *view,
                      const struct hf__zk_ticket *mine, hf_error *err)
{
    struct hf__signal *signal = hf__signals_first(&condition->signals);
    struct hf__zk_call call = {.done = on_signalled,
                               .condition = condition->id};
    struct hf__buf stamps = {0};
    uint32_t n = view->line.n;
    bool changed;
    size_t mark;
    int rc = hf__signals_stamp(
        signal, &view->wakes, n > 0 ? view->made[0] : UINT64_MAX,
        n > 0 ? view->made[n - 1] + 1 : 0, &changed, err);

    if (rc != 0)
        return rc;
    mark = hf__zk_calls_begin(zk, HF__ZK_MULTI);
    hf__zk_multi_check(zk, hf__zk_nodes_own(mine), HF__ZK_ANY_VERSION);
    if (changed) {
        hf__zk_condition_write(&view->wakes,
                               n > 0 ? view->line.all[0].sequence : 0, &stamps);
        hf__zk_multi_set(zk, hf__zk_condition_dir(condition),
                         hf__zk_wire_text_in(&stamps), view->version);
        add_touches(zk, condition, view, signal->woken);
    }
    hf__buf_release(&stamps);
    rc = hf__zk_multi_end(zk, mark, &call, err);
    signal->sent = rc == 0;
    return rc;
}

void hf__zk_signal_send(struct hf__zk *zk, struct hf__zk_condition *condition,
                        struct hf__zk_view *view)
{
    struct hf__signal *signal = hf__signals_first(&condition->signals);
    struct hf__ticket *ticket;
    uint32_t parked = view->line.n - view->called;
    hf_error err;
    int rc;

    if (!signal || signal->sent)
        return;
    ticket = hf__zk_tickets_find(zk, signal->query->ticket);
    if (!ticket || hf__zk_ticket(zk, ticket)->state != HF__ZK_HELD ||
        hf__zk_ticket(zk, ticket)->node != HF__ZK_NODE_KNOWN) {
        finish_lost(zk, condition);
        return;
    }
    signal->woken = signal->query->all || parked == 0 ? parked : 1;
    rc = send_stamp(zk, condition, view, hf__zk_ticket(zk, ticket), &err);
    if (rc != 0)
        finish(zk, condition, rc, &err);
}

int hf__zk_signal(struct hf__engine *engine, struct hf__query *query,
                  hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_condition *condition;

    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    condition =
        hf__zk_condition_get(zk, query->name, strlen(query->name), query->cond);
    if (!condition)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    if (hf__signals_add(&condition->signals, query) != 0) {
        hf__zk_condition_tidy(condition);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    hf__zk_condition_look(zk, condition);
    return 0;
}
