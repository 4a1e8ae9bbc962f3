/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - which tickets the server may know, and what stands for a name.
 *
 * A call remembers its ticket by number: the ticket may be gone when the
 * answer comes. An advisory lock has 64 bits for a name; 64 others tell it from
 * names that share them (marks.c). Both are part of what the clients of one
 * database agree on.
 */
#include "config/name.h"
#include "engines/postgres/postgres.h"

void hf__postgres_tickets_init(struct hf__postgres *postgres)
{
    for (size_t i = 0; i < HF__PG_BUCKETS; i++) {
        hf__list_init(&postgres->known[i]);
        hf__list_init(&postgres->held[i]);
    }
}

void hf__postgres_know(struct hf__postgres *postgres, struct hf__ticket *ticket)
{
    struct hf__postgres_ticket *mine = hf__postgres_ticket(postgres, ticket);

    if (mine->known)
        return;
    mine->known = true;
    mine->engine = postgres;
    mine->ticket = ticket;
    mine->key = hf__postgres_key(postgres, ticket->name, ticket->name_len);
    mine->mark = hf__postgres_mark(postgres, ticket->name, ticket->name_len);
    hf__list_init(&mine->link);
    hf__list_init(&mine->bucket);
    hf__list_append(&postgres->known[ticket->id % HF__PG_BUCKETS],
                    &mine->bucket);
}

void hf__postgres_forget(struct hf__postgres_ticket *mine)
{
    if (!mine->known)
        return;
    mine->known = false;
    mine->session = NULL;
    mine->borrower = NULL; /* is told by its call */
    hf__free(HF_STEAL(mine->why));
    hf__list_remove(&mine->link);
    hf__list_remove(&mine->bucket);
}

struct hf__postgres_ticket *hf__postgres_find(
    const struct hf__postgres *postgres, uint64_t id)
{
    const struct hf__list *bucket = &postgres->known[id % HF__PG_BUCKETS];

    for (struct hf__list *link = bucket->next; link != bucket;
         link = link->next) {
        struct hf__postgres_ticket *mine =
            HF_CONTAINER_OF(link, struct hf__postgres_ticket, bucket);

        if (mine->ticket->id == id)
            return mine;
    }
    return NULL;
}

const char *hf__postgres_number(int64_t number, char room[HF__PG_DIGITS])
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = hf__text_number(size, room + 1);

    if (number < 0)
        *--at = '-';
    return at;
}

void hf__postgres_whole(const struct hf__postgres *postgres, const char *name,
                        char to[HF__PG_WHOLE])
{
    const char *prefix = postgres->base.host->settings->prefix;
    size_t len = strlen(prefix);

    hf__text_copy(to, HF__PG_WHOLE, prefix);
    if (len < HF__PG_WHOLE)
        hf__text_copy(to + len, HF__PG_WHOLE - len, name);
}

static int64_t hash_of(const struct hf__postgres *postgres, const char *name,
                       size_t len, const uint64_t key[2])
{
    const char *prefix = postgres->base.host->settings->prefix;
    uint64_t hash;
    char whole[HF__PG_WHOLE];

    if (prefix[0] == '\0') {
        hash = hf__name_hash(name, len, key);
    } else {
        hf__postgres_whole(postgres, name, whole);
        hash = hf__name_hash(whole, strlen(whole), key);
    }
    return (int64_t)hash;
}

int64_t hf__postgres_key(const struct hf__postgres *postgres, const char *name,
                         size_t len)
{
    static const uint64_t key[2] = {UINT64_C(0x686f6c6466617374),
                                    UINT64_C(0x706f737467726573)};

    return hash_of(postgres, name, len, key);
}

int64_t hf__postgres_mark(const struct hf__postgres *postgres, const char *name,
                          size_t len)
{
    static const uint64_t key[2] = {UINT64_C(0x6e616d652d6d6172),
                                    UINT64_C(0x6b2e706f73746772)};

    return hash_of(postgres, name, len, key);
}

struct hf__postgres_name *hf__postgres_name(struct hf__postgres *postgres,
                                            int64_t key)
{
    struct hf__postgres_name *name =
        &postgres->names[(uint64_t)key % HF__PG_NAMES];

    if (name->key != key) {
        memset(name, 0, sizeof(*name));
        name->key = key;
    }
    return name;
}

void hf__postgres_failed(struct hf__postgres *postgres,
                         struct hf__postgres_ticket *mine, const hf_error *err)
{
    struct hf__ticket *ticket = mine->ticket;

    mine->asking = false;
    hf__postgres_forget(mine);
    hf__up_failed(&postgres->base, ticket, err);
}

void hf__postgres_unknown(struct hf__postgres *postgres,
                          struct hf__postgres_ticket *mine, const hf_error *err)
{
    mine->asking = false;
    hf__up_unknown(&postgres->base, mine->ticket, err);
}
