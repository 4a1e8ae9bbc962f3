/* SPDX-License-Identifier: MIT */
/*
 * redisson.c - the locks of Redisson: a Java program and ours share one.
 *
 * The setting mode says which of Redisson's objects a name is: lock (RLock),
 * fenced, fair, rw, permits or semaphore. One name is one of them: Redisson
 * itself does not keep an RLock and an RReadWriteLock of one name apart.
 *
 * OWNER. To Redisson an owner is "<uuid of the client>:<number of the thread>".
 * Ours is the identity of the client and the number of the ticket, so every
 * hold is an owner of its own and its count is 1: holds that re-enter share a
 * ticket, inside the core. Asking again for a ticket finds its own field, and
 * does not count.
 *
 * WAITING. Redisson wakes by a message, and who is woken asks again. So a try
 * that fails subscribes and tries once more, in one write; then the ticket is
 * in line. It tries again on each message, when the lease of the holder ends,
 * and with each renewal by the core. Lost messages are repaired by the latter.
 * A client has one ticket in line for each name, whatever the number of its
 * threads: there is no herd from our side.
 *
 * LEAVING is one script for release, withdrawal and reaping, as in native.
 *
 * Failure: an error of the server that may have come half-way through a script
 * is followed by a release, and reported when that is done.
 */
#include "engines/redis/redisson.h"
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

#include <inttypes.h>
#include <stdio.h>

/* A holder may go without a word (RSpinLock): look this often, in ms. */
enum { SILENCE_MS = 5000 };

static const struct hf__redisson_kind kinds[] = {
    {.mode = "lock",
     .channel = "redisson_lock__channel:",
     .try_script = HF__SCRIPT_REDISSON_LOCK_TRY,
     .release_script = HF__SCRIPT_REDISSON_LOCK_RELEASE,
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "fenced",
     .caps = HF_CAP_FENCED | HF_CAP_CHECK_TOKEN,
     .channel = "redisson_lock__channel:",
     .derived = true,
     .try_script = HF__SCRIPT_REDISSON_LOCK_TRY,
     .release_script = HF__SCRIPT_REDISSON_LOCK_RELEASE,
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "fair",
     .caps = HF_CAP_FIFO,
     .channel = "redisson_lock__channel:",
     .own_channel = true,
     .derived = true,
     .try_script = HF__SCRIPT_REDISSON_FAIR_TRY,
     .release_script = HF__SCRIPT_REDISSON_FAIR_RELEASE,
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "rw",
     .caps = HF_CAP_SHARED | HF_CAP_DOWNGRADE,
     .channel = "redisson_rwlock:",
     .derived = true,
     .try_script = HF__SCRIPT_REDISSON_RW_TRY,
     .release_script = HF__SCRIPT_REDISSON_RW_RELEASE,
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "permits",
     .caps = HF_CAP_SLOTS,
     .channel = "redisson_sc:",
     .permits = true,
     .derived = true,
     .try_script = HF__SCRIPT_REDISSON_PERMIT_TRY,
     .release_script = HF__SCRIPT_REDISSON_PERMIT_RELEASE,
     .renew_script = HF__SCRIPT_REDISSON_PERMIT_RENEW},
    {.mode = "semaphore",
     .caps = HF_CAP_SLOTS,
     .channel = "redisson_sc:",
     .permits = true,
     .no_exclusive = true,
     .derived = true,
     .try_script = HF__SCRIPT_REDISSON_SEMAPHORE_TRY,
     .release_script = HF__SCRIPT_REDISSON_SEMAPHORE_RELEASE,
     .renew_script = HF__SCRIPT_REDISSON_SEMAPHORE_RENEW},
};

static int open_kind(struct hf__redis *redis, hf_error *err)
{
    const char *mode = redis->base.host->settings->mode;

    redis->kind = mode[0] == '\0' ? &kinds[0] : NULL;
    for (size_t i = 0; i < HF_COUNT_OF(kinds); i++) {
        if (strcmp(mode, kinds[i].mode) == 0)
            redis->kind = &kinds[i];
    }
    if (!redis->kind)
        return hf__fail(err, HF_ECONFIG,
                        "mode=%s: dialect=redisson has lock, fenced, fair, rw, "
                        "permits and semaphore",
                        mode);
    redis->base.caps |= redis->kind->caps;
    hf__redis_tickets_put_uuid(redis->base.host->identity_hex, redis->uuid);
    return 0;
}

/* The name is the key, as plain has it. */
static void key(struct hf__redis *redis, const char *name, size_t len)
{
    hf__redis_plain.key(redis, name, len);
}

size_t hf__redisson_owner(const struct hf__redis *redis, uint64_t id,
                          char to[HF__REDISSON_OWNER])
{
    int n;

    if (!redis->kind->permits) {
        n = snprintf(to, HF__REDISSON_OWNER, "%s:%" PRIu64, redis->uuid, id);
        return (size_t)n;
    }
    memcpy(to, redis->base.host->identity, 8);
    for (int i = 0; i < 6; i++)
        to[8 + i] = (char)(id >> (40 - 8 * i));
    return 14;
}

static void add_owner(struct hf__redis *redis, const struct hf__ticket *ticket)
{
    char owner[HF__REDISSON_OWNER];
    size_t len = hf__redisson_owner(redis, ticket->id, owner);

    hf__resp_arg(&redis->stream.out, owner, len);
}

static void add_lease(struct hf__redis *redis, const struct hf__ticket *ticket)
{
    hf__resp_arg_number(&redis->stream.out,
                        ticket->ttl_ms +
                            redis->base.host->settings->lock_delay_ms);
}

static void add_mode(struct hf__redis *redis, const struct hf__ticket *ticket)
{
    const char *mode = ticket->mode == HF_SHARED          ? "s"
                       : ticket->mode == HF_SLOT          ? "n"
                       : redis->base.caps & HF_CAP_FENCED ? "f"
                                                          : "x";

    hf__resp_arg(&redis->stream.out, mode, 1);
}

static void add_key(struct hf__redis *redis, const struct hf__redis_ticket *of)
{
    hf__resp_arg(&redis->stream.out, hf__redis_ticket_key(of), of->key_len);
}

/* ---- reports ----------------------------------------------------------- */

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

/* ---- leaving ----------------------------------------------------------- */

static int release_script(const struct hf__redis *redis)
{
    return redis->kind->release_script;
}

static int send_release(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf__redis_reply_fn *done, void *data, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = done, .ticket = ticket->id, .data = data, .movable = !data};
    size_t mark;

    hf__redis_connection_put_asking(redis, mine);
    mark = hf__redis_connection_script_begin(redis, redis->kind->release_script,
                                             1, 2);
    add_key(redis, mine);
    add_owner(redis, ticket);
    hf__resp_arg(&redis->stream.out, "0", 1);
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* ---- asking ------------------------------------------------------------ */

static void on_tried(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply);

static int send_try(struct hf__redis *redis, struct hf__ticket *ticket,
                    hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_call call = {
        .done = on_tried, .ticket = ticket->id, .movable = true};
    size_t mark;
    int rc = mine->channel ? hf__redis_wait_listen(redis, mine, err) : 0;

    if (rc != 0)
        return rc;
    hf__redis_connection_put_asking(redis, mine);
    mark =
        hf__redis_connection_script_begin(redis, redis->kind->try_script, 1, 5);
    add_key(redis, mine);
    add_owner(redis, ticket);
    add_lease(redis, ticket);
    hf__resp_arg(&redis->stream.out, mine->channel ? "1" : "0", 1);
    add_mode(redis, ticket);
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
            send_try(redis, ticket, &err) != 0)
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
    struct hf__ticket *ticket = hf__redis_tickets_find(redis, call->ticket);
    struct hf__redis_ticket *mine =
        ticket ? hf__redis_ticket(redis, ticket) : NULL;
    struct hf__resp_value value;
    struct hf__resp_value number;
    struct hf__resp_value letter;

    if (mine && mine->state == HF__REDIS_LOOKING)
        hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    if (!mine ||
        (!hf__redis_ticket_asks(mine) && !hf__redis_ticket_waits(mine)))
        return; /* withdrawn meanwhile */
    if (!reply) {
        if (hf__redis_ticket_asks(mine))
            hf__redis_release_unknown(redis, ticket);
        return; /* in line: the core asks when we are connected again */
    }
    value = hf__resp_next(reply);
    if (hf__redis_errors_is_noscript(&value)) {
        (void)hf__redis_connection_script_load(redis, redis->kind->try_script);
        if (send_try(redis, ticket, /* err= */ NULL) != 0 &&
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

static int acquire(struct hf__redis *redis, struct hf__ticket *ticket,
                   hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool known = mine->record != NULL;
    int rc = hf__redis_tickets_know(redis, ticket, err);

    if (rc != 0)
        return rc;
    if (!known) {
        rc = check_name(redis, ticket, err);
        if (rc != 0) {
            hf__redis_tickets_forget(redis, ticket);
            return rc;
        }
    }
    mine->again = known;
    hf__redis_ticket_to(mine, HF__REDIS_ASKING);
    rc = send_try(redis, ticket, err);
    return rc == 0 ? 0 : hf__redis_tickets_not_asked(redis, ticket, known, err);
}

/* Somebody has left: all of ours who wait for it look again. One who is looking
 * already is answered from after the message. */
static void heard(struct hf__redis *redis, const struct hf__resp_value *channel,
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
            (void)send_try(redis, hf__redis_ticket_of(redis, mine),
                           /* err= */ NULL);
    }
}

/* ---- renewing ---------------------------------------------------------- */

static int renew_script(const struct hf__redis *redis)
{
    return redis->kind->renew_script;
}

/* Owner, lease, mode. To a reader-writer lock a writer is another owner. */
static void put_renewal(struct hf__redis *redis, struct hf__ticket *ticket)
{
    struct hf__buf *out = &redis->stream.out;
    bool writes =
        redis->base.caps & HF_CAP_DOWNGRADE && ticket->mode == HF_EXCLUSIVE;
    const char *end = writes ? ":write" : "";
    char owner[HF__REDISSON_OWNER];
    size_t len = hf__redisson_owner(redis, ticket->id, owner);

    hf__resp_arg_begin(out, len + strlen(end));
    hf__buf_append(out, owner, len);
    hf__buf_add(out, end);
    hf__resp_arg_end(out);
    add_lease(redis, ticket);
    add_mode(redis, ticket);
}

static void renewed(struct hf__redis *redis, struct hf__ticket *ticket,
                    const struct hf__resp_value *said, int64_t sent_ns)
{
    const struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};

    if (hf__redis_ticket_asks(mine) || hf__redis_ticket_waits(mine) ||
        hf__redis_ticket_leaves(mine) || said->type != HF__RESP_NUMBER)
        return;
    if (said->number == 1) {
        hf__redis_sync_renewed(redis, ticket, &grant);
    } else {
        hf__redis_tickets_forget(redis, ticket);
        hf__up_lost(&redis->base, ticket, HF__LOST_TAKEN);
    }
}

/* Those who hold, in one trip; those in line look again, each by itself. */
static int renew(struct hf__redis *redis, struct hf__ticket **tickets, size_t n,
                 hf_error *err)
{
    size_t hold = 0;
    int rc = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__redis_ticket *mine = hf__redis_ticket(redis, tickets[i]);
        struct hf__ticket *holder = tickets[i];

        if (mine->state == HF__REDIS_WAITING)
            rc = send_try(redis, tickets[i], err);
        if (hf__redis_ticket_waits(mine))
            continue;
        tickets[i] = tickets[hold]; /* those who hold come first */
        tickets[hold++] = holder;
    }
    if (hold > 0)
        rc = hf__redis_renew(redis, tickets, hold, err);
    return rc;
}

/* ---- downgrade --------------------------------------------------------- */

static int downgrade(struct hf__redis *redis, struct hf__ticket *ticket,
                     hf_error *err)
{
    struct hf__redis_call call = {.done = hf__redis_release_downgraded,
                                  .ticket = ticket->id};
    size_t mark;

    if ((redis->base.caps & HF_CAP_DOWNGRADE) == 0)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "mode=%s has no shared locks; mode=rw has",
                        redis->kind->mode);
    mark = hf__redis_connection_script_begin(
        redis, HF__SCRIPT_REDISSON_DOWNGRADE, 1, 2);
    add_key(redis, hf__redis_ticket(redis, ticket));
    add_owner(redis, ticket);
    add_lease(redis, ticket);
    return hf__redis_connection_end(redis, mark, &call, err);
}

const struct hf__redis_dialect hf__redis_redisson = {
    .name = "redisson",
    .caps = HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_DISTRIBUTED | HF_CAP_VERSIONS |
            HF_CAP_BREAK | HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT,
    .open = open_kind,
    .acquire = acquire,
    .release_script = release_script,
    .send_release = send_release,
    .renew = renew,
    .renew_script = renew_script,
    .renew_arguments = 3,
    .put_renewal = put_renewal,
    .renewed = renewed,
    .downgrade_script = HF__SCRIPT_REDISSON_DOWNGRADE,
    .downgrade = downgrade,
    .key = key,
    .heard = heard,
};
