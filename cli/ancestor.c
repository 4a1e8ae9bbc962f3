/* SPDX-License-Identifier: MIT */
/*
 * ancestor.c - the locks that our ancestors hold.
 *
 * A command that runs under a lock and asks for the same lock again waits for
 * itself for ever. So each child is told, in HOLDFAST_HELD, what is held above
 * it: "engine:token:name", separated by spaces, the engine as a hash of its URL
 * and the name percent-encoded. Before we wait we look there.
 *
 * A daemon may have been started under a lock and outlive it; therefore the
 * engine is asked whether the token is still the current grant. Where it cannot
 * tell, the variable is believed.
 */
#include "ancestor.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a. */
uint64_t ancestor_hash(const char *text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

static void encode(const char *name, char *to)
{
    for (; *name; name++) {
        unsigned char byte = (unsigned char)*name;

        if (isalnum(byte) || strchr("._-/", byte))
            *to++ = (char)byte;
        else
            to += sprintf(to, "%%%02x", byte);
    }
    *to = '\0';
}

static bool is_current(hf_client *client, const char *name, uint64_t token)
{
    int rc = token ? hf_check_token(client, name, token, NULL) : 0;

    return rc != HF_ECONFLICT && rc != HF_ENOTFOUND;
}

/* The end of "hash:token:name" at @entry is @len bytes away. */
static bool matches(const char *entry, size_t len, uint64_t engine,
                    const char *encoded, uint64_t *ret_token)
{
    char *at;

    if (strtoull(entry, &at, 16) != engine || *at != ':')
        return false;
    *ret_token = strtoull(at + 1, &at, 10);
    return *at == ':' && strlen(encoded) == len - (size_t)(at + 1 - entry) &&
           memcmp(at + 1, encoded, strlen(encoded)) == 0;
}

bool ancestor_holds(hf_client *client, const char *name)
{
    const char *held = secure_getenv(ANCESTOR_VARIABLE);
    char encoded[3 * HF_NAME_MAX + 1];

    if (!held || strlen(name) > HF_NAME_MAX)
        return false;
    encode(name, encoded);

    uint64_t engine = ancestor_hash(hf_client_url(client));
    while (*held) {
        size_t len = strcspn(held, " ");
        uint64_t token;

        if (matches(held, len, engine, encoded, &token) &&
            is_current(client, name, token))
            return true;
        held += len + (held[len] == ' ');
    }
    return false;
}

char *ancestor_list(hf_client *client, const hf_hold *hold)
{
    const char *held = secure_getenv(ANCESTOR_VARIABLE);
    char encoded[3 * HF_NAME_MAX + 1];
    char *list;

    encode(hf_hold_name(hold), encoded);
    if (asprintf(&list, "%s%s%016" PRIx64 ":%" PRIu64 ":%s", held ? held : "",
                 held && *held ? " " : "", ancestor_hash(hf_client_url(client)),
                 hf_token(hold), encoded) < 0)
        return NULL;
    return list;
}
