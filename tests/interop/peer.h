/* SPDX-License-Identifier: MIT */
/* peer.h - a client of others, in a process of its own, that does as told. */
#ifndef HF_INTEROP_PEER_H
#define HF_INTEROP_PEER_H

#include "event.h"
#include "live/redis/redis.h"
#include "proc.h"

/* Start the program @argv, which ends with NULL, and wait until it says
 * "ready". Start peers before any client is opened. */
struct proc *peer_start(const char *const *argv);
/* The class Peer that prepare.sh made in the directory of the environment's
 * @variable; @option of the virtual machine may be NULL, @arguments end with it. */
struct proc *peer_start_java(const char *variable, const char *option,
                             const char *const *arguments);
/* Tell it one line. */
void peer_tell(struct proc *peer, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Tell it one line, and the answer has to begin with @answer. */
const char *peer_ask(struct proc *peer, const char *answer, const char *format,
                     ...) __attribute__((format(printf, 3, 4)));

/* Our side. Who takes, who awaits and who tries are three owners. */
hf_request *peer_await(hf_client *client, const char *name, int mode,
                       int slots);
hf_hold *peer_awaited(hf_request *request, int64_t within_ms);
bool peer_is_waiting(hf_request *request);
hf_hold *peer_take(hf_client *client, const char *name, int mode, int slots);
int peer_try(hf_client *client, const char *name, int mode, int slots);

#endif
