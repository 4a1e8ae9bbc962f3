/* SPDX-License-Identifier: MIT */
/*
 * memcached_reply_fuzz.c - a Memcached server that says anything.
 *
 * The engine is real, and so are its calls; what the server says is a list of
 * bytes: below 15 a well-formed answer, below 48 an item of one of our tickets
 * under some number, above so many raw bytes. The core is fuzz_core.c.
 */
#include <stdio.h>

#include "engines/memcached/memcached.h"
#include "fuzz_core.h"

enum { ITEMS = 15, RAW = 48 };

static const char *const answers[ITEMS] = {
    "HD\r\n",
    "NS\r\n",
    "EX\r\n",
    "NF\r\n",
    "EN\r\n",
    "STORED\r\n",
    "NOT_STORED\r\n",
    "EXISTS\r\n",
    "NOT_FOUND\r\n",
    "STAT uptime 3\r\n",
    "STAT evictions 7\r\n",
    "END\r\n",
    "ERROR\r\n",
    "SERVER_ERROR out of memory storing object\r\n",
    "VERSION 1.6.18\r\n",
};

/* Of ticket 1 … 6, the last of which nobody has. */
static void feed_item(struct hf__stream *stream, unsigned what)
{
    char item[128];
    int n = snprintf(item, sizeof(item),
                     "VA 44 c%u\r\n0123456789abcdef0123456789abcdef%012x\r\n",
                     what / 6, what % 6 + 1);

    fuzz_core_feed(stream, item, (size_t)n);
}

static void say(struct hf__stream *stream, const uint8_t *data, size_t size)
{
    while (size > 0 && stream->state == HF__STREAM_OPEN) {
        uint8_t what = *data;
        size_t raw = what < RAW ? 0 : what - RAW;

        data++;
        size--;
        if (raw > size)
            raw = size;
        if (what < ITEMS)
            fuzz_core_feed(stream, answers[what], strlen(answers[what]));
        else if (what < RAW)
            feed_item(stream, what - (unsigned)ITEMS);
        else
            fuzz_core_feed(stream, data, raw);
        data += raw;
        size -= raw;
    }
}

static void run(struct hf__engine *engine, const uint8_t *data, size_t size)
{
    static const char greeting[] = "VERSION 1.6.18\r\nEND\r\n";
    struct hf__memcached *memcached = (struct hf__memcached *)engine;
    hf_error err;

    memcached->stream.peer.path = "/nowhere/at/all";
    (void)engine->ops->connect(engine, NULL); /* there is no such socket */
    memcached->stream.state = HF__STREAM_OPEN;
    memcached->stream.io.fd = -1;
    memcached->stream.opened(&memcached->stream);
    if (data[0] & 2) { /* the greeting is the fuzzer's, too */
        say(&memcached->stream, data + 1, size - 1);
    } else {
        fuzz_core_feed(&memcached->stream, greeting, sizeof(greeting) - 1);
        CHECK(fuzz_core_connected());
        fuzz_core_ask(engine);
        say(&memcached->stream, data + 1, size - 1);
    }
    if (memcached->stream.state == HF__STREAM_OPEN) {
        (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
        hf__memcached_connection_fail(memcached, &err);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_core core;

    if (size == 0)
        return 0;
    fuzz_core_keeps(NULL);
    fuzz_core_open(&core, &hf__engine_memcached, "memcached://127.0.0.1:1",
                   data[0] & 1 ? "tooz" : "", "");
    run(core.engine, data, size);
    fuzz_core_close(&core);
    return 0;
}
