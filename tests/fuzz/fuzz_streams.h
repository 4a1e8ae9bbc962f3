/* SPDX-License-Identifier: MIT */
/*
 * fuzz_streams.h - engines of several connections, without a network.
 *
 * Whoever the engine wants to speak to is a stream that is open at once, and
 * says what the fuzzer wants, in whatever order. The input is pieces, each with
 * a letter that says whose it is, up to the byte 1. "!" ends the connection of
 * the letter behind it, "~" lets time pass, "^" renews what is held.
 */
#ifndef HF_TESTS_FUZZ_STREAMS_H
#define HF_TESTS_FUZZ_STREAMS_H

#include "fuzz_core.h"

void fuzz_streams_run(struct hf__engine *engine, const uint8_t *data,
                      size_t size);

#endif
