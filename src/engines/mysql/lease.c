/* SPDX-License-Identifier: MIT */
/*
 * lease.c - the lease of a session: its wait_timeout, in whole seconds.
 *
 * It is set when a session first has to hold, and made long again when nothing
 * has been held for a third of it, so that a pair costs two trips and an idle
 * client is not thrown out.
 *
 * Failure: a session that cannot have its lease is given up.
 */
#include <stdio.h>

#include "engines/mysql/mysql.h"

static int set_lease(struct hf__mysql_connection *connection, int64_t lease_s)
{
    char text[64];
    int rc;

    (void)snprintf(text, sizeof(text), "SET wait_timeout=%lld",
                   (long long)(lease_s > 0 ? lease_s : HF__MYSQL_IDLE_S));
    rc = hf__mysql_call_say(connection, text, hf__mysql_calls_needed);
    if (rc == 0)
        connection->lease_s = lease_s;
    return rc;
}

int hf__mysql_lease_need(struct hf__mysql_connection *connection,
                         const struct hf__ticket *ticket, hf_error *err)
{
    int64_t ttl_s = (ticket->ttl_ms + 999) / 1000;
    bool alone = connection != &connection->mysql->main ||
                 connection->mysql->main_users <= 1;

    connection->free_ns = hf__now();
    if (ttl_s == connection->lease_s || (ttl_s < connection->lease_s && !alone))
        return 0;
    if (set_lease(connection, ttl_s) == 0)
        return 0;
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

/* One that holds nothing may be silent for long, if it is not about to hold
 * again. When that will be certain. */
static int64_t relaxes_at(const struct hf__mysql_connection *connection)
{
    const struct hf__mysql *mysql = connection->mysql;
    bool holds = connection == &mysql->main ? mysql->main_users > 0
                                            : connection->ticket != 0;

    return connection->lease_s == 0 || holds ||
                   connection->step < HF__MYSQL_STEP_IDLE
               ? HF_NEVER
               : connection->free_ns + connection->lease_s * HF_SECOND / 3;
}

void hf__mysql_lease_rest(struct hf__mysql_connection *connection)
{
    connection->free_ns = hf__now();
    if (connection->lease_s > 0)
        hf__link_wake(&connection->mysql->link,
                      connection->free_ns +
                          connection->lease_s * HF_SECOND / 3);
}

static int64_t relax_one(struct hf__mysql_connection *connection,
                         int64_t now_ns)
{
    int64_t due_ns = relaxes_at(connection);

    if (now_ns < due_ns)
        return due_ns;
    (void)set_lease(connection, 0); /* or the server will end it */
    return HF_NEVER;
}

int64_t hf__mysql_lease_attend(struct hf__mysql *mysql, int64_t now_ns)
{
    int64_t due_ns = relax_one(&mysql->main, now_ns);
    int64_t listen_ns = hf__link_listen_due(&mysql->link, now_ns);

    due_ns = listen_ns < due_ns ? listen_ns : due_ns;
    HF_LIST_EACH(&mysql->pool.idle, link) {
        int64_t next_ns = relax_one(hf__mysql_pool_connection(HF_CONTAINER_OF(
                                        link, struct hf__sql_link, idle)),
                                    now_ns);

        due_ns = next_ns < due_ns ? next_ns : due_ns;
    }
    return due_ns;
}
