/* SPDX-License-Identifier: MIT */
/*
 * redisson_acquire.c - asking for one of Redisson's locks, and waiting for it.
 *
 * Redisson wakes by a message, and each waiter that is woken asks again. So a
 * try that fails subscribes and tries once more, in one write; then the ticket
 * is in line. It tries again on each message, when the lease of the holder ends,
 * and with each renewal by the core, which repairs lost messages. A client has
 * one ticket in line for each name, however many threads wait.
 */
#include <stdio.h>

#include "engines/redis/connection.h"
#include "engines/redis/redisson.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

/* A holder may go without a word (RSpinLock): look this often, in ms. */
enum { SILENCE_MS = 5000 };

static void stop_waiting(struct hf__redis *redis, struct hf__redis_ticket *mine)
{
    mine->watch_ns = 0;
    hf__redis_wait_part(redis, mine);
}

static void granted(struct hf__redis *redis, struct hf__ticket *ticket,
                    uint64_t token, int64_t sent_ns)
{
    struct hf__grant grant = {.token = token,
                              .tokens = 1,
                              .lease_ms = ticket->ttl_ms,
                              .sent_ns = sent_ns};

    stop_waiting(redis, hf__redis_ticket(redis, ticket));
    hf__redis_sync_granted(redis, ticket, &grant, /* pushed= */ false);
}

static void busy(struct hf__redis *redis, struct hf__ticket *ticket,
                 const struct hf__resp_value *holder)
{
    char text[160] = "";

    if (holder->type == HF__RESP_TEXT && holder->len > 0)
        (void)snprintf(text, sizeof(text), "redisson %.*s",
                       (int)(holder->len < 100 ? holder->len : 100),
                       holder->text);
    hf__redis_tickets_forget(redis, ticket);
    hf__up_busy(&redis->base, ticket, /* again_ns= */ 0, text[0] ? text : NULL);
}

static void on_tried(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply);

int hf__redisson_acquire_try(struct hf__redis *redis, struct hf__ticket *ticket,
                             hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = on_tried, .ticket = ticket->id, .movable = true};
    size_t mark;
    int rc = mine->channel ? hf__redis_wait_listen(redis, mine, err) : 0;

    if (rc != 0)
        return rc;
    mark = hf__redis_connection_ticket_begin(redis, ticket,
                                             redis->kind->try_script, 5);
    hf__redisson_put_owner(redis, ticket);
    hf__redisson_put_lease(redis, ticket);
    hf__resp_arg(&redis->stream.out, mine->channel ? "1" : "0", 1);
    hf__redisson_put_mode(redis, ticket);
    hf__resp_arg_number(&redis->stream.out, ticket->slots);
    rc = hf__redis_connection_end(redis, mark, &call, err);
    if (rc == 0 && hf__redis_ticket_waits(mine))
        hf__redis_ticket_to(mine, HF__REDIS_LOOKING);
    return rc;
}

/* "channel{name}" or "channel{name}:owner": where our wake-up comes. */
static int join(struct hf__redis *redis, struct hf__ticket *ticket,
                hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    const char *name = hf__redis_ticket_key(mine);
    bool braces = memchr(name, '{', mine->key_len) == NULL;
    struct hf__buf *to = &redis->scratch;
    char owner[HF__REDISSON_OWNER];

    to->len = 0;
    hf__buf_add(to, redis->kind->channel);
    hf__buf_add(to, braces ? "{" : "");
    hf__buf_append(to, name, mine->key_len);
    hf__buf_add(to, braces ? "}" : "");
    if (redis->kind->own_channel) {
        hf__buf_add(to, ":");
        hf__buf_append(to, owner, hf__redisson_owner(redis, ticket->id, owner));
    }
    if (hf__buf_failed(to)) {
        hf__buf_release(to);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    return hf__redis_wait_join(redis, mine, to->text, to->len, err);
}

/* It is taken: after so many ms a look is due; @holder has it. */
static void taken(struct hf__redis *redis, struct hf__ticket *ticket,
                  int64_t ms, const struct hf__resp_value *holder,
                  int64_t sent_ns)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};
    hf_error err;

    if (ticket->nowait) {
        busy(redis, ticket, holder);
        return;
    }
    if (!mine->channel) {
        if (join(redis, ticket, &err) != 0 ||
            hf__redisson_acquire_try(redis, ticket, &err) != 0)
            hf__redis_release_unknown(redis, ticket);
        return;
    }
    hf__redis_watch(redis, mine, ms < 0 || ms > SILENCE_MS ? SILENCE_MS : ms);
    if (hf__redis_ticket_waits(mine)) {
        hf__up_renewed(&redis->base, ticket, &grant);
        return;
    }
    hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    hf__up_queued(&redis->base, ticket);
}

static void on_tried(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    struct hf__redis_ticket *mine = hf__redis_tickets_mine(redis, call->ticket);
    struct hf__ticket *ticket;
    struct hf__resp_value value;
    struct hf__resp_value number;
    struct hf__resp_value letter;

    if (mine && mine->state == HF__REDIS_LOOKING)
        hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    if (!mine ||
        (!hf__redis_ticket_asks(mine) && !hf__redis_ticket_waits(mine)))
        return; /* withdrawn meanwhile */
    ticket = hf__redis_ticket_of(redis, mine);
    if (!reply) {
        if (hf__redis_ticket_asks(mine))
            hf__redis_release_unknown(redis, ticket);
        return; /* in line: the core asks when we are connected again */
    }
    value = hf__resp_next(reply);
    if (hf__redis_connection_script_lost(redis, &value,
                                         redis->kind->try_script)) {
        if (hf__redisson_acquire_try(redis, ticket, /* err= */ NULL) != 0 &&
            hf__redis_ticket_asks(mine))
            hf__redis_release_unknown(redis, ticket);
        return;
    }
    if (value.type != HF__RESP_LIST || value.count < 2) {
        hf__redis_release_refused(redis, ticket, &value);
        return;
    }
    letter = hf__resp_next(reply);
    number = hf__resp_next(reply);
    if (hf__resp_is(&letter, "g")) {
        granted(redis, ticket, (uint64_t)hf__resp_number(&number, 0),
                call->sent_ns);
        return;
    }
    value = value.count > 2 ? hf__resp_next(reply) : letter;
    taken(redis, ticket, hf__resp_number(&number, -1), &value, call->sent_ns);
}

/* Are "name" and "…:{name}" in one slot, or with braces "name" and "…:name"? */
static bool in_one_slot(const char *name, size_t len)
{
    const char *open = memchr(name, '{', len);
    const char *close =
        open ? memchr(open, '}', len - (size_t)(open - name)) : NULL;

    return open ? close && close > open + 1 : !memchr(name, '}', len);
}

/* "{a}" has the derived keys of "a": two names must not become one. */
static int check_name(struct hf__redis *redis, struct hf__ticket *ticket,
                      hf_error *err)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    const char *name = hf__redis_ticket_key(mine);
    size_t len = mine->key_len;

    if (redis->kind->no_exclusive && ticket->mode == HF_EXCLUSIVE)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "mode=semaphore has slots only: nobody knows how many "
                        "permits others have; mode=permits does");
    if (redis->in_cluster && !in_one_slot(name, len))
        return hf__fail(err, HF_EINVAL,
                        "in a cluster '%.*s' and what belongs to it are in "
                        "different slots: close its brace",
                        (int)len, name);
    if (redis->kind->derived && len >= 2 && name[0] == '{' &&
        name[len - 1] == '}')
        return hf__fail(err, HF_EINVAL,
                        "to Redisson '%.*s' and '%.*s' have the same keys: "
                        "write the name without braces",
                        (int)len, name, (int)len - 2, name + 1);
    return 0;
}

int hf__redisson_acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                         hf_error *err)
{
    int rc = hf__redis_tickets_ask(redis, ticket, /* token= */ 0, err);

    if (rc != 0)
        return rc;
    if (!hf__redis_ticket(redis, ticket)->again)
        rc = check_name(redis, ticket, err);
    if (rc == 0)
        rc = hf__redisson_acquire_try(redis, ticket, err);
    return rc == 0 ? 0 : hf__redis_tickets_not_asked(redis, ticket, err);
}

/* Somebody has left: all of ours who wait for it look again. One who is looking
 * already is answered from after the message. */
void hf__redisson_acquire_heard(struct hf__redis *redis,
                                const struct hf__resp_value *channel,
                                const struct hf__resp_value *text)
{
    struct hf__list *waiters =
        hf__redis_wait_waiters(redis, channel->text, channel->len);

    (void)text; /* how many may go on; the script knows better */
    if (!waiters)
        return;
    HF_LIST_EACH(waiters, link) {
        struct hf__redis_ticket *mine =
            HF_CONTAINER_OF(link, struct hf__redis_ticket, hearing);

        if (mine->state == HF__REDIS_WAITING)
            (void)hf__redisson_acquire_try(redis,
                                           hf__redis_ticket_of(redis, mine),
                                           /* err= */ NULL);
    }
}
