/* SPDX-License-Identifier: MIT */
/* secret.h - keep what is secret out of sight. */
#ifndef CLI_SECRET_H
#define CLI_SECRET_H

#include <stdbool.h>

/* Overwrite with '*' the password of a URL, and the value of "key=value" and
 * of a URL's query where the key names a secret, in place. */
void secret_wipe(char *text);
/* True if secret_wipe() would change @text. */
bool secret_has(const char *text);
/* Take it out instead: what is left names the same engine. */
void secret_remove(char *text);
/* True if the child must not see this NAME=VALUE of our environment. */
bool secret_variable(const char *variable);

#endif
