/* SPDX-License-Identifier: MIT */
/*
 * calls.h - the calls of one connection that are under way, oldest first.
 *
 * A server answers the calls of a connection in the order in which it got
 * them, so this is a queue: a ring that grows. An engine has its own struct
 * for a call, and says its size once; the slots have no pointers into the
 * ring, because it moves when it grows.
 */
#ifndef HF_ENGINES_CALLS_H
#define HF_ENGINES_CALLS_H

#include "base/base.h"

struct hf__calls {
    char *slots;
    uint32_t slot_size; /* sizeof the engine's struct */
    uint32_t size;      /* slots; a power of two */
    uint32_t first;
    uint32_t n; /* under way */
};

void hf__calls_init(struct hf__calls *calls, size_t slot_size);
void hf__calls_release(struct hf__calls *calls);
/* A copy of @call becomes the youngest; NULL without memory. */
void *hf__calls_add(struct hf__calls *calls, const void *call);
/* The oldest goes, copied to @ret_call; false: there is none. */
bool hf__calls_take(struct hf__calls *calls, void *ret_call);
/* The @i-th oldest, from 0; @i must be below calls->n. Valid until the next
 * hf__calls_add(). */
static inline void *hf__calls_at(const struct hf__calls *calls, uint32_t i)
{
    assert(i < calls->n);
    return calls->slots +
           (size_t)((calls->first + i) & (calls->size - 1)) * calls->slot_size;
}

#endif
