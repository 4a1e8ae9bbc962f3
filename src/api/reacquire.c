/* SPDX-License-Identifier: MIT */
/*
 * reacquire.c - acquire again what was lost, for the same handle.
 *
 * A hold remembers how it was acquired when it is lost, not before: who never
 * loses a lock pays nothing. The lock is acquired for a hold of its own, as any
 * other, and its ticket then goes to the old handle.
 *
 * A check that was stopped between reading the old deadline and writing LOST
 * may write it after all: then the new hold is lost again, which is safe.
 */
#include "api/request.h"
#include "core/client.h"

/* With the monitor: is it lost? Then the core knows it, too. */
static int find_lost(hf_hold *hold, hf_error *err)
{
    if (hold->members_n > 0)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a multi-lock is not acquired again: release it, and "
                        "acquire all of it anew");
    if (hf__hold_check(hold, hold->client->now_ns) != HF_LOST)
        return hf__fail(err, HF_EINVAL, "'%s' is not lost", hold->name);
    if (hold->ticket)
        hf__ticket_lose(hold->ticket, hold->ticket->lost_reason,
                        /* certain= */ false);
    hf__callbacks_cancel(hold->client, &hold->callback);
    if (!hold->lost)
        return hf__fail(err, HF_EINVAL,
                        "'%s': another thread acquires it again, or memory ran "
                        "out when it was lost: acquire a new hold",
                        hold->name);
    return 0;
}

static int acquire_again(hf_hold *hold, int64_t wait_ms, hf_error *err)
{
    struct hf__acquired *lost = HF_STEAL(hold->lost);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *fresh;
    int rc;

    opts.mode = lost->mode;
    opts.slots = lost->slots;
    opts.flags = lost->flags & ~(uint32_t)HF_NEW_OWNER;
    opts.wait_ms = wait_ms;
    opts.ttl_ms = lost->ttl_ms;
    opts.max_hold_ms = lost->max_hold_ms;
    opts.owner_id = lost->owner_serial;
    opts.owner = lost->owner;
    opts.note = lost->note;
    rc = hf__request_acquire(hold->client, hold->name, &opts, &fresh, err);
    if (rc == 0) {
        hf__hold_revive(hold, fresh);
        hf__free(lost);
    } else {
        hold->lost = lost;
    }
    return rc;
}

int hf_reacquire(hf_hold *hold, int64_t wait_ms, hf_error *err)
{
    hf_client *client;
    int rc;

    if (!hold)
        return hf__fail(err, HF_EINVAL, "hold is NULL");
    client = hold->client;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = find_lost(hold, err);
    if (rc == 0)
        rc = acquire_again(hold, wait_ms, err);
    hf__monitor_leave(client);
    return rc;
}
