/* SPDX-License-Identifier: MIT */
/*
 * etcd_server_fuzz.c - an etcd server that says anything.
 *
 * The engine is real, and so are its calls, by nghttp2. The fuzzer says what the
 * server does with each of them: a message and a good end, a message of a
 * stream, an error, a reset; or frames of HTTP/2 of its own making; or it lets
 * time pass. The core is fuzz_core.c.
 */
#include "engines/etcd/etcd.h"
#include "fuzz_core.h"

/* Frames of HTTP/2. */
enum { DATA = 0, HEADERS = 1, RESET = 3, SETTINGS = 4, GOAWAY = 7 };
enum { END_STREAM = 1, END_HEADERS = 4 };

/* What a byte of the input means, by its lowest three bits. */
enum {
    ANSWERS = 0, /* and 1: a call, with a message */
    BEAT = 2,    /* the core renews */
    SAYS = 3,    /* a message of a stream, which goes on */
    REFUSES = 4, /* with a code of gRPC */
    BYTES = 5,   /* as they are */
    TIME = 6,
    MISCHIEF = 7 /* a reset, the server leaves, we connect again */
};

static int64_t now_ns;

static int64_t tell_time(void)
{
    return now_ns;
}

static bool keeps(struct hf__engine *engine, struct hf__ticket *ticket)
{
    return hf__etcd_ticket((struct hf__etcd *)engine, ticket)->state !=
           HF__ETCD_IDLE;
}

/* ---- the server ------------------------------------------------------------ */

static void add_frame(struct hf__buf *to, int type, int flags, int32_t stream,
                      const void *payload, size_t len)
{
    const char head[9] = {
        (char)(len >> 16),    (char)(len >> 8),    (char)len,
        (char)type,           (char)flags,         (char)(stream >> 24),
        (char)(stream >> 16), (char)(stream >> 8), (char)stream};

    hf__buf_append(to, head, sizeof(head));
    hf__buf_append(to, payload, len);
}

/* ":status: 200", by its number in HPACK's table. */
static void add_head(struct hf__buf *to, int32_t stream)
{
    add_frame(to, HEADERS, END_HEADERS, stream, "\x88", 1);
}

static void add_message(struct hf__buf *to, int32_t stream, const uint8_t *data,
                        size_t len)
{
    char framed[HF__FRAME_HEAD + 256];

    hf__frame_head(framed, len);
    memcpy(framed + HF__FRAME_HEAD, data, len);
    add_frame(to, DATA, 0, stream, framed, HF__FRAME_HEAD + len);
}

/* The trailers; with @alone they are the head, too. */
static void add_end(struct hf__buf *to, int32_t stream, int code, bool alone)
{
    struct hf__buf head = {0};
    char digits[12];

    (void)snprintf(digits, sizeof(digits), "%d", code);
    if (alone)
        hf__buf_append(&head, "\x88", 1);
    hf__buf_append(&head, "\0\x0bgrpc-status", 13);
    hf__buf_add_char(&head, (char)strlen(digits));
    hf__buf_add(&head, digits);
    add_frame(to, HEADERS, END_HEADERS | END_STREAM, stream, head.text,
              head.len);
    hf__buf_release(&head);
}

/* A call under way, the first ones most often; NULL: none. */
static struct hf__grpc_call *choose(struct hf__etcd *etcd, int which,
                                    bool stream)
{
    struct hf__grpc_call *chosen = NULL;

    HF_LIST_EACH(&etcd->grpc.active, link) {
        struct hf__grpc_call *call =
            HF_CONTAINER_OF(link, struct hf__grpc_call, link);

        if ((call->message != NULL) != stream || call->stream <= 0)
            continue;
        chosen = call;
        if (which-- == 0)
            break;
    }
    return chosen;
}

/* The connection is there as soon as it is wanted; what is sent goes nowhere. */
static void connect_now(struct hf__etcd *etcd)
{
    struct hf__stream *stream = &etcd->grpc.stream;

    if (!etcd->grpc.session)
        return;
    if (stream->state != HF__STREAM_OPEN) {
        hf__stream_stop(stream, /* forked= */ false);
        stream->state = HF__STREAM_OPEN;
        stream->io.fd = -1;
        stream->watched = EPOLLIN;
        stream->opened(stream);
        if (stream->state == HF__STREAM_OPEN)
            fuzz_core_feed(stream, "\0\0\0\x04\0\0\0\0\0", 9);
    }
    hf__grpc_flush(&etcd->grpc);
}

static void feed(struct hf__etcd *etcd, const struct hf__buf *bytes)
{
    connect_now(etcd);
    if (etcd->grpc.session)
        fuzz_core_feed(&etcd->grpc.stream, bytes->text, bytes->len);
    connect_now(etcd);
}

/* One thing that happens: @data is what the fuzzer gives for it. */
static void happen(struct hf__etcd *etcd, int what, const uint8_t *data,
                   size_t len)
{
    int which = what >> 3;
    struct hf__grpc_call *call = choose(etcd, which, (what & 7) == SAYS);
    struct hf__buf bytes = {0};
    int32_t stream = call ? call->stream : 1;

    switch (what & 7) {
    case BEAT:
        fuzz_core_beat(&etcd->base);
        break;
    case SAYS:
        if (call && call->status == 0)
            add_head(&bytes, stream);
        add_message(&bytes, stream, data, len);
        break;
    case REFUSES:
        add_end(&bytes, stream, len > 0 ? data[0] % 20 : 14, /* alone= */ true);
        break;
    case BYTES:
        hf__buf_append(&bytes, data, len);
        break;
    case TIME:
        now_ns += (int64_t)(len + 1) * 100 * HF_MS;
        fuzz_core_fire();
        break;
    case MISCHIEF:
        if (len % 3 == 0)
            add_frame(&bytes, RESET, 0, stream, "\0\0\0\x07", 4);
        else if (len % 3 == 1)
            add_frame(&bytes, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
        else if (etcd->connection == HF__ETCD_DOWN)
            (void)etcd->base.ops->connect(&etcd->base, NULL);
        break;
    default:
        add_head(&bytes, stream);
        add_message(&bytes, stream, data, len);
        add_end(&bytes, stream, 0, /* alone= */ false);
        break;
    }
    if (bytes.len > 0)
        feed(etcd, &bytes);
    else
        connect_now(etcd);
    hf__buf_release(&bytes);
}

/* ---- the run --------------------------------------------------------------- */

/* A byte that says what, a length, so many bytes. */
static void play(struct hf__etcd *etcd, const uint8_t *data, size_t size)
{
    while (size >= 2) {
        size_t len = data[1] < size - 2 ? data[1] : size - 2;

        happen(etcd, data[0], data + 2, len);
        data += 2 + len;
        size -= 2 + len;
    }
}

static void end_all(struct hf__etcd *etcd)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "the end");
    hf__etcd_connection_fail(etcd, &err);
    HF_LIST_EACH(&etcd->others, link) {
        (void)hf__grpc_due(
            &HF_CONTAINER_OF(link, struct hf__etcd_other, link)->grpc,
            HF_NEVER);
    }
}

static void run(struct hf__engine *engine, bool user, const uint8_t *data,
                size_t size)
{
    static const uint8_t token[] = "\x12\x03key";
    static const uint8_t status[] = "\x20\x07";
    struct hf__etcd *etcd = (struct hf__etcd *)engine;

    CHECK(engine->ops->connect(engine, NULL) == 0);
    connect_now(etcd);
    if (user)
        happen(etcd, ANSWERS, token, sizeof(token) - 1);
    happen(etcd, ANSWERS, status, sizeof(status) - 1);
    CHECK(fuzz_core_connected());
    fuzz_core_ask(engine);
    connect_now(etcd);
    play(etcd, data, size);
    end_all(etcd);
}

/* The first byte chooses: with a user (odd); two members (2); locks stay held
 * (4). */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const urls[] = {
        "etcd://127.0.0.1:1", "etcd://u:p@127.0.0.1:1",
        "etcd://127.0.0.1:1,127.0.0.1:2", "etcd://u:p@127.0.0.1:1,127.0.0.1:2"};
    struct fuzz_core core;

    if (size == 0)
        return 0;
    fuzz_core_clock(tell_time);
    now_ns = HF_SECOND;
    fuzz_core_keeps(keeps);
    fuzz_core_hold(data[0] & 4);
    fuzz_core_open(&core, &hf__engine_etcd, urls[data[0] & 3],
                   /* dialect= */ "",
                   /* mode= */ "");
    CHECK(hf__loop_init(&core.loop) == 0);
    run(core.engine, data[0] & 1, data + 1, size - 1);
    fuzz_core_close(&core);
    fuzz_core_clock(NULL);
    return 0;
}
