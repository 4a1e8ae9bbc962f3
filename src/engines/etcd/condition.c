/* SPDX-License-Identifier: MIT */
/*
 * condition.c - the conditions that this client has something to do with.
 *
 * The records of those who are parked, or bear a wake-up, are keys with the
 * lease of their owner, in the order of their create revisions. The stamps of a
 * condition are one key without a lease: a signaller's wake-ups must not end with
 * it. Who is called is computed from both (engines/common/condition.c); one
 * transaction reads them at one revision.
 *
 * WATCHING. For each condition one stream watches what can change the lot of
 * our first waiter: its own record, which a signal touches, and the record before
 * it. The first of all waiters that are not called (the guard) watches for the
 * end of any record: when a bearer dies its wake-up passes to the guard. A record
 * is touched once it is called, by the signal or, where a wake-up has passed to
 * it, by its owner: so the one behind it becomes the guard. A signal wakes two,
 * however many are parked, and every renewal looks, too.
 *
 * Failure: a look that fails has no outcome; the next renewal looks again.
 */
#include "engines/etcd/condition.h"

#include <stdlib.h>

#include "engines/etcd/etcd.h"

/* Looks in a row without an outcome: more of them go in circles. */
enum { STEPS = 100 };

/* ---- the conditions ------------------------------------------------------ */

static void condition_free(struct hf__etcd *etcd,
                           struct hf__etcd_condition *condition)
{
    hf__signals_drop_all(&condition->signals);
    if (condition->watch)
        etcd->streams--;
    hf__etcd_connection_end(condition->watch);
    hf__list_remove(&condition->link);
    hf__free(condition->watched);
    hf__free(condition->name);
    hf__free(condition->cond);
    hf__free(condition);
}

struct hf__etcd_condition *hf__etcd_condition_get(struct hf__etcd *etcd,
                                                  const char *name,
                                                  const char *cond)
{
    struct hf__etcd_condition *condition;

    HF_LIST_EACH(&etcd->conditions, link) {
        condition = HF_CONTAINER_OF(link, struct hf__etcd_condition, link);
        if (strcmp(condition->name, name) == 0 &&
            strcmp(condition->cond, cond) == 0)
            return condition;
    }
    condition = hf__calloc(1, sizeof(*condition));
    if (!condition)
        return NULL;
    condition->id = ++etcd->condition_ids;
    condition->name = hf__strdup(name);
    condition->cond = hf__strdup(cond);
    hf__list_init(&condition->link);
    hf__list_init(&condition->tickets);
    hf__list_init(&condition->signals);
    if (condition->name && condition->cond) {
        hf__list_append(&etcd->conditions, &condition->link);
        return condition;
    }
    condition_free(etcd, condition);
    return NULL;
}

struct hf__etcd_condition *hf__etcd_condition_find(const struct hf__etcd *etcd,
                                                   uint64_t id)
{
    HF_LIST_EACH(&etcd->conditions, link) {
        struct hf__etcd_condition *condition =
            HF_CONTAINER_OF(link, struct hf__etcd_condition, link);

        if (condition->id == id)
            return condition;
    }
    return NULL;
}

void hf__etcd_condition_tidy(struct hf__etcd *etcd,
                             struct hf__etcd_condition *condition)
{
    if (hf__list_empty(&condition->tickets) &&
        hf__list_empty(&condition->signals))
        condition_free(etcd, condition);
}

void hf__etcd_condition_forget_all(struct hf__etcd *etcd)
{
    struct hf__list *link;

    if (!etcd->conditions.next)
        return; /* never opened */
    while ((link = hf__list_first(&etcd->conditions)) != NULL)
        condition_free(etcd,
                       HF_CONTAINER_OF(link, struct hf__etcd_condition, link));
}

void hf__etcd_condition_join(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             struct hf__etcd_condition *condition)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    mine->condition = condition;
    hf__list_init(&mine->parked_link);
    hf__list_append(&condition->tickets, &mine->parked_link);
}

void hf__etcd_condition_leave(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (!mine->condition)
        return;
    hf__list_remove(&mine->parked_link);
    hf__etcd_condition_tidy(etcd, HF_STEAL(mine->condition));
}

/* ---- parts of transactions ----------------------------------------------- */

void hf__etcd_condition_add_touch(struct hf__buf *to, struct hf__pb key)
{
    size_t part = hf__pb_begin(to, HF__TXN_SUCCESS);
    size_t put = hf__pb_begin(to, HF__OP_PUT);

    hf__pb_add_bytes(to, HF__OF_KEY, key.bytes, key.len);
    hf__pb_add_number(to, HF__PUT_KEEPS_VALUE, 1);
    hf__pb_add_number(to, HF__PUT_KEEPS_LEASE, 1);
    hf__pb_end(to, put);
    hf__pb_end(to, part);
}

static void add_put(struct hf__etcd *etcd, struct hf__buf *to,
                    const struct hf__condition *wakes)
{
    size_t part = hf__pb_begin(to, HF__TXN_SUCCESS);
    size_t put = hf__pb_begin(to, HF__OP_PUT);
    size_t value;

    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    value = hf__pb_begin(to, HF__PUT_VALUE);
    hf__condition_write(wakes, to);
    hf__pb_end(to, value);
    hf__pb_end(to, put);
    hf__pb_end(to, part);
}

void hf__etcd_condition_add_stamps(struct hf__etcd *etcd, struct hf__buf *to,
                                   const struct hf__etcd_condition *condition,
                                   const struct hf__condition *wakes,
                                   uint64_t stamped, bool changed)
{
    hf__etcd_queue_key_condition(etcd, "wake", condition->name,
                                 condition->cond);
    hf__etcd_queue_add_compare_modified(etcd, to, stamped);
    if (changed && wakes->n > 0)
        add_put(etcd, to, wakes);
    else if (changed)
        hf__etcd_queue_add_delete(etcd, to);
}

/* ---- looking ------------------------------------------------------------- */

static int by_revision(const void *a, const void *b)
{
    const struct hf__etcd_parked *one = a;
    const struct hf__etcd_parked *two = b;

    return (one->made > two->made) - (one->made < two->made);
}

static void view_release(struct hf__etcd_view *view)
{
    hf__free(view->line);
    hf__free(view->made);
    hf__condition_release(&view->wakes);
}

static size_t count_keys(struct hf__pb range)
{
    size_t n = 0;
    size_t at = 0;

    while (hf__pb_there(hf__pb_next(range, HF__RANGE_KVS, &at)))
        n++;
    return n;
}

static int read_line(struct hf__etcd_view *view, struct hf__pb range)
{
    size_t n = count_keys(range);
    size_t at = 0;

    view->line = hf__malloc((n + 1) * sizeof(view->line[0]));
    view->made = hf__malloc((n + 1) * sizeof(view->made[0]));
    if (!view->line || !view->made)
        return HF_ENOMEM;
    for (; view->n < n; view->n++) {
        struct hf__pb kv = hf__pb_next(range, HF__RANGE_KVS, &at);

        view->line[view->n] = (struct hf__etcd_parked){
            .key = hf__pb_inside(kv, HF__KV_KEY),
            .made = hf__etcd_queue_read(kv).revision,
            .modified = hf__pb_number(kv, HF__KV_MODIFIED)};
    }
    qsort(view->line, n, sizeof(view->line[0]), by_revision);
    for (size_t i = 0; i < n; i++)
        view->made[i] = view->line[i].made;
    return 0;
}

/* The two answers of a look. */
static int read_view(struct hf__etcd_view *view, struct hf__pb root)
{
    struct hf__pb range = hf__etcd_queue_range_of(root, 0);
    struct hf__pb stamps =
        hf__etcd_queue_first_of(hf__etcd_queue_range_of(root, 1));
    struct hf__pb value = hf__pb_inside(stamps, HF__KV_VALUE);
    int rc = hf__etcd_queue_is_long(range) ? HF_EINTERNAL : 0;

    if (rc == 0)
        rc = read_line(view, range);
    if (rc == 0)
        rc = hf__condition_read(&view->wakes, value.bytes, value.len);
    view->stamped = hf__pb_number(stamps, HF__KV_MODIFIED);
    view->revision = hf__etcd_queue_revision_of(root);
    view->called = hf__condition_called(&view->wakes, view->made, view->n);
    return rc;
}

static void add_look(struct hf__etcd *etcd, struct hf__buf *to,
                     const struct hf__etcd_condition *condition)
{
    size_t part;
    size_t range;

    hf__etcd_queue_key_records(etcd, condition->name, condition->cond);
    hf__etcd_queue_add_list(etcd, to, HF__ETCD_ROWS, /* keys_only= */ true);
    part = hf__pb_begin(to, HF__TXN_SUCCESS);
    range = hf__pb_begin(to, HF__OP_RANGE);
    hf__etcd_queue_key_condition(etcd, "wake", condition->name,
                                 condition->cond);
    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_end(to, range);
    hf__pb_end(to, part);
}

static void conclude(struct hf__etcd *etcd,
                     struct hf__etcd_condition *condition,
                     const struct hf__etcd_reply *reply);

static void on_look(struct hf__etcd *etcd, struct hf__etcd_call *call,
                    const struct hf__etcd_reply *reply)
{
    struct hf__etcd_condition *condition =
        hf__etcd_condition_find(etcd, call->condition);

    if (condition)
        conclude(etcd, condition, reply);
}

void hf__etcd_condition_look(struct hf__etcd *etcd,
                             struct hf__etcd_condition *condition)
{
    struct hf__etcd_reply failed = {.code = HF__ETCD_UNSENT};
    struct hf__etcd_call *call;

    if (condition->look >= HF__ETCD_LOOKING) {
        condition->look = HF__ETCD_STALE;
        return;
    }
    condition->look = HF__ETCD_LOOKING;
    call = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_look);
    call->condition = condition->id;
    add_look(etcd, &call->rpc.body, condition);
    if (hf__etcd_connection_send(call, &failed.err) != 0)
        conclude(etcd, condition, &failed);
}

void hf__etcd_condition_beat(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_condition *condition =
        hf__etcd_ticket(etcd, ticket)->condition;

    condition->look = condition->look >= HF__ETCD_LOOKING ? HF__ETCD_STALE
                                                          : HF__ETCD_LOOK_DUE;
}

/* A look may end a condition: so they are found one after the other. */
static struct hf__etcd_condition *next_news(struct hf__etcd *etcd)
{
    HF_LIST_EACH(&etcd->conditions, link) {
        struct hf__etcd_condition *condition =
            HF_CONTAINER_OF(link, struct hf__etcd_condition, link);

        if (condition->look == HF__ETCD_LOOK_DUE)
            return condition;
    }
    return NULL;
}

void hf__etcd_condition_look_at_news(struct hf__etcd *etcd)
{
    struct hf__etcd_condition *condition;

    while ((condition = next_news(etcd)) != NULL)
        hf__etcd_condition_look(etcd, condition);
}

/* ---- watching ------------------------------------------------------------ */

static void stop_watch(struct hf__etcd *etcd,
                       struct hf__etcd_condition *condition)
{
    hf__free(HF_STEAL(condition->watched));
    if (!condition->watch)
        return;
    hf__etcd_connection_end(HF_STEAL(condition->watch));
    etcd->streams--;
}

static void on_watched(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    struct hf__etcd_condition *condition =
        hf__etcd_condition_find(etcd, call->condition);

    (void)reply;
    if (!condition || condition->watch != call)
        return;
    condition->watch = NULL;
    hf__free(HF_STEAL(condition->watched));
    etcd->streams--;
    if (hf__etcd_connection_is_up(etcd))
        hf__etcd_condition_look(etcd, condition);
}

static void on_message(struct hf__grpc_call *rpc, struct hf__pb message)
{
    struct hf__etcd_call *call =
        HF_CONTAINER_OF(rpc, struct hf__etcd_call, rpc);
    struct hf__etcd *etcd = call->etcd;
    struct hf__etcd_condition *condition =
        hf__etcd_condition_find(etcd, call->condition);
    bool ended = hf__pb_number(message, HF__WATCH_CANCELED) != 0;

    if (!condition)
        return;
    if (!ended && !hf__pb_there(hf__pb_inside(message, HF__WATCH_EVENTS)) &&
        (hf__pb_number(message, HF__WATCH_CREATED) == 0 ||
         hf__etcd_queue_revision_of(message) <= call->n))
        return;
    condition->steps = 0;
    if (ended)
        stop_watch(etcd, condition);
    hf__etcd_condition_look(etcd, condition);
}

/* Begin a watch of @key: NULL: of the end of any record. */
static void add_watch(struct hf__etcd *etcd, struct hf__buf *to,
                      const struct hf__etcd_condition *condition,
                      const struct hf__pb *key)
{
    size_t create = hf__pb_begin(to, HF__WATCH_CREATE);

    if (key) {
        hf__pb_add_bytes(to, HF__OF_KEY, key->bytes, key->len);
    } else {
        hf__etcd_queue_key_records(etcd, condition->name, condition->cond);
        hf__etcd_queue_add_key(etcd, to, /* range= */ true);
        hf__pb_add_number(to, HF__WATCH_FILTERS, HF__WATCH_NO_PUT);
    }
    hf__pb_end(to, create);
}

/* What is watched, as a text: our first waiter, and the one before it. */
static char *describe(const struct hf__etcd_view *view, size_t first)
{
    struct hf__buf text = {0};

    hf__buf_add_number(&text, view->made[first]);
    hf__buf_add_char(&text, ' ');
    hf__buf_add_number(&text, first > view->called ? view->made[first - 1] : 0);
    return hf__buf_steal(&text);
}

static void start_watch(struct hf__etcd *etcd,
                        struct hf__etcd_condition *condition,
                        const struct hf__etcd_view *view, size_t first)
{
    struct hf__etcd_call *call;

    if (etcd->streams >= HF__ETCD_STREAMS)
        return; /* renewals look */
    call = hf__etcd_connection_call(etcd, HF__CALL_WATCH, on_watched);
    call->stream = true;
    call->condition = condition->id;
    call->n = view->revision;
    call->rpc.message = on_message;
    add_watch(etcd, &call->rpc.body, condition, &view->line[first].key);
    hf__grpc_call_next(&call->rpc);
    add_watch(etcd, &call->rpc.body, condition,
              first > view->called ? &view->line[first - 1].key : NULL);
    if (hf__etcd_connection_send(call, /* err= */ NULL) != 0)
        return;
    condition->watch = call;
    etcd->streams++;
}

/* Where the record of @mine is; view->n: nowhere. */
static size_t place_of(struct hf__etcd *etcd, struct hf__etcd_ticket *mine,
                       const struct hf__etcd_view *view)
{
    size_t i = 0;

    hf__etcd_queue_key_record(etcd, mine->entry.ticket);
    while (
        i < view->n &&
        (view->line[i].key.len != etcd->key.len || hf__buf_failed(&etcd->key) ||
         memcmp(view->line[i].key.bytes, etcd->key.text, etcd->key.len) != 0))
        i++;
    return i;
}

/* The place of our first waiter that is not called; view->n: there is none. */
static size_t first_of_ours(struct hf__etcd *etcd,
                            struct hf__etcd_condition *condition,
                            const struct hf__etcd_view *view)
{
    size_t first = view->n;

    HF_LIST_EACH(&condition->tickets, link) {
        struct hf__etcd_ticket *mine =
            HF_CONTAINER_OF(link, struct hf__etcd_ticket, parked_link);
        size_t place;

        if (mine->state != HF__ETCD_PARKED)
            continue;
        place = place_of(etcd, mine, view);
        if (place < first)
            first = place;
    }
    return first;
}

static void watch_on(struct hf__etcd *etcd,
                     struct hf__etcd_condition *condition,
                     const struct hf__etcd_view *view)
{
    size_t first = first_of_ours(etcd, condition, view);
    char *wanted = first < view->n ? describe(view, first) : NULL;

    if (wanted && condition->watch && condition->watched &&
        strcmp(wanted, condition->watched) == 0) {
        hf__free(wanted);
        return;
    }
    stop_watch(etcd, condition);
    if (!wanted)
        return;
    condition->watched = wanted;
    start_watch(etcd, condition, view, first);
}

/* ---- acting on what was seen --------------------------------------------- */

static void on_touched(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    (void)etcd;
    (void)call;
    (void)reply; /* the renewals of the one behind it look, too */
}

/* A wake-up has passed to this record: tell the one behind it, who watches it
 * and is the guard now. */
static void touch(struct hf__etcd *etcd, struct hf__pb key)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_TXN, on_touched);

    hf__etcd_condition_add_touch(&call->rpc.body, key);
    (void)hf__etcd_connection_send(call, /* err= */ NULL);
}

/* One of our tickets, at @place of the line; view->n: its record is gone. */
static void act(struct hf__etcd *etcd, struct hf__ticket *ticket,
                const struct hf__etcd_view *view, size_t place)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    bool unparks = mine->state == HF__ETCD_UNPARKING;

    if (mine->under_way || (mine->state != HF__ETCD_PARKED && !unparks))
        return;
    if (place < view->n) {
        mine->record = HF__ETCD_RECORD_KNOWN;
        mine->made = view->made[place];
    } else if (mine->record != HF__ETCD_RECORD_DOUBTED) {
        mine->record = HF__ETCD_RECORD_NONE;
    }
    if (place < view->called) {
        mine->record = HF__ETCD_RECORD_CALLED;
        if (view->line[place].modified == mine->made && place + 1 < view->n)
            touch(etcd, view->line[place].key);
        hf__etcd_acquire_called(etcd, ticket);
    } else if (unparks) {
        hf__etcd_park_end(etcd, ticket, view->stamped);
    } else if (place == view->n) {
        hf__etcd_tickets_gone(etcd, ticket, HF__LOST_BROKEN);
    }
}

/* The next ticket that has not been looked at in this round. */
static struct hf__etcd_ticket *next_ticket(struct hf__etcd_condition *condition)
{
    HF_LIST_EACH(&condition->tickets, link) {
        struct hf__etcd_ticket *mine =
            HF_CONTAINER_OF(link, struct hf__etcd_ticket, parked_link);

        if (mine->round != condition->round) {
            mine->round = condition->round;
            return mine;
        }
    }
    return NULL;
}

/* Reports may end tickets, and with the last one the condition: NULL then. */
static struct hf__etcd_condition *act_on_all(struct hf__etcd *etcd, uint64_t id,
                                             const struct hf__etcd_view *view)
{
    struct hf__etcd_condition *condition = hf__etcd_condition_find(etcd, id);
    struct hf__etcd_ticket *mine;

    if (condition)
        condition->round++;
    while (condition && (mine = next_ticket(condition)) != NULL) {
        act(etcd, mine->entry.ticket, view, place_of(etcd, mine, view));
        condition = hf__etcd_condition_find(etcd, id);
    }
    return condition;
}

/* Nothing is known: an unpark() that waits for it has no outcome. */
static void give_up(struct hf__etcd *etcd, uint64_t id, const hf_error *err)
{
    struct hf__etcd_condition *condition = hf__etcd_condition_find(etcd, id);
    struct hf__etcd_ticket *mine;

    condition->round++;
    while (condition && (mine = next_ticket(condition)) != NULL) {
        if (mine->state == HF__ETCD_UNPARKING && !mine->under_way)
            hf__etcd_park_unknown(etcd, mine->entry.ticket, err);
        condition = hf__etcd_condition_find(etcd, id);
    }
    if (condition)
        hf__etcd_signal_failed(etcd, condition, err);
}

static void conclude(struct hf__etcd *etcd,
                     struct hf__etcd_condition *condition,
                     const struct hf__etcd_reply *reply)
{
    struct hf__etcd_view view = {0};
    uint64_t id = condition->id;
    bool stale = condition->look == HF__ETCD_STALE;
    hf_error err = reply->err;

    condition->look = HF__ETCD_NO_LOOK;
    if (reply->code != HF__ETCD_OK) {
        give_up(etcd, id, &err);
    } else if (stale && ++condition->steps <= STEPS) {
        hf__etcd_condition_look(etcd, condition);
    } else if (stale || read_view(&view, reply->root) != 0) {
        (void)hf__fail(&err, HF_EUNAVAILABLE,
                       "etcd %s: who waits cannot be read",
                       hf__etcd_connection_peer(etcd));
        give_up(etcd, id, &err);
    } else {
        condition->steps = 0;
        hf__etcd_signal_send(etcd, condition, &view);
        condition = act_on_all(etcd, id, &view);
        if (condition)
            watch_on(etcd, condition, &view);
    }
    view_release(&view);
}

/* ---- the end of a ticket ------------------------------------------------- */

/* call->n: why it is lost. */
static void on_record_deleted(struct hf__etcd *etcd, struct hf__etcd_call *call,
                              const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    struct hf__etcd_ticket *mine;

    if (!ticket)
        return;
    mine = hf__etcd_ticket(etcd, ticket);
    mine->under_way = false;
    if (mine->state == HF__ETCD_RELEASING || reply->code != HF__ETCD_OK)
        return; /* the next renewal, or the release, comes here again */
    mine->record = HF__ETCD_RECORD_NONE;
    hf__etcd_tickets_gone(etcd, ticket, (int)call->n);
}

void hf__etcd_condition_lose(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             int reason)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct hf__etcd_call *call;

    if (mine->record == HF__ETCD_RECORD_NONE) {
        hf__etcd_tickets_gone(etcd, ticket, reason);
        return;
    }
    if (mine->under_way)
        return;
    call = hf__etcd_connection_call(etcd, HF__CALL_TXN, on_record_deleted);
    hf__etcd_tickets_about(call, ticket);
    call->n = (size_t)reason;
    hf__etcd_queue_key_ticket(etcd, ticket);
    hf__etcd_queue_add_delete(etcd, &call->rpc.body);
    hf__etcd_queue_key_record(etcd, ticket);
    hf__etcd_queue_add_delete(etcd, &call->rpc.body);
    mine->under_way = hf__etcd_connection_send(call, /* err= */ NULL) == 0;
}
