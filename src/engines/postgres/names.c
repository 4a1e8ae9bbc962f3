/* SPDX-License-Identifier: MIT */
/*
 * names.c - what stands for the name of a lock on the server.
 *
 * An advisory lock has 64 bits for a name; 64 others tell it from names that
 * share them (advisory_names.c). Both are part of what the clients of one
 * database agree on.
 */
#include "config/name.h"
#include "engines/postgres/postgres.h"

const char *hf__pg_names_decimal(int64_t number, char room[HF__PG_DIGITS])
{
    uint64_t size = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    char *at = hf__text_number(size, room + 1);

    if (number < 0)
        *--at = '-';
    return at;
}

void hf__pg_names_whole(const struct hf__pg *postgres, const char *name,
                        char to[HF__PG_WHOLE])
{
    const char *prefix = postgres->base.host->settings->prefix;
    size_t len = strlen(prefix);

    hf__text_copy(to, HF__PG_WHOLE, prefix);
    if (len < HF__PG_WHOLE)
        hf__text_copy(to + len, HF__PG_WHOLE - len, name);
}

static int64_t hash_of(const struct hf__pg *postgres, const char *name,
                       size_t len, const uint64_t key[2])
{
    const char *prefix = postgres->base.host->settings->prefix;
    uint64_t hash;
    char whole[HF__PG_WHOLE];

    if (prefix[0] == '\0') {
        hash = hf__name_hash(name, len, key);
    } else {
        hf__pg_names_whole(postgres, name, whole);
        hash = hf__name_hash(whole, strlen(whole), key);
    }
    return (int64_t)hash;
}

int64_t hf__pg_names_key(const struct hf__pg *postgres, const char *name,
                         size_t len)
{
    static const uint64_t key[2] = {UINT64_C(0x686f6c6466617374),
                                    UINT64_C(0x706f737467726573)};

    return hash_of(postgres, name, len, key);
}

int64_t hf__pg_names_second_key(const struct hf__pg *postgres, const char *name,
                                size_t len)
{
    static const uint64_t key[2] = {UINT64_C(0x6e616d652d6d6172),
                                    UINT64_C(0x6b2e706f73746772)};

    return hash_of(postgres, name, len, key);
}

struct hf__pg_name *hf__pg_names_find(struct hf__pg *postgres, int64_t key)
{
    struct hf__pg_name *name = &postgres->names[(uint64_t)key % HF__PG_NAMES];

    if (name->key != key) {
        memset(name, 0, sizeof(*name));
        name->key = key;
    }
    return name;
}
