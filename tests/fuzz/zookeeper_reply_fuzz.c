/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_reply_fuzz.c - a ZooKeeper server that says anything.
 *
 * The engine is real, and so are its calls. The fuzzer says what the server
 * answers to each of them: an error, a body, an event, or bytes that are no
 * frame at all. The core is fuzz_core.c.
 */
#include "engines/zookeeper/zookeeper.h"
#include "fuzz_core.h"

static bool keeps(struct hf__engine *engine, struct hf__ticket *ticket)
{
    return hf__zk_ticket((struct hf__zk *)engine, ticket)->path != NULL;
}

/* One frame: @head of a reply, then @len bytes. */
static void feed_frame(struct hf__zk *zk, int32_t xid, int32_t error,
                       const uint8_t *body, size_t len)
{
    struct hf__buf frame = {0};

    hf__zk_wire_put_int(&frame, (int32_t)(16 + len));
    hf__zk_wire_put_int(&frame, xid);
    hf__zk_wire_put_long(&frame, 7);
    hf__zk_wire_put_int(&frame, error);
    hf__buf_append(&frame, body, len);
    fuzz_core_feed(&zk->stream, frame.text, frame.len);
    hf__buf_release(&frame);
}

/* What the fuzzer wants: a byte that says what, a length, so many bytes. */
static void play(struct hf__zk *zk, const uint8_t *data, size_t size)
{
    static const int32_t errors[] = {0,    0,    0,    0,    -101, -110,
                                     -103, -102, -112, -118, -6,   -4};

    while (size >= 2 && zk->stream.state == HF__STREAM_OPEN) {
        int32_t error = errors[(data[0] >> 2) % HF_COUNT_OF(errors)];
        size_t len = data[1] < size - 2 ? data[1] : size - 2;
        bool first = zk->calls.n > 0;
        int32_t xid = first ? hf__zk_calls_oldest(zk)->xid : 99;

        if ((data[0] & 3) == 3)
            fuzz_core_feed(&zk->stream, data + 2, len);
        else if ((data[0] & 3) == 2)
            feed_frame(zk, -1, 0, data + 2, len);
        else
            feed_frame(zk, xid, error, data + 2, len);
        data += 2 + len;
        size -= 2 + len;
    }
}

/* The same bytes as what each server says to the doctor's four letters. */
static void play_words(struct hf__zk *zk, const uint8_t *data, size_t size)
{
    struct hf__stream *stream = &zk->members.stream;
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
    while (zk->members.query) {
        hf__stream_stop(stream, /* forked= */ false);
        stream->state = HF__STREAM_OPEN;
        stream->opened(stream);
        hf__buf_append(&stream->in, data, size);
        hf__stream_deliver(stream);
        hf__stream_fail(stream, &err);
    }
}

static void run(struct hf__engine *engine, const uint8_t *data, size_t size)
{
    static const char greeting[] = "\0\0\0\x24\0\0\0\0\0\0\x75\x30"
                                   "\0\0\0\0\0\0\0\x01\0\0\0\x10"
                                   "0123456789abcdef";
    struct hf__zk *zk = (struct hf__zk *)engine;

    (void)engine->ops->connect(engine, NULL); /* nobody is there */
    hf__stream_stop(&zk->stream, /* forked= */ false);
    zk->stream.state = HF__STREAM_OPEN;
    zk->stream.io.fd = -1;
    zk->stream.opened(&zk->stream);
    fuzz_core_feed(&zk->stream, greeting, sizeof(greeting) - 1);
    fuzz_core_ask(engine);
    play(zk, data, size);
    if (zk->stream.state == HF__STREAM_OPEN) {
        hf_error err;

        (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
        hf__zk_connection_fail(zk, &err);
    }
    play_words(zk, data, size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_core core;

    if (size == 0)
        return 0;
    fuzz_core_keeps(keeps);
    fuzz_core_hold(data[0] & 4);
    fuzz_core_open(&core, &hf__engine_zookeeper, "zk://127.0.0.1:1/locks",
                   data[0] & 1   ? "curator-semaphore"
                   : data[0] & 2 ? "medallion-rw"
                                 : "",
                   /* mode= */ "");
    run(core.engine, data + 1, size - 1);
    fuzz_core_close(&core);
    return 0;
}
