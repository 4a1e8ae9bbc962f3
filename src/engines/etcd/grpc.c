/* SPDX-License-Identifier: MIT */
/*
 * grpc.c - gRPC, by nghttp2 over a stream of ours.
 *
 * nghttp2 turns calls into bytes and bytes into callbacks; it knows no socket.
 * Its callbacks only take notes: we report ended calls and streams with news after
 * nghttp2 has returned, because those reports start and stop calls and close
 * connections. A request on a quiet client is one write and
 * one read: head, message and whatever else is to be said leave together.
 *
 * Failure: a connection that breaks ends all its calls. Those whose message has
 * not been handed over, and those that the server says it has not looked at
 * (REFUSED_STREAM, GOAWAY), were certainly not carried out; nobody knows about
 * the others. A server that is leaving counts as gone.
 *
 * What a server sends is bounded: an answer by HF__FRAME_MOST, a message of a
 * stream by MOST_MESSAGE, all that is kept of a connection by MOST_KEPT, headers
 * by nghttp2 (64 KiB), what has to be answered by nghttp2 too (FLOODED).
 */
#include "engines/etcd/grpc.h"

#include <pthread.h>
#include <stdio.h>

#include "base/dynlib.h"

enum {
    MOST_REPLY = HF__FRAME_HEAD + HF__FRAME_MOST,
    MOST_MESSAGE = 4 << 20,
    MOST_KEPT = 2 * MOST_REPLY,
    WINDOW = MOST_REPLY
};

/* ---- the library ------------------------------------------------------- */

#define FROM_NGHTTP2(X)                                                        \
    X(nghttp2_session_callbacks_new)                                           \
    X(nghttp2_session_callbacks_set_on_header_callback)                        \
    X(nghttp2_session_callbacks_set_on_frame_recv_callback)                    \
    X(nghttp2_session_callbacks_set_on_data_chunk_recv_callback)               \
    X(nghttp2_session_callbacks_set_on_stream_close_callback)                  \
    X(nghttp2_option_new)                                                      \
    X(nghttp2_option_set_no_closed_streams)                                    \
    X(nghttp2_session_client_new3)                                             \
    X(nghttp2_session_del)                                                     \
    X(nghttp2_session_mem_recv)                                                \
    X(nghttp2_session_mem_send)                                                \
    X(nghttp2_session_want_read)                                               \
    X(nghttp2_session_want_write)                                              \
    X(nghttp2_session_get_stream_user_data)                                    \
    X(nghttp2_session_set_stream_user_data)                                    \
    X(nghttp2_session_set_local_window_size)                                   \
    X(nghttp2_submit_settings)                                                 \
    X(nghttp2_submit_request)                                                  \
    X(nghttp2_submit_rst_stream)                                               \
    X(nghttp2_http2_strerror)                                                  \
    X(nghttp2_strerror)

static struct {
    FROM_NGHTTP2(HF__DYNLIB_FIELD)
} lib;
static pthread_once_t lib_once = PTHREAD_ONCE_INIT;
static bool lib_there;
static nghttp2_session_callbacks *callbacks;
static nghttp2_option *options;

/* All memory of the library is ours, too. */
static void *take(size_t size, void *unused)
{
    (void)unused;
    return hf__malloc(size);
}

static void *take_zeroed(size_t count, size_t size, void *unused)
{
    (void)unused;
    return hf__calloc(count, size);
}

static void *take_more(void *memory, size_t size, void *unused)
{
    (void)unused;
    return hf__realloc(memory, size);
}

static void give(void *memory, void *unused)
{
    (void)unused;
    hf__free(memory);
}

/* ---- the ends of calls ------------------------------------------------- */

static void set_ended(struct hf__grpc_call *call)
{
    call->stream = 0;
    hf__list_remove(&call->link);
    hf__list_append(&call->grpc->ended, &call->link);
}

/* Without a message the server cannot have carried it out. */
static void end_lost(struct hf__grpc_call *call, int problem, const char *text)
{
    call->code = call->body_at > 0 ? HF__GRPC_LOST : HF__GRPC_UNSENT;
    call->problem = problem;
    hf__text_copy(call->text, sizeof(call->text), text);
    set_ended(call);
}

/* HTTP/2 shall not tell us about it any more. */
static void forget_stream(struct hf__grpc_call *call)
{
    nghttp2_session *session = call->grpc->session;

    if (!session || call->stream == 0)
        return;
    (void)lib.nghttp2_session_set_stream_user_data(session, call->stream, NULL);
    (void)lib.nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE,
                                        call->stream, NGHTTP2_CANCEL);
    call->stream = 0;
}

/* Those that have, or have not, been handed over. */
static void end_all(struct hf__grpc *grpc, bool sent, const hf_error *err)
{
    HF_LIST_EACH(&grpc->active, link) {
        struct hf__grpc_call *call =
            HF_CONTAINER_OF(link, struct hf__grpc_call, link);

        if ((call->body_at > 0) == sent)
            end_lost(call, err->code, err->text);
    }
}

void hf__grpc_close(struct hf__grpc *grpc)
{
    hf__stream_stop(&grpc->stream, /* forked= */ false);
    if (grpc->session)
        lib.nghttp2_session_del(grpc->session);
    grpc->session = NULL;
    grpc->why.code = 0;
    grpc->leaving = false;
    HF_LIST_EACH(&grpc->active, link) {
        HF_CONTAINER_OF(link, struct hf__grpc_call, link)->stream = 0;
    }
}

/* ---- telling ----------------------------------------------------------- */

static struct hf__pb reply_of(const struct hf__grpc_call *call)
{
    return (struct hf__pb){hf__buf_text(&call->reply), call->reply.len};
}

/* What is told is thrown away; what is not stays, at the beginning. */
static void tidy(struct hf__grpc_call *call)
{
    struct hf__buf *reply = &call->reply;

    if (call->reply_at == 0)
        return;
    reply->len -= call->reply_at;
    call->grpc->kept -= call->reply_at;
    memmove(reply->text, reply->text + call->reply_at, reply->len);
    call->reply_at = 0;
}

/* One message of one stream. The call may be gone afterwards. */
static bool tell_message(struct hf__grpc *grpc)
{
    HF_LIST_EACH(&grpc->active, link) {
        struct hf__grpc_call *call =
            HF_CONTAINER_OF(link, struct hf__grpc_call, link);
        struct hf__pb message;
        int rc;

        if (!call->message || call->reply.len == call->reply_at)
            continue;
        rc = hf__frame_next(reply_of(call), &call->reply_at, &message);
        if (rc > 0) {
            call->message(call, message);
            return true;
        }
        tidy(call);
        if (rc < 0) {
            forget_stream(call);
            end_lost(call, HF_EUNAVAILABLE, "an odd message");
        }
    }
    return false;
}

static void tell_ended(struct hf__grpc *grpc)
{
    struct hf__list *link;

    while ((link = hf__list_first(&grpc->ended)) != NULL) {
        struct hf__grpc_call *call =
            HF_CONTAINER_OF(link, struct hf__grpc_call, link);

        hf__list_remove(link);
        call->done(call);
    }
}

/* Tell the owners; each may start and stop calls, and close us. */
static void tell(struct hf__grpc *grpc)
{
    do
        tell_ended(grpc);
    while (tell_message(grpc));
    tell_ended(grpc);
}

static void drop(struct hf__grpc *grpc, const hf_error *err)
{
    hf_error why = *err;

    end_all(grpc, /* sent= */ false, &why);
    end_all(grpc, /* sent= */ true, &why);
    hf__grpc_close(grpc);
    tell(grpc);
    grpc->lost(grpc, &why);
}

/* Where nothing may be told: the loop will. */
static void set_broken(struct hf__grpc *grpc, const hf_error *err)
{
    grpc->why = *err;
    grpc->wake(grpc, hf__now());
}

/* ---- what comes -------------------------------------------------------- */

static struct hf__grpc_call *call_of(nghttp2_session *session, int32_t stream)
{
    return lib.nghttp2_session_get_stream_user_data(session, stream);
}

static bool is(const uint8_t *name, size_t len, const char *wanted)
{
    return len == strlen(wanted) && memcmp(name, wanted, len) == 0;
}

/* nghttp2 has seen to the three digits of the status. */
static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t len, uint8_t flags, void *owner)
{
    struct hf__grpc_call *call = call_of(session, frame->hd.stream_id);

    (void)flags;
    (void)owner;
    if (!call)
        return 0;
    if (is(name, name_len, ":status"))
        call->status =
            100 * (value[0] - '0') + 10 * (value[1] - '0') + value[2] - '0';
    else if (is(name, name_len, "grpc-status"))
        call->code = hf__frame_code(value, len);
    else if (is(name, name_len, "grpc-message"))
        hf__frame_text(value, len, call->text, sizeof(call->text));
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream,
                   const uint8_t *bytes, size_t len, void *owner)
{
    struct hf__grpc_call *call = call_of(session, stream);
    struct hf__grpc *grpc = owner;

    (void)flags;
    if (!call)
        return 0;
    if (call->reply.len + len > (call->message ? MOST_MESSAGE : MOST_REPLY) ||
        grpc->kept + len > MOST_KEPT)
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    hf__buf_append(&call->reply, bytes, len);
    if (hf__buf_failed(&call->reply))
        return NGHTTP2_ERR_CALLBACK_FAILURE;
    grpc->kept += len;
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *owner)
{
    struct hf__grpc *grpc = owner;

    (void)session;
    if (frame->hd.type == NGHTTP2_GOAWAY)
        grpc->leaving = true;
    return 0;
}

static int on_close(nghttp2_session *session, int32_t stream, uint32_t error,
                    void *owner)
{
    struct hf__grpc_call *call = call_of(session, stream);
    char text[HF__GRPC_TEXT];

    (void)owner;
    if (!call)
        return 0;
    if (call->code >= 0) {
        set_ended(call);
        return 0;
    }
    if (call->status != 0 && call->status != 200)
        (void)snprintf(text, sizeof(text), "HTTP status %d", call->status);
    else
        (void)snprintf(text, sizeof(text), "no answer to a call: %s",
                       lib.nghttp2_http2_strerror(error));
    end_lost(call, HF_EUNAVAILABLE, text);
    if (error == NGHTTP2_REFUSED_STREAM)
        call->code = HF__GRPC_UNSENT;
    return 0;
}

static void received(struct hf__stream *stream)
{
    struct hf__grpc *grpc = HF_CONTAINER_OF(stream, struct hf__grpc, stream);
    const char *bytes = stream->in.text + stream->in_at;
    size_t len = stream->in.len - stream->in_at;
    ssize_t n = lib.nghttp2_session_mem_recv(grpc->session,
                                             (const uint8_t *)bytes, len);
    hf_error err;

    stream->in_at = stream->in.len;
    if (n < 0)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "it does not speak gRPC: %s",
                       lib.nghttp2_strerror((int)n));
    else if (grpc->leaving)
        (void)hf__fail(&err, HF_EUNAVAILABLE, "the server is shutting down");
    else if (!lib.nghttp2_session_want_read(grpc->session))
        (void)hf__fail(&err, HF_EUNAVAILABLE, "it does not speak gRPC");
    else {
        tell(grpc);
        return;
    }
    drop(grpc, &err);
}

/* ---- what is sent ------------------------------------------------------ */

static ssize_t read_body(nghttp2_session *session, int32_t stream, uint8_t *to,
                         size_t size, uint32_t *flags,
                         nghttp2_data_source *source, void *owner)
{
    struct hf__grpc_call *call = call_of(session, stream);
    size_t len;

    (void)source;
    (void)owner;
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    len = call->body.len - call->body_at;
    if (len == 0)
        return NGHTTP2_ERR_DEFERRED; /* a stream says no more, and stays open */
    if (len > size)
        len = size;
    memcpy(to, call->body.text + call->body_at, len);
    call->body_at += len;
    if (call->body_at == call->body.len && !call->message)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)len;
}

void hf__grpc_flush(struct hf__grpc *grpc)
{
    struct hf__stream *stream = &grpc->stream;
    const uint8_t *bytes;
    hf_error err;
    ssize_t n;

    if (!grpc->session || grpc->why.code != 0 ||
        stream->state != HF__STREAM_OPEN ||
        !lib.nghttp2_session_want_write(grpc->session))
        return;
    while ((n = lib.nghttp2_session_mem_send(grpc->session, &bytes)) > 0)
        hf__buf_append(&stream->out, bytes, (size_t)n);
    if (n < 0 || hf__buf_failed(&stream->out)) {
        (void)hf__fail(&err, HF_EUNAVAILABLE, "no memory to send");
        set_broken(grpc, &err);
        return;
    }
    hf__stream_flush(stream);
    if (!hf__list_empty(&grpc->ended)) /* a stream that could not begin */
        grpc->wake(grpc, hf__now());
}

static void opened(struct hf__stream *stream)
{
    hf__grpc_flush(HF_CONTAINER_OF(stream, struct hf__grpc, stream));
}

static void closed(struct hf__stream *stream, const hf_error *err)
{
    drop(HF_CONTAINER_OF(stream, struct hf__grpc, stream), err);
}

/* Our side of a new connection. */
static int greet(struct hf__grpc *grpc)
{
    static const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
    };
    nghttp2_mem memory = {.malloc = take,
                          .free = give,
                          .calloc = take_zeroed,
                          .realloc = take_more};
    nghttp2_session *session = NULL;

    if (lib.nghttp2_session_client_new3(&session, callbacks, grpc, options,
                                        &memory) != 0)
        return HF_ENOMEM;
    grpc->session = session;
    if (lib.nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings,
                                    HF_COUNT_OF(settings)) == 0 &&
        lib.nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0,
                                                  WINDOW) == 0)
        return 0;
    hf__grpc_close(grpc);
    return HF_ENOMEM;
}

static int connect_now(struct hf__grpc *grpc, hf_error *err)
{
    hf_error why;
    int rc;

    if (grpc->session)
        return 0;
    if (greet(grpc) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__stream_start(&grpc->stream, &why);
    if (rc == HF_ENOMEM) {
        hf__grpc_close(grpc);
        return hf__fail_pass(err, &why);
    }
    if (rc != 0)
        set_broken(grpc, &why);
    return 0;
}

/* ---- calls ------------------------------------------------------------- */

static const char no_head[HF__FRAME_HEAD];

static void forget_reply(struct hf__grpc_call *call)
{
    call->grpc->kept -= call->reply.len;
    call->reply.len = 0;
    call->reply_at = 0;
}

struct hf__grpc_call *hf__grpc_call_new(struct hf__grpc *grpc)
{
    struct hf__grpc_call *call = hf__calloc(1, grpc->call_size);

    if (!call)
        return NULL;
    call->grpc = grpc;
    hf__list_init(&call->link);
    hf__buf_append(&call->body, no_head, sizeof(no_head));
    return call;
}

static void write_head(struct hf__grpc_call *call)
{
    size_t len = call->body.len - call->head_at - HF__FRAME_HEAD;

    hf__frame_head(call->body.text + call->head_at, len);
}

void hf__grpc_call_next(struct hf__grpc_call *call)
{
    if (hf__buf_failed(&call->body))
        return; /* hf__grpc_start() says so */
    write_head(call);
    call->head_at = call->body.len;
    hf__buf_append(&call->body, no_head, sizeof(no_head));
}

void hf__grpc_call_grown(struct hf__grpc_call *call)
{
    assert(call->body_at == 0);
    write_head(call);
}

static void call_free(struct hf__grpc_call *call)
{
    hf__buf_release(&call->body);
    hf__buf_release(&call->reply);
    hf__free(call);
}

#define HEADER(name, value, length, flags)                                     \
    (nghttp2_nv)                                                               \
    {                                                                          \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value),           \
            strlen(name), (length), NGHTTP2_NV_FLAG_NO_COPY_NAME | (flags)     \
    }
#define LASTING(name, value)                                                   \
    HEADER(name, value, strlen(value), NGHTTP2_NV_FLAG_NO_COPY_VALUE)

static int32_t submit(struct hf__grpc_call *call, const char *path)
{
    struct hf__grpc *grpc = call->grpc;
    const nghttp2_data_provider body = {.read_callback = read_body};
    const nghttp2_nv headers[] = {
        LASTING(":method", "POST"),
        LASTING(":scheme", grpc->stream.peer.tls ? "https" : "http"),
        LASTING(":path", path),
        LASTING(":authority", grpc->name),
        LASTING("content-type", "application/grpc"),
        LASTING("te", "trailers"),
        HEADER("token", grpc->token, strlen(grpc->token), 0),
    };
    size_t n = HF_COUNT_OF(headers) - (grpc->token[0] == '\0');

    return lib.nghttp2_submit_request(grpc->session, NULL, headers, n, &body,
                                      call);
}

/* A connection has a thousand million calls in it; then there is another. */
static int not_submitted(struct hf__grpc_call *call, hf_error *err)
{
    struct hf__grpc *grpc = call->grpc;
    bool out_of_memory = call->stream == NGHTTP2_ERR_NOMEM;
    hf_error why;

    call->stream = 0;
    if (out_of_memory)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    (void)hf__fail(&why, HF_EUNAVAILABLE, "the connection is used up");
    set_broken(grpc, &why);
    return hf__fail_pass(err, &why);
}

int hf__grpc_start(struct hf__grpc_call *call, const char *path,
                   int64_t timeout_ms, hf_error *err)
{
    struct hf__grpc *grpc = call->grpc;
    int rc;

    if (hf__buf_failed(&call->body))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = connect_now(grpc, err);
    if (rc != 0)
        return rc;
    write_head(call);
    call->body_at = 0;
    forget_reply(call);
    call->status = 0;
    call->code = HF__GRPC_LOST;
    call->text[0] = '\0';
    call->sent_ns = hf__now();
    call->due_ns =
        timeout_ms > 0 ? call->sent_ns + hf__ms_to_ns(timeout_ms) : HF_NEVER;
    call->stream = submit(call, path);
    if (call->stream < 0)
        return not_submitted(call, err);
    hf__list_append(&grpc->active, &call->link);
    if (call->due_ns != HF_NEVER)
        grpc->wake(grpc, call->due_ns);
    return 0;
}

void hf__grpc_stop(struct hf__grpc_call *call)
{
    if (!call)
        return;
    forget_stream(call);
    forget_reply(call);
    hf__list_remove(&call->link);
    call_free(call);
}

int64_t hf__grpc_due(struct hf__grpc *grpc, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    if (grpc->why.code != 0) {
        drop(grpc, &grpc->why);
        return HF_NEVER;
    }
    HF_LIST_EACH(&grpc->active, link) {
        struct hf__grpc_call *call =
            HF_CONTAINER_OF(link, struct hf__grpc_call, link);

        if (call->due_ns <= now_ns) {
            forget_stream(call);
            end_lost(call, HF_EUNAVAILABLE, "no answer in time");
        } else if (call->due_ns < next_ns) {
            next_ns = call->due_ns;
        }
    }
    tell(grpc);
    return next_ns;
}

/* ---- beginning and end ------------------------------------------------- */

HF__DYNLIB_NOTE(nghttp2, "etcd", "suggested", "\"libnghttp2.so.14\"");

static void load_lib(void)
{
    static const char *const names[] = {FROM_NGHTTP2(HF__DYNLIB_NAME)};

    if (!hf__dynlib_load("libnghttp2.so.14", names, HF_COUNT_OF(names), &lib) ||
        lib.nghttp2_session_callbacks_new(&callbacks) != 0 ||
        lib.nghttp2_option_new(&options) != 0)
        return;
    lib.nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    lib.nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                             on_frame);
    lib.nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                                  on_data);
    lib.nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                               on_close);
    lib.nghttp2_option_set_no_closed_streams(options, 1);
    lib_there = true;
}

int hf__grpc_load(hf_error *err)
{
    (void)pthread_once(&lib_once, load_lib);
    return lib_there ? 0
                     : hf__fail(err, HF_EUNSUPPORTED,
                                "etcd needs libnghttp2.so.14: apt install "
                                "libnghttp2-14");
}

void hf__grpc_init(struct hf__grpc *grpc)
{
    grpc->stream.opened = opened;
    grpc->stream.received = received;
    grpc->stream.closed = closed;
    hf__list_init(&grpc->active);
    hf__list_init(&grpc->ended);
}

static void free_calls(struct hf__list *calls)
{
    struct hf__list *link;

    while ((link = hf__list_first(calls)) != NULL) {
        hf__list_remove(link);
        call_free(HF_CONTAINER_OF(link, struct hf__grpc_call, link));
    }
}

void hf__grpc_release(struct hf__grpc *grpc, bool forked)
{
    if (forked) {
        hf__stream_stop(&grpc->stream, forked);
        return;
    }
    hf__grpc_close(grpc);
    free_calls(&grpc->active);
    free_calls(&grpc->ended);
}
