/* SPDX-License-Identifier: MIT */
/*
 * fork.h - the clients of this process, for a thread that asks several of them,
 * one after the other. client.h has the rest of fork.c.
 */
#ifndef HF_CORE_FORK_H
#define HF_CORE_FORK_H

#include "core/client.h"

/* A client as it was found; it may be gone since. */
struct hf__fork_client {
    hf_client *client;
    uint64_t identity; /* tells it from a later one in the same memory */
};

/* All clients of the process, @max at most. Returns how many. */
size_t hf__fork_clients(struct hf__fork_client *to, size_t max);
/* Keep a client from being torn down until _let_go(); false: it is gone, or is
 * about to be. Never with a monitor held. */
bool hf__fork_keep(const struct hf__fork_client *found);
void hf__fork_let_go(hf_client *client);
/* Nobody keeps @client from now on; waits for those who do. Without its
 * monitor. */
void hf__fork_await_keepers(hf_client *client);
/* A number by chance that is this process's, and what has to be added to its
 * clock (µs) to compare instants with other processes. */
uint64_t hf__fork_process(int64_t *ret_offset_us);

#endif
