/* SPDX-License-Identifier: MIT */
/*
 * release.c - release and withdraw: delete the item if its number is ours.
 */
#include "engines/memcached/memcached.h"

static hf__memcached_reply_fn on_deleted;

int hf__memcached_release_delete(struct hf__memcached *memcached,
                                 struct hf__ticket *ticket, uint64_t cas,
                                 hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;
    char key[HF__MEMCACHED_KEY + 1];

    (void)hf__memcached_items_key(memcached, ticket, key, /* err= */ NULL);
    hf__buf_add(out, "md ");
    hf__buf_add(out, key);
    if (!HF__PLANTED("release_without_compare")) {
        hf__buf_add(out, " C");
        hf__buf_add_number(out, cas);
    }
    hf__buf_add(out, "\r\n");
    return hf__memcached_tickets_send(memcached, mark, on_deleted,
                                      HF__MEMCACHED_DELETE, ticket, err);
}

void hf__memcached_release_left(struct hf__memcached *memcached,
                                struct hf__ticket *ticket, bool was_ours)
{
    bool releasing = hf__memcached_ticket(memcached, ticket)->state ==
                     HF__MEMCACHED_RELEASING;

    hf__memcached_tickets_forget(memcached, ticket);
    hf__up_left(&memcached->base, ticket,
                releasing && !was_ours ? HF_ELOST : 0);
}

static void on_deleted(struct hf__memcached *memcached,
                       const struct hf__memcached_call *call,
                       const struct hf__meta *meta)
{
    struct hf__ticket *ticket = call->ticket;

    if (!ticket)
        return;
    hf__memcached_ticket(memcached, ticket)->calls--;
    if (!meta || meta->kind == HF__META_ERROR)
        hf__memcached_tickets_no_answer(memcached, ticket);
    else
        hf__memcached_release_left(memcached, ticket,
                                   meta->kind == HF__META_HD);
}

static int start(struct hf__engine *engine, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;
    struct hf__memcached_ticket *m = hf__memcached_ticket(memcached, ticket);
    uint64_t cas = hf__memcached_tickets_cas(memcached, ticket);

    if (m->state == HF__MEMCACHED_IDLE) {
        hf__up_left(engine, ticket, releasing ? HF_ELOST : 0);
        return 0;
    }
    if (!memcached->up)
        return hf__memcached_connection_not_up(memcached, err);
    hf__memcached_tickets_move(m, releasing ? HF__MEMCACHED_RELEASING
                                            : HF__MEMCACHED_WITHDRAWING);
    if (cas == 0 || m->calls > 0) /* which may change it */
        return hf__memcached_acquire_look(memcached, ticket, err);
    return hf__memcached_release_delete(memcached, ticket, cas, err);
}

int hf__memcached_release_withdraw(struct hf__engine *engine,
                                   struct hf__ticket *ticket, hf_error *err)
{
    return start(engine, ticket, /* releasing= */ false, err);
}

int hf__memcached_release(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    return start(engine, ticket, /* releasing= */ true, err);
}
