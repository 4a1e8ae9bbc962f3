/* SPDX-License-Identifier: MIT */
/* secret.h - keep what is secret out of sight. */
#ifndef CLI_SECRET_H
#define CLI_SECRET_H

#include <stdbool.h>

enum { SECRET_KEY = 32 }; /* the length of a key, in hex */

/* A random key; -1 with errno. */
int secret_key(char key[SECRET_KEY + 1]);
/* A copy of a URL or a "key=value" with @mask for what is secret, or without
 * it if @mask is NULL; free() it. NULL without memory. */
char *secret_hidden(const char *text, const char *mask);
/* True if there is a secret in @text. */
bool secret_has(const char *text);
/* For a message that quotes a word of the command line: without secrets, and
 * cut; valid until the next but one call. */
const char *secret_shown(const char *word);
/* Overwrite the secrets of @text in place; the text may end sooner. */
void secret_wipe(char *text);
/* True if the child must not see this NAME=VALUE of our environment. */
bool secret_variable(const char *variable);

#endif
