/* SPDX-License-Identifier: MIT */
/* fuzz_streams.c - streams whose bytes are the fuzzer's. */
#include "fuzz_streams.h"

enum { STREAMS = 64 };

static struct hf__stream *streams[STREAMS];
static bool opened[STREAMS];
static size_t n_streams;

/* ---- the network ----------------------------------------------------------- */

int hf__stream_start(struct hf__stream *stream, hf_error *err)
{
    if (n_streams == STREAMS)
        return hf__fail(err, HF_EUNAVAILABLE, "no more streams");
    stream->state = HF__STREAM_CONNECTING;
    stream->io.fd = -1;
    opened[n_streams] = false;
    streams[n_streams++] = stream;
    return 0;
}

void hf__stream_stop(struct hf__stream *stream, bool forked)
{
    for (size_t i = 0; i < n_streams; i++) {
        if (streams[i] == stream)
            streams[i] = NULL;
    }
    stream->state = HF__STREAM_IDLE;
    if (forked)
        return;
    hf__buf_release(&stream->out);
    hf__buf_release(&stream->in);
    stream->in_at = 0;
}

void hf__stream_flush(struct hf__stream *stream)
{
    (void)stream;
}

ssize_t hf__net_recv(int fd, void *to, size_t size)
{
    (void)fd;
    (void)to;
    (void)size;
    return -1;
}

ssize_t hf__net_send(int fd, const void *from, size_t len)
{
    (void)fd;
    (void)from;
    (void)len;
    return -1;
}

static void open_all(void)
{
    for (size_t i = 0; i < n_streams; i++) {
        struct hf__stream *stream = streams[i];

        if (!stream || opened[i])
            continue;
        opened[i] = true;
        stream->state = HF__STREAM_OPEN;
        stream->opened(stream);
    }
}

static void end(size_t i)
{
    struct hf__stream *stream = i < n_streams ? streams[i] : NULL;
    hf_error err;

    if (!stream)
        return;
    (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
    hf__stream_fail(stream, &err);
}

/* ---- the run --------------------------------------------------------------- */

static void piece(struct hf__engine *engine, const uint8_t *bytes, size_t len)
{
    size_t i = (size_t)(bytes[0] - 'a');

    if (bytes[0] == '~')
        fuzz_core_fire();
    else if (bytes[0] == '^')
        fuzz_core_beat(engine);
    else if (bytes[0] == '!' && len > 1)
        end((size_t)(bytes[1] - 'a'));
    else if (i < n_streams && streams[i])
        fuzz_core_feed(streams[i], bytes + 1, len - 1);
}

void fuzz_streams_run(struct hf__engine *engine, const uint8_t *data,
                      size_t size)
{
    bool asked = false;

    n_streams = 0;
    (void)engine->ops->connect(engine, NULL);
    while (size > 0) {
        const uint8_t *stop = memchr(data, 1, size);
        size_t len = stop ? (size_t)(stop - data) : size;

        open_all();
        if (len > 0)
            piece(engine, data, len);
        if (fuzz_core_connected() && !asked) {
            asked = true;
            fuzz_core_ask(engine);
        }
        len += stop != NULL;
        data += len;
        size -= len;
    }
    for (size_t i = 0; i < n_streams; i++)
        end(i);
}
