/* SPDX-License-Identifier: MIT */
/*
 * redis_topology_fuzz.c - sentinels and nodes of a cluster that say anything.
 *
 * The input is the kind of the topology and its dialect, then pieces for the
 * streams (fuzz_streams.h).
 */
#include "engines/redis/redis.h"
#include "fuzz_core.h"
#include "fuzz_streams.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const dialects[] = {"", "plain", "redisson"};
    static const char sentinel[] = "redis-sentinel://a,b,c/m1";
    static const char cluster[] = "redis-cluster://a,b";
    struct fuzz_core core;

    if (size < 2)
        return 0;
    fuzz_core_open(
        &core, data[0] == 's' ? &hf__engine_redis : &hf__engine_redis_cluster,
        data[0] == 's' ? sentinel : cluster,
        dialects[data[1] % HF_COUNT_OF(dialects)], "");
    fuzz_streams_run(core.engine, data + 2, size - 2);
    fuzz_core_close(&core);
    return 0;
}
