/* SPDX-License-Identifier: MIT */
/*
 * redis_reply_fuzz.c - a Redis server that says anything.
 *
 * The engine is real, and so are its calls; the bytes that a server would send
 * are the fuzzer's. The core is fuzz_core.c.
 */
#include "engines/redis/connection.h"
#include "engines/redis/redis.h"
#include "fuzz_core.h"

static void run(struct hf__engine *engine, const uint8_t *data, size_t size)
{
    static const char hello[] = "%2\r\n$2\r\nid\r\n:7\r\n$7\r\nversion\r\n"
                                "$5\r\n7.0.0\r\n$10\r\nrun_id:abc\r\n";
    struct hf__redis *redis = (struct hf__redis *)engine;

    (void)engine->ops->connect(engine, NULL); /* there is no such socket */
    redis->stream.state = HF__STREAM_OPEN;
    redis->stream.io.fd = -1;
    redis->stream.opened(&redis->stream);
    fuzz_core_feed(&redis->stream, hello, sizeof(hello) - 1);
    fuzz_core_ask(engine);
    fuzz_core_feed(&redis->stream, data, size / 2);
    fuzz_core_feed(&redis->stream, data + size / 2, size - size / 2);
    if (redis->stream.state == HF__STREAM_OPEN) {
        hf_error err;

        (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
        hf__redis_connection_fail(redis, &err);
    }
}

/* The first byte chooses: native (even), plain (odd), redisson (128 and more,
 * even). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const modes[] = {"lock", "fenced",  "fair",
                                        "rw",   "permits", "semaphore"};
    struct fuzz_core core;
    bool redisson;

    if (size == 0)
        return 0;
    fuzz_core_own_world(); /* a push can guess its nonce */
    redisson = (data[0] & 129) == 128;
    fuzz_core_open(&core, &hf__engine_redis, "redis+unix:///nowhere/at/all",
                   data[0] & 1 ? "plain"
                   : redisson  ? "redisson"
                               : "",
                   redisson ? modes[(data[0] >> 1) % HF_COUNT_OF(modes)] : "");
    run(core.engine, data + 1, size - 1);
    fuzz_core_close(&core);
    return 0;
}
