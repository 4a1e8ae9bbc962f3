/* SPDX-License-Identifier: MIT */
/*
 * raw_etcd.c - what one member can do at most by gRPC, for ./dev bench etcd.
 *
 *     raw_etcd pair SECONDS PORT
 *
 * A pair is a transaction that creates a key with a lease if it is not there
 * and reads the queue, and one that compares its revision and deletes it: what
 * a lock needs at least. nghttp2 on a blocking socket, one connection,
 * preformatted but for the lease and the revision.
 */
#include <nghttp2/nghttp2.h>

#include "raw.h"

static nghttp2_session *session;
static int fd;
static const char *body; /* to be sent */
static size_t body_len;
static char answer[1 << 16];
static size_t answer_len;
static int answered;
static int good;

static void fail(const char *why)
{
    fprintf(stderr, "raw_etcd: %s\n", why);
    exit(1);
}

static ssize_t read_body(nghttp2_session *of, int32_t stream, uint8_t *to,
                         size_t size, uint32_t *flags,
                         nghttp2_data_source *source, void *ctx)
{
    (void)of;
    (void)stream;
    (void)source;
    (void)ctx;
    if (body_len > size)
        fail("a long request");
    memcpy(to, body, body_len);
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)body_len;
}

static int on_header(nghttp2_session *of, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t len, uint8_t flags, void *ctx)
{
    (void)of;
    (void)frame;
    (void)flags;
    (void)ctx;
    if (name_len == 11 && memcmp(name, "grpc-status", 11) == 0)
        good = len == 1 && value[0] == '0';
    return 0;
}

static int on_data(nghttp2_session *of, uint8_t flags, int32_t stream,
                   const uint8_t *bytes, size_t len, void *ctx)
{
    (void)of;
    (void)flags;
    (void)stream;
    (void)ctx;
    if (answer_len + len > sizeof(answer))
        fail("a long answer");
    memcpy(answer + answer_len, bytes, len);
    answer_len += len;
    return 0;
}

static int on_close(nghttp2_session *of, int32_t stream, uint32_t error,
                    void *ctx)
{
    (void)of;
    (void)stream;
    (void)error;
    (void)ctx;
    answered = 1;
    return 0;
}

/* All that there is to send, in one write. */
static void flush(void)
{
    char out[1 << 16];
    size_t len = 0;
    const uint8_t *bytes;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(session, &bytes)) > 0) {
        if (len + (size_t)n > sizeof(out))
            fail("a long request");
        memcpy(out + len, bytes, (size_t)n);
        len += (size_t)n;
    }
    if (len > 0 && send(fd, out, len, 0) != (ssize_t)len)
        fail("cannot send");
}

#define HEADER(name, value)                                                    \
    {                                                                          \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value),           \
            strlen(name), strlen(value),                                       \
            NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE       \
    }

/* One call: @message has five bytes of room before it. */
static void call(const char *path, char *message, size_t len)
{
    static uint8_t in[1 << 14];
    const nghttp2_nv headers[] = {
        HEADER(":method", "POST"),
        HEADER(":scheme", "http"),
        HEADER(":path", path),
        HEADER(":authority", "127.0.0.1"),
        HEADER("content-type", "application/grpc"),
        HEADER("te", "trailers"),
    };
    const nghttp2_data_provider provider = {.read_callback = read_body};

    memset(message, 0, 3);
    message[3] = (char)(len >> 8);
    message[4] = (char)len;
    body = message;
    body_len = len + 5;
    answer_len = 0;
    answered = 0;
    if (nghttp2_submit_request(session, NULL, headers, 6, &provider, NULL) < 0)
        fail("no memory");
    flush();
    while (!answered) {
        ssize_t n = recv(fd, in, sizeof(in), 0);

        if (n <= 0 || nghttp2_session_mem_recv(session, in, (size_t)n) < 0)
            fail("the connection broke");
    }
    if (!good || answer_len < 5)
        fail("an error");
}

/* ---- protobuf ---------------------------------------------------------- */

static char *add_number(char *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *to++ = (char)(number | 0x80);
    *to++ = (char)number;
    return to;
}

/* The number in @field of @message; of bytes, their place in *at. */
static uint64_t field_of(const char *message, const char *end, unsigned field,
                         const char **at)
{
    while (message < end) {
        unsigned tag = (unsigned char)*message++;
        uint64_t number = 0;
        int shift = 0;

        do {
            number |= (uint64_t)(*message & 0x7f) << shift;
            shift += 7;
        } while (*message++ & 0x80);
        if (tag >> 3 == field) {
            *at = message;
            return number;
        }
        if ((tag & 7) == 2)
            message += number;
    }
    *at = end;
    return 0;
}

/* ---- the pair ---------------------------------------------------------- */

static uint64_t lease;

#define ADD(at, text)                                                          \
    (memcpy(at, text, sizeof(text) - 1), (at) + sizeof(text) - 1)

/* The key is "raw/1", the queue "raw/" to "raw0". Those of its parts whose
 * length depends on the lease or the revision are written here. */
static void pair(void)
{
    char message[256];
    char part[64];
    char *end;
    char *at;
    const char *header;
    uint64_t revision;
    uint64_t len;

    /* compare: target CREATE, key, create_revision 0 */
    at = ADD(message + 5, "\x0a\x0b\x10\x01\x1a\x05raw/1\x28\x00");
    /* success: put key, value, lease */
    end = ADD(part, "\x0a\x05raw/1\x12\x01x\x18");
    end = add_number(end, lease);
    at = ADD(at, "\x12");
    at = add_number(at, (uint64_t)(end - part) + 2);
    at = ADD(at, "\x12");
    at = add_number(at, (uint64_t)(end - part));
    memcpy(at, part, (size_t)(end - part));
    at += end - part;
    /* and the last two of the queue: DESCEND by CREATE */
    at = ADD(at, "\x12\x14\x0a\x12\x0a\x04raw/\x12\x04raw0\x18\x02\x28\x02"
                 "\x30\x02");
    call("/etcdserverpb.KV/Txn", message, (size_t)(at - message) - 5);
    len = field_of(answer + 5, answer + answer_len, 1, &header);
    revision = field_of(header, header + len, 3, &header);

    /* compare: target CREATE, key, create_revision */
    end = ADD(part, "\x10\x01\x1a\x05raw/1\x28");
    end = add_number(end, revision);
    at = ADD(message + 5, "\x0a");
    at = add_number(at, (uint64_t)(end - part));
    memcpy(at, part, (size_t)(end - part));
    at += end - part;
    /* success: delete it */
    at = ADD(at, "\x12\x09\x1a\x07\x0a\x05raw/1");
    call("/etcdserverpb.KV/Txn", message, (size_t)(at - message) - 5);
    if (field_of(answer + 5, answer + answer_len, 2, &header) != 1)
        fail("not deleted");
}

static void connect_to(int port)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_option *option = NULL;

    fd = dial_tcp(port);
    if (nghttp2_session_callbacks_new(&callbacks) != 0 ||
        nghttp2_option_new(&option) != 0)
        fail("no memory");
    /* Answered, the member would send one with every call. */
    nghttp2_option_set_no_auto_ping_ack(option, 1);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                              on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    if (nghttp2_session_client_new2(&session, callbacks, NULL, option) != 0 ||
        nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0) != 0)
        fail("no memory");
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

int main(int argc, char **argv)
{
    struct samples *samples = samples_new();
    char grant[] = "12345\x08\x3c"; /* TTL 60 */
    const char *unused;
    uint64_t end;

    if (argc != 4 || strcmp(argv[1], "pair") != 0) {
        fprintf(stderr, "usage: raw_etcd pair SECONDS PORT\n");
        return 64;
    }
    connect_to(atoi(argv[3]));
    call("/etcdserverpb.Lease/LeaseGrant", grant, 2);
    lease = field_of(answer + 5, answer + answer_len, 2, &unused);
    for (int i = 0; i < 20; i++)
        pair();
    end = end_of(atof(argv[2]));
    for (uint64_t at = now_ns(); at < end;) {
        uint64_t before = at;

        pair();
        at = now_ns();
        sample(samples, at - before);
    }
    print("pair", (double)samples->n / atof(argv[2]), samples);
    nghttp2_session_del(session);
    close(fd);
    return 0;
}
