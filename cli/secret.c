/* SPDX-License-Identifier: MIT */
/*
 * secret.c - keep what is secret out of sight.
 *
 * A password can reach us inside a URL (user:password@host), as a query value
 * or an -o pair (password=…), or in the environment. The library knows what of
 * a text is secret (hf_redact); here we take care of what others could read:
 * our own argument vector, our messages, and the environment of the child.
 *
 * A password is better put in a file (password_file=): between the start of
 * the process and secret_wipe() anybody on the machine can see argv.
 *
 * Failure: without memory a text is hidden altogether.
 */
#include "secret.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "holdfast.h"

#define MASK "***"

int secret_key(char key[SECRET_KEY + 1])
{
    unsigned char bytes[SECRET_KEY / 2];

    if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
        return -1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        snprintf(key + 2 * i, 3, "%02x", bytes[i]);
    return 0;
}

char *secret_hidden(const char *text, const char *mask)
{
    size_t len = hf_redact(text, mask, NULL, 0);
    char *copy = malloc(len + 1);

    if (copy)
        hf_redact(text, mask, copy, len + 1);
    return copy;
}

bool secret_has(const char *text)
{
    char *with = secret_hidden(text, MASK);
    char *without = secret_hidden(text, /* mask= */ NULL);
    bool has = !with || !without || strcmp(with, without) != 0;

    free(with);
    free(without);
    return has;
}

const char *secret_shown(const char *word)
{
    static char buffers[2][256];
    static size_t next;
    char *shown = buffers[next++ % 2];

    hf_redact(word, MASK, shown, sizeof(buffers[0]));
    return shown;
}

void secret_wipe(char *text)
{
    size_t len = strlen(text);
    char *hidden = secret_hidden(text, MASK);

    if (!hidden || secret_has(text)) {
        explicit_bzero(text, len);
        if (hidden)
            memcpy(text, hidden, strnlen(hidden, len));
    }
    free(hidden);
}

bool secret_variable(const char *variable)
{
    /* Not the password of something, but what we tell the child. */
    if (strncmp(variable, "HOLDFAST_", 9) != 0 ||
        strncmp(variable, "HOLDFAST_TOKEN=", 15) == 0)
        return false;
    return secret_has(variable);
}
