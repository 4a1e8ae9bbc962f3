/* SPDX-License-Identifier: MIT */
/*
 * etcd_attack_test.c - answers that no etcd would give.
 *
 * A server of our own answers each call with what the test wants, or says bytes
 * that are no HTTP/2 at all. Whatever comes: no crash, no lock, and an end in
 * time.
 */
#include <nghttp2/nghttp2.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "engines/etcd/etcd.h"
#include "etcd.h"
#include "event.h"
#include "sockets.h"

#define QUICKLY "retry.base=1ms&retry.max_interval=20ms"
#define QUICK QUICKLY "&io_timeout=300ms"

/* How a call ends. */
enum end {
    ENDS_WELL,    /* the bytes, and grpc-status 0 */
    ENDS_ILL,     /* grpc-status 14 and no bytes */
    ENDS_MUTE,    /* the bytes, and no status */
    ENDS_BROKEN,  /* HTTP's status 500, whatever else is said */
    ENDS_RESET,   /* in the middle of the bytes */
    ENDS_REFUSED, /* the server has not looked at it */
    ENDS_GONE,    /* nor will it look at any other */
    ENDS_NEVER,   /* nothing is said */
    ENDS_OPEN     /* a stream: the bytes, and it goes on */
};

struct page {
    const char *path;   /* NULL: any */
    struct hf__pb says; /* frames */
    enum end end;
};

enum { PAGES = 4 };

struct fake {
    int fd;
    int port;
    struct page pages[PAGES];
    struct hf__pb bytes; /* said instead of HTTP/2 */
    pthread_t thread;
    _Atomic int requests;
    _Atomic int streams;
    _Atomic int resets; /* of streams by the client, and its ends */
    _Atomic bool stop;
};

#define BYTES(text)                                                            \
    (struct hf__pb)                                                            \
    {                                                                          \
        (text), sizeof(text) - 1                                               \
    }
#define FRAME(len, message) BYTES("\0\0\0\0" len message)

/* header.revision 1, version, leader 7; header, ID 99, TTL 30. */
static const struct hf__pb good_status =
    FRAME("\x0e", "\x0a\x02\x18\x01\x12\x06"
                  "3.4.23"
                  "\x20\x07");
static const struct hf__pb good_lease =
    FRAME("\x08", "\x0a\x02\x18\x01\x10\x63\x18\x1e");

/* ---- the server -------------------------------------------------------- */

/* An answer on its way. */
struct answer {
    const struct page *page;
    size_t at;
};

/* More than are ever under way on one connection. */
enum { ANSWERS = 64 };

struct talk {
    struct fake *fake;
    struct answer answers[ANSWERS];
};

static int on_header(nghttp2_session *session, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_len, const uint8_t *value,
                     size_t len, uint8_t flags, void *ctx)
{
    struct talk *talk = ctx;
    struct answer *answer = &talk->answers[frame->hd.stream_id / 2 % ANSWERS];
    const struct page *page = talk->fake->pages;

    (void)name_len;
    (void)flags;
    if (strcmp((const char *)name, ":path") != 0)
        return 0;
    while (page->path &&
           (strlen(page->path) != len || memcmp(page->path, value, len) != 0))
        page++;
    *answer = (struct answer){.page = page};
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id,
                                                answer);
}

#define HEADER(name, value)                                                    \
    {                                                                          \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value),           \
            strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE                  \
    }

static ssize_t say(nghttp2_session *session, int32_t stream, uint8_t *to,
                   size_t size, uint32_t *flags, nghttp2_data_source *source,
                   void *ctx)
{
    const nghttp2_nv good[] = {HEADER("grpc-status", "0")};
    struct answer *answer = source->ptr;
    const struct page *page = answer->page;
    size_t len = page->says.len - answer->at;

    (void)ctx;
    if (page->end == ENDS_RESET && len <= page->says.len / 2) {
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream,
                                        NGHTTP2_INTERNAL_ERROR);
        return NGHTTP2_ERR_DEFERRED;
    }
    if (page->end == ENDS_RESET)
        len = (len + 1) / 2;
    if (len > size)
        len = size;
    memcpy(to, page->says.bytes + answer->at, len);
    answer->at += len;
    if (page->end == ENDS_OPEN && len == 0)
        return NGHTTP2_ERR_DEFERRED;
    if (answer->at < page->says.len || page->end == ENDS_OPEN)
        return (ssize_t)len;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (page->end == ENDS_WELL || page->end == ENDS_BROKEN) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        (void)nghttp2_submit_trailer(session, stream, good, 1);
    }
    return (ssize_t)len;
}

static void reply(nghttp2_session *session, int32_t stream,
                  struct answer *answer)
{
    const enum end end = answer->page->end;
    const nghttp2_nv headers[] = {
        HEADER(":status", end == ENDS_BROKEN ? "500" : "200"),
        HEADER("content-type", "application/grpc"),
        HEADER("grpc-status", "14"),
        HEADER("grpc-message", "no%20leader%0a%"),
    };
    const nghttp2_data_provider body = {.source = {.ptr = answer},
                                        .read_callback = say};

    if (end == ENDS_NEVER)
        return;
    if (end == ENDS_REFUSED)
        (void)nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream,
                                        NGHTTP2_REFUSED_STREAM);
    else if (end == ENDS_GONE)
        (void)nghttp2_submit_goaway(session, NGHTTP2_FLAG_NONE, stream - 2,
                                    NGHTTP2_NO_ERROR, NULL, 0);
    else if (end == ENDS_ILL)
        (void)nghttp2_submit_response(session, stream, headers, 4, NULL);
    else
        (void)nghttp2_submit_response(session, stream, headers, 2, &body);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                    void *ctx)
{
    struct talk *talk = ctx;
    struct answer *answer =
        nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);

    if (frame->hd.type == NGHTTP2_RST_STREAM)
        atomic_fetch_add(&talk->fake->resets, 1);
    if (!answer)
        return 0;
    if (answer->page->end == ENDS_OPEN && frame->hd.type == NGHTTP2_HEADERS)
        atomic_fetch_add(&talk->fake->streams, 1);
    else if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        atomic_fetch_add(&talk->fake->requests, 1);
    else
        return 0;
    reply(session, frame->hd.stream_id, answer);
    return 0;
}

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static bool flush(nghttp2_session *session, int fd)
{
    const uint8_t *bytes;
    ssize_t n;

    while ((n = nghttp2_session_mem_send(session, &bytes)) > 0) {
        if (!send_all(fd, (const char *)bytes, (size_t)n))
            return false;
    }
    return n == 0;
}

/* Until the peer has gone, or says nothing for two seconds. */
static void speak_http(struct fake *fake, int fd)
{
    struct talk talk = {.fake = fake};
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *session;
    uint8_t bytes[1 << 14];
    ssize_t n = -1;

    if (nghttp2_session_callbacks_new(&callbacks) != 0)
        return;
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    if (nghttp2_session_server_new(&session, callbacks, &talk) == 0) {
        (void)nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, NULL, 0);
        while (flush(session, fd) &&
               (n = recv(fd, bytes, sizeof(bytes), 0)) > 0 &&
               nghttp2_session_mem_recv(session, bytes, (size_t)n) >= 0)
            continue;
        atomic_fetch_add(&fake->resets, n == 0);
        nghttp2_session_del(session);
    }
    nghttp2_session_callbacks_del(callbacks);
}

static void serve(struct fake *fake, int fd)
{
    char bytes[1 << 10];

    if (!hf__pb_there(fake->bytes)) {
        speak_http(fake, fd);
    } else {
        atomic_fetch_add(&fake->requests, 1);
        if (send_all(fd, fake->bytes.bytes, fake->bytes.len)) {
            while (recv(fd, bytes, sizeof(bytes), 0) > 0)
                continue;
        }
    }
    close(fd);
}

struct visitor {
    struct fake *fake;
    int fd;
};

static void *visit(void *arg)
{
    struct visitor *visitor = arg;
    struct timeval patience = {.tv_sec = 2};

    (void)setsockopt(visitor->fd, SOL_SOCKET, SO_RCVTIMEO, &patience,
                     sizeof(patience));
    serve(visitor->fake, visitor->fd);
    free(visitor);
    return NULL;
}

static void *accept_all(void *arg)
{
    struct fake *fake = arg;
    pthread_t threads[256];
    size_t n = 0;

    while (n < 256) {
        struct visitor *visitor = malloc(sizeof(*visitor));
        int fd = accept4(fake->fd, NULL, NULL, SOCK_CLOEXEC);

        if (fd < 0 || !visitor || atomic_load(&fake->stop)) {
            free(visitor);
            if (fd >= 0)
                close(fd);
            break;
        }
        *visitor = (struct visitor){fake, fd};
        if (pthread_create(&threads[n], NULL, visit, visitor) == 0)
            n++;
    }
    while (n > 0)
        (void)pthread_join(threads[--n], NULL);
    return NULL;
}

static void end_fake(void *arg)
{
    struct fake *fake = arg;

    atomic_store(&fake->stop, true);
    (void)shutdown(fake->fd, SHUT_RDWR);
    (void)pthread_join(fake->thread, NULL);
    close(fake->fd);
    free(fake);
}

/* A server that answers with @n @pages; the last has no path, and is for all
 * that is left. It says @bytes instead if they are there. */
static struct fake *start_fake(const struct page *pages, size_t n,
                               struct hf__pb bytes)
{
    struct fake *fake = calloc(1, sizeof(*fake));

    if (!fake)
        FAIL("out of memory");
    for (size_t i = 0; i < n; i++)
        fake->pages[i] = pages[i];
    fake->bytes = bytes;
    fake->fd = socket_listen(&fake->port);
    ASSERT_EQ(pthread_create(&fake->thread, NULL, accept_all, fake), 0);
    test_defer(end_fake, fake);
    return fake;
}

/* ---- greetings ------------------------------------------------------------ */

static void refuses_to_open(struct fake *fake)
{
    hf_client *client;
    hf_error err;
    int rc = hf_open(etcd_url(&fake->port, 1, QUICK "&connect_timeout=300ms"),
                     NULL, &client, &err);

    ASSERT_RC(rc, HF_EUNAVAILABLE, &err);
    EVENTUALLY(atomic_load(&fake->requests) > 0);
}

static void refuses_bytes(struct hf__pb bytes)
{
    refuses_to_open(start_fake(/* pages= */ NULL, 0, bytes));
}

static void refuses_answer(struct hf__pb says, enum end end)
{
    const struct page page = {NULL, says, end};

    refuses_to_open(start_fake(&page, 1, (struct hf__pb){0}));
}

#define SETTINGS "\0\0\0\x04\0\0\0\0\0"

TEST(greeting, that_is_no_http2_is_refused)
{
    refuses_bytes(BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"));
    refuses_bytes(BYTES("\x15\x03\x01\0\x02\x02\x16"));
    refuses_bytes(BYTES("+PONG\r\n+PONG\r\n+PONG\r\n"));
    refuses_bytes(BYTES("\0\0\x08\x06\0\0\0\0\0pingpong"));
    refuses_bytes(BYTES(SETTINGS "\xff\xff\xff\0\0\0\0\0\x01"));
    refuses_bytes(BYTES(SETTINGS "\0\0\x04\x08\0\0\0\0\0\0\0\0\0"));
    /* A push, which we have forbidden. */
    refuses_bytes(BYTES(SETTINGS "\0\0\x05\x05\x04\0\0\0\x01"
                                 "\0\0\0\x02\x88"));
}

TEST(greeting, that_says_nothing_is_refused)
{
    refuses_bytes(BYTES(""));
    refuses_bytes(BYTES(SETTINGS));
}

/* @n times @piece after the settings. */
static struct hf__pb flood(struct hf__buf *buf, struct hf__pb first,
                           struct hf__pb piece, int n)
{
    hf__buf_append(buf, SETTINGS, sizeof(SETTINGS) - 1);
    hf__buf_append(buf, first.bytes, first.len);
    for (int i = 0; i < n; i++)
        hf__buf_append(buf, piece.bytes, piece.len);
    return (struct hf__pb){buf->text, buf->len};
}

static void release(void *buf)
{
    hf__buf_release(buf);
}

TEST(greeting, that_floods_is_refused)
{
    static struct hf__buf pings;
    static struct hf__buf settings;
    static struct hf__buf headers;

    /* The servers that say them end before. */
    test_defer(release, &pings);
    test_defer(release, &settings);
    test_defer(release, &headers);
    refuses_bytes(flood(&pings, BYTES(""),
                        BYTES("\0\0\x08\x06\0\0\0\0\0pingpong"), 50000));
    refuses_bytes(flood(&settings, BYTES(""), BYTES(SETTINGS), 50000));
    /* A head that does not end: each piece says x: x. */
    refuses_bytes(flood(&headers, BYTES("\0\0\x01\x01\0\0\0\0\x01\x88"),
                        BYTES("\0\0\x05\x09\0\0\0\0\x01\0\x01x\x01x"), 50000));
}

TEST(greeting, that_is_no_message_is_refused)
{
    static const struct hf__pb odd[] = {
        BYTES(""),                           /* none */
        BYTES("\0\0\0"),                     /* cut in the head */
        FRAME("\x05", "\x20\x07"),           /* cut */
        FRAME("\x01", "\x20"),               /* a field without value */
        FRAME("\x03", "\x20\x07\x0f"),       /* odd after the leader */
        BYTES("\x01\0\0\0\x02\x20\x07"),     /* compressed */
        BYTES("\0\xff\xff\xff\xff\x20\x07"), /* too long */
        FRAME("\x02", "\x20\x07\0\0\0\0\x02\x20\x07"), /* two */
        BYTES("<html>It works!</html>"),
    };

    for (size_t i = 0; i < HF_COUNT_OF(odd); i++)
        refuses_answer(odd[i], ENDS_WELL);
}

TEST(greeting, that_ends_in_any_other_way_is_refused)
{
    for (int end = ENDS_ILL; end <= ENDS_GONE; end++)
        refuses_answer(good_status, (enum end)end);
}

TEST(greeting, that_is_longer_than_any_answer_is_refused)
{
    size_t len = 20 << 20;
    char *bytes = calloc(1, len);

    if (!bytes)
        FAIL("out of memory");
    test_defer(free, bytes);
    refuses_answer((struct hf__pb){bytes, len}, ENDS_WELL);
    hf__frame_head(bytes, HF__FRAME_MOST);
    refuses_answer((struct hf__pb){bytes, len}, ENDS_WELL);
}

TEST(greeting, without_a_leader_is_refused)
{
    refuses_answer(FRAME("\x08", "\x12\x06"
                                 "3.4.23"),
                   ENDS_WELL);
    refuses_answer(FRAME("\x03", "\x22\x01\x07"), ENDS_WELL); /* no number */
    refuses_answer(FRAME("\0", ""), ENDS_WELL);
}

/* ---- locks ---------------------------------------------------------------- */

/* Nobody may believe to hold a lock after @lease and @txn. */
static void grants_nothing(struct hf__pb lease, struct hf__pb txn, enum end end)
{
    const struct page pages[] = {{HF__CALL_STATUS, good_status, ENDS_WELL},
                                 {HF__CALL_GRANT, lease, ENDS_WELL},
                                 {NULL, txn, end}};
    struct fake *fake =
        start_fake(pages, HF_COUNT_OF(pages), (struct hf__pb){0});
    hf_client *client;
    hf_hold *hold;
    hf_error err;

    ASSERT_OK(hf_open(etcd_url(&fake->port, 1, QUICK), NULL, &client, &err),
              &err);
    ASSERT_NE(hf_acquire(client, "jobs", WITHIN(300), &hold, &err), 0);
    hf_close(client);
}

TEST(grant, by_a_lease_without_number_or_time_is_none)
{
    static const struct hf__pb odd[] = {
        FRAME("\0", ""),                 /* nothing */
        FRAME("\x02", "\x10\x63"),       /* ID 99 */
        FRAME("\x04", "\x10\0\x18\x1e"), /* ID 0, TTL 30 */
        FRAME("\x0d", "\x10\x63\x18\xfb\xff\xff\xff\xff\xff\xff\xff\xff"
                      "\x01"),                     /* TTL -5 */
        FRAME("\x06", "\x12\x01\x63\x1a\x01\x1e"), /* bytes, not numbers */
    };

    for (size_t i = 0; i < HF_COUNT_OF(odd); i++)
        grants_nothing(odd[i], FRAME("\0", ""), ENDS_WELL);
}

TEST(grant, by_a_misshapen_transaction_is_none)
{
    static const struct hf__pb odd[] = {
        FRAME("\0", ""),
        FRAME("\x02", "\x10\x01"),     /* succeeded, and no more */
        FRAME("\x02", "\x18\x07"),     /* responses are a number */
        FRAME("\x03", "\x12\x01\x01"), /* succeeded is bytes */
        /* Failed; our key has a revision that is text. */
        FRAME("\x09", "\x1a\x07\x0a\x05\x12\x03\x12\x01x"),
        /* Succeeded at 9, with somebody before us, and without our key. */
        FRAME("\x0e", "\x0a\x02\x18\x09\x10\x01\x1a\0\x1a\x04\x0a\x02\x12\0"),
    };

    for (size_t i = 0; i < HF_COUNT_OF(odd); i++)
        grants_nothing(good_lease, odd[i], ENDS_WELL);
}

TEST(grant, without_a_revision_is_none)
{
    grants_nothing(good_lease, FRAME("\x06", "\x10\x01\x1a\0\x1a\0"),
                   ENDS_WELL);
    /* Revision -4. */
    grants_nothing(good_lease,
                   FRAME("\x13", "\x0a\x0b\x18\xfc\xff\xff\xff\xff\xff\xff"
                                 "\xff\xff\x01\x10\x01\x1a\0\x1a\0"),
                   ENDS_WELL);
}

/* The transaction that would have granted it, and how its answer was lost. */
TEST(grant, whose_answer_does_not_end_well_is_none)
{
    /* Succeeded at 9; the queue is our key, created at 9. */
    static const struct hf__pb granted =
        FRAME("\x10", "\x0a\x02\x18\x09\x10\x01\x1a\0"
                      "\x1a\x06\x0a\x04\x12\x02\x10\x09");

    for (int end = ENDS_ILL; end <= ENDS_GONE; end++)
        grants_nothing(good_lease, granted, (enum end)end);
}

static void add_field(struct hf__buf *to, uint32_t field, const char *bytes)
{
    hf__pb_add_bytes(to, field, bytes, strlen(bytes));
}

/* The answer to a transaction that put a key at MANY, or found it there, behind
 * MANY - 1 others with @value. */
enum { MANY = HF__ETCD_ROWS + 2 };

static struct hf__pb long_queue(bool put, const char *value)
{
    struct hf__buf to = {0};
    char head[HF__FRAME_HEAD] = {0};
    size_t at;

    hf__buf_append(&to, head, sizeof(head));
    at = hf__pb_begin(&to, HF__ANSWER_HEADER);
    hf__pb_add_number(&to, HF__HEADER_REVISION, MANY);
    hf__pb_end(&to, at);
    hf__pb_add_number(&to, HF__TXN_SUCCEEDED, put);
    for (int i = 0; i < 2; i++) {
        size_t response = hf__pb_begin(&to, HF__TXN_RESPONSES);
        size_t range = hf__pb_begin(&to, HF__OP_RANGE);

        for (uint64_t n = i == 0 ? MANY : 1; n <= MANY; n++) {
            size_t kv = hf__pb_begin(&to, HF__RANGE_KVS);

            hf__pb_add_number(&to, HF__KV_CREATED, n);
            add_field(&to, HF__KV_VALUE, value);
            hf__pb_end(&to, kv);
        }
        hf__pb_end(&to, range);
        hf__pb_end(&to, response);
    }
    hf__frame_head(to.text, to.len - sizeof(head));
    test_defer(free, to.text); /* the server that says it ends before */
    return (struct hf__pb){to.text, to.len};
}

/* What a ticket of @mode is told behind so many with @value. */
static int behind_many(int mode, const char *value, bool put, int64_t wait_ms)
{
    const struct page pages[] = {{HF__CALL_STATUS, good_status, ENDS_WELL},
                                 {HF__CALL_GRANT, good_lease, ENDS_WELL},
                                 {NULL, long_queue(put, value), ENDS_WELL}};
    struct fake *fake =
        start_fake(pages, HF_COUNT_OF(pages), (struct hf__pb){0});
    hf_hold *hold;
    hf_client *client =
        client_open(etcd_url(&fake->port, 1, QUICKLY "&io_timeout=60s"));
    int rc = hf_acquire(
        client, "jobs",
        OPTS(wait_ms, .mode = mode, .slots = mode == HF_SLOT ? 2 * MANY : 0),
        &hold, NULL);

    if (rc == 0)
        hf_hold_unref(hold);
    return rc;
}

/* Such a queue is asked for without a limit: all of it counts. */
TEST(queue, of_more_than_a_list_shows_still_grants)
{
    for (int put = 0; put <= 1; put++) {
        ASSERT_EQ(behind_many(HF_SHARED, "hf1 s 0 1 1", put != 0, -1), 0);
        ASSERT_EQ(behind_many(HF_SLOT, "hf1 n 99999 1 1", put != 0, -1), 0);
        ASSERT_EQ(behind_many(HF_SHARED, "hf1 x 0 1 1", put != 0, 300),
                  HF_ETIMEOUT);
    }
}

/* ---- watches --------------------------------------------------------------- */

/* Created, and a watch of nothing, at 9 and at 10. */
#define MADE_AT_9 "\0\0\0\0\x06\x0a\x02\x18\x09\x18\x01"
#define NONE_AT_9 "\0\0\0\0\x08\x0a\x02\x18\x09\x18\x01\x20\x01"
#define NONE_AT_10 "\0\0\0\0\x08\x0a\x02\x18\x0a\x18\x01\x20\x01"

static int ignore_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    (void)ctx;
    return 0;
}

/* Somebody waits, and every watch is answered with @says: how many there are
 * when there are @at_least and what came then has been answered, and how many
 * requests of transactions. */
static void wait_behind(struct hf__pb says, int at_least, int *ret_watches,
                        int *ret_transactions)
{
    /* Succeeded at 9: our key; "a", created at 5, and our key. */
    static const struct hf__pb queued =
        FRAME("\x1d", "\x0a\x02\x18\x09\x10\x01"
                      "\x1a\x06\x0a\x04\x12\x02\x10\x09"
                      "\x1a\x0d\x0a\x0b\x12\x05\x0a\x01"
                      "a\x10\x05\x12\x02\x10\x09");
    const struct page pages[PAGES] = {{HF__CALL_STATUS, good_status, ENDS_WELL},
                                      {HF__CALL_GRANT, good_lease, ENDS_WELL},
                                      {HF__CALL_WATCH, says, ENDS_OPEN},
                                      {NULL, queued, ENDS_WELL}};
    struct fake *fake = start_fake(pages, PAGES, (struct hf__pb){0});
    hf_client *client =
        client_open(etcd_url(&fake->port, 1, QUICKLY "&io_timeout=60s"));
    hf_request *request = client_start(client, "jobs");

    EVENTUALLY(atomic_load(&fake->streams) >= at_least);
    for (int i = 0; i < 4; i++)
        (void)hf_show(client, "jobs", ignore_row, NULL, NULL);
    *ret_watches = atomic_load(&fake->streams);
    *ret_transactions = atomic_load(&fake->requests) - 6; /* and the others */
    ASSERT_EQ(hf_request_pending(request), 1);
    hf_cancel(request);
    hf_request_free(request);
}

TEST(watch, that_no_write_preceded_is_made_once)
{
    int watches;
    int transactions;

    wait_behind(BYTES(MADE_AT_9 NONE_AT_9), 1, &watches, &transactions);
    ASSERT_EQ(watches, 1);
    ASSERT_EQ(transactions, 1);
    /* Nor is one that nobody says anything more about. */
    wait_behind(BYTES(MADE_AT_9), 1, &watches, &transactions);
    ASSERT_EQ(watches, 1);
    ASSERT_EQ(transactions, 1);
}

TEST(watch, that_a_write_came_before_is_made_again_but_not_for_ever)
{
    int watches;
    int transactions;

    wait_behind(BYTES(MADE_AT_9 NONE_AT_10), 9, &watches, &transactions);
    ASSERT_EQ(watches, 9);
    ASSERT_EQ(transactions, 9);
}

/* As after a permission was taken away; it may be there again. */
TEST(watch, that_is_refused_ends_in_a_look)
{
    int watches;
    int transactions;

    wait_behind(BYTES(NONE_AT_9), 9, &watches, &transactions);
    ASSERT_TRUE(transactions >= 9);
    ASSERT_TRUE(watches <= transactions);
}

TEST(watch, is_late_on_servers_that_were_not_repaired)
{
    static const char *const late[] = {"",       "odd",       "3.3.25",
                                       "3.4.23", "3.4.37",    "3.5.21",
                                       "3.6.1",  "3.6.0-rc.5"};
    static const char *const fixed[] = {"3.4.38", "3.4.99999999999", "3.5.22",
                                        "3.6.2",  "3.7.0",           "4.0.0"};

    for (size_t i = 0; i < HF_COUNT_OF(late); i++)
        ASSERT_TRUE(hf__etcd_wait_is_late(late[i]));
    for (size_t i = 0; i < HF_COUNT_OF(fixed); i++)
        ASSERT_FALSE(hf__etcd_wait_is_late(fixed[i]));
}

/* ---- rows ------------------------------------------------------------------ */

static int count_row(const hf_lock_info *info, void *ctx)
{
    (void)info;
    ++*(int *)ctx;
    return 0;
}

/* What a list is told where the answer is @n keys, and how many rows it gets. */
static int list_keys(size_t n, int *ret_rows)
{
    struct hf__buf kvs = {0};
    struct page pages[2] = {{HF__CALL_STATUS, good_status, ENDS_WELL},
                            {NULL, {0}, ENDS_WELL}};
    char head[HF__FRAME_HEAD] = {0};
    struct fake *fake;
    hf_client *client;
    hf_error err;
    size_t response;
    size_t range;
    int rc;

    hf__buf_append(&kvs, head, sizeof(head));
    response = hf__pb_begin(&kvs, HF__TXN_RESPONSES);
    range = hf__pb_begin(&kvs, HF__OP_RANGE);
    for (size_t i = 0; i < n; i++)
        hf__buf_append(&kvs, "\x12\x00", 2);
    hf__pb_end(&kvs, range);
    hf__pb_end(&kvs, response);
    hf__frame_head(kvs.text, kvs.len - sizeof(head));
    pages[1].says = (struct hf__pb){kvs.text, kvs.len};
    test_defer(free, kvs.text); /* the server that says it ends before */
    fake = start_fake(pages, 2, (struct hf__pb){0});
    ASSERT_OK(hf_open(etcd_url(&fake->port, 1, QUICKLY "&io_timeout=60s"), NULL,
                      &client, &err),
              &err);
    *ret_rows = 0;
    rc = hf_show(client, "jobs", count_row, ret_rows, &err);
    hf_close(client);
    return rc;
}

TEST(list, of_as_many_rows_as_were_asked_for_is_told)
{
    int rows;

    ASSERT_EQ(list_keys(HF__ETCD_ROWS, &rows), 0);
    ASSERT_EQ(rows, HF__ETCD_ROWS);
}

/* Eight million keys of two bytes each, for which we would take 600 bytes. */
TEST(list, of_more_rows_than_were_asked_for_is_refused)
{
    int rows;

    ASSERT_EQ(list_keys(HF__ETCD_ROWS + 1, &rows), HF_EUNAVAILABLE);
    ASSERT_EQ(list_keys(HF__FRAME_MOST / 2, &rows), HF_EUNAVAILABLE);
    ASSERT_EQ(rows, 0);
}

TEST(list, that_nobody_waits_for_any_more_ends)
{
    const struct page pages[2] = {{HF__CALL_STATUS, good_status, ENDS_WELL},
                                  {NULL, {0}, ENDS_NEVER}};
    struct fake *fake = start_fake(pages, 2, (struct hf__pb){0});
    hf_client *client =
        client_open(etcd_url(&fake->port, 1, QUICKLY "&io_timeout=100ms"));
    hf_error err;
    int rows = 0;

    ASSERT_RC(hf_list(client, NULL, count_row, &rows, &err), HF_EUNAVAILABLE,
              &err);
    EVENTUALLY(atomic_load(&fake->resets) > 0);
}
