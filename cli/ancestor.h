/* SPDX-License-Identifier: MIT */
/* ancestor.h - the locks that are held around this process. */
#ifndef CLI_ANCESTOR_H
#define CLI_ANCESTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast.h"
#include "secret.h"

#define ANCESTOR_VARIABLE "HOLDFAST_HELD"

/* One entry of the variable. */
struct ancestor {
    uint64_t engine; /* a hash of its URL */
    uint64_t token;  /* 0: none */
    int mode;        /* HF_EXCLUSIVE, HF_SHARED, HF_SLOT */
    char name[HF_NAME_MAX + 1];
    char key[SECRET_KEY + 1]; /* of the keeper; "": held by a run */
};

enum ancestor_state {
    ANCESTOR_NONE,    /* nothing around us says that it holds the name */
    ANCESTOR_HELD,    /* … and it still does */
    ANCESTOR_GONE,    /* … but it does not any more */
    ANCESTOR_UNKNOWN, /* … and the engine cannot tell */
};

/* The same in every process, and nothing secret in it. */
uint64_t ancestor_hash(const char *text);
/* Does something around us hold @name on this engine? Fills *@ret, unless it
 * is ANCESTOR_NONE. */
enum ancestor_state ancestor_find(hf_client *client, const char *name,
                                  struct ancestor *ret);
/* True if it does, or may. */
bool ancestor_holds(hf_client *client, const char *name);
/* Take the entry at *@at apart and move on behind it; false: no more. */
bool ancestor_next(const char **at, struct ancestor *ret);
/* The variable's value for what runs under @hold: what we inherited, and this;
 * @key is that of its keeper, or "". NULL without memory; the caller frees it. */
char *ancestor_list(hf_client *client, const hf_hold *hold, int mode,
                    const char *key);

#endif
