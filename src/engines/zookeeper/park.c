/* SPDX-License-Identifier: MIT */
/*
 * park.c - park and unpark.
 *
 * Parking is one transaction: make the record, delete the node of the lock that
 * is given up. If the old ticket bears a wake-up, its record goes and its stamp
 * is used up in the same transaction, on condition that nobody has changed the
 * stamps since we read them. The new record stays until the ticket leaves: while
 * it is parked, in line, and holds.
 *
 * Unparking deletes the record, on condition that no stamp was added since we
 * saw that it was not called. Then it asks for the lock like anybody else.
 *
 * Failure: when the answer is lost, there may be a record. Its name tells that
 * it is ours, so we find out by the list of children, behind a sync. If it is not
 * there, the transaction was not carried out, or the session has ended.
 */
#include "engines/zookeeper/zookeeper.h"

static hf__zk_step_fn on_parked;

/* The ticket that is given up; NULL: it is gone, or leaves by itself. */
static struct hf__ticket *given_up(const struct hf__zk *zk,
                                   struct hf__ticket *ticket)
{
    struct hf__ticket *old =
        hf__zk_tickets_find(zk, hf__zk_ticket(zk, ticket)->old);

    return old && hf__zk_ticket(zk, old)->state == HF__ZK_YIELDING ? old : NULL;
}

void hf__zk_park_forget_old(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__ticket *old = given_up(zk, ticket);

    if (old)
        hf__zk_tickets_forget(zk, old);
}

bool hf__zk_park_bears(const struct hf__zk *zk, struct hf__ticket *ticket)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    return mine->record == HF__ZK_RECORD_CALLED;
}

/* ---- outcomes ------------------------------------------------------------ */

static void parked(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_condition *condition = mine->condition;
    uint64_t id = condition->id;

    hf__zk_park_forget_old(zk, ticket);
    mine->old = 0;
    hf__zk_tickets_move(zk, mine, HF__ZK_PARKED);
    hf__up_parked(&zk->base, ticket);
    condition = hf__zk_condition_find(zk, id);
    if (condition)
        hf__zk_condition_look(zk, condition);
}

void hf__zk_park_failed(struct hf__zk *zk, struct hf__ticket *ticket,
                        const hf_error *err)
{
    struct hf__ticket *old = given_up(zk, ticket);

    if (old)
        hf__zk_tickets_move(zk, hf__zk_ticket(zk, old), HF__ZK_HELD);
    hf__zk_tickets_forget(zk, ticket);
    hf__up_failed(&zk->base, ticket, err);
}

/* The old ticket's record was deleted. */
static int on_old_record(struct hf__zk *zk, struct hf__ticket *ticket,
                         const struct hf__zk_call *call,
                         struct hf__zk_reply *reply, hf_error *err)
{
    (void)call;
    if (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE)
        return hf__zk_errors_read(zk, reply->error, err);
    hf__zk_park_forget_old(zk, ticket);
    if (hf__zk_tickets_leaves(hf__zk_ticket(zk, ticket)))
        return hf__zk_release_begin(zk, ticket, err);
    hf__zk_tickets_gone(zk, ticket, HF__LOST_TAKEN);
    return 0;
}

/* The old ticket does not hold any more. What it has left goes first: a wake-up
 * that it bore is for the next waiter. */
static int lost(struct hf__zk *zk, struct hf__ticket *ticket, hf_error *err)
{
    struct hf__ticket *old = given_up(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_old_record);

    if (!old || !hf__zk_park_bears(zk, old)) {
        hf__zk_tickets_gone(zk, ticket, HF__LOST_TAKEN);
        return 0;
    }
    return hf__zk_calls_delete(zk, hf__zk_condition_path(zk, old), &call, err);
}

/* ---- using up a wake-up -------------------------------------------------- */

/* Read the stamps of the condition whose wake-up @bearer bears; @step goes on
 * with @ticket. */
static int read_stamps(struct hf__zk *zk, struct hf__ticket *ticket,
                       struct hf__ticket *bearer, hf__zk_step_fn *step,
                       hf_error *err)
{
    struct hf__zk_call call = hf__zk_tickets_step(ticket, step);
    const struct hf__zk_condition *condition =
        hf__zk_ticket(zk, bearer)->condition;

    return hf__zk_calls_ask(zk, HF__ZK_GET_DATA,
                            hf__zk_condition_dir(condition), /* watch= */ false,
                            &call, err);
}

/* The stamps in @reply without the one that @bearer uses up, as a part of the
 * transaction that is being written. */
static int add_stamps(struct hf__zk *zk, struct hf__ticket *bearer,
                      struct hf__zk_reply *reply)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, bearer);
    const struct hf__zk_condition *condition = mine->condition;
    struct hf__zk_wire_text data = hf__zk_wire_text(&reply->in);
    struct hf__condition wakes;
    struct hf__zk_wire_stat stat;
    struct hf__buf text = {0};
    size_t n;
    int rc = hf__zk_condition_read(&wakes, data, mine->record_number);

    hf__zk_wire_stat(&reply->in, &stat);
    n = wakes.n;
    hf__condition_use_up(&wakes, hf__zk_condition_number(mine->record_number,
                                                         mine->record_number));
    if (rc == 0 && wakes.n != n) {
        hf__zk_condition_write(&wakes, mine->record_number, &text);
        hf__zk_multi_set(zk, hf__zk_condition_dir(condition),
                         hf__zk_wire_text_in(&text), stat.version);
    } else if (rc == 0) {
        hf__zk_multi_check(zk, hf__zk_condition_dir(condition), stat.version);
    }
    hf__buf_release(&text);
    hf__condition_release(&wakes);
    return rc;
}

/* The parts that end @bearer in order: its node, its record, its stamp. */
static int add_end(struct hf__zk *zk, struct hf__ticket *bearer,
                   struct hf__zk_reply *reply, hf_error *err)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, bearer);
    int rc;

    hf__zk_multi_delete(zk, hf__zk_nodes_own(mine));
    if (!reply)
        return 0; /* it bears none */
    hf__zk_multi_delete(zk, hf__zk_condition_path(zk, bearer));
    rc = add_stamps(zk, bearer, reply);
    return rc == 0
               ? 0
               : hf__fail(err, rc, "%s: the wake-ups of '%s' cannot be read",
                          zk->peer, bearer->name);
}

static int on_left_in_order(struct hf__zk *zk, struct hf__ticket *ticket,
                            const struct hf__zk_call *call,
                            struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_multi_result result = hf__zk_multi_result(reply);

    (void)call;
    if (result.error == HF__ZK_OK) {
        hf__zk_nodes_lose(mine, HF__ZK_NODE_NONE);
        mine->record = HF__ZK_RECORD_NONE;
        hf__zk_release_done(zk, ticket);
        return 0;
    }
    if (result.error == HF__ZK_NO_NODE && result.failed == 0)
        hf__zk_nodes_lose(mine, HF__ZK_NODE_MISSING);
    else if (result.error == HF__ZK_NO_NODE && result.failed == 1)
        mine->record = HF__ZK_RECORD_NONE;
    else if (result.error != HF__ZK_BAD_VERSION)
        return hf__zk_errors_read(zk, result.error, err);
    return hf__zk_release_begin(zk, ticket, err);
}

static int on_own_stamps(struct hf__zk *zk, struct hf__ticket *ticket,
                         const struct hf__zk_call *call,
                         struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call multi = hf__zk_tickets_step(ticket, on_left_in_order);
    size_t mark;
    int rc;

    (void)call;
    if (mine->state != HF__ZK_RELEASING)
        return hf__zk_release_begin(zk, ticket, err);
    if (reply->error == HF__ZK_NO_NODE) {
        mine->record = HF__ZK_RECORD_NONE; /* it would be a child */
        return hf__zk_release_begin(zk, ticket, err);
    }
    if (reply->error != HF__ZK_OK)
        return hf__zk_errors_read(zk, reply->error, err);
    mark = hf__zk_calls_begin(zk, HF__ZK_MULTI);
    rc = add_end(zk, ticket, reply, err);
    if (rc != 0) {
        hf__zk_calls_take_back(zk, mark);
        return rc;
    }
    return hf__zk_multi_end(zk, mark, &multi, err);
}

int hf__zk_park_use_up(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err)
{
    return read_stamps(zk, ticket, ticket, on_own_stamps, err);
}

/* ---- park ---------------------------------------------------------------- */

/* @reply: the stamps of the condition whose wake-up the old ticket bears; NULL:
 * it bears none. */
static int send_park(struct hf__zk *zk, struct hf__ticket *ticket,
                     struct hf__ticket *old, struct hf__zk_reply *reply,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_parked);
    struct hf__buf data = {0};
    size_t mark;
    int rc;

    hf__zk_nodes_write(zk, ticket, /* token= */ 0, /* held= */ false, &data);
    mark = hf__zk_calls_begin(zk, HF__ZK_MULTI);
    hf__zk_multi_create(zk, hf__zk_condition_base(zk, ticket),
                        hf__zk_wire_text_in(&data),
                        HF__ZK_EPHEMERAL_SEQUENTIAL);
    hf__buf_release(&data);
    rc = add_end(zk, old, reply, err);
    if (rc != 0) {
        hf__zk_calls_take_back(zk, mark);
        return rc;
    }
    rc = hf__zk_multi_end(zk, mark, &call, err);
    if (rc == 0)
        mine->record = HF__ZK_RECORD_UNSURE;
    return rc;
}

static int on_old_stamps(struct hf__zk *zk, struct hf__ticket *ticket,
                         const struct hf__zk_call *call,
                         struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__ticket *old = given_up(zk, ticket);
    int rc;

    (void)call;
    if (hf__zk_tickets_leaves(hf__zk_ticket(zk, ticket)))
        return hf__zk_release_begin(zk, ticket, err);
    if (!old)
        return lost(zk, ticket, err);
    if (reply->error == HF__ZK_NO_NODE) {
        hf__zk_ticket(zk, old)->record = HF__ZK_RECORD_NONE;
        return hf__zk_park_begin(zk, ticket, err);
    }
    rc = reply->error != HF__ZK_OK ? hf__zk_errors_read(zk, reply->error, err)
                                   : send_park(zk, ticket, old, reply, err);
    if (rc != 0)
        hf__zk_park_failed(zk, ticket, err);
    return 0;
}

int hf__zk_park_begin(struct hf__zk *zk, struct hf__ticket *ticket,
                      hf_error *err)
{
    struct hf__ticket *old = given_up(zk, ticket);

    if (!old || hf__zk_ticket(zk, old)->node != HF__ZK_NODE_KNOWN)
        return lost(zk, ticket, err);
    if (hf__zk_park_bears(zk, old))
        return read_stamps(zk, ticket, old, on_old_stamps, err);
    return send_park(zk, ticket, old, /* reply= */ NULL, err);
}

/* Which number has the record that the transaction made? */
static bool adopt_record(struct hf__zk_ticket *mine,
                         struct hf__zk_wire_text path)
{
    size_t dir_len = mine->condition->dir_len + 1;
    struct hf__zk_contender record;

    if (path.len <= dir_len)
        return false;
    path.text += dir_len;
    path.len -= dir_len;
    if (!hf__zk_queue_read_contender(&record, path))
        return false;
    mine->record_number = record.sequence;
    mine->record = HF__ZK_RECORD_KNOWN;
    return true;
}

/* The transaction was refused, by part result->failed: 0 makes the record, 1
 * deletes the old node, 2 the old record, 3 compares the stamps. */
static int not_parked(struct hf__zk *zk, struct hf__ticket *ticket,
                      const struct hf__zk_multi_result *result, hf_error *err)
{
    struct hf__ticket *old = given_up(zk, ticket);

    if (result->error == HF__ZK_NO_NODE && result->failed == 0)
        return hf__zk_acquire_make_container(zk, ticket, err);
    if (!old || (result->error == HF__ZK_NO_NODE && result->failed == 1))
        return lost(zk, ticket, err);
    if (result->error == HF__ZK_NO_NODE)
        hf__zk_ticket(zk, old)->record = HF__ZK_RECORD_NONE;
    else if (result->error != HF__ZK_BAD_VERSION)
        return hf__zk_errors_read(zk, result->error, err);
    return hf__zk_park_begin(zk, ticket, err);
}

static int on_parked(struct hf__zk *zk, struct hf__ticket *ticket,
                     const struct hf__zk_call *call, struct hf__zk_reply *reply,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_multi_result result = hf__zk_multi_result(reply);

    (void)call;
    if (result.error != HF__ZK_OK)
        mine->record = HF__ZK_RECORD_NONE;
    else if (!adopt_record(mine, result.made))
        return hf__zk_park_seek(zk, ticket, err);
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    if (result.error == HF__ZK_OK)
        parked(zk, ticket);
    else if (not_parked(zk, ticket, &result, err) != 0)
        hf__zk_park_failed(zk, ticket, err);
    return 0;
}

/* The children of the condition: is there a record of ours? */
static int on_sought(struct hf__zk *zk, struct hf__ticket *ticket,
                     const struct hf__zk_call *call, struct hf__zk_reply *reply,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_queue line = {0};
    uint32_t place;

    (void)call;
    if (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE)
        return hf__zk_errors_read(zk, reply->error, err);
    if (reply->error == HF__ZK_OK && hf__zk_queue_read(&line, &reply->in) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    place = line.n > 0 ? hf__zk_condition_place(zk, ticket, &line) : line.n;
    mine->record = place < line.n ? HF__ZK_RECORD_KNOWN : HF__ZK_RECORD_NONE;
    if (place < line.n)
        mine->record_number = line.all[place].sequence;
    hf__zk_queue_release(&line);
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    if (mine->record == HF__ZK_RECORD_NONE)
        return hf__zk_park_begin(zk, ticket, err);
    parked(zk, ticket);
    return 0;
}

int hf__zk_park_seek(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_sought);
    int rc = hf__zk_calls_sync(zk, err);

    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN,
                              hf__zk_condition_dir(mine->condition),
                              /* watch= */ false, &call, err);
    return rc;
}

/* Report what the ticket is by now, or will be; false: it has to be asked. */
static bool tell_state(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__grant grant;

    switch (mine->state) {
    case HF__ZK_ASKING:
    case HF__ZK_CALLED:
        hf__zk_tickets_move(zk, mine, HF__ZK_ASKING);
        return true;
    case HF__ZK_WAITING:
        hf__up_queued(&zk->base, ticket);
        return true;
    case HF__ZK_HELD:
        grant = hf__zk_acquire_grant(zk, ticket, mine->czxid);
        hf__up_granted(&zk->base, ticket, &grant);
        return true;
    default:
        return false;
    }
}

/* Asked for the first time: the old ticket is not to be reported about any
 * more. */
static int prepare(struct hf__zk *zk, struct hf__ticket *ticket,
                   struct hf__ticket *old, hf_error *err)
{
    struct hf__zk_condition *condition;
    int rc = hf__zk_tickets_know(zk, ticket, err);

    if (rc != 0)
        return rc;
    condition =
        hf__zk_condition_get(zk, ticket->name, ticket->name_len, ticket->cond);
    if (!condition) {
        hf__zk_tickets_forget(zk, ticket);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    hf__zk_condition_join(zk, ticket, condition);
    hf__zk_ticket(zk, ticket)->old = old->id;
    if (hf__zk_ticket(zk, old)->state == HF__ZK_HELD)
        hf__zk_tickets_move(zk, hf__zk_ticket(zk, old), HF__ZK_YIELDING);
    return 0;
}

int hf__zk_park(struct hf__engine *engine, struct hf__ticket *ticket,
                struct hf__ticket *old, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    hf_error why;
    int rc;

    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    rc = mine->path ? 0 : prepare(zk, ticket, old, err);
    if (rc != 0)
        return rc;
    if (tell_state(zk, ticket))
        return 0;
    if (mine->state == HF__ZK_PARKED) {
        parked(zk, ticket);
        return 0;
    }
    hf__zk_tickets_move(zk, mine, HF__ZK_PARKING);
    mine->steps = 0;
    if (mine->under_way)
        return 0;
    rc = mine->record == HF__ZK_RECORD_NONE
             ? hf__zk_park_begin(zk, ticket, &why)
             : hf__zk_park_seek(zk, ticket, &why);
    if (rc != 0)
        hf__zk_tickets_unknown(zk, ticket, &why);
    return 0;
}

/* ---- unpark -------------------------------------------------------------- */

/* Its record is gone, and nothing has called it. */
static void to_the_line(struct hf__zk *zk, struct hf__ticket *ticket)
{
    hf__zk_condition_leave(zk, ticket);
    hf__zk_acquire_called(zk, ticket);
}

static int on_unparked(struct hf__zk *zk, struct hf__ticket *ticket,
                       const struct hf__zk_call *call,
                       struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_multi_result result = hf__zk_multi_result(reply);

    (void)call;
    if (result.error == HF__ZK_OK || result.error == HF__ZK_NO_NODE)
        mine->record = HF__ZK_RECORD_NONE;
    else
        mine->record = HF__ZK_RECORD_KNOWN;
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    if (mine->record == HF__ZK_RECORD_NONE)
        to_the_line(zk, ticket);
    else if (result.error == HF__ZK_BAD_VERSION)
        hf__zk_condition_look(zk, mine->condition);
    else
        return hf__zk_errors_read(zk, result.error, err);
    return 0;
}

static int send_unpark(struct hf__zk *zk, struct hf__ticket *ticket,
                       int32_t version, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_unparked);
    size_t mark = hf__zk_calls_begin(zk, HF__ZK_MULTI);
    int rc;

    hf__zk_multi_check(zk, hf__zk_condition_dir(mine->condition), version);
    hf__zk_multi_delete(zk, hf__zk_condition_path(zk, ticket));
    rc = hf__zk_multi_end(zk, mark, &call, err);
    if (rc == 0)
        mine->record = HF__ZK_RECORD_UNSURE;
    return rc;
}

void hf__zk_park_end(struct hf__zk *zk, struct hf__ticket *ticket,
                     int32_t version)
{
    hf_error err;

    if (hf__zk_ticket(zk, ticket)->record == HF__ZK_RECORD_NONE)
        to_the_line(zk, ticket);
    else if (send_unpark(zk, ticket, version, &err) != 0)
        hf__zk_tickets_unknown(zk, ticket, &err);
}

int hf__zk_unpark(struct hf__engine *engine, struct hf__ticket *ticket,
                  hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    if (!mine->path) {
        hf__up_lost(&zk->base, ticket, HF__LOST_TAKEN);
        return 0;
    }
    if (tell_state(zk, ticket))
        return 0;
    hf__zk_tickets_move(zk, mine, HF__ZK_UNPARKING);
    if (mine->record == HF__ZK_RECORD_CALLED || !mine->condition)
        hf__zk_acquire_called(zk, ticket);
    else if (!mine->under_way)
        hf__zk_condition_look(zk, mine->condition);
    return 0;
}
