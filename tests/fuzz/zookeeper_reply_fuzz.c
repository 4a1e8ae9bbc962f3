/* SPDX-License-Identifier: MIT */
/*
 * zookeeper_reply_fuzz.c - a ZooKeeper server that says anything.
 *
 * The engine is real, and so are its calls. The fuzzer says what the server
 * answers to each of them: an error, a body, an event, or bytes that are no
 * frame at all. The core is played here, and gives tickets back as soon as their
 * end is reported, so that a stale use of one is seen.
 */
#include "config.h"
#include "engine.h"
#include "engines/zookeeper/zookeeper.h"
#include "fuzz.h"

enum { TICKETS = 5, QUERIES = 5 };

static struct hf__ticket *tickets[TICKETS];
static struct hf__query queries[QUERIES];
static bool answered[QUERIES];
static bool leaving[TICKETS];

static int place_of(const struct hf__ticket *ticket)
{
    for (int i = 0; i < TICKETS; i++) {
        if (tickets[i] == ticket)
            return i;
    }
    abort(); /* a ticket that was given back */
}

static void gone(struct hf__ticket *ticket)
{
    tickets[place_of(ticket)] = NULL;
    free(ticket);
}

/* ---- the core ------------------------------------------------------------ */

static void on_connected(void *owner, struct hf__engine *engine)
{
    (void)owner;
    (void)engine;
}

static void on_down(void *owner, struct hf__engine *engine, const hf_error *err)
{
    (void)owner;
    (void)engine;
    CHECK(err->code < 0 && err->text[0]);
}

static void on_granted(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    struct hf__engine *engine = owner;

    CHECK(grant->tokens == 1 && grant->lease_ms <= ticket->ttl_ms);
    CHECK(!leaving[place_of(ticket)]);
    ticket->token = grant->token;
    leaving[place_of(ticket)] = true;
    (void)engine->ops->release(engine, ticket, NULL);
}

static void on_queued(void *owner, struct hf__ticket *ticket)
{
    struct hf__engine *engine = owner;

    (void)engine->ops->renew(engine, &ticket, 1, NULL);
}

static void on_busy(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                    const char *holder)
{
    (void)owner;
    (void)again_ns;
    CHECK(!holder || strlen(holder) < 1000);
    gone(ticket);
}

static void on_failed(void *owner, struct hf__ticket *ticket,
                      const hf_error *err)
{
    (void)owner;
    CHECK(err->code < 0);
    gone(ticket);
}

static void on_unknown(void *owner, struct hf__ticket *ticket,
                       const hf_error *err)
{
    struct hf__engine *engine = owner;

    CHECK(err->code < 0);
    leaving[place_of(ticket)] = true;
    (void)engine->ops->withdraw(engine, ticket, NULL);
}

static void on_renewed(void *owner, struct hf__ticket *ticket,
                       const struct hf__grant *grant)
{
    (void)owner;
    (void)place_of(ticket);
    CHECK(grant->lease_ms <= ticket->ttl_ms);
}

static void on_lost(void *owner, struct hf__ticket *ticket, int reason)
{
    struct hf__engine *engine = owner;

    CHECK(reason >= 0 && reason < HF__LOST_REASONS);
    if (hf__zk_ticket(owner, ticket)->path) {
        leaving[place_of(ticket)] = true; /* lost its place: not wanted */
        (void)engine->ops->withdraw(engine, ticket, NULL);
    } else {
        gone(ticket);
    }
}

static void on_left(void *owner, struct hf__ticket *ticket, int rc)
{
    (void)owner;
    CHECK(rc == 0 || rc == HF_ELOST);
    CHECK(leaving[place_of(ticket)]);
    gone(ticket);
}

static void on_answer(void *owner, struct hf__query *query, int rc,
                      const hf_error *err)
{
    size_t i = (size_t)(query - queries);

    (void)owner;
    (void)err;
    CHECK(i < QUERIES && !answered[i] && rc <= 0);
    answered[i] = true;
}

static const struct hf__engine_up up = {
    .connected = on_connected,
    .down = on_down,
    .granted = on_granted,
    .queued = on_queued,
    .busy = on_busy,
    .failed = on_failed,
    .unknown = on_unknown,
    .renewed = on_renewed,
    .lost = on_lost,
    .left = on_left,
    .answer = on_answer,
};

static void timer(const struct hf__engine_host *host, struct hf__timer *which,
                  int64_t due_ns)
{
    (void)host;
    (void)which;
    (void)due_ns;
}

/* ---- the run --------------------------------------------------------------- */

static void ask(struct hf__engine *engine, int i)
{
    struct hf__ticket *ticket =
        calloc(1, sizeof(*ticket) + engine->ops->ticket_size);

    CHECK(ticket);
    ticket->id = (uint64_t)i + 1;
    ticket->name = "jobs";
    ticket->name_len = 4;
    ticket->reserve = 1;
    ticket->mode = i % 3;
    ticket->slots = i % 3 == HF_SLOT ? 2 : 0;
    ticket->ttl_ms = 30000;
    ticket->owner = "fuzz";
    ticket->note = "";
    ticket->nowait = i == 1;
    tickets[i] = ticket;
    leaving[i] = false;
    if (engine->ops->acquire(engine, ticket, NULL) != 0)
        gone(ticket);
}

static void ask_all(struct hf__engine *engine)
{
    static hf__engine_query_fn *const asks[QUERIES] = {
        hf__zk_list, hf__zk_check_token, hf__zk_version_commit, hf__zk_list,
        hf__zk_doctor};

    for (int i = 0; i < TICKETS; i++)
        ask(engine, i);
    for (int i = 0; i < QUERIES; i++) {
        memset(&queries[i], 0, sizeof(queries[i]));
        queries[i].name = i == 3 ? NULL : "jobs";
        queries[i].prefix = "";
        queries[i].token = 7;
        queries[i].rows = NULL;
        answered[i] = asks[i](engine, &queries[i], NULL) != 0;
    }
}

static void feed(struct hf__zk *zk, const void *bytes, size_t len)
{
    struct hf__stream *stream = &zk->stream;

    if (stream->state != HF__STREAM_OPEN || len == 0)
        return;
    hf__buf_append(&stream->in, bytes, len);
    stream->received(stream);
    if (stream->state != HF__STREAM_OPEN)
        return;
    memmove(stream->in.text, stream->in.text + stream->in_at,
            stream->in.len - stream->in_at);
    stream->in.len -= stream->in_at;
    stream->in_at = 0;
    stream->out.len = 0; /* nobody reads it */
}

/* One frame: @head of a reply, then @len bytes. */
static void feed_frame(struct hf__zk *zk, int32_t xid, int32_t error,
                       const uint8_t *body, size_t len)
{
    struct hf__buf frame = {0};

    hf__jute_put_int(&frame, (int32_t)(16 + len));
    hf__jute_put_int(&frame, xid);
    hf__jute_put_long(&frame, 7);
    hf__jute_put_int(&frame, error);
    hf__buf_append(&frame, body, len);
    feed(zk, frame.text, frame.len);
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
        bool first = zk->calls_n > 0;
        int32_t xid = first ? zk->calls[zk->calls_first].xid : 99;

        if ((data[0] & 3) == 3)
            feed(zk, data + 2, len);
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
    struct hf__stream *stream = &zk->words.stream;
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
    while (zk->words.query) {
        hf__stream_stop(stream, /* forked= */ false);
        stream->state = HF__STREAM_OPEN;
        stream->opened(stream);
        hf__buf_append(&stream->in, data, size);
        stream->received(stream);
        hf__stream_stop(stream, /* forked= */ false);
        stream->closed(stream, &err);
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
    feed(zk, greeting, sizeof(greeting) - 1);
    ask_all(engine);
    play(zk, data, size);
    if (zk->stream.state == HF__STREAM_OPEN) {
        hf_error err;

        (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
        hf__zk_fail(zk, &err);
    }
    play_words(zk, data, size);
    for (int i = 0; i < QUERIES; i++)
        CHECK(answered[i]);
}

int hf__query_add_lock(struct hf__query *query, const hf_lock_info *row)
{
    (void)query;
    CHECK(row->name && row->owner && row->host && row->note);
    return 0;
}

int hf__query_add_finding(struct hf__query *query, int status,
                          const char *check, const char *fix,
                          const char *detail_format, ...)
{
    (void)query;
    CHECK(status >= 0 && check && fix && detail_format);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hf__loop loop;
    hf_config *config = hf_config_new();
    struct hf__settings settings = {0};
    struct hf__url *url = NULL;
    struct hf__engine_host host = {
        .loop = &loop,
        .identity_hex = "0123456789abcdef0123456789abcdef",
        .host = "here",
        .pid = 1,
        .timer = timer,
    };
    struct hf__engine *engine;

    if (size == 0)
        goto out;
    CHECK(config && hf__config_resolve(config, &settings, NULL) == 0);
    if (data[0] & 3) {
        free(settings.dialect);
        settings.dialect =
            strdup(data[0] & 1 ? "curator-semaphore" : "medallion-rw");
    }
    CHECK(hf__url_parse("zk://127.0.0.1:1/locks", &url, NULL) == 0);
    host.settings = &settings;
    host.url = url;
    engine = calloc(1, hf__engine_zookeeper.size);
    CHECK(engine);
    engine->ops = &hf__engine_zookeeper;
    engine->host = &host;
    engine->up = &up;
    engine->up_owner = engine;
    engine->ticket_offset = sizeof(struct hf__ticket);
    CHECK(engine->ops->open(engine, NULL) == 0);
    run(engine, data + 1, size - 1);
    engine->ops->close(engine, false);
    free(engine);
    for (int i = 0; i < TICKETS; i++) {
        free(tickets[i]);
        tickets[i] = NULL;
    }
out:
    hf__url_free(url);
    hf__settings_release(&settings);
    hf_config_free(config);
    return 0;
}
