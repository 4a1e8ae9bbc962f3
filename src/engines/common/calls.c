/* SPDX-License-Identifier: MIT */
/*
 * calls.c - a ring that grows.
 *
 * Failure: without memory nothing has changed.
 */
#include "engines/common/calls.h"

#define FIRST_SIZE 64u

void hf__calls_init(struct hf__calls *calls, size_t slot_size)
{
    memset(calls, 0, sizeof(*calls));
    calls->slot_size = (uint32_t)slot_size;
}

void hf__calls_release(struct hf__calls *calls)
{
    hf__free(calls->slots);
    hf__calls_init(calls, calls->slot_size);
}

static int grow(struct hf__calls *calls)
{
    uint32_t size = calls->size > 0 ? calls->size * 2 : FIRST_SIZE;
    size_t slot_size = calls->slot_size;
    char *slots = hf__malloc(size * slot_size);

    if (!slots)
        return HF_ENOMEM;
    for (uint32_t i = 0; i < calls->n; i++)
        memcpy(slots + i * slot_size, hf__calls_at(calls, i), slot_size);
    hf__free(calls->slots);
    calls->slots = slots;
    calls->size = size;
    calls->first = 0;
    return 0;
}

void *hf__calls_add(struct hf__calls *calls, const void *call)
{
    void *slot;

    if (calls->n == calls->size && grow(calls) != 0)
        return NULL;
    calls->n++;
    slot = hf__calls_at(calls, calls->n - 1);
    memcpy(slot, call, calls->slot_size);
    return slot;
}

bool hf__calls_take(struct hf__calls *calls, void *ret_call)
{
    if (calls->n == 0)
        return false;
    memcpy(ret_call, hf__calls_at(calls, 0), calls->slot_size);
    calls->first = (calls->first + 1) & (calls->size - 1);
    calls->n--;
    return true;
}
