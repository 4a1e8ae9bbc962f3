/* SPDX-License-Identifier: MIT */
/*
 * owner.c - who owns a hold: made, asked for, changed.
 *
 * An owner is a number of this process, or a text. Threads have numbers too, of
 * the same sequence, so that hf_hold_owner() of a hold that a thread acquired
 * is an owner as any other.
 */
#include "core/client.h"

uint64_t hf_owner_new(void)
{
    return hf__world_serial();
}

uint64_t hf_hold_owner(const hf_hold *hold)
{
    uint64_t owner;

    if (hold && hold->members_n > 0)
        hold = hold->members[0];
    if (!hold || hf__monitor_enter_any(hold->client, /* err= */ NULL) != 0)
        return 0;
    owner = hold->ticket ? hold->ticket->owner_serial
            : hold->wait ? hold->wait->ticket->owner_serial
            : hold->lost ? hold->lost->owner_serial
                         : 0;
    hf__monitor_leave(hold->client);
    return owner;
}

/* May the owner of @hold change without another handle noticing? */
static int may_give(const hf_hold *hold, hf_error *err)
{
    const struct hf__ticket *ticket = hold->ticket;

    if (!ticket || hold->client->now_ns >= ticket->deadline_ns)
        return hf__hold_none(hold, err);
    if (ticket->holds.next != ticket->holds.prev)
        return hf__fail(err, HF_ECONFLICT,
                        "'%s' was entered again: release the other holds "
                        "first",
                        hold->name);
    return 0;
}

static int give(hf_hold *hold, uint64_t owner_id, hf_error *err)
{
    int rc = 0;

    if (hold->members_n == 0)
        rc = may_give(hold, err);
    for (uint32_t i = 0; i < hold->members_n && rc == 0; i++)
        rc = may_give(hold->members[i], err);
    if (rc != 0)
        return rc;
    if (hold->members_n == 0)
        hold->ticket->owner_serial = owner_id;
    for (uint32_t i = 0; i < hold->members_n; i++)
        hold->members[i]->ticket->owner_serial = owner_id;
    return 0;
}

int hf_hold_give(hf_hold *hold, uint64_t owner_id, hf_error *err)
{
    int rc;

    if (!hold || owner_id == 0)
        return hf__fail(err, HF_EINVAL, "hold is NULL, or owner_id 0");
    rc = hf__monitor_enter_any(hold->client, err);
    if (rc != 0)
        return rc;
    rc = give(hold, owner_id, err);
    hf__monitor_leave(hold->client);
    return rc;
}
