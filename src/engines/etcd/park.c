/* SPDX-License-Identifier: MIT */
/*
 * park.c - park and unpark.
 *
 * Parking is one transaction: if the old ticket's key is the one that we were
 * granted, put the record of the new one and delete that key. If the old ticket
 * bears a wake-up, its record goes and its stamp is used up in the same
 * transaction, on condition that nobody has changed the stamps since we read
 * them. The new record stays until the ticket leaves: while it is parked, in
 * line, and holds.
 *
 * Unparking deletes the record, on condition that no stamp was added since we
 * saw that it was not called. Then it asks for the lock like anybody else.
 *
 * Failure: asked again, the transaction finds the record there. A ticket that is
 * withdrawn meanwhile leaves the sign that every acquire and every park is
 * compared with (release.c).
 */
#include "engines/etcd/etcd.h"

/* The ticket that is given up; NULL: it is gone, or leaves by itself. */
static struct hf__ticket *given_up(const struct hf__etcd *etcd,
                                   struct hf__ticket *ticket)
{
    struct hf__ticket *old = hf__ticket_table_find(
        &etcd->tickets, hf__etcd_ticket(etcd, ticket)->old);

    return old && hf__etcd_ticket(etcd, old)->state == HF__ETCD_YIELDING ? old
                                                                         : NULL;
}

void hf__etcd_park_forget_old(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__ticket *old = given_up(etcd, ticket);

    if (old)
        hf__etcd_tickets_forget(etcd, old);
}

bool hf__etcd_park_bears(const struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    return hf__etcd_ticket(etcd, ticket)->record == HF__ETCD_RECORD_CALLED;
}

/* ---- outcomes ------------------------------------------------------------ */

static void parked(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    uint64_t id = mine->condition->id;
    struct hf__etcd_condition *condition;

    hf__etcd_park_forget_old(etcd, ticket);
    mine->old = 0;
    hf__etcd_tickets_move(mine, HF__ETCD_PARKED);
    hf__up_parked(&etcd->base, ticket);
    condition = hf__etcd_condition_find(etcd, id);
    if (condition)
        hf__etcd_condition_look(etcd, condition);
}

/* Certain: it is not parked, and the old ticket holds as before. */
static void failed(struct hf__etcd *etcd, struct hf__ticket *ticket,
                   const hf_error *err)
{
    struct hf__ticket *old = given_up(etcd, ticket);
    hf_error copy = *err;

    if (old) {
        hf__etcd_tickets_move(hf__etcd_ticket(etcd, old), HF__ETCD_HELD);
        hf__etcd_lease_hold(etcd, hf__etcd_ticket(etcd, old)->lease,
                            /* held= */ true);
    }
    hf__etcd_tickets_forget(etcd, ticket);
    hf__up_failed(&etcd->base, ticket, &copy);
}

void hf__etcd_park_unknown(struct hf__etcd *etcd, struct hf__ticket *ticket,
                           const hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    bool called = mine->state == HF__ETCD_CALLED;
    hf_error copy = *err;

    hf__etcd_tickets_move(mine, HF__ETCD_UNKNOWN);
    if (!called) /* one that was goes on with the next renewal */
        hf__up_unknown(&etcd->base, ticket, &copy);
}

/* A step of @ticket ends in @call; NULL: that is not its state any more. */
static struct hf__ticket *step_of(struct hf__etcd *etcd,
                                  struct hf__etcd_call *call,
                                  enum hf__etcd_state state)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    struct hf__etcd_ticket *mine;

    if (!ticket)
        return NULL;
    mine = hf__etcd_ticket(etcd, ticket);
    mine->under_way = false;
    return mine->state == state ? ticket : NULL;
}

/* Send a step; call->rpc.body has its message. */
static int send_step(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     struct hf__ticket *ticket, hf_error *err)
{
    int rc;

    hf__etcd_tickets_about(call, ticket);
    rc = hf__etcd_connection_send(call, err);
    hf__etcd_ticket(etcd, ticket)->under_way = rc == 0;
    return rc;
}

/* What the old ticket had left is gone. */
static void on_old_record(struct hf__etcd *etcd, struct hf__etcd_call *call,
                          const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = step_of(etcd, call, HF__ETCD_PARKING);

    if (!ticket)
        return;
    if (reply->code == HF__ETCD_OK)
        hf__etcd_tickets_gone(etcd, ticket, HF__LOST_TAKEN);
    else
        hf__etcd_park_unknown(etcd, ticket, &reply->err);
}

/* The old ticket does not hold any more. What it has left goes first: a wake-up
 * that it bore is for the next waiter. */
static int lost(struct hf__etcd *etcd, struct hf__ticket *ticket, hf_error *err)
{
    struct hf__ticket *old = given_up(etcd, ticket);
    struct hf__etcd_call *call;

    if (!old || !hf__etcd_park_bears(etcd, old)) {
        hf__etcd_tickets_gone(etcd, ticket, HF__LOST_TAKEN);
        return 0;
    }
    call = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_old_record);
    hf__etcd_queue_key_record(etcd, old);
    hf__etcd_queue_add_delete(etcd, &call->rpc.body);
    return send_step(etcd, call, ticket, err);
}

/* ---- using up a wake-up -------------------------------------------------- */

/* Read the stamps of the condition whose wake-up @bearer bears; @done goes on
 * with @ticket. */
static int read_stamps(struct hf__etcd *etcd, struct hf__ticket *ticket,
                       struct hf__ticket *bearer, hf__etcd_reply_fn *done,
                       hf_error *err)
{
    const struct hf__etcd_condition *condition =
        hf__etcd_ticket(etcd, bearer)->condition;
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_RANGE, done);

    hf__etcd_queue_key_condition(etcd, "wake", condition->name,
                                 condition->cond);
    hf__etcd_queue_add_key(etcd, &call->rpc.body, /* range= */ false);
    return send_step(etcd, call, ticket, err);
}

/* The stamps in @kv without the one that @bearer uses up, and its record. */
static int add_stamps(struct hf__etcd *etcd, struct hf__buf *to,
                      struct hf__ticket *bearer, struct hf__pb kv)
{
    const struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, bearer);
    struct hf__pb value = hf__pb_inside(kv, HF__KV_VALUE);
    struct hf__condition wakes;
    int rc = hf__condition_read(&wakes, value.bytes, value.len);
    size_t n = wakes.n;

    if (rc == 0) {
        hf__condition_use_up(&wakes, mine->made);
        hf__etcd_queue_key_record(etcd, bearer);
        hf__etcd_queue_add_compare(etcd, to, /* range= */ false, mine->made);
        hf__etcd_queue_add_delete(etcd, to);
        hf__etcd_condition_add_stamps(etcd, to, mine->condition, &wakes,
                                      hf__pb_number(kv, HF__KV_MODIFIED),
                                      wakes.n != n);
    }
    hf__condition_release(&wakes);
    return rc;
}

/* The parts that end @bearer in order: its key and, unless @kv is NULL, its
 * record and its stamp. In case of failure: what is there of it? */
static int add_end(struct hf__etcd *etcd, struct hf__buf *to,
                   struct hf__ticket *bearer, const struct hf__pb *kv,
                   hf_error *err)
{
    int rc = 0;

    hf__etcd_queue_key_ticket(etcd, bearer);
    hf__etcd_queue_add_compare(etcd, to, /* range= */ false,
                               hf__etcd_ticket(etcd, bearer)->revision);
    hf__etcd_queue_add_delete(etcd, to);
    hf__etcd_queue_add_get(etcd, to, HF__TXN_FAILURE);
    if (!kv)
        return 0;
    rc = add_stamps(etcd, to, bearer, *kv);
    hf__etcd_queue_key_record(etcd, bearer);
    hf__etcd_queue_add_get(etcd, to, HF__TXN_FAILURE);
    return rc == 0 ? 0
                   : hf__fail(err, rc,
                              "etcd %s: the wake-ups of '%s' cannot be read",
                              hf__etcd_connection_peer(etcd), bearer->name);
}

/* The create revision in the @i-th answer; 0: there is no such key. */
static uint64_t created_in(struct hf__pb root, int i)
{
    return hf__etcd_queue_read(
               hf__etcd_queue_first_of(hf__etcd_queue_range_of(root, i)))
        .revision;
}

/* Answer 0 is about its key, 1 about its record. */
static void on_left_in_order(struct hf__etcd *etcd, struct hf__etcd_call *call,
                             const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = step_of(etcd, call, HF__ETCD_RELEASING);
    struct hf__etcd_ticket *mine;
    hf_error err;

    if (!ticket)
        return;
    mine = hf__etcd_ticket(etcd, ticket);
    if (reply->code != HF__ETCD_OK) {
        hf__up_unknown(&etcd->base, ticket, &reply->err);
        return;
    }
    if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0) {
        hf__etcd_tickets_forget(etcd, ticket);
        hf__up_left(&etcd->base, ticket, 0);
        return;
    }
    if (created_in(reply->root, 1) != mine->made)
        mine->record = HF__ETCD_RECORD_NONE;
    /* Without its key it cannot leave in order: the wake-up passes on. */
    if (hf__etcd_release_again(etcd, ticket,
                               created_in(reply->root, 0) == mine->revision,
                               &err) != 0)
        hf__up_unknown(&etcd->base, ticket, &err);
}

static void on_own_stamps(struct hf__etcd *etcd, struct hf__etcd_call *call,
                          const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = step_of(etcd, call, HF__ETCD_RELEASING);
    struct hf__etcd_call *txn;
    struct hf__pb kv;
    hf_error err = reply->err;
    int rc = reply->code;

    if (!ticket)
        return;
    if (rc == HF__ETCD_OK) {
        kv = hf__etcd_queue_first_of(reply->root);
        txn = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_left_in_order);
        rc = add_end(etcd, &txn->rpc.body, ticket, &kv, &err);
        if (rc == 0)
            rc = send_step(etcd, txn, ticket, &err);
        else
            hf__etcd_connection_drop(txn);
    }
    if (rc != 0)
        hf__up_unknown(&etcd->base, ticket, &err);
}

int hf__etcd_park_use_up(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         hf_error *err)
{
    return read_stamps(etcd, ticket, ticket, on_own_stamps, err);
}

/* ---- park ---------------------------------------------------------------- */

static int begin(struct hf__etcd *etcd, struct hf__ticket *ticket,
                 hf_error *err);

/* The transaction was not carried out. The first answer is about our record, the
 * second about the old ticket's key, the third about its record. */
static int not_parked(struct hf__etcd *etcd, struct hf__ticket *ticket,
                      struct hf__pb root, hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__ticket *old = given_up(etcd, ticket);

    mine->made = created_in(root, 0);
    if (mine->made != 0) {
        mine->record = HF__ETCD_RECORD_KNOWN;
        parked(etcd, ticket);
        return 0;
    }
    if (mine->record == HF__ETCD_RECORD_UNSURE)
        mine->record = HF__ETCD_RECORD_NONE;
    if (!old || created_in(root, 1) != hf__etcd_ticket(etcd, old)->revision)
        return lost(etcd, ticket, err);
    if (created_in(root, 2) != hf__etcd_ticket(etcd, old)->made)
        hf__etcd_ticket(etcd, old)->record = HF__ETCD_RECORD_NONE;
    if (++mine->steps > HF__ETCD_STREAMS)
        return hf__fail(err, HF_EUNAVAILABLE,
                        "etcd %s: the wake-ups change again and again",
                        hf__etcd_connection_peer(etcd));
    return begin(etcd, ticket, err);
}

static void on_parked(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = step_of(etcd, call, HF__ETCD_PARKING);
    struct hf__etcd_ticket *mine;
    hf_error err = reply->err;

    if (!ticket)
        return;
    mine = hf__etcd_ticket(etcd, ticket);
    if (reply->code == HF__ETCD_OK &&
        hf__pb_number(reply->root, HF__TXN_SUCCEEDED) != 0) {
        mine->made = hf__etcd_queue_revision_of(reply->root);
        mine->record = HF__ETCD_RECORD_KNOWN;
        parked(etcd, ticket);
    } else if (reply->code == HF__ETCD_OK) {
        if (not_parked(etcd, ticket, reply->root, &err) != 0)
            failed(etcd, ticket, &err);
    } else if (reply->code == HF__ETCD_NOT_FOUND) {
        hf__etcd_lease_ended(etcd, mine->lease);
    } else if (reply->code == HF__ETCD_LOST ||
               mine->record == HF__ETCD_RECORD_DOUBTED) {
        mine->record = HF__ETCD_RECORD_DOUBTED;
        hf__etcd_park_unknown(etcd, ticket, &err);
    } else {
        mine->record = HF__ETCD_RECORD_NONE;
        failed(etcd, ticket, &err);
    }
}

static void add_record(struct hf__etcd *etcd, struct hf__buf *to,
                       struct hf__ticket *ticket)
{
    size_t part;
    size_t put;

    hf__etcd_queue_key_gone(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, to, /* range= */ false, 0);
    hf__etcd_queue_key_record(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, to, /* range= */ false, 0);
    hf__etcd_queue_add_get(etcd, to, HF__TXN_FAILURE);
    part =
        hf__etcd_queue_begin_put(etcd, to, HF__TXN_SUCCESS,
                                 hf__etcd_ticket(etcd, ticket)->lease_id, &put);
    hf__etcd_queue_add_record(etcd, to, ticket);
    hf__pb_end(to, put);
    hf__pb_end(to, part);
}

/* @kv: the stamps of the condition whose wake-up the old ticket bears; NULL: it
 * bears none. */
static int send_park(struct hf__etcd *etcd, struct hf__ticket *ticket,
                     const struct hf__pb *kv, hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__ticket *old = given_up(etcd, ticket);
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, on_parked);
    int rc;

    add_record(etcd, &call->rpc.body, ticket);
    rc = add_end(etcd, &call->rpc.body, old, kv, err);
    if (rc != 0) {
        hf__etcd_connection_drop(call);
        return rc;
    }
    rc = send_step(etcd, call, ticket, err);
    if (rc == 0 && mine->record != HF__ETCD_RECORD_DOUBTED)
        mine->record = HF__ETCD_RECORD_UNSURE;
    return rc;
}

static void on_old_stamps(struct hf__etcd *etcd, struct hf__etcd_call *call,
                          const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = step_of(etcd, call, HF__ETCD_PARKING);
    hf_error err = reply->err;
    struct hf__pb kv;
    int rc = reply->code;

    if (!ticket)
        return;
    if (rc == HF__ETCD_OK) {
        kv = hf__etcd_queue_first_of(reply->root);
        rc = given_up(etcd, ticket) ? send_park(etcd, ticket, &kv, &err)
                                    : lost(etcd, ticket, &err);
    }
    if (rc != 0)
        hf__etcd_park_unknown(etcd, ticket, &err);
}

static int begin(struct hf__etcd *etcd, struct hf__ticket *ticket,
                 hf_error *err)
{
    struct hf__ticket *old = given_up(etcd, ticket);

    if (!old)
        return lost(etcd, ticket, err);
    if (hf__etcd_park_bears(etcd, old))
        return read_stamps(etcd, ticket, old, on_old_stamps, err);
    return send_park(etcd, ticket, /* kv= */ NULL, err);
}

/* Report what the ticket is by now, or will be; false: it has to be asked. */
static bool tell_state(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (hf__etcd_tickets_asks(mine)) {
        hf__etcd_tickets_move(mine, HF__ETCD_ASKING);
        return true;
    }
    if (mine->state == HF__ETCD_WAITING) {
        hf__up_queued(&etcd->base, ticket);
        return true;
    }
    if (mine->state == HF__ETCD_HELD) {
        struct hf__grant grant = {.token = mine->revision,
                                  .tokens = 1,
                                  .woken = hf__etcd_park_bears(etcd, ticket)};

        hf__etcd_lease_claim(mine->lease, ticket, mine->asked_ns, &grant);
        hf__up_granted(&etcd->base, ticket, &grant);
        return true;
    }
    return false;
}

/* Asked for the first time: the old ticket is not to be reported about any
 * more. It has a lease, which will be the new one's. */
static int prepare(struct hf__etcd *etcd, struct hf__ticket *ticket,
                   struct hf__ticket *old, hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__etcd_ticket *other = hf__etcd_ticket(etcd, old);
    struct hf__etcd_condition *condition =
        hf__etcd_condition_get(etcd, ticket->name, ticket->cond);

    if (!condition)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    (void)hf__ticket_table_add(&etcd->tickets, &mine->entry, ticket);
    hf__etcd_tickets_move(mine, HF__ETCD_PARKING);
    hf__etcd_condition_join(etcd, ticket, condition);
    mine->lease = other->lease;
    mine->lease_id = other->lease_id;
    mine->old = old->id;
    if (other->state == HF__ETCD_HELD) {
        hf__etcd_tickets_free_lease(etcd, other);
        hf__etcd_tickets_move(other, HF__ETCD_YIELDING);
    }
    return 0;
}

int hf__etcd_park(struct hf__engine *engine, struct hf__ticket *ticket,
                  struct hf__ticket *old, hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    hf_error why;
    int rc = 0;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    if (hf__etcd_ticket(etcd, old)->state == HF__ETCD_IDLE &&
        mine->state == HF__ETCD_IDLE) {
        hf__up_lost(engine, ticket, HF__LOST_TAKEN);
        return 0;
    }
    if (mine->state == HF__ETCD_IDLE)
        rc = prepare(etcd, ticket, old, err);
    if (rc != 0 || tell_state(etcd, ticket))
        return rc;
    if (mine->state == HF__ETCD_PARKED) {
        parked(etcd, ticket);
        return 0;
    }
    hf__etcd_tickets_move(mine, HF__ETCD_PARKING);
    mine->steps = 0;
    if (!mine->under_way && begin(etcd, ticket, &why) != 0)
        hf__etcd_park_unknown(etcd, ticket, &why);
    return 0;
}

/* ---- unpark -------------------------------------------------------------- */

/* Its record is gone, and nothing has called it. */
static void to_the_line(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    hf__etcd_condition_leave(etcd, ticket);
    hf__etcd_acquire_called(etcd, ticket);
}

static void on_unparked(struct hf__etcd *etcd, struct hf__etcd_call *call,
                        const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = step_of(etcd, call, HF__ETCD_UNPARKING);
    struct hf__etcd_ticket *mine;

    if (!ticket)
        return;
    mine = hf__etcd_ticket(etcd, ticket);
    if (reply->code != HF__ETCD_OK) {
        hf__etcd_park_unknown(etcd, ticket, &reply->err);
        return;
    }
    mine->record = HF__ETCD_RECORD_NONE;
    if (hf__pb_number(reply->root, HF__TXN_SUCCEEDED) == 0 &&
        created_in(reply->root, 0) == mine->made)
        mine->record = HF__ETCD_RECORD_KNOWN;
    if (mine->record == HF__ETCD_RECORD_NONE)
        to_the_line(etcd, ticket);
    else
        hf__etcd_condition_look(etcd, mine->condition);
}

void hf__etcd_park_end(struct hf__etcd *etcd, struct hf__ticket *ticket,
                       uint64_t stamped)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    static const struct hf__condition unchanged = {0};
    struct hf__etcd_call *call;
    hf_error err;

    if (mine->record != HF__ETCD_RECORD_KNOWN) {
        to_the_line(etcd, ticket);
        return;
    }
    call = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_unparked);
    hf__etcd_condition_add_stamps(etcd, &call->rpc.body, mine->condition,
                                  &unchanged, stamped, /* changed= */ false);
    hf__etcd_queue_key_record(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, &call->rpc.body, /* range= */ false,
                               mine->made);
    hf__etcd_queue_add_delete(etcd, &call->rpc.body);
    hf__etcd_queue_add_get(etcd, &call->rpc.body, HF__TXN_FAILURE);
    if (send_step(etcd, call, ticket, &err) != 0)
        hf__etcd_park_unknown(etcd, ticket, &err);
}

int hf__etcd_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                    hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    if (mine->state == HF__ETCD_IDLE) {
        hf__up_lost(engine, ticket, HF__LOST_TAKEN);
        return 0;
    }
    if (tell_state(etcd, ticket))
        return 0;
    hf__etcd_tickets_move(mine, HF__ETCD_UNPARKING);
    if (hf__etcd_park_bears(etcd, ticket) || !mine->condition)
        hf__etcd_acquire_called(etcd, ticket);
    else if (!mine->under_way)
        hf__etcd_condition_look(etcd, mine->condition);
    return 0;
}
