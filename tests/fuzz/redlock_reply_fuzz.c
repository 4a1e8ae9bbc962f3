/* SPDX-License-Identifier: MIT */
/*
 * redlock_reply_fuzz.c - the servers of a RedLock say anything.
 *
 * The engine is real, with three servers a, b and c; the input is pieces for
 * the streams (fuzz_streams.h). Half of what is granted is held, so that renewals and lost majorities are met.
 */
#include "engines/redis/redlock.h"
#include "fuzz_core.h"
#include "fuzz_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_core core;

    fuzz_core_own_world();
    fuzz_core_hold(true);
    fuzz_core_open(&core, &hf__engine_redlock, "redlock://a,b,c", "", "");
    fuzz_streams_run(core.engine, data, size);
    fuzz_core_close(&core);
    return 0;
}
