/* SPDX-License-Identifier: MIT */
/*
 * http.c - libcurl's multi interface on our loop.
 *
 * libcurl tells which descriptors and which instant it waits for; we tell it
 * when they are there. Its callbacks only take notes: what has ended and which
 * stream has news is told after libcurl has returned, because whoever is told
 * starts and stops calls, which libcurl forbids inside its callbacks. Easy
 * handles are kept with their call, connections by the multi handle, so a
 * request on a quiet client is one write and one read.
 *
 * Sockets are opened and closed by us: they do not survive an exec, and a
 * forked child can close them without touching libcurl, which may be half-way
 * through something. (The two descriptors that the library opens for
 * curl_multi_wakeup() are out of our reach.) It never uses signals, a proxy of
 * the environment, redirects, or another protocol than the one asked for.
 *
 * Failure: a call that gets no answer ends with status 0, and a text. Answers
 * longer than HF__HTTP_REPLY are cut off, and count as none.
 */
#include "engines/etcd/http.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/dynlib.h"

/* ---- the library ------------------------------------------------------- */

#define FROM_CURL(X)                                                           \
    X(curl_global_init)                                                        \
    X(curl_slist_append)                                                       \
    X(curl_slist_free_all)                                                     \
    X(curl_easy_init)                                                          \
    X(curl_easy_setopt)                                                        \
    X(curl_easy_getinfo)                                                       \
    X(curl_easy_cleanup)                                                       \
    X(curl_easy_strerror)                                                      \
    X(curl_multi_init)                                                         \
    X(curl_multi_setopt)                                                       \
    X(curl_multi_cleanup)                                                      \
    X(curl_multi_add_handle)                                                   \
    X(curl_multi_remove_handle)                                                \
    X(curl_multi_socket_action)                                                \
    X(curl_multi_info_read)

/* The header's macros check arguments at each call by their own names. */
#undef curl_easy_setopt
#undef curl_easy_getinfo
#undef curl_multi_setopt

static struct {
    FROM_CURL(HF__DYNLIB_FIELD)
} curl;
static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static bool curl_there;

static void load_curl(void)
{
    static const char *const names[] = {FROM_CURL(HF__DYNLIB_NAME)};

    curl_there =
        hf__dynlib_load("libcurl.so.4", names, HF_COUNT_OF(names), &curl) &&
        curl.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
}

enum { MOST_RUNS = 8 }; /* of libcurl in a row */

/* ---- sockets ----------------------------------------------------------- */

struct http_socket {
    struct hf__list link;
    struct hf__io io;
    struct hf__http *http;
    bool ours; /* opened by open_socket() */
};

static void run(struct hf__http *http, curl_socket_t fd, int events);

static void socket_ready(struct hf__io *io, uint32_t events)
{
    struct http_socket *socket = HF_CONTAINER_OF(io, struct http_socket, io);
    int what = 0;

    if (events & (EPOLLIN | EPOLLHUP))
        what |= CURL_CSELECT_IN;
    if (events & EPOLLOUT)
        what |= CURL_CSELECT_OUT;
    if (events & EPOLLERR)
        what |= CURL_CSELECT_ERR;
    run(socket->http, io->fd, what);
}

static struct http_socket *socket_find(struct hf__http *http, curl_socket_t fd)
{
    HF_LIST_EACH(&http->sockets, link) {
        struct http_socket *socket =
            HF_CONTAINER_OF(link, struct http_socket, link);

        if (socket->io.fd == fd)
            return socket;
    }
    return NULL;
}

static struct http_socket *socket_new(struct hf__http *http, curl_socket_t fd,
                                      bool ours)
{
    struct http_socket *socket = hf__calloc(1, sizeof(*socket));

    if (!socket)
        return NULL;
    socket->http = http;
    socket->io.fd = fd;
    socket->io.ready = socket_ready;
    socket->ours = ours;
    hf__list_append(&http->sockets, &socket->link);
    return socket;
}

static void socket_free(struct http_socket *socket)
{
    hf__io_stop(socket->http->host->loop, &socket->io);
    hf__list_remove(&socket->link);
    hf__free(socket);
}

static curl_socket_t open_socket(void *ctx, curlsocktype purpose,
                                 struct curl_sockaddr *address)
{
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC,
                    address->protocol);

    (void)purpose;
    if (fd < 0)
        return CURL_SOCKET_BAD;
    if (!socket_new(ctx, fd, /* ours= */ true)) {
        (void)close(fd);
        return CURL_SOCKET_BAD;
    }
    return fd;
}

static int close_socket(void *ctx, curl_socket_t fd)
{
    struct http_socket *socket = socket_find(ctx, fd);

    if (socket)
        socket_free(socket);
    return close(fd);
}

/* libcurl's word for what it waits for at @fd. */
static int on_socket(CURL *easy, curl_socket_t fd, int what, void *ctx,
                     void *unused)
{
    static const uint32_t events[] = {
        [CURL_POLL_IN] = EPOLLIN,
        [CURL_POLL_OUT] = EPOLLOUT,
        [CURL_POLL_INOUT] = EPOLLIN | EPOLLOUT,
    };
    struct hf__http *http = ctx;
    struct http_socket *socket = socket_find(http, fd);

    (void)easy;
    (void)unused;
    if (what == CURL_POLL_REMOVE) {
        if (socket && socket->ours)
            hf__io_stop(http->host->loop, &socket->io);
        else if (socket)
            socket_free(socket);
        return 0;
    }
    if (!socket)
        socket = socket_new(http, fd, /* ours= */ false);
    if (!socket || what < CURL_POLL_IN || what > CURL_POLL_INOUT)
        return -1;
    if (socket->io.slot != 0)
        return hf__io_change(http->host->loop, &socket->io, events[what]);
    return hf__io_start(http->host->loop, &socket->io, events[what]);
}

/* libcurl's word for when it wants to run. It changes with every call; a timer
 * that fires too early does no harm, but moving it wakes a thread. */
static int on_timer(CURLM *multi, long ms, void *ctx)
{
    struct hf__http *http = ctx;
    int64_t due_ns = hf__now() + ms * HF_MS;

    (void)multi;
    http->due |= ms == 0;
    if (ms > 0 &&
        (!hf__timer_running(&http->timer) || http->timer.due_ns > due_ns))
        http->host->timer(http->host, &http->timer, due_ns);
    return 0;
}

/* ---- what has come ----------------------------------------------------- */

static size_t on_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
    struct hf__http_call *call = ctx;

    if (call->reply.len + size * n > HF__HTTP_REPLY)
        return 0;
    hf__buf_append(&call->reply, bytes, size * n);
    call->fresh = true;
    return hf__buf_failed(&call->reply) ? 0 : size * n;
}

static int problem_of(CURLcode code)
{
    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_ISSUER_ERROR:
        return HF_EAUTH;
    case CURLE_SSL_CACERT_BADFILE:
        return HF_ECONFIG;
    case CURLE_OUT_OF_MEMORY:
        return HF_ENOMEM;
    default:
        return HF_EUNAVAILABLE;
    }
}

static void set_ended(struct hf__http_call *call, CURLcode code)
{
    struct hf__http *http = call->http;

    (void)curl.curl_multi_remove_handle(http->multi, call->easy);
    call->active = false;
    call->status = 0;
    if (code == CURLE_OK)
        (void)curl.curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE,
                                     &call->status);
    if (call->status == 0) {
        call->problem = problem_of(code);
        if (call->text[0] == '\0')
            hf__text_copy(call->text, sizeof(call->text),
                          curl.curl_easy_strerror(code));
    }
    hf__list_remove(&call->link);
    hf__list_append(&http->ended, &call->link);
}

/* The lines of a stream that are complete. The call may be gone after each. */
static bool tell_line(struct hf__http *http)
{
    HF_LIST_EACH(&http->active, link) {
        struct hf__http_call *call =
            HF_CONTAINER_OF(link, struct hf__http_call, link);
        const char *from = hf__buf_text(&call->reply) + call->read;
        const char *end;

        if (!call->line || !call->fresh)
            continue;
        end = memchr(from, '\n', call->reply.len - call->read);
        if (end) {
            call->read += (size_t)(end - from) + 1;
            call->line(call, from, (size_t)(end - from));
            return true;
        }
        call->fresh = false;
        if (call->read == call->reply.len) {
            call->reply.len = 0;
            call->read = 0;
        }
    }
    return false;
}

static bool anything_new(struct hf__http *http)
{
    CURLMsg *message;
    int left;

    while ((message = curl.curl_multi_info_read(http->multi, &left)) != NULL) {
        struct hf__http_call *call = NULL;
        CURLcode code = message->data.result;

        (void)curl.curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE,
                                     &call);
        set_ended(call, code);
    }
    if (!hf__list_empty(&http->ended))
        return true;
    HF_LIST_EACH(&http->active, link) {
        if (HF_CONTAINER_OF(link, struct hf__http_call, link)->fresh)
            return true;
    }
    return false;
}

/* Tell the owners; each may start and stop calls. */
static void tell(struct hf__http *http)
{
    struct hf__list *link;

    do {
        (void)anything_new(http);
        while ((link = hf__list_first(&http->ended)) != NULL) {
            struct hf__http_call *call =
                HF_CONTAINER_OF(link, struct hf__http_call, link);

            hf__list_remove(link);
            call->done(call);
        }
    } while (tell_line(http));
}

static void run(struct hf__http *http, curl_socket_t fd, int events)
{
    int running;

    if (fd == CURL_SOCKET_TIMEOUT)
        http->due = false;
    (void)curl.curl_multi_socket_action(http->multi, fd, events, &running);
    tell(http);
}

static void timer_fire(struct hf__timer *timer)
{
    run(HF_CONTAINER_OF(timer, struct hf__http, timer), CURL_SOCKET_TIMEOUT, 0);
}

void hf__http_flush(struct hf__http *http)
{
    int running;

    if (!http->due)
        return;
    /* While it runs it may find that it wants to run again. */
    for (int i = 0; i < MOST_RUNS && http->due; i++) {
        http->due = false;
        (void)curl.curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0,
                                            &running);
    }
    if (http->due || anything_new(http)) /* to be told by the loop */
        http->host->timer(http->host, &http->timer, hf__now());
}

/* ---- calls ------------------------------------------------------------- */

/* What never changes. Every option here exists since long before the oldest
 * libcurl there is, but for the last, whose absence does no harm. */
static bool set_standing(struct hf__http *http, CURL *easy)
{
    const struct hf__settings *settings = http->host->settings;
    bool ok = true;

#define SET(option, value)                                                     \
    ok &= curl.curl_easy_setopt(easy, CURLOPT_##option, value) == CURLE_OK
    SET(NOSIGNAL, 1L);
    SET(NOPROXY, "*");
    SET(PROXY, "");
    SET(TCP_NODELAY, 1L);
    SET(TCP_KEEPALIVE, 1L);
    SET(HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(PROTOCOLS_STR, http->tls ? "https" : "http");
    SET(CONNECTTIMEOUT_MS, (long)settings->connect_timeout_ms);
    SET(OPENSOCKETFUNCTION, open_socket);
    SET(OPENSOCKETDATA, http);
    SET(CLOSESOCKETFUNCTION, close_socket);
    SET(CLOSESOCKETDATA, http);
    SET(WRITEFUNCTION, on_bytes);
    SET(POST, 1L);
    if (http->tls) {
        SET(SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
        SET(SSL_VERIFYPEER, settings->tls_verify != 0 ? 1L : 0L);
        SET(SSL_VERIFYHOST, settings->tls_verify != 0 ? 2L : 0L);
        if (settings->tls_ca[0] != '\0')
            SET(CAINFO, settings->tls_ca);
        if (settings->tls_cert[0] != '\0') {
            SET(SSLCERT, settings->tls_cert);
            SET(SSLKEY, settings->tls_key);
        }
    }
    return ok;
}

static void call_free(struct hf__http_call *call)
{
    if (!call)
        return;
    curl.curl_easy_cleanup(call->easy);
    curl.curl_slist_free_all(call->headers);
    hf__buf_release(&call->body);
    hf__buf_release(&call->reply);
    hf__free(call);
}

static struct hf__http_call *call_make(struct hf__http *http)
{
    struct hf__http_call *call = hf__calloc(1, http->call_size);

    if (!call)
        return NULL;
    call->http = http;
    call->easy = curl.curl_easy_init();
    if (!call->easy || !set_standing(http, call->easy) ||
        curl.curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call) !=
            CURLE_OK ||
        curl.curl_easy_setopt(call->easy, CURLOPT_ERRORBUFFER, call->text) !=
            CURLE_OK ||
        curl.curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call) != CURLE_OK) {
        call_free(call);
        return NULL;
    }
    hf__list_init(&call->link);
    return call;
}

struct hf__http_call *hf__http_call_new(struct hf__http *http)
{
    struct hf__list *link = hf__list_first(&http->spare);
    struct hf__http_call *call;
    struct hf__http_call kept;

    if (!link)
        return call_make(http);
    hf__list_remove(link);
    http->spare_n--;
    call = HF_CONTAINER_OF(link, struct hf__http_call, link);
    kept = *call;
    memset(call, 0, http->call_size);
    call->http = http;
    call->easy = kept.easy;
    call->body = kept.body;
    call->reply = kept.reply;
    hf__list_init(&call->link);
    return call;
}

/* The list must live as long as its call. */
static bool make_headers(struct hf__http_call *call)
{
    static const char *const common[] = {"Content-Type: application/json",
                                         "Expect:"};
    char line[HF__HTTP_TOKEN + 16];
    size_t n = HF_COUNT_OF(common) + (call->http->token[0] != '\0');

    (void)snprintf(line, sizeof(line), "Authorization: %s", call->http->token);
    for (size_t i = 0; i < n; i++) {
        struct curl_slist *longer = curl.curl_slist_append(
            call->headers, i < HF_COUNT_OF(common) ? common[i] : line);

        if (!longer)
            return false;
        call->headers = longer;
    }
    return true;
}

static void drop_headers(struct hf__http_call *call)
{
    curl.curl_slist_free_all(call->headers);
    call->headers = NULL;
}

int hf__http_start(struct hf__http_call *call, const char *url,
                   int64_t timeout_ms, hf_error *err)
{
    struct hf__http *http = call->http;
    CURL *easy = call->easy;
    bool ok = !hf__buf_failed(&call->body);

    drop_headers(call);
    ok &= make_headers(call);
    call->sent_ns = hf__now();
    SET(URL, url);
    SET(HTTPHEADER, call->headers);
    SET(POSTFIELDS, hf__buf_text(&call->body));
    SET(POSTFIELDSIZE, (long)call->body.len);
    SET(TIMEOUT_MS, (long)timeout_ms);
#undef SET
    if (!ok || curl.curl_multi_add_handle(http->multi, easy) != CURLM_OK)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    call->active = true;
    hf__list_append(&http->active, &call->link);
    return 0;
}

void hf__http_stop(struct hf__http_call *call)
{
    struct hf__http *http;

    if (!call)
        return;
    http = call->http;
    if (call->active)
        (void)curl.curl_multi_remove_handle(http->multi, call->easy);
    call->active = false;
    hf__list_remove(&call->link);
    if (http->spare_n >= HF__HTTP_SPARE || hf__buf_failed(&call->body) ||
        hf__buf_failed(&call->reply)) {
        call_free(call);
        return;
    }
    drop_headers(call);
    call->body.len = 0;
    call->reply.len = 0;
    hf__list_append(&http->spare, &call->link);
    http->spare_n++;
}

void hf__http_authorize(struct hf__http *http, const char *token)
{
    hf__text_copy(http->token, sizeof(http->token), token);
}

int hf__http_init(struct hf__http *http, const struct hf__engine_host *host,
                  size_t call_size, bool tls, hf_error *err)
{
    (void)pthread_once(&curl_once, load_curl);
    if (!curl_there)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "etcd needs libcurl.so.4: apt install libcurl4");
    http->host = host;
    http->call_size = call_size;
    http->tls = tls;
    http->timer.fire = timer_fire;
    hf__list_init(&http->active);
    hf__list_init(&http->ended);
    hf__list_init(&http->spare);
    hf__list_init(&http->sockets);
    http->multi = curl.curl_multi_init();
    if (!http->multi)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    (void)curl.curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION,
                                 on_socket);
    (void)curl.curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    (void)curl.curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    (void)curl.curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    return 0;
}

static void free_calls(struct hf__list *calls)
{
    struct hf__list *link;

    while ((link = hf__list_first(calls)) != NULL) {
        struct hf__http_call *call =
            HF_CONTAINER_OF(link, struct hf__http_call, link);

        hf__list_remove(link);
        if (call->active)
            (void)curl.curl_multi_remove_handle(call->http->multi, call->easy);
        call_free(call);
    }
}

void hf__http_release(struct hf__http *http, bool forked)
{
    if (!http->multi)
        return;
    if (forked) {
        HF_LIST_EACH(&http->sockets, link) {
            (void)close(HF_CONTAINER_OF(link, struct http_socket, link)->io.fd);
        }
        return;
    }
    free_calls(&http->active);
    free_calls(&http->ended);
    free_calls(&http->spare);
    (void)curl.curl_multi_cleanup(http->multi);
    http->multi = NULL;
    HF_LIST_EACH(&http->sockets, link) {
        socket_free(HF_CONTAINER_OF(link, struct http_socket, link));
    }
    hf__timer_stop(http->host->loop, &http->timer);
    explicit_bzero(http->token, sizeof(http->token));
    memset(http, 0, sizeof(*http));
}
