/* SPDX-License-Identifier: MIT */
/* keeper.h - how holdfast release talks to the process that keeps a lock. */
#ifndef CLI_KEEPER_H
#define CLI_KEEPER_H

#include <stddef.h>

#include "secret.h"

/* What a keeper can be asked. */
enum keeper_request { KEEPER_CHECK, KEEPER_RELEASE };

/* Ask the keeper with this key. Its exit code: 0 if it holds the lock, or has
 * released it; CLI_LOST if it lost it, or is gone; CLI_UNAVAILABLE if it does
 * not answer. What it says is in @text, if that is not NULL. */
int keeper_ask(const char *key, enum keeper_request request, char *text,
               size_t size);

/* For the keeper: make a key, and a socket that listens for its questions; -1
 * with errno. */
int keeper_listen(char key[SECRET_KEY + 1]);
/* Take one question; -1: there is none. *@ret_fd gets the answer. */
int keeper_question(int socket, int *ret_fd);
/* Answer, and close @fd. */
void keeper_answer(int fd, int code, const char *text);

#endif
