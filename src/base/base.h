/* SPDX-License-Identifier: MIT */
/*
 * base.h - the words that every file uses: memory, cleanup, sizes.
 *
 * base/ knows nothing about locks.
 */
#ifndef HF_BASE_BASE_H
#define HF_BASE_BASE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/planted.h"
#include "holdfast.h"

#define HF_CONTAINER_OF(pointer, type, member)                                 \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))
#define HF_COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define HF_CLEANUP(function) __attribute__((cleanup(function)))
#define HF_PRINTF(text, first) __attribute__((format(printf, text, first)))
#define HF_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define HF_UNLIKELY(condition) __builtin_expect(!!(condition), 0)
/* Hand the value on and leave NULL, so that the cleanup does nothing. */
#define HF_STEAL(pointer)                                                      \
    __extension__({                                                            \
        __typeof__(pointer) hf_stolen = (pointer);                             \
        (pointer) = NULL;                                                      \
        hf_stolen;                                                             \
    })

/* Memory: all of it passes here, so that a host or a test can replace it.
 * Each returns NULL without memory; hf__free(NULL) is a no-op. */
void *hf__malloc(size_t size);
void *hf__calloc(size_t count, size_t size);
void *hf__realloc(void *memory, size_t size);
void hf__free(void *memory);
char *hf__strdup(const char *text);
char *hf__strndup(const char *text, size_t len);

static inline void hf__freep(void *pointer)
{
    hf__free(*(void **)pointer);
}

/* @number in decimal, terminated, at the end of @room; returns its start. */
enum { HF_DIGITS = 21 };
char *hf__text_number(uint64_t number, char room[HF_DIGITS]);
/* Copy at most size-1 bytes of @text, cut at a UTF-8 boundary, terminated. */
void hf__text_copy(char *to, size_t size, const char *text);

#endif
