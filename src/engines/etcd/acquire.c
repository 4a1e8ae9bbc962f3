/* SPDX-License-Identifier: MIT */
/*
 * acquire.c - one transaction: if the ticket's key is not there, put it, and
 * tell who is before it.
 *
 * Asked again, the key is there, and its create revision tells the place. The
 * revision is the token: of all keys of a queue the holder has the smallest, and
 * every later key has a greater one. Every acquire is compared with the sign that
 * the ticket has been released (release.c).
 *
 * ONE TRANSACTION FOR TWO. When the next ticket of a name asks right after the one
 * before it was released, its request is added to the release, which has not
 * been sent yet: a hand-over inside the process is one write. If the key of the
 * first is not there any more, nothing is carried out, and both are sent alone.
 *
 * Failure: "lease not found" is certain. The ticket is asked for again with a
 * new lease, or is lost.
 */
#include "engines/etcd/etcd.h"

/* ---- acquire ----------------------------------------------------------- */

/* In case of failure: who is the first of the queue? */
static void add_holder(struct hf__etcd *etcd, struct hf__buf *to,
                       const struct hf__ticket *ticket)
{
    size_t part = hf__pb_begin(to, HF__TXN_FAILURE);
    size_t range = hf__pb_begin(to, HF__OP_RANGE);

    hf__etcd_queue_key(etcd, ticket->name, ticket->name_len);
    hf__etcd_queue_add_key(etcd, to, /* range= */ true);
    hf__pb_add_number(to, HF__RANGE_LIMIT, 1);
    hf__pb_add_number(to, HF__RANGE_ORDER, HF__ASCEND);
    hf__pb_add_number(to, HF__RANGE_TARGET, HF__BY_CREATED);
    hf__pb_end(to, range);
    hf__pb_end(to, part);
}

/* Nobody may be there when an exclusive try comes; everybody else queues. */
static bool tries(const struct hf__ticket *ticket)
{
    return ticket->nowait && ticket->mode == HF_EXCLUSIVE;
}

/* A key that we never sent is not there: only a repeated acquire asks where its
 * key stands. */
static void add_acquire(struct hf__etcd *etcd, struct hf__buf *to,
                        struct hf__ticket *ticket)
{
    bool again = hf__etcd_ticket(etcd, ticket)->key != HF__ETCD_NO_KEY;
    bool try = tries(ticket);

    hf__etcd_queue_key_gone(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, to, /* range= */ false, 0);
    if (try)
        hf__etcd_queue_key(etcd, ticket->name, ticket->name_len);
    else
        hf__etcd_queue_key_ticket(etcd, ticket);
    hf__etcd_queue_add_compare(etcd, to, try, 0);
    hf__etcd_queue_add_put(etcd, to, HF__TXN_SUCCESS, ticket);
    if (!try)
        hf__etcd_wait_add_before(etcd, to, ticket);
    if (!try && !again)
        return;
    hf__etcd_queue_key_ticket(etcd, ticket);
    hf__etcd_queue_add_get(etcd, to, HF__TXN_FAILURE);
    if (try)
        add_holder(etcd, to, ticket);
}

void hf__etcd_acquire_granted(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__grant grant = {.token = mine->revision,
                              .tokens = 1,
                              .woken = hf__etcd_park_bears(etcd, ticket)};

    hf__etcd_wait_stop(etcd, ticket);
    hf__etcd_lease_claim(mine->lease, ticket, mine->asked_ns, &grant);
    hf__etcd_tickets_move(mine, HF__ETCD_HELD);
    hf__etcd_lease_hold(etcd, mine->lease, /* held= */ true);
    hf__up_granted(&etcd->base, ticket, &grant);
}

/* One with a condition: it asks again when it is renewed, or it is certain that
 * it cannot be had. */
static void stop_asking(struct hf__etcd *etcd, struct hf__ticket *ticket,
                        const hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    bool unknown = mine->key == HF__ETCD_DOUBTED || mine->revision != 0 ||
                   err->code == HF_EUNAVAILABLE;

    if (unknown) {
        hf__etcd_park_unknown(etcd, ticket, err);
        return;
    }
    hf__etcd_tickets_move(mine, HF__ETCD_UNKNOWN);
    hf__etcd_condition_lose(etcd, ticket, HF__LOST_TAKEN);
}

void hf__etcd_acquire_failed(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             const struct hf__etcd_reply *reply)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    hf_error err = reply->err;

    if (!hf__etcd_tickets_asks(mine))
        return;
    if (reply->code == HF__ETCD_LOST && mine->key != HF__ETCD_NO_KEY)
        mine->key = HF__ETCD_DOUBTED;
    if (ticket->cond) {
        stop_asking(etcd, ticket, &err);
        return;
    }
    if (mine->key == HF__ETCD_DOUBTED || mine->revision != 0) {
        hf__etcd_tickets_move(mine, HF__ETCD_UNKNOWN);
        hf__up_unknown(&etcd->base, ticket, &err); /* leaving.c will see */
        return;
    }
    hf__etcd_tickets_forget(etcd, ticket);
    hf__up_failed(&etcd->base, ticket, &err);
}

void hf__etcd_acquire_refuse(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             const hf_error *err)
{
    struct hf__etcd_reply reply = {.code = HF__ETCD_INVALID, .err = *err};

    hf__etcd_acquire_failed(etcd, ticket, &reply);
}

static int start_acquire(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         hf_error *err);

/* Within an acquire that is under way: once more from the beginning. */
static void restart(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    hf_error err;

    if (start_acquire(etcd, ticket, &err) != 0)
        hf__etcd_acquire_refuse(etcd, ticket, &err);
}

static void busy(struct hf__etcd *etcd, struct hf__ticket *ticket,
                 struct hf__pb kv)
{
    struct hf__etcd_entry entry = hf__etcd_queue_read(kv);
    bool doubted = hf__etcd_ticket(etcd, ticket)->key == HF__ETCD_DOUBTED;
    char holder[160];

    hf__etcd_queue_read_holder(&entry, holder, sizeof(holder));
    if (!doubted) {
        hf__etcd_tickets_forget(etcd, ticket);
        hf__up_busy(&etcd->base, ticket, 0, holder);
        return;
    }
    hf__etcd_release_try(etcd, ticket, &entry);
}

void hf__etcd_acquire_odd(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "etcd %s: an odd answer",
                   hf__etcd_connection_peer(etcd));
    hf__etcd_ticket(etcd, ticket)->key = HF__ETCD_DOUBTED;
    hf__etcd_acquire_refuse(etcd, ticket, &err);
}

static bool has_revision(struct hf__pb range, uint64_t revision)
{
    struct hf__pb kv;
    size_t at = 0;

    while (hf__pb_there(kv = hf__pb_next(range, HF__RANGE_KVS, &at))) {
        if (hf__etcd_queue_read(kv).revision == revision)
            return true;
    }
    return false;
}

/* The key was put, at @revision of the store, and @queue read. */
static void put_at(struct hf__etcd *etcd, struct hf__ticket *ticket,
                   struct hf__pb queue, uint64_t revision)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    mine->revision = revision;
    if (mine->revision == 0 || hf__etcd_wait_is_odd(ticket, queue) ||
        (!tries(ticket) && !has_revision(queue, mine->revision)))
        hf__etcd_acquire_odd(etcd, ticket);
    else if (tries(ticket))
        hf__etcd_acquire_granted(etcd, ticket);
    else
        hf__etcd_wait_decide(etcd, ticket, queue, mine->revision);
}

/* The transaction was carried out; @puts of its answers is that to the put. */
static void acquired(struct hf__etcd *etcd, struct hf__ticket *ticket,
                     struct hf__pb root, int puts)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__pb own;
    struct hf__pb holder;

    if (hf__pb_number(root, HF__TXN_SUCCEEDED) != 0) {
        put_at(etcd, ticket, hf__etcd_queue_range_of(root, puts + 1),
               hf__etcd_queue_revision_of(root));
        return;
    }
    own = hf__etcd_queue_first_of(hf__etcd_queue_range_of(root, 0));
    holder = hf__etcd_queue_first_of(hf__etcd_queue_range_of(root, 1));
    mine->revision = hf__etcd_queue_read(own).revision;
    if (mine->revision != 0) {
        hf__etcd_wait_look(etcd, ticket);
    } else if (tries(ticket) && hf__pb_there(holder)) {
        busy(etcd, ticket, holder);
    } else {
        hf__etcd_acquire_odd(etcd, ticket);
    }
}

static void answered(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply, int puts)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    struct hf__etcd_ticket *mine =
        ticket ? hf__etcd_ticket(etcd, ticket) : NULL;

    if (!mine || !hf__etcd_tickets_asks(mine))
        return;
    if (reply->code == HF__ETCD_OK) {
        acquired(etcd, ticket, reply->root, puts);
    } else if (reply->code == HF__ETCD_NOT_FOUND) {
        if (mine->lease->id == mine->lease_id)
            hf__etcd_lease_ended(etcd, mine->lease);
        else if (ticket->cond)
            hf__etcd_tickets_gone(etcd, ticket, HF__LOST_SESSION);
        else
            restart(etcd, ticket);
    } else {
        hf__etcd_acquire_failed(etcd, ticket, reply);
    }
}

static void on_acquire(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    answered(etcd, call, reply, /* puts= */ 0);
}

/* ---- together with a release --------------------------------------------- */

/* The first answer is that to the delete. */
static void on_joined(struct hf__etcd *etcd, struct hf__etcd_call *call,
                      const struct hf__etcd_reply *reply)
{
    bool carried_out = hf__etcd_release_joined(etcd, call, reply);
    struct hf__ticket *ticket;

    call->ticket = call->joined;
    ticket = hf__etcd_tickets_of(call);
    if (carried_out)
        answered(etcd, call, reply, /* puts= */ 1);
    else if (ticket && hf__etcd_tickets_asks(hf__etcd_ticket(etcd, ticket)))
        restart(etcd, ticket);
}

static bool may_join(const struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    const struct hf__etcd_call *call = etcd->boarding;
    const struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    const struct hf__ticket *released = call ? hf__etcd_tickets_of(call) : NULL;

    return released && call->rpc.body_at == 0 && call->joined == 0 &&
           !tries(ticket) && mine->key == HF__ETCD_NO_KEY &&
           mine->lease_id == call->lease_id &&
           strcmp(released->name, ticket->name) == 0;
}

static int join(struct hf__etcd *etcd, struct hf__ticket *ticket, hf_error *err)
{
    struct hf__etcd_call *call = HF_STEAL(etcd->boarding);
    struct hf__buf *body = &call->rpc.body;
    size_t mark = body->len;

    add_acquire(etcd, body, ticket);
    if (hf__buf_failed(body)) {
        body->failed = false;
        body->len = mark;
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    hf__grpc_call_grown(&call->rpc);
    call->joined = ticket->id;
    call->done = on_joined;
    hf__etcd_ticket(etcd, ticket)->asked_ns = call->rpc.sent_ns;
    return 0;
}

/* ---- asking ---------------------------------------------------------------- */

static int send_acquire(struct hf__etcd *etcd, struct hf__ticket *ticket,
                        hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    int rc;

    mine->lease_id = mine->lease->id;
    rc = may_join(etcd, ticket)
             ? join(etcd, ticket, err)
             : hf__etcd_tickets_ask(etcd, ticket, add_acquire, on_acquire, err);
    if (rc == 0 && mine->key == HF__ETCD_NO_KEY)
        mine->key = HF__ETCD_SENT;
    return rc;
}

/* With the lease at hand, or when it has come. A ticket whose lease has ended
 * has no key any more. */
static int start_acquire(struct hf__etcd *etcd, struct hf__ticket *ticket,
                         hf_error *err)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    int rc;

    mine->awaits_lease = false;
    mine->lease = hf__etcd_lease_for(etcd, ticket);
    if (mine->lease_id != mine->lease->id || mine->lease_id == 0) {
        mine->revision = 0;
        mine->key = HF__ETCD_NO_KEY;
        mine->look = HF__ETCD_NO_LOOK; /* it would be about the old key */
    }
    if (hf__etcd_lease_use(etcd, mine->lease, &rc, err))
        return send_acquire(etcd, ticket, err);
    mine->awaits_lease = rc == 0;
    return rc;
}

/* What it has on the store is its lease's, and ends with that. */
void hf__etcd_acquire_called(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    hf_error err;

    if (mine->lease->id != mine->lease_id) {
        hf__etcd_tickets_gone(etcd, ticket, HF__LOST_SESSION);
        return;
    }
    hf__etcd_tickets_move(mine, mine->state == HF__ETCD_UNPARKING
                                    ? HF__ETCD_ASKING
                                    : HF__ETCD_CALLED);
    if (start_acquire(etcd, ticket, &err) != 0)
        hf__etcd_park_unknown(etcd, ticket, &err);
}

int hf__etcd_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    bool known = mine->state != HF__ETCD_IDLE;
    hf_error why;
    int rc;

    if (!hf__etcd_connection_is_up(etcd))
        return hf__etcd_errors_not_up(etcd, err);
    hf__etcd_wait_stop(etcd, ticket);
    (void)hf__ticket_table_add(&etcd->tickets, &mine->entry, ticket);
    hf__etcd_tickets_free_lease(
        etcd, mine); /* the core may not have heard of the grant */
    hf__etcd_tickets_move(mine, HF__ETCD_ASKING);
    rc = start_acquire(etcd, ticket, &why);
    if (rc == 0)
        return 0;
    if (known && mine->key != HF__ETCD_NO_KEY) {
        hf__etcd_tickets_move(mine, HF__ETCD_UNKNOWN);
        hf__up_unknown(engine, ticket, &why);
        return 0;
    }
    hf__etcd_tickets_forget(etcd, ticket);
    return hf__fail_pass(err, &why);
}

/* ---- the lease has news ------------------------------------------------ */

static bool is_preparing(struct hf__ticket_entry *entry, const void *lease)
{
    const struct hf__etcd_ticket *mine = hf__etcd_tickets_at(entry);

    return hf__etcd_tickets_asks(mine) && mine->awaits_lease &&
           mine->lease == lease;
}

/* Before the lease, and not on the way out. */
static bool has_key(struct hf__ticket_entry *entry, const void *id)
{
    const struct hf__etcd_ticket *mine = hf__etcd_tickets_at(entry);

    return mine->lease_id == *(const int64_t *)id && mine->lease_id != 0 &&
           mine->state != HF__ETCD_RELEASING &&
           mine->state != HF__ETCD_YIELDING &&
           (entry->ticket->cond || hf__etcd_tickets_asks(mine) ||
            mine->state == HF__ETCD_WAITING || mine->state == HF__ETCD_HELD);
}

void hf__etcd_acquire_place_lost(struct hf__etcd *etcd,
                                 struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (hf__etcd_tickets_asks(mine)) {
        mine->revision = 0;
        restart(etcd, ticket);
        return;
    }
    if (ticket->cond)
        hf__etcd_condition_lose(etcd, ticket, HF__LOST_TAKEN);
    else
        hf__etcd_tickets_gone(etcd, ticket, HF__LOST_TAKEN);
}

void hf__etcd_acquire_lease_lost(struct hf__etcd *etcd, int64_t id)
{
    struct hf__ticket *ticket;

    while ((ticket = hf__etcd_tickets_seek(etcd, has_key, &id)) != NULL) {
        struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

        if (hf__etcd_tickets_asks(mine) && !ticket->cond) {
            hf__etcd_wait_stop(etcd, ticket);
            mine->lease_id = 0;
            restart(etcd, ticket);
            continue;
        }
        hf__etcd_tickets_gone(etcd, ticket, HF__LOST_SESSION);
    }
}

/* Those who waited for the lease are asked for, or refused with @reply. */
static void serve_preparing(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                            const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket;

    while ((ticket = hf__etcd_tickets_seek(etcd, is_preparing, lease)) !=
           NULL) {
        hf_error err = reply->err;
        int rc = reply->code;

        hf__etcd_ticket(etcd, ticket)->awaits_lease = false;
        if (rc == HF__ETCD_OK)
            rc = send_acquire(etcd, ticket, &err);
        if (rc != 0)
            hf__etcd_acquire_refuse(etcd, ticket, &err);
    }
}

/* What was kept alive has ended meanwhile. A key without a lease would stay
 * for ever: nothing is asked for before there is another. */
static void ask_for_another(struct hf__etcd *etcd, struct hf__etcd_lease *lease)
{
    struct hf__etcd_reply reply = {.code = HF__ETCD_LOST};

    if (hf__etcd_tickets_seek(etcd, is_preparing, lease) &&
        hf__etcd_lease_renew(etcd, lease, &reply.err) != 0)
        serve_preparing(etcd, lease, &reply);
}

void hf__etcd_acquire_lease_ready(struct hf__etcd *etcd,
                                  struct hf__etcd_lease *lease,
                                  const struct hf__etcd_reply *reply)
{
    if (reply->code == HF__ETCD_OK && lease->id == 0) {
        ask_for_another(etcd, lease);
        return;
    }
    serve_preparing(etcd, lease, reply);
    hf__etcd_renew_confirmed(etcd, lease, reply);
}
