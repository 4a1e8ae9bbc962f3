/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection to the server, and the calls under way on it.
 *
 * Answers come in the order of the commands, so the calls are a ring. The
 * greeting asks for the version and the settings: a server before 1.6 has no
 * meta commands, and one that was started without item numbers (-C) cannot
 * delete what is ours and nothing else.
 *
 * Failure: something that is no answer, or none to the command that is under
 * way, an answer overdue or too long, the end of the stream: the connection is dropped, each call is told so in order, then the
 * core. Item numbers start again with the server, so none is believed on
 * another connection than that on which it was told (epoch).
 */
#include <stdio.h>
#include <stdlib.h>

#include "engines/memcached/memcached.h"

/* ---- the ring of calls -------------------------------------------------- */

static struct hf__memcached_call *call_at(const struct hf__memcached *memcached,
                                          uint32_t i)
{
    return &memcached->calls[(memcached->calls_first + i) &
                             (memcached->calls_size - 1)];
}

static int grow_calls(struct hf__memcached *memcached)
{
    uint32_t size = memcached->calls_size ? memcached->calls_size * 2 : 64;
    struct hf__memcached_call *calls = hf__malloc(size * sizeof(*calls));

    if (!calls)
        return HF_ENOMEM;
    for (uint32_t i = 0; i < memcached->calls_n; i++)
        calls[i] = *call_at(memcached, i);
    hf__free(memcached->calls);
    memcached->calls = calls;
    memcached->calls_size = size;
    memcached->calls_first = 0;
    return 0;
}

static void take_call(struct hf__memcached *memcached)
{
    memcached->calls_first =
        (memcached->calls_first + 1) & (memcached->calls_size - 1);
    memcached->base.under_way = --memcached->calls_n;
}

int hf__memcached_sent(struct hf__memcached *memcached, size_t mark,
                       const struct hf__memcached_call *call, hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    int64_t io_ms = memcached->base.host->settings->io_timeout_ms;
    struct hf__memcached_call *place;

    if (hf__buf_failed(out) || (memcached->calls_n == memcached->calls_size &&
                                grow_calls(memcached) != 0)) {
        out->failed = false;
        out->len = mark;
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    place = call_at(memcached, memcached->calls_n++);
    *place = *call;
    place->sent_ns = hf__now();
    memcached->base.under_way = memcached->calls_n;
    if (memcached->calls_n == 1)
        hf__memcached_wake(memcached, place->sent_ns + hf__ms_to_ns(io_ms));
    return 0;
}

void hf__memcached_forget(struct hf__memcached *memcached,
                          const struct hf__ticket *ticket)
{
    for (uint32_t i = 0; i < memcached->calls_n; i++) {
        struct hf__memcached_call *call = call_at(memcached, i);

        if (call->ticket == ticket)
            call->ticket = NULL;
    }
}

/* ---- the end of a connection -------------------------------------------- */

void hf__memcached_explain_lost(const struct hf__memcached *memcached,
                                hf_error *err)
{
    (void)hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                   memcached->peer);
}

void hf__memcached_disconnect(struct hf__memcached *memcached, bool forked)
{
    hf__stream_stop(&memcached->stream, forked);
    memcached->up = false;
}

static void down(struct hf__memcached *memcached, const hf_error *err)
{
    hf_error told = *err;

    hf__memcached_disconnect(memcached, /* forked= */ false);
    memcached->epoch++;
    while (memcached->calls_n > 0) {
        struct hf__memcached_call call = *call_at(memcached, 0);

        take_call(memcached);
        call.done(memcached, &call, /* meta= */ NULL);
    }
    if (strncmp(told.text, memcached->peer, strlen(memcached->peer)) != 0)
        (void)hf__fail_in(&told, told.code, "%s", memcached->peer);
    hf__up_down(&memcached->base, &told);
}

void hf__memcached_fail(struct hf__memcached *memcached, const hf_error *err)
{
    if (memcached->in_received) {
        memcached->may_close = true; /* the stream is in use above us */
        memcached->fatal = *err;
        return;
    }
    down(memcached, err);
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    down(HF_CONTAINER_OF(stream, struct hf__memcached, stream), err);
}

/* ---- reading ------------------------------------------------------------ */

static void not_memcached(struct hf__memcached *memcached)
{
    hf_error err;

    (void)hf__fail(&err, memcached->up ? HF_EUNAVAILABLE : HF_ECONFIG,
                   "%s: what answers is not Memcached", memcached->peer);
    hf__memcached_fail(memcached, &err);
}

/* Is it an answer to the first call? Others must not see it: they take apart
 * what has another shape. */
static bool is_answer(struct hf__memcached *memcached,
                      const struct hf__meta *meta)
{
    struct hf__memcached_call *first;

    if (memcached->calls_n == 0)
        return false;
    first = call_at(memcached, 0);
    if (((unsigned)first->answers & 1u << meta->kind) == 0)
        return false;
    return meta->kind != HF__META_STAT ||
           ++first->lines <= HF__MEMCACHED_LINES_MAX;
}

/* One whole answer, if there is one. */
static bool take_answer(struct hf__memcached *memcached)
{
    struct hf__stream *stream = &memcached->stream;
    const char *from = stream->in.text + stream->in_at;
    struct hf__memcached_call call;
    struct hf__meta meta;
    size_t used = 0;
    int rc = hf__meta_parse(from, stream->in.len - stream->in_at, &meta, &used);

    if (rc == HF__META_BAD ||
        (rc == HF__META_WHOLE && !is_answer(memcached, &meta)))
        not_memcached(memcached);
    if (rc != HF__META_WHOLE || memcached->may_close)
        return false;
    stream->in_at += used;
    call = *call_at(memcached, 0);
    if (meta.kind != HF__META_STAT)
        take_call(memcached);
    call.done(memcached, &call, &meta);
    return !memcached->may_close && stream->in_at < stream->in.len;
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__memcached *memcached =
        HF_CONTAINER_OF(stream, struct hf__memcached, stream);

    memcached->in_received = true;
    while (take_answer(memcached))
        continue;
    memcached->in_received = false;
    if (memcached->may_close) {
        memcached->may_close = false;
        down(memcached, &memcached->fatal);
    }
}

/* ---- greeting ----------------------------------------------------------- */

static void refuse(struct hf__memcached *memcached, int code, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", memcached->peer, why);
    hf__memcached_fail(memcached, &err);
}

static void on_version(struct hf__memcached *memcached,
                       const struct hf__memcached_call *call,
                       const struct hf__meta *meta)
{
    char *end;
    long major;
    long minor;

    (void)call;
    if (!meta)
        return;
    if (meta->kind != HF__META_VERSION) {
        not_memcached(memcached);
        return;
    }
    (void)snprintf(memcached->version, sizeof(memcached->version), "%.*s",
                   (int)(meta->text_len < 20 ? meta->text_len : 20),
                   meta->text);
    major = strtol(memcached->version, &end, 10);
    minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major < 1 || (major == 1 && minor < 6))
        refuse(memcached, HF_EUNSUPPORTED,
               "too old: Memcached 1.6 or later is needed");
}

static void on_settings(struct hf__memcached *memcached,
                        const struct hf__memcached_call *call,
                        const struct hf__meta *meta)
{
    char value[8];

    (void)call;
    if (!meta || memcached->may_close)
        return;
    if (hf__meta_stat(meta, "cas_enabled", value, sizeof(value)) &&
        strcmp(value, "no") == 0)
        refuse(memcached, HF_EUNSUPPORTED,
               "it was started with -C: without item numbers nobody can "
               "delete only his own lock");
    if (meta->kind == HF__META_STAT || memcached->may_close)
        return;
    if (meta->kind == HF__META_ERROR) {
        refuse(memcached, HF_EAUTH, "it wants a password; we know none");
        return;
    }
    memcached->up = true;
    hf__up_connected(&memcached->base);
}

static int ask(struct hf__memcached *memcached, hf__memcached_reply_fn *done,
               enum hf__memcached_answers answers, const char *line)
{
    struct hf__memcached_call call = {.done = done, .answers = answers};
    size_t mark = memcached->stream.out.len;

    hf__buf_add(&memcached->stream.out, line);
    return hf__memcached_sent(memcached, mark, &call, /* err= */ NULL);
}

static void stream_opened(struct hf__stream *stream)
{
    struct hf__memcached *memcached =
        HF_CONTAINER_OF(stream, struct hf__memcached, stream);
    hf_error err;

    if (ask(memcached, on_version, HF__MEMCACHED_VERSION, "version\r\n") == 0 &&
        ask(memcached, on_settings, HF__MEMCACHED_STATS,
            "stats settings\r\n") == 0)
        return;
    (void)hf__fail(&err, HF_ENOMEM, "out of memory");
    down(memcached, &err);
}

int hf__memcached_connect(struct hf__memcached *memcached, hf_error *err)
{
    int64_t most_ms = memcached->base.host->settings->connect_timeout_ms;
    int rc;

    memcached->stream.opened = stream_opened;
    memcached->stream.received = stream_received;
    memcached->stream.closed = stream_closed;
    memcached->connect_ns = hf__now();
    rc = hf__stream_start(&memcached->stream, err);
    if (rc != 0)
        return hf__fail_in(err, rc, "%s", memcached->peer);
    hf__memcached_wake(memcached,
                       memcached->connect_ns + hf__ms_to_ns(most_ms));
    return 0;
}
