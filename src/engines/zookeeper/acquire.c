/* SPDX-License-Identifier: MIT */
/*
 * acquire.c - acquire.
 *
 * We create an ephemeral, numbered child of the lock's node and list the
 * children behind it, in one trip. If no other node is in the way, we hold the
 * lock. If one is, we watch that node and no other (wait.c): when it goes, we
 * list the children again, because it may have been a waiter that gave up, and
 * not the holder. Each release wakes one waiter.
 *
 * UNKNOWN. When the connection breaks between a create and its answer, the
 * child may be there or not, and nobody but us knows its ID. We ask again on
 * the same session: a barrier, so that what the old connection had sent is
 * settled, then the list. What is found is adopted, or deleted if it is not
 * wanted any more. If the session is gone, so is the child.
 *
 * The lock's node is a container: ZooKeeper removes it when it has been empty
 * for a while. So a create may find its parent missing, and makes it.
 *
 * One step of a ticket is under way at a time (under_way); what is asked for
 * meanwhile is done when its answer comes.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engines/zookeeper/zookeeper.h"

/* An ask that takes so many steps goes in circles. */
enum { STEPS = 200 };

static int begin_ask(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err);
static int granted(struct hf__zk *zk, struct hf__ticket *ticket, hf_error *err);
static hf__zk_step_fn on_children;

struct hf__grant hf__zk_acquire_grant(const struct hf__zk *zk,
                                      const struct hf__ticket *ticket,
                                      uint64_t token)
{
    int64_t lease_ms = hf__zk_session_lease_ms(zk);

    return (struct hf__grant){
        .token = token,
        .tokens = 1,
        .lease_ms = ticket->ttl_ms < lease_ms ? ticket->ttl_ms : lease_ms,
        .sent_ns = zk->proven_ns,
        .woken = hf__zk_park_bears(zk, (struct hf__ticket *)(uintptr_t)ticket),
    };
}

/* ---- the lock's node ----------------------------------------------------- */

static int make_node(struct hf__zk *zk, struct hf__ticket *ticket, size_t len,
                     hf_error *err);

/* The container that is missing: the lock's node, or that of the condition. */
static struct hf__zk_wire_text container(const struct hf__zk_ticket *mine)
{
    return mine->state == HF__ZK_PARKING ? hf__zk_condition_dir(mine->condition)
                                         : hf__zk_nodes_dir(mine);
}

/* call->number is the length of the path that was to be made: the container,
 * or, where that has no parent, a node above it. */
static int on_parent(struct hf__zk *zk, struct hf__ticket *ticket,
                     const struct hf__zk_call *call, struct hf__zk_reply *reply,
                     hf_error *err)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    bool missing = reply->error == HF__ZK_NO_NODE;
    bool made = reply->error == HF__ZK_OK || reply->error == HF__ZK_NODE_EXISTS;
    size_t next;
    int rc;

    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    next = hf__zk_nodes_next(container(mine), (size_t)call->number, missing);
    if ((!missing && !made) || (missing && next == 0))
        rc = hf__zk_errors_read(zk, reply->error, err);
    else if (next > 0)
        rc = make_node(zk, ticket, next, err);
    else
        rc = mine->state == HF__ZK_PARKING ? hf__zk_park_begin(zk, ticket, err)
                                           : begin_ask(zk, ticket, err);
    if (rc != 0)
        hf__zk_release_failed(zk, ticket, err);
    return 0;
}

static int make_node(struct hf__zk *zk, struct hf__ticket *ticket, size_t len,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_parent);
    struct hf__zk_wire_text path = {container(mine).text, len};

    if (++mine->steps > STEPS)
        return hf__fail(err, HF_EUNAVAILABLE,
                        "%s: the lock's node vanishes again and again",
                        zk->peer);
    call.number = (int32_t)len;
    return hf__zk_calls_create(zk, path, /* data= */ hf__zk_wire_text_of(""),
                               HF__ZK_CONTAINER, &call, err);
}

int hf__zk_acquire_make_container(struct hf__zk *zk, struct hf__ticket *ticket,
                                  hf_error *err)
{
    return make_node(zk, ticket, container(hf__zk_ticket(zk, ticket)).len, err);
}

/* ---- holding ------------------------------------------------------------- */

/* The next waiter for a slot watches our node for this. */
static void mark_slot(struct hf__zk *zk, const struct hf__ticket *ticket,
                      const struct hf__zk_ticket *mine)
{
    /* If the node is gone, the next renewal finds out. */
    struct hf__zk_call call = {.done = hf__zk_calls_ignore};
    struct hf__buf data = {0};

    hf__zk_nodes_write(zk, ticket, /* token= */ 0, /* held= */ true, &data);
    (void)hf__zk_calls_set(zk, hf__zk_nodes_own(mine),
                           hf__zk_wire_text_in(&data), HF__ZK_ANY_VERSION,
                           &call, /* err= */ NULL);
    hf__buf_release(&data);
}

/* It has a slot: the mutex before the slots is for the next one. If the node
 * that had the slot has gone meanwhile, it begins anew in the line for the
 * mutex. */
static int on_passed(struct hf__zk *zk, struct hf__ticket *ticket,
                     const struct hf__zk_call *call, struct hf__zk_reply *reply,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    (void)call;
    (void)reply;
    hf__zk_curator_semaphore_passed(mine);
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    if (mine->node == HF__ZK_NODE_KNOWN)
        return granted(zk, ticket, err);
    hf__zk_curator_semaphore_line(mine, HF__ZK_LINE_MUTEX);
    return begin_ask(zk, ticket, err);
}

/* Nobody is in the way in the line for the mutex. */
static int enter(struct hf__zk *zk, struct hf__ticket *ticket, hf_error *err)
{
    int rc = hf__zk_curator_semaphore_enter(hf__zk_ticket(zk, ticket));

    return rc != 0 ? hf__fail(err, rc, "out of memory")
                   : begin_ask(zk, ticket, err);
}

static int granted(struct hf__zk *zk, struct hf__ticket *ticket, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__grant grant = hf__zk_acquire_grant(zk, ticket, mine->czxid);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_passed);

    if (mine->line == HF__ZK_LINE_MUTEX)
        return enter(zk, ticket, err);
    if (mine->mutex)
        return hf__zk_calls_delete(zk, hf__zk_wire_text_of(mine->mutex), &call,
                                   err);
    if (mine->waited && ticket->mode == HF_SLOT && !zk->dialect->semaphore)
        mark_slot(zk, ticket, mine);
    mine->watched = 0;
    hf__zk_tickets_move(zk, mine, HF__ZK_HELD);
    hf__up_granted(&zk->base, ticket, &grant);
    return 0;
}

/* ---- trying -------------------------------------------------------------- */

static void on_holder(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    char copy[HF__ZK_TEXTS];
    hf_lock_info row = {0};

    if (!ticket || !reply || reply->error != HF__ZK_OK)
        return;
    (void)hf__zk_nodes_read(hf__zk_wire_text(&reply->in), copy, &row);
    if (row.host[0])
        (void)snprintf(hf__zk_ticket(zk, ticket)->refused.text, 200,
                       "%.64s:%" PRId64 " (%.64s)%s%.40s%s", row.host, row.pid,
                       row.owner, row.note[0] ? ", \"" : "", row.note,
                       row.note[0] ? "\"" : "");
}

/* Only tried: say who has it, and take the node back. */
static int give_up(struct hf__zk *zk, struct hf__ticket *ticket,
                   const struct hf__zk_contender *holder, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = {.done = on_holder, .ticket = ticket->id};

    mine->refused.text[0] = '\0';
    (void)hf__zk_calls_ask(
        zk, HF__ZK_GET_DATA,
        hf__zk_nodes_below(zk, hf__zk_nodes_dir(mine), holder->name),
        /* watch= */ false, &call, /* err= */ NULL);
    return hf__zk_release_node(zk, ticket, err);
}

/* ---- asking -------------------------------------------------------------- */

/* List the children again. @watch: and tell us when they change. */
int hf__zk_acquire_look(struct hf__zk *zk, struct hf__ticket *ticket,
                        bool watch, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_children);

    call.number = watch;
    if (watch)
        mine->watched = hf__zk_nodes_hash(zk, hf__zk_nodes_dir(mine));
    return hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN, hf__zk_nodes_dir(mine),
                            watch, &call, err);
}

static void on_create(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    struct hf__ticket *ticket = hf__zk_tickets_find(zk, call->ticket);
    struct hf__zk_ticket *mine;
    struct hf__zk_wire_stat stat;
    struct hf__zk_wire_text path;

    if (!ticket)
        return;
    mine = hf__zk_ticket(zk, ticket);
    if (!reply) {
        hf__zk_nodes_lose(mine, HF__PLANTED("unsure_node_not_sought")
                                    ? HF__ZK_NODE_MISSING
                                    : HF__ZK_NODE_UNSURE);
        return;
    }
    if (reply->error == HF__ZK_NO_NODE) {
        mine->refused.code = HF_ENOTFOUND;
        return;
    }
    if (reply->error != HF__ZK_OK) {
        (void)hf__zk_errors_read(zk, reply->error, &mine->refused);
        return;
    }
    path = hf__zk_wire_text(&reply->in);
    hf__zk_wire_stat(&reply->in, &stat);
    if (reply->in.bad || path.len <= mine->dir_len + 1 ||
        !hf__zk_nodes_adopt(mine, path.text + mine->dir_len + 1,
                            path.len - mine->dir_len - 1)) {
        mine->node = HF__ZK_NODE_UNSURE; /* the list tells its name */
        return;
    }
    mine->czxid = (uint64_t)stat.czxid;
}

/* A node that was found again: its token. */
static int on_stat(struct hf__zk *zk, struct hf__ticket *ticket,
                   const struct hf__zk_call *call, struct hf__zk_reply *reply,
                   hf_error *err)
{
    struct hf__zk_wire_stat stat;

    (void)call;
    if (reply->error == HF__ZK_OK) {
        hf__zk_wire_stat(&reply->in, &stat);
        hf__zk_ticket(zk, ticket)->czxid = (uint64_t)stat.czxid;
    }
    return hf__zk_acquire_look(zk, ticket, /* watch= */ false, err);
}

static int ask_token(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_stat);

    return hf__zk_calls_ask(zk, HF__ZK_EXISTS, hf__zk_nodes_own(mine),
                            /* watch= */ false, &call, err);
}

/* Our node is not among the children. */
static int not_there(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    hf__zk_nodes_lose(mine, HF__ZK_NODE_MISSING);
    mine->czxid = 0;
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    if (mine->state != HF__ZK_HELD && mine->state != HF__ZK_WAITING)
        return begin_ask(zk, ticket, err);
    if (mine->state == HF__ZK_WAITING)
        hf__zk_wait_lost_place(zk, ticket);
    else if (ticket->cond)
        hf__zk_condition_lose(zk, ticket, HF__LOST_BROKEN);
    else
        hf__zk_tickets_gone(zk, ticket, HF__LOST_BROKEN);
    return 0;
}

void hf__zk_acquire_not_there(struct hf__zk *zk, struct hf__ticket *ticket)
{
    hf_error err;

    if (not_there(zk, ticket, &err) != 0)
        hf__zk_tickets_unknown(zk, ticket, &err);
}

/* A node by the path of the lock's node, with the slash, and its own name. */
struct node {
    const char *dir;
    size_t dir_len;
    struct hf__zk_wire_text name;
};

static bool deletes(struct hf__ticket_entry *entry, const void *what)
{
    const struct hf__zk_ticket *it =
        HF_CONTAINER_OF(entry, struct hf__zk_ticket, entry);
    const struct node *node = what;

    return hf__zk_tickets_leaves(it) &&
           it->path_len == node->dir_len + node->name.len &&
           memcmp(it->path, node->dir, node->dir_len) == 0 &&
           memcmp(it->path + node->dir_len, node->name.text, node->name.len) ==
               0;
}

/* Is @other a node of our own that is being deleted? */
static bool is_leaving(const struct hf__zk *zk,
                       const struct hf__zk_ticket *mine,
                       const struct hf__zk_contender *other)
{
    struct node node = {mine->path, mine->dir_len + 1, other->name};
    size_t bucket = 0;

    return hf__ticket_table_next(&zk->tickets, &bucket, deletes, &node) != NULL;
}

int hf__zk_acquire_look_behind(struct hf__zk *zk, struct hf__ticket *ticket,
                               hf_error *err)
{
    int rc = hf__zk_calls_barrier(zk, err);

    return rc != 0 ? rc
                   : hf__zk_acquire_look(zk, ticket, /* watch= */ false, err);
}

/* One whose downgrade had no outcome was looked for: it is what its node is. */
static void found_again(struct hf__zk *zk, struct hf__ticket *ticket,
                        uint8_t kind)
{
    struct hf__grant grant =
        hf__zk_acquire_grant(zk, ticket, hf__zk_ticket(zk, ticket)->czxid);

    if (kind == HF__ZK_READ)
        ticket->mode = HF_SHARED;
    hf__up_renewed(&zk->base, ticket, &grant);
}

/* Our node is at @place in line. */
static int is_there(struct hf__zk *zk, struct hf__ticket *ticket,
                    const struct hf__zk_queue *line, uint32_t place,
                    bool watched, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    const struct hf__zk_contender *own = &line->all[place];
    uint32_t blocker;
    bool first;

    if (!hf__zk_nodes_adopt(mine, own->name.text, own->name.len))
        return hf__fail(err, HF_EINTERNAL,
                        "%s: a node of ours has a strange name", zk->peer);
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_node(zk, ticket, err);
    if (mine->czxid == 0)
        return ask_token(zk, ticket, err);
    if (mine->state == HF__ZK_HELD) {
        found_again(zk, ticket, own->kind);
        return 0;
    }
    blocker = hf__zk_queue_blocker(line, place, ticket->slots, &first);
    if (blocker == line->n)
        return granted(zk, ticket, err);
    if (ticket->nowait)
        return is_leaving(zk, mine, &line->all[blocker])
                   ? hf__zk_acquire_look_behind(zk, ticket, err)
                   : give_up(zk, ticket, &line->all[0], err);
    hf__zk_wait_stand(zk, ticket, &line->all[blocker],
                      first || mine->line == HF__ZK_LINE_LEASES, watched);
    return 0;
}

/* We may not, or cannot, read the children. If we asked, our node goes first. */
static int cannot_list(struct hf__zk *zk, struct hf__ticket *ticket,
                       int32_t error, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    (void)hf__zk_errors_read(zk, error, err);
    if (hf__zk_tickets_asks(mine) && mine->node == HF__ZK_NODE_KNOWN) {
        mine->refused = *err;
        if (hf__zk_release_node(zk, ticket, err) == 0)
            return 0;
        mine->refused.code = 0;
    }
    return HF_EUNKNOWN;
}

/* Where our node stands; line->n: it is not there. */
static uint32_t find_own(const struct hf__zk *zk,
                         const struct hf__zk_ticket *mine,
                         const struct hf__zk_queue *line)
{
    struct hf__zk_wire_text id = hf__zk_nodes_id(mine);
    uint32_t i = 0;

    if (!zk->dialect->bare)
        return hf__zk_queue_find(line, id.text, id.len);
    if (mine->node == HF__ZK_NODE_KNOWN)
        return hf__zk_queue_find(line, id.text,
                                 mine->path_len - mine->dir_len - 1);
    while (i < line->n && !(mine->node == HF__ZK_NODE_FOUND &&
                            line->all[i].sequence == mine->number))
        i++;
    return i;
}

/* It may be any of them, and only what they say tells. */
static bool must_seek(const struct hf__zk *zk, const struct hf__zk_ticket *mine)
{
    return zk->dialect->bare && mine->node == HF__ZK_NODE_UNSURE;
}

/* What the create before the list said: it was refused, or had no parent. */
static void not_created(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    hf_error err = mine->refused;

    if (err.code == HF_ENOTFOUND) {
        mine->refused.code = 0;
        if (hf__zk_acquire_make_container(zk, ticket, &err) == 0)
            return;
    }
    hf__zk_release_failed(zk, ticket, &err);
}

/* The children of the lock's node: where are we, and what did we want? */
static int on_children(struct hf__zk *zk, struct hf__ticket *ticket,
                       const struct hf__zk_call *call,
                       struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    struct hf__zk_queue line = {0};
    uint32_t place;
    int rc = 0;

    if (mine->refused.code != 0 &&
        (mine->refused.code != HF_ENOTFOUND || !hf__zk_tickets_leaves(mine))) {
        not_created(zk, ticket);
        return 0;
    }
    if (reply->error == HF__ZK_OK)
        rc = hf__zk_queue_read(&line, &reply->in);
    if (rc != 0 ||
        (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE))
        return cannot_list(zk, ticket, reply->error, err);
    place = line.all ? find_own(zk, mine, &line) : line.n;
    if (line.n > 0 && must_seek(zk, mine))
        rc = hf__zk_medallion_seek(zk, ticket, &line, err);
    else if (place == line.n)
        rc = not_there(zk, ticket, err);
    else
        rc = is_there(zk, ticket, &line, place, call->number != 0, err);
    hf__zk_queue_release(&line);
    return rc;
}

static int send_create(struct hf__zk *zk, const struct hf__ticket *ticket,
                       struct hf__zk_ticket *mine, hf_error *err)
{
    struct hf__zk_call call = {.done = on_create, .ticket = ticket->id};
    struct hf__buf data = {0};
    int rc;

    if (hf__zk_nodes_renew_id(zk, ticket, mine) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    mine->czxid = 0; /* that of an earlier node is not its token */
    hf__zk_nodes_write(zk, ticket, /* token= */ 0, /* held= */ false, &data);
    rc = hf__zk_calls_create(
        zk, (struct hf__zk_wire_text){mine->path, mine->base_len},
        hf__zk_wire_text_in(&data), HF__ZK_EPHEMERAL_SEQUENTIAL, &call, err);
    hf__buf_release(&data);
    return rc;
}

/* Create and list; or, if we may have created it before, list. */
static int begin_ask(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    int rc = 0;

    if (++mine->steps > STEPS)
        return hf__fail(err, HF_EUNAVAILABLE,
                        "%s: our node vanishes again and again", zk->peer);
    mine->refused.code = 0;
    if (mine->node == HF__ZK_NODE_NONE || mine->node == HF__ZK_NODE_MISSING)
        rc = send_create(zk, ticket, mine, err);
    else
        rc = hf__zk_calls_barrier(zk, err);
    if (rc != 0)
        return rc;
    rc = hf__zk_acquire_look(zk, ticket, /* watch= */ false, err);
    if (rc != 0 && mine->node != HF__ZK_NODE_KNOWN)
        mine->node =
            HF__ZK_NODE_UNSURE; /* nobody will look behind the create */
    return rc;
}

void hf__zk_acquire_called(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    hf_error err;

    hf__zk_tickets_move(zk, mine,
                        mine->state == HF__ZK_UNPARKING ? HF__ZK_ASKING
                                                        : HF__ZK_CALLED);
    mine->steps = 0;
    if (begin_ask(zk, ticket, &err) != 0)
        hf__zk_tickets_unknown(zk, ticket, &err);
}

int hf__zk_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    bool known = mine->path != NULL;
    int rc;

    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    if (!zk->dialect->marker[hf__zk_nodes_kind(ticket->mode)])
        return hf__fail(err, HF_EUNSUPPORTED, "dialect=%s has no such mode",
                        zk->dialect->name);
    rc = hf__zk_tickets_know(zk, ticket, err);
    if (rc != 0)
        return rc;
    /* It may be HELD: the report of the grant may have been lost. */
    hf__zk_tickets_move(zk, mine, HF__ZK_ASKING);
    mine->watched = 0;
    mine->steps = 0;
    if (mine->under_way)
        return 0;
    rc = begin_ask(zk, ticket, err);
    if (rc == 0)
        return 0;
    if (!known && mine->node == HF__ZK_NODE_NONE) {
        hf__zk_tickets_forget(zk, ticket);
        return rc;
    }
    hf__zk_tickets_move(zk, mine, HF__ZK_UNKNOWN);
    hf__up_unknown(&zk->base, ticket, err);
    return 0;
}
