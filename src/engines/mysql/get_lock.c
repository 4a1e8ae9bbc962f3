/* SPDX-License-Identifier: MIT */
/*
 * get_lock.c - mode=get_lock: GET_LOCK() and RELEASE_LOCK() of the server.
 */
#include "engines/common/caps.h"
#include "engines/mysql/mysql.h"

struct rival {
    const struct hf__mysql *mysql;
    const struct hf__ticket *than;
};

static bool has_name(struct hf__ticket_entry *entry, const void *what)
{
    const struct rival *rival = what;
    const struct hf__mysql_ticket *mine =
        HF_CONTAINER_OF(entry, struct hf__mysql_ticket, entry);

    return entry->ticket != rival->than && mine->on == &rival->mysql->main &&
           !hf__mysql_tickets_leaves(mine) &&
           strcmp(entry->ticket->name, rival->than->name) == 0;
}

/* GET_LOCK nests in a session, so the server would grant the name twice. A
 * ticket that leaves has sent its RELEASE_LOCK before us, or sends it when it
 * hears that it was granted: after one release we still hold it. */
bool hf__mysql_get_lock_has_name(const struct hf__mysql *mysql,
                                 const struct hf__ticket *than)
{
    struct rival rival = {mysql, than};
    size_t bucket = 0;

    return mysql->main_users > 1 &&
           hf__ticket_table_next(&mysql->tickets, &bucket, has_name, &rival);
}

const struct hf__mysql_mode hf__mysql_get_lock_mode = {
    .name = "get_lock",
    .caps = HF__CAPS_SESSION,
    HF__MYSQL_OF_A_SESSION,
};
