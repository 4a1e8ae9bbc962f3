/* SPDX-License-Identifier: MIT */
/*
 * redisson.c - the locks of Redisson: a Java program and ours share one.
 *
 *   redisson_acquire.c  asking and waiting     redisson_renew.c  renewals
 *   redisson_inspect.c  list, show, break
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
 * One script serves release and withdrawal, as in native.
 *
 * Failure: an error of the server that may have come half-way through a script
 * is followed by a release, and reported when that is done.
 */
#include "engines/redis/redisson.h"
#include "engines/common/caps.h"

#include <inttypes.h>
#include <stdio.h>

#include "engines/redis/connection.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

/* Those that try and release an object of this kind. */
#define SCRIPTS(kind)                                                          \
    .try_script = HF__SCRIPT_REDISSON_##kind##_TRY,                            \
    .release_script = HF__SCRIPT_REDISSON_##kind##_RELEASE

static const struct hf__redisson_kind kinds[] = {
    {.mode = "lock",
     .channel = "redisson_lock__channel:",
     SCRIPTS(LOCK),
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "fenced",
     .caps = HF_CAP_FENCED | HF_CAP_CHECK_TOKEN,
     .channel = "redisson_lock__channel:",
     .derived = true,
     SCRIPTS(LOCK),
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "fair",
     .caps = HF_CAP_FIFO,
     .channel = "redisson_lock__channel:",
     .own_channel = true,
     .derived = true,
     SCRIPTS(FAIR),
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "rw",
     .caps = HF_CAP_SHARED | HF_CAP_DOWNGRADE,
     .channel = "redisson_rwlock:",
     .derived = true,
     SCRIPTS(RW),
     .renew_script = HF__SCRIPT_REDISSON_RENEW},
    {.mode = "permits",
     .caps = HF_CAP_SLOTS,
     .channel = "redisson_sc:",
     .permits = true,
     .derived = true,
     SCRIPTS(PERMIT),
     .renew_script = HF__SCRIPT_REDISSON_PERMIT_RENEW},
    {.mode = "semaphore",
     .caps = HF_CAP_SLOTS,
     .channel = "redisson_sc:",
     .permits = true,
     .no_exclusive = true,
     .derived = true,
     SCRIPTS(SEMAPHORE),
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
    redis->release_script = redis->kind->release_script;
    redis->renew_script = redis->kind->renew_script;
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

void hf__redisson_put_owner(struct hf__redis *redis,
                            const struct hf__ticket *ticket)
{
    char owner[HF__REDISSON_OWNER];
    size_t len = hf__redisson_owner(redis, ticket->id, owner);

    hf__resp_arg(&redis->stream.out, owner, len);
}

void hf__redisson_put_lease(struct hf__redis *redis,
                            const struct hf__ticket *ticket)
{
    hf__resp_arg_number(&redis->stream.out,
                        ticket->ttl_ms +
                            redis->base.host->settings->lock_delay_ms);
}

void hf__redisson_put_mode(struct hf__redis *redis,
                           const struct hf__ticket *ticket)
{
    const char *mode = ticket->mode == HF_SHARED          ? "s"
                       : ticket->mode == HF_SLOT          ? "n"
                       : redis->base.caps & HF_CAP_FENCED ? "f"
                                                          : "x";

    hf__resp_arg(&redis->stream.out, mode, 1);
}

static int send_release(struct hf__redis *redis, struct hf__ticket *ticket,
                        hf__redis_reply_fn *done, void *data, hf_error *err)
{
    struct hf__redis_call call = {
        .done = done, .ticket = ticket->id, .data = data, .movable = !data};
    size_t mark = hf__redis_connection_ticket_begin(redis, ticket,
                                                    redis->release_script, 2);

    hf__redisson_put_owner(redis, ticket);
    hf__resp_arg(&redis->stream.out, "0", 1);
    return hf__redis_connection_end(redis, mark, &call, err);
}

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
    mark = hf__redis_connection_ticket_begin(redis, ticket,
                                             HF__SCRIPT_REDISSON_DOWNGRADE, 2);
    hf__redisson_put_owner(redis, ticket);
    hf__redisson_put_lease(redis, ticket);
    return hf__redis_connection_end(redis, mark, &call, err);
}

const struct hf__redis_dialect hf__redis_redisson = {
    .name = "redisson",
    .caps = HF__CAPS_LEASED | HF_CAP_PUSH | HF_CAP_VERSIONS | HF_CAP_BREAK,
    .open = open_kind,
    .acquire = hf__redisson_acquire,
    .send_release = send_release,
    .renew = hf__redisson_renew,
    .renewal = {0, 3, hf__redisson_renew_put, hf__redisson_renew_answered,
                NULL}, /* the script is the kind's */
    .downgrade_script = HF__SCRIPT_REDISSON_DOWNGRADE,
    .downgrade = downgrade,
    .key = key,
    .heard = hf__redisson_acquire_heard,
};
