/* SPDX-License-Identifier: MIT */
/*
 * secret.c - keep what is secret out of sight.
 *
 * A password can reach us inside a URL (user:password@host), as a query value
 * or an -o pair (password=…), or in the environment. The library redacts what
 * it prints; here we take care of what others could read: our own argument
 * vector, and the environment of the child.
 *
 * A password is better put in a file (password_file=): between the start of
 * the process and secret_wipe() anybody on the machine can see argv.
 */
#include "secret.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

/* A piece of text that is to be hidden. */
struct span {
    size_t from;
    size_t len;
};

static bool names_a_secret(const char *key, size_t len)
{
    static const char *const words[] = {"password", "passwd", "secret",
                                        "auth_token"};

    /* password_file names a file, which is not itself a secret. */
    if (len > 5 && strncmp(key + len - 5, "_file", 5) == 0)
        return false;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (memmem(key, len, words[i], strlen(words[i])))
            return true;
    return false;
}

/* user:password@ behind "://", up to the path. */
static struct span find_userinfo(const char *text)
{
    const char *begin = strstr(text, "://");
    struct span none = {0, 0};

    if (!begin)
        return none;
    begin += 3;

    size_t end = strcspn(begin, "/?#");
    const char *at = memrchr(begin, '@', end);
    const char *colon = at ? memchr(begin, ':', (size_t)(at - begin)) : NULL;
    if (!colon)
        return none;
    return (struct span){(size_t)(colon + 1 - text), (size_t)(at - colon - 1)};
}

/* The next key=value with a secret key at or behind @from. */
static struct span find_pair(const char *text, size_t from)
{
    while (text[from]) {
        size_t end = from + strcspn(text + from, "&?;");
        const char *equals = memchr(text + from, '=', end - from);

        if (equals) {
            size_t value = (size_t)(equals - text) + 1;

            if (names_a_secret(text + from, value - 1 - from) && end > value)
                return (struct span){value, end - value};
        }
        from = end + (text[end] != '\0');
    }
    return (struct span){0, 0};
}

bool secret_has(const char *text)
{
    return find_userinfo(text).len > 0 || find_pair(text, 0).len > 0;
}

void secret_wipe(char *text)
{
    struct span span = find_userinfo(text);

    memset(text + span.from, '*', span.len);
    span = find_pair(text, 0);
    while (span.len > 0) {
        memset(text + span.from, '*', span.len);
        span = find_pair(text, span.from + span.len);
    }
}

static void cut_out(char *text, struct span span)
{
    char *begin = text + span.from;

    memmove(begin, begin + span.len, strlen(begin + span.len) + 1);
}

void secret_remove(char *text)
{
    struct span span = find_userinfo(text);

    if (span.len > 0) /* the colon, too */
        cut_out(text, (struct span){span.from - 1, span.len + 1});
    while ((span = find_pair(text, 0)).len > 0)
        cut_out(text, span);
}

bool secret_variable(const char *variable)
{
    size_t len = strcspn(variable, "=");

    if (strncmp(variable, "HOLDFAST_", 9) != 0 || variable[len] != '=')
        return false;
    if (strncmp(variable, "HOLDFAST_PASSWORD=", 18) == 0 ||
        strncmp(variable, "HOLDFAST_ACL=", 13) == 0)
        return true;
    return secret_has(variable + len + 1);
}
