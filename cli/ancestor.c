/* SPDX-License-Identifier: MIT */
/*
 * ancestor.c - the locks that are held around this process.
 *
 * A command that runs under a lock and asks for the same lock again waits for
 * itself for ever. So each child is told, in HOLDFAST_HELD, what is held around
 * it: "engine:token:mode:name:key", separated by spaces, the engine as a hash of
 * its URL, the name percent-encoded, and the key of the keeper where holdfast
 * acquire took the lock. Before we wait we look there.
 *
 * A daemon may have been started under a lock and outlive it, and a shell keeps
 * the variable after holdfast release; therefore we ask the keeper whether it
 * lives, and the engine whether the token is still the current grant.
 */
#include "ancestor.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "keeper.h"

enum { ENCODED_MAX = 3 * HF_NAME_MAX };

/* By mode: HF_EXCLUSIVE, HF_SHARED, HF_SLOT. */
static const char mode_letters[] = {[HF_EXCLUSIVE] = 'x',
                                    [HF_SHARED] = 's',
                                    [HF_SLOT] = 'n',
                                    [HF_SLOT + 1] = 0};

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

static bool decode(const char *text, char *to)
{
    size_t used = 0;

    while (*text) {
        unsigned byte = (unsigned char)*text;
        size_t len = 1;

        if (byte == '%') {
            if (!isxdigit((unsigned char)text[1]) ||
                sscanf(text + 1, "%2x", &byte) != 1)
                return false;
            len = isxdigit((unsigned char)text[2]) ? 3 : 2;
        }
        if (used == HF_NAME_MAX || byte == 0)
            return false;
        to[used++] = (char)byte;
        text += len;
    }
    to[used] = '\0';
    return used > 0;
}

static bool parse(const char *entry, struct ancestor *ret)
{
    char encoded[ENCODED_MAX + 1];
    char mode;
    int end = 0;

    *ret = (struct ancestor){0};
    if (sscanf(entry, "%16" SCNx64 ":%20" SCNu64 ":%c:%765[^:]:%n",
               &ret->engine, &ret->token, &mode, encoded, &end) != 4 ||
        end == 0 || strlen(entry + end) > SECRET_KEY)
        return false;
    const char *letter = memchr(mode_letters, mode, HF_SLOT + 1);
    if (!letter || mode == '\0')
        return false;
    ret->mode = (int)(letter - mode_letters);
    snprintf(ret->key, sizeof(ret->key), "%s", entry + end);
    return decode(encoded, ret->name);
}

bool ancestor_next(const char **at, struct ancestor *ret)
{
    char entry[ENCODED_MAX + 128];

    while (**at) {
        size_t len = strcspn(*at, " ");
        const char *from = *at;

        *at += len + ((*at)[len] == ' ');
        if (len >= sizeof(entry))
            continue;
        memcpy(entry, from, len);
        entry[len] = '\0';
        if (parse(entry, ret))
            return true;
    }
    return false;
}

static enum ancestor_state state_of(hf_client *client,
                                    const struct ancestor *ancestor)
{
    if (ancestor->key[0]) {
        int code = keeper_ask(ancestor->key, KEEPER_CHECK, NULL, 0);

        if (code != CLI_DONE)
            return code == CLI_LOST ? ANCESTOR_GONE : ANCESTOR_UNKNOWN;
    }
    if (ancestor->token == 0)
        return ancestor->key[0] ? ANCESTOR_HELD : ANCESTOR_UNKNOWN;
    switch (hf_check_token(client, ancestor->name, ancestor->token, NULL)) {
    case 0:
        return ANCESTOR_HELD;
    case HF_ECONFLICT:
    case HF_ENOTFOUND:
        return ANCESTOR_GONE;
    default:
        return ANCESTOR_UNKNOWN;
    }
}

enum ancestor_state ancestor_find(hf_client *client, const char *name,
                                  struct ancestor *ret)
{
    const char *held = secure_getenv(ANCESTOR_VARIABLE);
    enum ancestor_state state = ANCESTOR_NONE;
    struct ancestor one;
    uint64_t engine = ancestor_hash(hf_client_url(client));

    while (held && ancestor_next(&held, &one)) {
        if (one.engine != engine || strcmp(one.name, name) != 0)
            continue;
        *ret = one;
        state = state_of(client, &one);
        if (state != ANCESTOR_GONE)
            break;
    }
    return state;
}

bool ancestor_holds(hf_client *client, const char *name)
{
    struct ancestor ancestor;
    enum ancestor_state state = ancestor_find(client, name, &ancestor);

    return state == ANCESTOR_HELD || state == ANCESTOR_UNKNOWN;
}

static void write_entry(FILE *file, const struct ancestor *entry)
{
    char encoded[ENCODED_MAX + 1];

    encode(entry->name, encoded);
    fprintf(file, "%016" PRIx64 ":%" PRIu64 ":%c:%s:%s", entry->engine,
            entry->token, mode_letters[entry->mode], encoded, entry->key);
}

char *ancestor_list(hf_client *client, const hf_hold *hold, int mode,
                    const char *key)
{
    const char *held = secure_getenv(ANCESTOR_VARIABLE);
    struct ancestor ours = {.engine = ancestor_hash(hf_client_url(client)),
                            .token = hf_token(hold),
                            .mode = mode};
    struct ancestor other;
    char *list = NULL;
    size_t len = 0;
    FILE *file = open_memstream(&list, &len);

    if (!file)
        return NULL;
    snprintf(ours.name, sizeof(ours.name), "%s", hf_hold_name(hold));
    snprintf(ours.key, sizeof(ours.key), "%s", key);
    /* What was held of this name is over: this grant proves it, except for
     * locks that many hold, and nobody may hold those twice here. */
    while (held && ancestor_next(&held, &other)) {
        if (other.engine == ours.engine && strcmp(other.name, ours.name) == 0)
            continue;
        write_entry(file, &other);
        fputc(' ', file);
    }
    write_entry(file, &ours);
    if (fclose(file) == 0)
        return list;
    free(list);
    return NULL;
}
