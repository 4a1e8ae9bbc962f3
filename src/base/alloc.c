/* SPDX-License-Identifier: MIT */
/*
 * alloc.c - memory, through hooks that a host or a test may replace.
 *
 * The hooks are set once, before anything else is called, so they are read
 * without a lock.
 */
#include <stdlib.h>

#include "base/base.h"

static void *standard_allocate(size_t size, void *ctx)
{
    (void)ctx;
    return malloc(size);
}

static void *standard_reallocate(void *memory, size_t size, void *ctx)
{
    (void)ctx;
    return realloc(memory, size);
}

static void standard_release(void *memory, void *ctx)
{
    (void)ctx;
    free(memory);
}

#define STANDARD                                                               \
    {                                                                          \
        standard_allocate, standard_reallocate, standard_release, NULL         \
    }

static hf_allocator hooks = STANDARD;

void hf_set_allocator(const hf_allocator *allocator)
{
    static const hf_allocator standard = STANDARD;

    hooks = allocator ? *allocator : standard;
}

void *hf__malloc(size_t size)
{
    return hooks.allocate(size ? size : 1, hooks.ctx);
}

void *hf__calloc(size_t count, size_t size)
{
    size_t total;

    if (__builtin_mul_overflow(count, size, &total))
        return NULL;

    void *memory = hf__malloc(total);

    if (memory)
        memset(memory, 0, total);
    return memory;
}

void *hf__realloc(void *memory, size_t size)
{
    return hooks.reallocate(memory, size ? size : 1, hooks.ctx);
}

void hf__free(void *memory)
{
    if (memory)
        hooks.release(memory, hooks.ctx);
}

char *hf__strndup(const char *text, size_t len)
{
    char *copy = hf__malloc(len + 1);

    if (!copy)
        return NULL;
    memcpy(copy, text, len);
    copy[len] = '\0';
    return copy;
}

char *hf__strdup(const char *text)
{
    return hf__strndup(text, strlen(text));
}

char *hf__text_number(uint64_t number, char room[HF_DIGITS])
{
    char *at = room + HF_DIGITS - 1;

    *at = '\0';
    do {
        *--at = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    return at;
}

void hf__text_copy(char *to, size_t size, const char *text)
{
    size_t len = strlen(text);

    if (size == 0)
        return;
    if (len >= size) {
        len = size - 1;
        while (len > 0 && ((unsigned char)text[len] & 0xC0) == 0x80)
            len--;
    }
    memcpy(to, text, len);
    to[len] = '\0';
}
