/* SPDX-License-Identifier: MIT */
/*
 * release.c - holdfast release: end a lock that holdfast acquire took.
 *
 * HOLDFAST_HELD names the locks of this shell and the keys of their keepers. The
 * variable stays as it is when a lock is released, so a lock without a keeper
 * may be one that was released before, or one whose keeper was killed: we call
 * it lost, because nobody can say that it was held until now. For the same
 * reason nobody can guess which of several locks is meant.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ancestor.h"
#include "cli.h"
#include "keeper.h"
#include "options.h"
#include "secret.h"
#include "talk.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast release [NAME]\n"
    "Release a lock that this shell took with holdfast acquire. With several,\n"
    "say which. Returns when the engine has confirmed it.\n\n"
    "Exit: 0 released; 79 the lock was lost before; 69 the engine did not\n"
    "  answer, so the lock ends with its lease; 64 this shell took no such "
    "lock\n";

static const struct option *const tables[] = {NULL};

/* The newest lock of this shell by that name, or the only one. 0 or an exit
 * code, said. */
static int find(const char *name, struct ancestor *ret)
{
    const char *held = secure_getenv(ANCESTOR_VARIABLE);
    struct ancestor one;
    size_t found = 0;

    while (held && ancestor_next(&held, &one)) {
        if (one.key[0] == '\0' || (name && strcmp(one.name, name) != 0))
            continue;
        *ret = one;
        found++;
    }
    if (found == 0 && name)
        return cli_usage("this shell did not acquire \"%s\"",
                         secret_shown(name));
    if (found == 0)
        return cli_usage("this shell acquired no lock");
    if (found > 1 && !name)
        return cli_usage("this shell acquired several locks; say which: "
                         "holdfast release NAME");
    return 0;
}

static int release_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 0};
    struct ancestor ancestor;
    char text[512] = "";
    int rc = options_parse(verb, argc, argv, &words);

    if (rc == 0)
        rc = find(words.word[0], &ancestor);
    if (rc != 0)
        return rc;
    rc = keeper_ask(ancestor.key, KEEPER_RELEASE, text, sizeof(text));
    if (rc == CLI_LOST)
        fprintf(stderr, "holdfast: the lock \"%s\" was lost: %s\n",
                text_safe(ancestor.name), text_safe(text));
    else if (rc != CLI_DONE)
        fprintf(stderr, "holdfast: \"%s\": %s\n", text_safe(ancestor.name),
                text_safe(text));
    else if (cli.verbose > 0)
        talk_say("released \"%s\"", text_safe(ancestor.name));
    return rc;
}

VERB(release, "[NAME]", "release a lock that this shell acquired");
