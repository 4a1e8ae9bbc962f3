/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting for those before us.
 *
 * An exclusive ticket waits for its predecessor, the key with the greatest
 * create revision below its own, and for nobody else: a release wakes one.
 * A shared one waits for the last key before it that is not shared. A slot
 * waits for any key of the queue, since any release may make room.
 *
 * A watch begins when it is made, and says so ("created", with the store's
 * revision): if the store has moved on since we looked, we look again, so
 * nothing is missed between. Were it to begin at the revision that we looked
 * at, a store that has moved on would serve it ten times a second only
 * (syncWatchersLoop). Older servers do the same to a watch during whose creation
 * another client writes. To notice that, the stream asks for a second watch of
 * nothing in the same flight: the server only answers with its revision. If that
 * is the revision of the first answer, no write came between, and the watch
 * is served at once. Otherwise we look and watch again, at most MOST_LATE times.
 *
 * Each watch is a stream of its own, all on one connection. After any event or an end of the stream we look again; the look decides, never the
 * event. There are at most HF__ETCD_STREAMS; a waiter without
 * one looks twice a second. Every renewal looks too, so a stream that has died silently costs a
 * third of a lease, not a lock.
 *
 * Failure: a ticket whose own key is missing has lost its place, and is asked
 * for again.
 */
#include "engines/etcd/etcd.h"

#define LOOK_AGAIN_NS (500 * HF_MS)

enum { MOST_LATE = 8 }; /* watches in a row that are given up */

void hf__etcd_wait_stop(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    mine->look_ns = 0;
    if (!mine->watch)
        return;
    hf__etcd_connection_end(HF_STEAL(mine->watch));
    etcd->streams--;
}

/* ---- looking ----------------------------------------------------------- */

/* The one before it is enough; for the others, each key before it counts. */
static bool is_limited(const struct hf__ticket *ticket)
{
    return ticket->mode == HF_EXCLUSIVE;
}

void hf__etcd_wait_add_before(struct hf__etcd *etcd, struct hf__buf *to,
                              const struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine =
        hf__etcd_ticket(etcd, (struct hf__ticket *)(uintptr_t)ticket);
    bool alone = is_limited(ticket);
    size_t part = hf__pb_begin(to, HF__TXN_SUCCESS);
    size_t range = hf__pb_begin(to, HF__OP_RANGE);

    hf__etcd_queue_key(etcd, ticket->name, ticket->name_len);
    hf__etcd_queue_add_key(etcd, to, /* range= */ true);
    /* In the transaction that creates it, our key is the last one. */
    if (alone)
        hf__pb_add_number(to, HF__RANGE_LIMIT, mine->revision > 0 ? 1 : 2);
    hf__pb_add_number(to, HF__RANGE_ORDER, alone ? HF__DESCEND : HF__ASCEND);
    hf__pb_add_number(to, HF__RANGE_TARGET, HF__BY_CREATED);
    if (mine->revision > 0)
        hf__pb_add_number(to, HF__RANGE_MAX_CREATED, mine->revision - 1);
    hf__pb_end(to, range);
    hf__pb_end(to, part);
}

bool hf__etcd_wait_is_odd(const struct hf__ticket *ticket, struct hf__pb range)
{
    return is_limited(ticket) && hf__etcd_queue_is_long(range);
}

static void look_later(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    mine->look_ns = hf__now() + LOOK_AGAIN_NS;
    hf__link_wake(&etcd->link, mine->look_ns);
}

static void on_look(struct hf__etcd *etcd, struct hf__etcd_call *call,
                    const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    struct hf__etcd_ticket *mine;
    struct hf__pb before;
    struct hf__pb own;
    bool stale;

    if (!ticket)
        return;
    mine = hf__etcd_ticket(etcd, ticket);
    stale = mine->look == HF__ETCD_STALE;
    mine->look = HF__ETCD_NO_LOOK;
    if (!hf__etcd_tickets_asks(mine) && mine->state != HF__ETCD_WAITING)
        return;
    if (reply->code != HF__ETCD_OK) {
        if (mine->state == HF__ETCD_WAITING)
            look_later(etcd, ticket);
        hf__etcd_acquire_failed(etcd, ticket, reply);
        return;
    }
    if (stale) {
        hf__etcd_wait_look(etcd, ticket);
        return;
    }
    own = hf__etcd_queue_first_of(hf__etcd_queue_range_of(reply->root, 0));
    before = hf__etcd_queue_range_of(reply->root, 1);
    if (!hf__pb_there(before) || hf__etcd_wait_is_odd(ticket, before)) {
        if (mine->state == HF__ETCD_WAITING)
            look_later(etcd, ticket);
        hf__etcd_acquire_odd(etcd, ticket);
    } else if (hf__etcd_queue_read(own).revision != mine->revision) {
        hf__etcd_acquire_place_lost(etcd, ticket);
    } else {
        hf__etcd_wait_decide(etcd, ticket, before,
                             hf__etcd_queue_revision_of(reply->root));
    }
}

static void add_look(struct hf__etcd *etcd, struct hf__buf *to,
                     struct hf__ticket *ticket)
{
    hf__etcd_queue_key_ticket(etcd, ticket);
    hf__etcd_queue_add_get(etcd, to, HF__TXN_SUCCESS);
    hf__etcd_wait_add_before(etcd, to, ticket);
}

static int send_look(struct hf__etcd *etcd, struct hf__ticket *ticket,
                     hf_error *err)
{
    int rc = hf__etcd_tickets_ask(etcd, ticket, add_look, on_look, err);

    if (rc == 0)
        hf__etcd_ticket(etcd, ticket)->look = HF__ETCD_LOOKING;
    return rc;
}

void hf__etcd_wait_look(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    hf_error err;

    if (mine->look != HF__ETCD_NO_LOOK)
        mine->look = HF__ETCD_STALE;
    else if (send_look(etcd, ticket, &err) == 0)
        return;
    else if (hf__etcd_tickets_asks(mine))
        hf__etcd_acquire_refuse(etcd, ticket, &err);
    else
        look_later(etcd, ticket);
}

/* ---- watching ---------------------------------------------------------- */

/* What a stream is about. */
struct watched {
    bool made;  /* the server has said so */
    size_t len; /* of the key of somebody before us; 0: the whole queue */
    char key[];
};

static void look_again(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    hf__etcd_wait_stop(etcd, ticket);
    hf__etcd_wait_look(etcd, ticket);
}

bool hf__etcd_wait_is_late(const char *version)
{
    static const unsigned fixed[] = {[4] = 38, [5] = 22, [6] = 2};
    unsigned part[3] = {0};

    for (size_t i = 0; i < HF_COUNT_OF(part); i++) {
        while (*version >= '0' && *version <= '9' && part[i] < 10000)
            part[i] = 10 * part[i] + (unsigned)(*version++ - '0');
        version += *version == '.';
    }
    if (part[0] != 3 || part[1] >= HF_COUNT_OF(fixed))
        return part[0] < 3;
    return fixed[part[1]] == 0 || part[2] < fixed[part[1]];
}

/* The server does not watch for us: it may no longer believe who we are, which
 * the look will tell. */
static void refused(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (mine->late < MOST_LATE) {
        mine->late++;
        look_again(etcd, ticket);
        return;
    }
    hf__etcd_wait_stop(etcd, ticket);
    look_later(etcd, ticket);
}

/* The watch is there, and was not before @revision. */
static void made(struct hf__etcd *etcd, struct hf__ticket *ticket,
                 struct hf__etcd_call *call, uint64_t revision)
{
    ((struct watched *)call->data)->made = true;
    if (revision > call->n)
        hf__etcd_wait_look(etcd, ticket);
    call->n = revision;
}

/* It was there before @revision. A look that is under way will watch again. */
static void proven(struct hf__etcd *etcd, struct hf__ticket *ticket,
                   const struct hf__etcd_call *call, uint64_t revision)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (revision <= call->n) {
        mine->late = 0;
        return;
    }
    if (mine->late >= MOST_LATE)
        return;
    mine->late++;
    hf__etcd_wait_stop(etcd, ticket);
    if (mine->look == HF__ETCD_NO_LOOK)
        hf__etcd_wait_look(etcd, ticket);
}

static void on_message(struct hf__grpc_call *rpc, struct hf__pb message)
{
    struct hf__etcd_call *call =
        HF_CONTAINER_OF(rpc, struct hf__etcd_call, rpc);
    struct hf__etcd *etcd = call->etcd;
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);
    uint64_t revision = hf__etcd_queue_revision_of(message);
    bool created = hf__pb_number(message, HF__WATCH_CREATED) != 0;

    if (!ticket)
        return;
    if (hf__pb_there(hf__pb_inside(message, HF__WATCH_EVENTS))) {
        hf__etcd_ticket(etcd, ticket)->late = 0;
        look_again(etcd, ticket);
    } else if (created && ((struct watched *)call->data)->made) {
        proven(etcd, ticket, call, revision);
    } else if (hf__pb_number(message, HF__WATCH_CANCELED) != 0) {
        refused(etcd, ticket);
    } else if (created) {
        made(etcd, ticket, call, revision);
    }
}

/* The stream has ended; the member may be on its way down. */
static void on_ended(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    struct hf__ticket *ticket = hf__etcd_tickets_of(call);

    (void)reply;
    if (!ticket || hf__etcd_ticket(etcd, ticket)->watch != call)
        return;
    hf__etcd_ticket(etcd, ticket)->watch = NULL;
    etcd->streams--;
    if (hf__etcd_connection_is_up(etcd))
        look_later(etcd, ticket);
}

static struct watched *watched_new(struct hf__pb key)
{
    struct watched *watched = hf__calloc(1, sizeof(*watched) + key.len);

    if (!watched)
        return NULL;
    watched->len = key.len;
    if (key.len > 0)
        memcpy(watched->key, key.bytes, key.len);
    return watched;
}

/* Is it what is watched already? */
static bool watches(const struct hf__etcd_call *call, struct hf__pb key)
{
    const struct watched *watched = call->data;

    return watched->len == key.len &&
           (key.len == 0 || memcmp(watched->key, key.bytes, key.len) == 0);
}

/* The watch of @key, or of the whole queue, and that of nothing. */
static void add_watch(struct hf__etcd *etcd, const struct hf__ticket *ticket,
                      struct hf__pb key, struct hf__etcd_call *call)
{
    struct hf__buf *to = &call->rpc.body;
    size_t create = hf__pb_begin(to, HF__WATCH_CREATE);

    if (key.len > 0) {
        hf__pb_add_bytes(to, HF__OF_KEY, key.bytes, key.len);
    } else {
        hf__etcd_queue_key(etcd, ticket->name, ticket->name_len);
        hf__etcd_queue_add_key(etcd, to, /* range= */ true);
        key = (struct hf__pb){hf__buf_text(&etcd->key), etcd->key.len};
    }
    hf__pb_end(to, create);
    if (!hf__etcd_wait_is_late(etcd->version))
        return;
    hf__grpc_call_next(&call->rpc);
    create = hf__pb_begin(to, HF__WATCH_CREATE);
    hf__pb_add_bytes(to, HF__OF_KEY, key.bytes, key.len);
    hf__pb_add_bytes(to, HF__OF_RANGE_END, key.bytes, key.len);
    hf__pb_end(to, create);
}

/* A stream that watches @key, seen at @revision; NULL: there cannot be one. */
static struct hf__etcd_call *start_watch(struct hf__etcd *etcd,
                                         struct hf__ticket *ticket,
                                         struct hf__pb key, uint64_t revision)
{
    struct hf__etcd_call *call;

    if (etcd->streams >= HF__ETCD_STREAMS)
        return NULL;
    call = hf__etcd_connection_call(etcd, HF__CALL_WATCH, on_ended);
    call->stream = true;
    hf__etcd_tickets_about(call, ticket);
    call->n = revision;
    call->rpc.message = on_message;
    call->data = watched_new(key);
    call->rpc.body.failed |= !call->data;
    add_watch(etcd, ticket, key, call);
    return hf__etcd_connection_send(call, /* err= */ NULL) == 0 ? call : NULL;
}

/* An empty @key: the whole queue. What it is was seen at @revision. */
static void watch(struct hf__etcd *etcd, struct hf__ticket *ticket,
                  struct hf__pb key, uint64_t revision)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);

    if (mine->watch && watches(mine->watch, key))
        return;
    hf__etcd_wait_stop(etcd, ticket);
    mine->watch = start_watch(etcd, ticket, key, revision);
    if (mine->watch)
        etcd->streams++;
    else
        look_later(etcd, ticket);
}

/* ---- deciding ---------------------------------------------------------- */

/* What stands before a ticket. */
struct before {
    struct hf__etcd_entry last;     /* immediately before it */
    struct hf__etcd_entry unshared; /* the last one that is not shared */
    size_t n;
    size_t slots;
    bool unlike; /* any that is not a slot */
};

static struct before survey(struct hf__pb range, uint64_t own)
{
    struct before before = {.n = 0};
    struct hf__pb kv;
    size_t at = 0;

    while (hf__pb_there(kv = hf__pb_next(range, HF__RANGE_KVS, &at))) {
        struct hf__etcd_entry entry = hf__etcd_queue_read(kv);

        if (entry.revision >= own)
            continue;
        before.n++;
        before.slots += entry.mode == HF_SLOT;
        before.unlike |= entry.mode != HF_SLOT;
        if (entry.revision > before.last.revision)
            before.last = entry;
        if (entry.mode != HF_SHARED &&
            entry.revision > before.unshared.revision)
            before.unshared = entry;
    }
    return before;
}

static bool is_free(const struct hf__ticket *ticket,
                    const struct before *before)
{
    switch (ticket->mode) {
    case HF_SHARED:
        return before->unshared.revision == 0;
    case HF_SLOT:
        return !before->unlike && before->slots < (size_t)ticket->slots;
    default:
        return before->n == 0;
    }
}

void hf__etcd_wait_decide(struct hf__etcd *etcd, struct hf__ticket *ticket,
                          struct hf__pb range, uint64_t revision)
{
    struct hf__etcd_ticket *mine = hf__etcd_ticket(etcd, ticket);
    struct before before = survey(range, mine->revision);
    struct hf__pb awaited = ticket->mode == HF_SHARED ? before.unshared.key
                            : ticket->mode == HF_SLOT ? (struct hf__pb){0}
                                                      : before.last.key;
    bool asks = hf__etcd_tickets_asks(mine);

    if (is_free(ticket, &before)) {
        hf__etcd_acquire_granted(etcd, ticket);
        return;
    }
    if (ticket->nowait) {
        hf__etcd_release_try(etcd, ticket, &before.last);
        return;
    }
    watch(etcd, ticket, awaited, revision);
    hf__etcd_tickets_move(mine, HF__ETCD_WAITING);
    if (asks)
        hf__up_queued(&etcd->base, ticket);
}

/* ---- the timer --------------------------------------------------------- */

static bool is_due(struct hf__ticket_entry *entry, const void *now_ns)
{
    const struct hf__etcd_ticket *mine = hf__etcd_tickets_at(entry);

    return mine->look_ns != 0 && mine->look_ns <= *(const int64_t *)now_ns;
}

struct schedule {
    const struct hf__etcd *etcd;
    int64_t next_ns;
};

static void find_next(struct hf__ticket *ticket, void *ctx)
{
    struct schedule *schedule = ctx;
    int64_t look_ns = hf__etcd_ticket(schedule->etcd, ticket)->look_ns;

    if (look_ns != 0 && look_ns < schedule->next_ns)
        schedule->next_ns = look_ns;
}

int64_t hf__etcd_wait_due(struct hf__etcd *etcd, int64_t now_ns)
{
    struct schedule schedule = {etcd, HF_NEVER};
    struct hf__ticket *ticket;

    while ((ticket = hf__etcd_tickets_seek(etcd, is_due, &now_ns)) != NULL) {
        hf__etcd_ticket(etcd, ticket)->look_ns = 0;
        if (hf__etcd_connection_is_up(etcd))
            look_again(etcd, ticket);
    }
    hf__ticket_table_each(&etcd->tickets, find_next, &schedule);
    return schedule.next_ns;
}
