/* SPDX-License-Identifier: MIT */
/*
 * fuzz.h - what every fuzz target shares.
 *
 * A target is a function from bytes to 0 that must not crash, leak or break a
 * CHECK. With libFuzzer it is fed by evolution, otherwise by replay.c with the
 * corpus.
 */
#ifndef HF_TESTS_FUZZ_H
#define HF_TESTS_FUZZ_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A claim that must hold for every input. */
#define CHECK(claim)                                                           \
    do {                                                                       \
        if (!(claim)) {                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__,         \
                    #claim);                                                   \
            abort();                                                           \
        }                                                                      \
    } while (0)

/* A terminated copy, so that reading beyond the end is seen. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);

    CHECK(text);
    memcpy(text, data, size);
    text[size] = '\0';
    return text;
}

#endif
