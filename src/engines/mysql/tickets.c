/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - which tickets the server may know.
 *
 * A ticket is known from its first acquire until the report that ends it.
 * Calls name it by its number, which is looked up here, because the core may
 * have given the ticket back in the meantime.
 */
#include "engines/mysql/mysql.h"

static struct hf__ticket **bucket(struct hf__mysql *mysql, uint64_t id)
{
    return &mysql->tickets[id % HF__MYSQL_BUCKETS];
}

void hf__mysql_ticket_know(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__ticket **at = bucket(mysql, ticket->id);

    if (mine->known)
        return;
    mine->known = true;
    mine->self = ticket;
    mine->next = *at;
    *at = ticket;
}

struct hf__ticket *hf__mysql_ticket_find(const struct hf__mysql *mysql,
                                         uint64_t id)
{
    struct hf__ticket *ticket = mysql->tickets[id % HF__MYSQL_BUCKETS];

    while (ticket && ticket->id != id)
        ticket = hf__mysql_ticket(mysql, ticket)->next;
    return ticket;
}

void hf__mysql_ticket_forget(struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    struct hf__mysql_ticket *mine = hf__mysql_ticket(mysql, ticket);
    struct hf__ticket **at = bucket(mysql, ticket->id);

    if (!mine->known)
        return;
    while (*at != ticket)
        at = &hf__mysql_ticket(mysql, *at)->next;
    *at = mine->next;
    memset(mine, 0, sizeof(*mine));
}
