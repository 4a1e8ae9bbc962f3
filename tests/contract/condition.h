/* SPDX-License-Identifier: MIT */
/* condition.h - what the tests of conditions share. */
#ifndef HF_CONTRACT_CONDITION_H
#define HF_CONTRACT_CONDITION_H

#include "contract.h"

/* The condition that most tests use. */
#define READY "ready"

/* A wait that was started. */
struct condition_wait {
    hf_hold *hold;
    hf_request *request;
    uint64_t token; /* before */
};

/* Under a new owner. */
hf_hold *condition_acquire(hf_client *client, const char *name);
struct condition_wait condition_start(hf_client *client, const char *name,
                                      const char *cond, int64_t wait_ms);
/* The same without end, and it is the @n-th that is parked. */
struct condition_wait condition_park(hf_client *client, const char *name,
                                     const char *cond, int n);
/* It ends with @rc, and holds the lock, which is released. */
void condition_finish(struct condition_wait *wait, int rc);
/* It ends with @rc, without the lock, and leaves the hold in @state. */
void condition_finish_without(struct condition_wait *wait, int rc, int state);
/* Somebody else has had the lock meanwhile, and the wait goes on. */
void condition_sleeps_on(hf_client *client, const char *name,
                         const struct condition_wait *wait);
/* Acquire, signal, release: how many were woken. */
int condition_signal(hf_client *client, const char *name, const char *cond);
int condition_broadcast(hf_client *client, const char *name, const char *cond);
void condition_nothing_left(hf_client *client, const char *name);

#endif
