/* SPDX-License-Identifier: MIT */
/*
 * release.c - release and withdraw.
 *
 * A transaction that we gave up may still be on its way, and would create the
 * key after the release. So a release, while that is possible, puts a sign
 * beside the queue in the transaction that deletes the key, and every acquire
 * checks that sign. The sign carries the ticket's lease and ends with it; the
 * server refuses a transaction that arrives even later, because its lease is
 * gone.
 *
 * A ticket with a condition may have a record there. One that holds leaves in one
 * transaction that uses up its wake-up (park.c); otherwise the record goes with
 * the key, and the wake-up passes on.
 *
 * Failure: "lease not found" is certain: there is no key any more.
 */
#include "engines/etcd/etcd.h"

/* The sign that the ticket was released. */
static void add_sign(struct hf__etcd *etcd, struct hf__buf *to, uint32_t field,
                     struct hf__ticket *ticket)
{
    size_t part;
    size_t put;

    hf__etcd_queue_key_gone(etcd, ticket);
    part = hf__etcd_queue_begin_put(
        etcd, to, field, hf__etcd_ticket(etcd, ticket)->lease_id, &put);
    hf__pb_end(to, put);
    hf__pb_end(to, part);
}

/* May an acquire or a park() still be on its way? */
static bool is_doubted(const struct hf__etcd_ticket *mine)
{
    return mine->key == HF__ETCD_DOUBTED ||
           mine->record == HF__ETCD_RECORD_UNSURE ||
           mine->record == HF__ETCD_RECORD_DOUBTED;
}

/* Is its key all that is to be deleted, and no sign needed? */
static bool is_plain(const struct hf__etcd_ticket *mine)
{
    return mine->key != HF__ETCD_DOUBTED &&
           mine->record == HF__ETCD_RECORD_NONE;
}

/* Delete the key; @guarded: only if it is the one we were granted. */
static void add_release(struct hf__etcd *etcd, struct hf__buf *to,
                        struct hf__ticket *ticket, bool guarded)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    hf__etcd_queue_key_ticket(etcd, ticket);
    if (guarded)
        hf__etcd_queue_add_compare(etcd, to, /* range= */ false,
                                   mine->revision);
    hf__etcd_queue_add_delete(etcd, to);
    if (mine->record != HF__ETCD_RECORD_NONE) {
        hf__etcd_queue_key_record(etcd, ticket);
        hf__etcd_queue_add_delete(etcd, to);
    }
    if (!is_doubted(mine))
        return;
    add_sign(etcd, to, HF__TXN_SUCCESS, ticket);
    add_sign(etcd, to, HF__TXN_FAILURE, ticket);
}

/* A try that had to queue has left again; the data names the holder. */
static void yielded(struct hf__etcd *etcd, struct hf__ticket *ticket,
                    const char *holder)
{
    bool asks = hf__etcd_tickets_asks(hf__etcd_ticket(etcd, ticket));

    hf__etcd_tickets_forget(etcd, ticket);
    if (asks)
        hf__up_busy(&etcd->base, ticket, 0, holder);
}

static void on_yielded(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);

    if (!ticket || hf__etcd_ticket(etcd, ticket)->state == HF__ETCD_RELEASING)
        return;
    if (reply->code == HF__ETCD_OK || reply->code == HF__ETCD_NOT_FOUND)
        yielded(etcd, ticket, call->data);
    else
        hf__etcd_acquire_failed(etcd, ticket, reply);
}

/* What call->n of a release says. */
enum { WITHDRAWN, RELEASED, LOST };

static void on_left(struct hf__etcd *etcd, struct hf__etcd_call *call,
                    const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    bool ours = hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0;
    bool lost = call->n == LOST || (call->n == RELEASED && !ours);

    if (!ticket)
        return;
    if (reply->code == HF__ETCD_OK || reply->code == HF__ETCD_NOT_FOUND) {
        hf__etcd_tickets_forget(etcd, ticket);
        hf__up_left(&etcd->base, ticket, lost ? HF_ELOST : 0);
        return;
    }
    hf__up_unknown(&etcd->base, ticket, &reply->err);
}

static int send_release(struct hf__etcd *etcd, struct hf__ticket *ticket,
                        hf__etcd_reply_fn *done, int how, char *data,
                        hf_error *err)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, done);
    const struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    int rc;

    hf__etcd_tickets_about(call, ticket);
    call->n = (size_t)how;
    call->data = data;
    add_release(etcd, &call->rpc.body, ticket, how == RELEASED);
    rc = hf__etcd_connection_send(call, err);
    if (rc == 0 && how == RELEASED && is_plain(mine))
        etcd->boarding = call;
    return rc;
}

bool hf__etcd_release_joined(struct hf__etcd *etcd, struct hf__etcd_call *call,
                             const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    hf_error err;

    if (reply->code != HF__ETCD_OK ||
        hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0) {
        on_left(etcd, call, reply);
        return true;
    }
    if (ticket && hf__etcd_release_again(etcd, ticket, /* ours= */ true, &err))
        hf__up_unknown(&etcd->base, ticket, &err);
    return false;
}

void hf__etcd_release_try(struct hf__etcd *etcd, struct hf__ticket *ticket,
                          const struct hf__etcd_entry *holder)
{
    char text[160] = "";
    hf_error err;

    if (holder)
        hf__etcd_queue_read_holder(holder, text, sizeof(text));
    if (send_release(etcd, ticket, on_yielded, WITHDRAWN, hf__strdup(text),
                     &err) != 0)
        hf__etcd_acquire_refuse(etcd, ticket, &err);
}

static int release(struct hf__engine *engine, struct hf__ticket *ticket,
                   bool releasing, hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    /* Never sent, or its lease has ended: there is no key. */
    if (mine->state == HF__ETCD_IDLE ||
        (mine->key == HF__ETCD_NO_KEY &&
         mine->record == HF__ETCD_RECORD_NONE) ||
        mine->lease->id != mine->lease_id) {
        hf__etcd_tickets_forget(etcd, ticket);
        hf__up_left(engine, ticket, releasing ? HF_ELOST : 0);
        return 0;
    }
    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    hf__etcd_wait_stop(etcd, ticket);
    hf__etcd_tickets_free_lease(
        etcd, mine); /* a renewal under way finds no key: no loss */
    if (hf__etcd_tickets_asks(mine))
        mine->key = HF__ETCD_DOUBTED; /* it may overtake, or be overtaken */
    mine->awaits_lease = false;
    hf__etcd_tickets_move(mine, HF__ETCD_RELEASING);
    if (releasing && hf__etcd_park_bears(etcd, ticket))
        return hf__etcd_park_use_up(etcd, ticket, err);
    return send_release(etcd, ticket, on_left, releasing ? RELEASED : WITHDRAWN,
                        /* data= */ NULL, err);
}

int hf__etcd_release_again(struct hf__etcd *etcd, struct hf__ticket *ticket,
                           bool ours, hf_error *err)
{
    if (ours && hf__etcd_park_bears(etcd, ticket))
        return hf__etcd_park_use_up(etcd, ticket, err);
    return send_release(etcd, ticket, on_left, ours ? RELEASED : LOST,
                        /* data= */ NULL, err);
}

int hf__etcd_release_withdraw(struct hf__engine *engine,
                              struct hf__ticket *ticket, hf_error *err)
{
    return release(engine, ticket, /* releasing= */ false, err);
}

int hf__etcd_release(struct hf__engine *engine, struct hf__ticket *ticket,
                     hf_error *err)
{
    return release(engine, ticket, /* releasing= */ true, err);
}
