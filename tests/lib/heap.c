/* SPDX-License-Identifier: MIT */
/* heap.c - an allocator that fails when told, and counts. */
#include "heap.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "holdfast.h"

static atomic_long in_use;
static atomic_long count;
static atomic_long until_failure;
static atomic_bool has_failed;

/* True if this allocation is the one that has to fail. */
static bool fails_now(void)
{
    atomic_fetch_add(&count, 1);
    if (atomic_load(&until_failure) <= 0)
        return false;
    if (atomic_fetch_sub(&until_failure, 1) != 1)
        return false;
    atomic_store(&has_failed, true);
    return true;
}

static void *allocate(size_t size, void *ctx)
{
    void *memory;

    (void)ctx;
    if (fails_now())
        return NULL;
    memory = malloc(size);
    if (memory)
        atomic_fetch_add(&in_use, 1);
    return memory;
}

static void *reallocate(void *memory, size_t size, void *ctx)
{
    void *moved;

    (void)ctx;
    if (fails_now())
        return NULL;
    moved = realloc(memory, size);
    if (moved && !memory)
        atomic_fetch_add(&in_use, 1);
    return moved;
}

static void release(void *memory, void *ctx)
{
    (void)ctx;
    if (memory)
        atomic_fetch_sub(&in_use, 1);
    free(memory);
}

void heap_install(void)
{
    static const hf_allocator allocator = {allocate, reallocate, release, NULL};

    hf_set_allocator(&allocator);
}

void heap_fail_at(long nth)
{
    atomic_store(&has_failed, false);
    atomic_store(&until_failure, nth);
}

bool heap_has_failed(void)
{
    return atomic_load(&has_failed);
}

long heap_in_use(void)
{
    return atomic_load(&in_use);
}

long heap_count(void)
{
    return atomic_load(&count);
}
