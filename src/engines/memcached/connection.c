/* SPDX-License-Identifier: MIT */
/*
 * connection.c - one connection to the server, and the calls under way on it.
 *
 * Answers come in the order of the commands. The greeting asks for the version
 * and the settings: a server before 1.6 has no meta commands, and one that was
 * started without item numbers (-C) cannot delete only what is ours.
 *
 * Failure: bytes that are no answer to the command under way, an answer that is
 * overdue or too long, or the end of the stream drop the connection. Each call
 * gets no answer, in order; then the core learns of it. A restarted server
 * numbers its items anew,
 * so we believe one only on the connection on which we learned it (epoch).
 */
#include <stdio.h>
#include <stdlib.h>

#include "engines/memcached/memcached.h"

/* ---- calls -------------------------------------------------------------- */

/* The oldest one gets no more answers. */
static void take_call(struct hf__memcached *memcached,
                      struct hf__memcached_call *ret_call)
{
    (void)hf__calls_take(&memcached->calls, ret_call);
    memcached->base.under_way = memcached->calls.n;
}

int hf__memcached_connection_sent(struct hf__memcached *memcached, size_t mark,
                                  const struct hf__memcached_call *call,
                                  hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    int64_t io_ms = memcached->base.host->settings->io_timeout_ms;
    struct hf__memcached_call *added =
        hf__buf_failed(out) ? NULL : hf__calls_add(&memcached->calls, call);

    if (!added) {
        out->failed = false;
        out->len = mark;
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    added->sent_ns = hf__now();
    memcached->base.under_way = memcached->calls.n;
    if (memcached->calls.n == 1)
        hf__link_wake(&memcached->link, added->sent_ns + hf__ms_to_ns(io_ms));
    return 0;
}

void hf__memcached_connection_forget(struct hf__memcached *memcached,
                                     const struct hf__ticket *ticket)
{
    for (uint32_t i = 0; i < memcached->calls.n; i++) {
        struct hf__memcached_call *call = hf__calls_at(&memcached->calls, i);

        if (call->ticket == ticket)
            call->ticket = NULL;
    }
}

/* ---- the end of a connection -------------------------------------------- */

void hf__memcached_connection_explain_lost(
    const struct hf__memcached *memcached, hf_error *err)
{
    (void)hf__fail(err, HF_EUNAVAILABLE, "%s: the connection was lost",
                   memcached->peer);
}

int hf__memcached_connection_not_up(const struct hf__memcached *memcached,
                                    hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected", memcached->peer);
}

void hf__memcached_connection_stop(struct hf__memcached *memcached, bool forked)
{
    hf__stream_stop(&memcached->stream, forked);
    memcached->up = false;
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    struct hf__memcached *memcached =
        HF_CONTAINER_OF(stream, struct hf__memcached, stream);
    hf_error told = *err;

    hf__memcached_connection_stop(memcached, /* forked= */ false);
    memcached->epoch++;
    while (memcached->calls.n > 0) {
        struct hf__memcached_call call;

        take_call(memcached, &call);
        call.done(memcached, &call, /* meta= */ NULL);
    }
    if (strncmp(told.text, memcached->peer, strlen(memcached->peer)) != 0)
        (void)hf__fail_in(&told, told.code, "%s", memcached->peer);
    hf__up_down(&memcached->base, &told);
}

void hf__memcached_connection_fail(struct hf__memcached *memcached,
                                   const hf_error *err)
{
    hf__stream_fail(&memcached->stream, err);
}

/* ---- reading ------------------------------------------------------------ */

static void not_memcached(struct hf__memcached *memcached)
{
    hf_error err;

    (void)hf__fail(&err, memcached->up ? HF_EUNAVAILABLE : HF_ECONFIG,
                   "%s: what answers is not Memcached", memcached->peer);
    hf__memcached_connection_fail(memcached, &err);
}

/* Is it an answer to the first call? Others must not see it: they take apart
 * what has another shape. */
static bool is_answer(struct hf__memcached *memcached,
                      const struct hf__meta *meta)
{
    struct hf__memcached_call *first;

    if (memcached->calls.n == 0)
        return false;
    first = hf__memcached_connection_oldest(memcached);
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
    int rc = hf__memcached_wire_parse(from, stream->in.len - stream->in_at,
                                      &meta, &used);

    if (rc == HF__META_BAD ||
        (rc == HF__META_WHOLE && !is_answer(memcached, &meta)))
        not_memcached(memcached);
    if (rc != HF__META_WHOLE || memcached->stream.failed)
        return false;
    stream->in_at += used;
    if (meta.kind == HF__META_STAT) /* more lines of this answer follow */
        call = *hf__memcached_connection_oldest(memcached);
    else
        take_call(memcached, &call);
    call.done(memcached, &call, &meta);
    return !memcached->stream.failed && stream->in_at < stream->in.len;
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__memcached *memcached =
        HF_CONTAINER_OF(stream, struct hf__memcached, stream);

    while (take_answer(memcached))
        continue;
}

/* ---- greeting ----------------------------------------------------------- */

static void refuse(struct hf__memcached *memcached, int code, const char *why)
{
    hf_error err;

    (void)hf__fail(&err, code, "%s: %s", memcached->peer, why);
    hf__memcached_connection_fail(memcached, &err);
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
    if (!meta || memcached->stream.failed)
        return;
    if (hf__memcached_wire_stat(meta, "cas_enabled", value, sizeof(value)) &&
        strcmp(value, "no") == 0)
        refuse(memcached, HF_EUNSUPPORTED,
               "it was started with -C: without item numbers nobody can "
               "delete only his own lock");
    if (meta->kind == HF__META_STAT || memcached->stream.failed)
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
    return hf__memcached_connection_sent(memcached, mark, &call,
                                         /* err= */ NULL);
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
    hf__memcached_connection_fail(memcached, &err);
}

int hf__memcached_connection_start(struct hf__memcached *memcached,
                                   hf_error *err)
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
    hf__link_wake(&memcached->link,
                  memcached->connect_ns + hf__ms_to_ns(most_ms));
    return 0;
}
