/* SPDX-License-Identifier: MIT */
/*
 * sql.c - the caller's own statements inside the lock's transaction.
 *
 * Where a lock is a row held by a transaction, the data it protects can be
 * changed by the same transaction: it is committed with the release, or not at
 * all. Then no token is needed, and no pause can do harm.
 *
 * Failure: if the connection breaks the hold is LOST and nothing of what was
 * written through it remains.
 */
#include "core/client.h"
#include "core/query.h"

/* The number of the hold's ticket; numbers are never used twice, so it may be
 * passed on without the monitor. */
static int ticket_of(hf_hold *hold, uint64_t *ret_id, hf_error *err)
{
    int rc = hf__monitor_enter_any(hold->client, err);

    if (rc != 0)
        return rc;
    if (hold->members_n > 0)
        rc =
            hf__fail(err, HF_EUNSUPPORTED,
                     "the locks of a multi-lock have connections of their own");
    else if (!hold->ticket)
        rc = hf__hold_none(hold, err);
    else
        *ret_id = hold->ticket->id;
    hf__monitor_leave(hold->client);
    return rc;
}

int hf_sql_connection(hf_hold *hold, void **ret_connection, hf_error *err)
{
    struct hf__query *query;
    int rc;

    if (!hold || !ret_connection)
        return hf__fail(err, HF_EINVAL, "hold or ret_connection is NULL");
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    rc = ticket_of(hold, &query->ticket, err);
    if (rc == 0)
        rc = hf__query_ask(hold->client,
                           offsetof(struct hf__engine_ops, connection), &query,
                           err);
    if (rc == 0)
        *ret_connection = query->connection;
    hf__query_free(query);
    return rc;
}
