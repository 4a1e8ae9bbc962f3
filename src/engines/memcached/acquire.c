/* SPDX-License-Identifier: MIT */
/*
 * acquire.c - a lock is an item that only its owner can touch.
 *
 *   acquire   add, with a value that no other ticket has
 *   renew     replace, if the item's number is still ours (cas)
 *   release   delete, if the item's number is still ours (md … C)
 *   look      what is there, and its number (mg … v c): behind each of the
 *             first two, in the same write, and whenever the number is unknown
 *
 * We do not use the newer command ms: a server without memory for it (-M)
 * deletes the item that is there, also another's. The older commands leave it
 * alone.
 *
 * Every item has a number that grows with each change, so "still ours" and the
 * change are one step at the server. Numbers start again when the server does;
 * we do not believe one from another connection, but look it up together with
 * the value. So we never take another's item for ours.
 *
 * LEASES. The server reads its clock once a second, in whole seconds, and later
 * than that if its main thread gets no processor. An item of 30 seconds may so
 * end after 28, or earlier by as much as that reading was late. We ask for
 * three seconds more, rounded up, and claim what was asked for.
 */
#include "engines/common/holder.h"
#include "engines/memcached/memcached.h"

enum {
    SECONDS_MAX = 30 * 24 * 3600, /* longer is an instant to the server */
    SECONDS_MORE = 3 /* two for the readings of its clock, one if it is late */
};

/* ---- sending ------------------------------------------------------------- */

static int64_t lease_s(const struct hf__memcached *memcached,
                       const struct hf__ticket *ticket)
{
    int64_t lease_ms =
        ticket->ttl_ms + memcached->base.host->settings->lock_delay_ms;

    return (lease_ms + 999) / 1000 + SECONDS_MORE;
}

static hf__memcached_reply_fn on_stored;
static hf__memcached_reply_fn on_looked;

static int send_look_at(struct hf__memcached *memcached,
                        struct hf__ticket *ticket, const char *key,
                        hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;

    hf__buf_add(out, "mg ");
    hf__buf_add(out, key);
    hf__buf_add(out, " v c\r\n");
    return hf__memcached_tickets_send(memcached, mark, on_looked,
                                      HF__MEMCACHED_LOOK, ticket, err);
}

int hf__memcached_acquire_look(struct hf__memcached *memcached,
                               struct hf__ticket *ticket, hf_error *err)
{
    char key[HF__MEMCACHED_KEY + 1];

    (void)hf__memcached_items_key(memcached, ticket, key, /* err= */ NULL);
    return send_look_at(memcached, ticket, key, err);
}

int hf__memcached_acquire_store(struct hf__memcached *memcached,
                                struct hf__ticket *ticket, uint64_t cas,
                                hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;
    char key[HF__MEMCACHED_KEY + 1];
    char value[HF__MEMCACHED_VALUE];
    size_t len = hf__memcached_items_value(memcached, ticket, value);
    int rc = hf__memcached_items_key(memcached, ticket, key, err);

    if (rc != 0)
        return rc;
    hf__buf_add(out, cas ? "cas " : "add ");
    hf__buf_add(out, key);
    hf__buf_add(out, memcached->tooz ? " 1 " : " 0 ");
    hf__buf_add_number(out, (uint64_t)lease_s(memcached, ticket));
    hf__buf_add_char(out, ' ');
    hf__buf_add_number(out, len);
    if (cas) {
        hf__buf_add_char(out, ' ');
        hf__buf_add_number(out, cas);
    }
    hf__buf_add(out, "\r\n");
    hf__buf_append(out, value, len);
    hf__buf_add(out, "\r\n");
    rc = hf__memcached_tickets_send(memcached, mark, on_stored,
                                    HF__MEMCACHED_STORE, ticket, err);
    return rc == 0 ? send_look_at(memcached, ticket, key, err) : rc;
}

/* ---- outcomes ------------------------------------------------------------ */

static void busy(struct hf__memcached *memcached, struct hf__ticket *ticket,
                 const struct hf__meta *meta)
{
    char holder[400];
    bool named =
        meta && hf__memcached_items_holder(meta, holder, sizeof(holder));

    hf__memcached_tickets_forget(memcached, ticket);
    hf__up_rival(ticket,
                 meta ? hf__holder_rival(meta->value, meta->value_len) : 0);
    /* Gone meanwhile: at once again. */
    hf__up_busy(&memcached->base, ticket, meta ? 0 : hf__now(),
                named ? holder : NULL);
}

static void refused(struct hf__memcached *memcached, struct hf__ticket *ticket,
                    int code, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", memcached->peer, why);
    hf__memcached_tickets_forget(memcached, ticket);
    hf__up_failed(&memcached->base, ticket, &err);
}

static void collided(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    refused(memcached, ticket, HF_ECONFIG,
            "another name has the same hash; use a shorter one");
}

static void failed(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    refused(memcached, ticket, HF_ENOSPACE,
            "no memory for another lock: raise -m, or free some");
}

static void granted(struct hf__memcached *memcached, struct hf__ticket *ticket,
                    int64_t sent_ns)
{
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};
    struct hf__memcached_ticket *m = hf__memcached_ticket(memcached, ticket);

    if (m->state == HF__MEMCACHED_ASKING) {
        hf__memcached_tickets_move(m, HF__MEMCACHED_HELD);
        hf__up_granted(&memcached->base, ticket, &grant);
    } else {
        hf__up_renewed(&memcached->base, ticket, &grant);
    }
}

static void lost(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    hf__memcached_tickets_forget(memcached, ticket);
    hf__up_lost(&memcached->base, ticket, HF__LOST_TAKEN);
}

/* ---- answers ------------------------------------------------------------- */

/* The look behind it decides. */
static void on_stored(struct hf__memcached *memcached,
                      const struct hf__memcached_call *call,
                      const struct hf__meta *meta)
{
    struct hf__memcached_ticket *m =
        call->ticket ? hf__memcached_ticket(memcached, call->ticket) : NULL;

    if (!m)
        return;
    m->calls--;
    m->stored_ns = meta && meta->kind == HF__META_HD ? call->sent_ns : 0;
    m->full = meta && meta->kind == HF__META_ERROR;
}

/* It is ours, with this number: stored just now, or by a request whose answer
 * was lost, or it is to be renewed or deleted. It is stored again once: a
 * server could show it as ours and refuse to store it for ever. */
static int go_on(struct hf__memcached *memcached, struct hf__ticket *ticket,
                 uint64_t cas, int64_t stored_ns)
{
    struct hf__memcached_ticket *m = hf__memcached_ticket(memcached, ticket);

    m->cas = cas;
    m->epoch = memcached->epoch;
    if (hf__memcached_tickets_leaves(m))
        return hf__memcached_release_delete(memcached, ticket, cas,
                                            /* err= */ NULL);
    if (stored_ns != 0) {
        granted(memcached, ticket, stored_ns);
        return 0;
    }
    if (m->full || m->repeated)
        return HF_ENOSPACE;
    m->repeated = true;
    return hf__memcached_acquire_store(memcached, ticket, cas, /* err= */ NULL);
}

/* It is not there, or (@meta) another's. */
static void not_ours(struct hf__memcached *memcached, struct hf__ticket *ticket,
                     const struct hf__meta *meta)
{
    const struct hf__memcached_ticket *m =
        hf__memcached_ticket(memcached, ticket);

    if (hf__memcached_tickets_leaves(m))
        hf__memcached_release_left(memcached, ticket, /* was_ours= */ false);
    else if (m->state != HF__MEMCACHED_ASKING)
        lost(memcached, ticket);
    else if (meta && hf__memcached_items_is_other_name(memcached, ticket, meta))
        collided(memcached, ticket);
    else if (!meta && m->full)
        failed(memcached, ticket);
    else
        busy(memcached, ticket, meta);
}

static void on_looked(struct hf__memcached *memcached,
                      const struct hf__memcached_call *call,
                      const struct hf__meta *meta)
{
    struct hf__ticket *ticket = call->ticket;
    struct hf__memcached_ticket *m =
        ticket ? hf__memcached_ticket(memcached, ticket) : NULL;
    int64_t stored_ns;

    if (!ticket)
        return;
    m->calls--;
    stored_ns = m->stored_ns;
    m->stored_ns = 0;
    if (hf__memcached_tickets_leaves(m) && m->calls > 0)
        return; /* the last one decides */
    if (meta && meta->kind == HF__META_EN)
        not_ours(memcached, ticket, /* meta= */ NULL);
    else if (meta && meta->kind == HF__META_VA && meta->cas != 0 &&
             !hf__memcached_items_is_ours(memcached, ticket, meta))
        not_ours(memcached, ticket, meta);
    else if (!meta || meta->kind != HF__META_VA || meta->cas == 0 ||
             go_on(memcached, ticket, meta->cas, stored_ns) != 0)
        hf__memcached_tickets_no_answer(memcached, ticket);
}

int hf__memcached_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;
    struct hf__memcached_ticket *m = hf__memcached_ticket(memcached, ticket);
    bool known = m->state != HF__MEMCACHED_IDLE;
    int rc;

    if (!memcached->up)
        return hf__memcached_connection_not_up(memcached, err);
    if (lease_s(memcached, ticket) > SECONDS_MAX)
        return hf__fail(err, HF_EINVAL,
                        "the longest lease of Memcached is 30 days");
    hf__memcached_tickets_move(m, HF__MEMCACHED_ASKING);
    m->repeated = false;
    rc = hf__memcached_acquire_store(memcached, ticket, /* cas= */ 0, err);
    if (rc == 0)
        return 0;
    if (!known && m->calls == 0) {
        hf__memcached_tickets_forget(memcached, ticket);
        return rc;
    }
    hf__memcached_tickets_unknown(memcached,
                                  ticket); /* it may be there, or soon */
    return 0;
}
