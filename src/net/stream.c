/* SPDX-License-Identifier: MIT */
/*
 * stream.c - connect, send and receive, without ever waiting.
 *
 *   IDLE ─▶ RESOLVING ─▶ CONNECTING ─▶ SHAKING ─▶ OPEN
 *    ▲          │         │ next ▲ │       │        │
 *    └──────────┴─────────┴─address┴───────┴────────┘  closed()
 *
 * Each address of a name is tried in turn. What is to be sent is gathered in
 * stream->out and leaves with hf__stream_flush(), as much as the socket takes;
 * the rest when the loop says that there is room. A turn reads once, at most
 * 16 KiB, so that one busy connection does not keep the monitor.
 *
 * Failure: hf__stream_flush() is called on the way out of the monitor, where
 * nothing may be reported. It only remembers that the socket is broken; the
 * loop finds it readable then, and closed() is called from there.
 *
 * System calls are made by syscall(): send(), recv() and close() are points at
 * which a thread may be cancelled, and it would take the monitor with it.
 */
#include "net/stream.h"

#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/resolve.h"
#include "net/tls.h"

enum { TURN = 16 * 1024, KEPT = 256 * 1024 };

ssize_t hf__net_recv(int fd, void *to, size_t size)
{
    return syscall(SYS_recvfrom, fd, to, size, 0, NULL, NULL);
}

ssize_t hf__net_send(int fd, const void *from, size_t len)
{
    return syscall(SYS_sendto, fd, from, len, MSG_NOSIGNAL, NULL, 0);
}

static void close_fd(int fd)
{
    (void)syscall(SYS_close, fd); /* a socket has nothing to flush */
}

/* ---- closing ----------------------------------------------------------- */

static void drop_socket(struct hf__stream *stream, bool forked)
{
    if (stream->io.fd < 0)
        return;
    if (!forked)
        hf__io_stop(stream->loop, &stream->io);
    if (stream->resolving && forked)
        hf__resolve_abandon(stream->resolving);
    else if (!stream->resolving)
        close_fd(stream->io.fd);
    stream->io.fd = -1;
}

void hf__stream_stop(struct hf__stream *stream, bool forked)
{
    if (stream->state == HF__STREAM_IDLE)
        return;
    if (!forked && stream->state == HF__STREAM_OPEN && !stream->broken)
        hf__tls_close(stream->tls);
    drop_socket(stream, forked);
    stream->state = HF__STREAM_IDLE;
    if (forked)
        return;
    hf__resolve_free(stream->resolving);
    stream->resolving = NULL;
    if (stream->addresses)
        freeaddrinfo(stream->addresses);
    stream->addresses = NULL;
    stream->next = NULL;
    hf__tls_free(stream->tls);
    stream->tls = NULL;
    hf__buf_release(&stream->out);
    hf__buf_release(&stream->in);
    stream->out_at = 0;
    stream->in_at = 0;
    stream->broken = false;
}

static void fail_errno(struct hf__stream *stream, const char *what, int number)
{
    hf_error err;

    (void)hf__fail_engine(&err, HF_EUNAVAILABLE, number, "%s: %s", what,
                          strerror(number));
    hf__stream_fail(stream, &err);
}

static void fail_tls(struct hf__stream *stream)
{
    hf_error err;

    (void)hf__tls_explain(stream->tls, &err);
    hf__stream_fail(stream, &err);
}

static void fail_end(struct hf__stream *stream)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "the server closed the connection");
    hf__stream_fail(stream, &err);
}

/* ---- sending ----------------------------------------------------------- */

static void watch(struct hf__stream *stream, uint32_t events)
{
    if (stream->watched == events)
        return;
    stream->watched = events;
    (void)hf__io_change(stream->loop, &stream->io, events); /* as it was */
}

/* Bytes sent, 0 for "no room", -1 for a broken socket. */
static ssize_t send_some(struct hf__stream *stream, const char *from,
                         size_t len)
{
    ssize_t n;

    if (!stream->tls) {
        n = hf__net_send(stream->io.fd, from, len);
        return n < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : n;
    }
    n = hf__tls_write(stream->tls, from, len);
    return n == HF__TLS_WANT_READ || n == HF__TLS_WANT_WRITE ? 0 : n;
}

void hf__stream_flush(struct hf__stream *stream)
{
    struct hf__buf *out = &stream->out;

    if (stream->out_at == out->len || stream->state != HF__STREAM_OPEN)
        return;
    while (!stream->broken && stream->out_at < out->len) {
        ssize_t n = send_some(stream, out->text + stream->out_at,
                              out->len - stream->out_at);

        if (n == 0)
            break;
        if (n < 0)
            stream->broken = true;
        else
            stream->out_at += (size_t)n;
    }
    if (stream->broken || stream->out_at == out->len) {
        stream->out_at = 0;
        out->len = 0;
        if (out->size > KEPT)
            hf__buf_release(out);
    }
    watch(stream, out->len > 0 ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

/* ---- receiving --------------------------------------------------------- */

/* Bytes, or 0 for "nothing there"; -1 when the stream has been closed. */
static ssize_t receive_some(struct hf__stream *stream, char *to, size_t size)
{
    ssize_t n;

    if (!stream->tls) {
        n = hf__net_recv(stream->io.fd, to, size);
        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
            return n > 0 ? n : 0;
        if (n == 0)
            fail_end(stream);
        else
            fail_errno(stream, "the connection broke", errno);
        return -1;
    }
    n = hf__tls_read(stream->tls, to, size);
    if (n > 0 || n == HF__TLS_WANT_READ || n == HF__TLS_WANT_WRITE)
        return n > 0 ? n : 0;
    if (n == HF__TLS_CLOSED)
        fail_end(stream);
    else
        fail_tls(stream);
    return -1;
}

/* What is read is thrown away; what is not stays, at the beginning. */
static void tidy(struct hf__stream *stream)
{
    struct hf__buf *in = &stream->in;

    if (stream->in_at == in->len) {
        in->len = 0;
        if (in->size > KEPT)
            hf__buf_release(in);
    } else if (stream->in_at > 0) {
        memmove(in->text, in->text + stream->in_at, in->len - stream->in_at);
        in->len -= stream->in_at;
    }
    stream->in_at = 0;
}

static void receive(struct hf__stream *stream)
{
    char bytes[TURN];

    do {
        ssize_t n = receive_some(stream, bytes, sizeof(bytes));

        if (n <= 0)
            return;
        hf__buf_append(&stream->in, bytes, (size_t)n);
        if (hf__buf_failed(&stream->in)) {
            fail_errno(stream, "reading an answer", ENOMEM);
            return;
        }
        hf__stream_deliver(stream);
        if (stream->state != HF__STREAM_OPEN)
            return;
        tidy(stream);
    } while (stream->tls && hf__tls_pending(stream->tls));
}

/* ---- connecting -------------------------------------------------------- */

static void open_now(struct hf__stream *stream)
{
    stream->state = HF__STREAM_OPEN;
    watch(stream, EPOLLIN);
    stream->opened(stream);
}

static void shake(struct hf__stream *stream)
{
    int n = hf__tls_handshake(stream->tls);

    if (n == 1)
        open_now(stream);
    else if (n == HF__TLS_WANT_READ)
        watch(stream, EPOLLIN);
    else if (n == HF__TLS_WANT_WRITE)
        watch(stream, EPOLLOUT);
    else if (n == HF__TLS_CLOSED)
        fail_end(stream);
    else
        fail_tls(stream);
}

static void set_option(const struct hf__stream *stream, int option, int value)
{
    (void)setsockopt(stream->io.fd, IPPROTO_TCP, option, &value, sizeof(value));
}

/* The kernel notices a peer that has vanished within about @patience_ms, without
 * a message of ours: a client that waits for a pushed grant sends nothing. */
static void watch_peer(const struct hf__stream *stream, int64_t patience_ms)
{
    int64_t third_s = (patience_ms + 2999) / 3000;
    int pause_s = third_s < 7200 ? (int)third_s : 7200;
    int on = 1;

    (void)setsockopt(stream->io.fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    if (patience_ms <= 0)
        return;
    set_option(stream, TCP_KEEPIDLE, pause_s);
    set_option(stream, TCP_KEEPINTVL, pause_s);
    set_option(stream, TCP_KEEPCNT, 2);
    set_option(stream, TCP_USER_TIMEOUT,
               patience_ms < INT_MAX ? (int)patience_ms : INT_MAX);
}

static void connected(struct hf__stream *stream)
{
    hf_error err;

    if (!stream->peer.path) {
        set_option(stream, TCP_NODELAY, 1);
        watch_peer(stream, stream->peer.patience_ms);
    }
    if (!stream->peer.tls) {
        open_now(stream);
        return;
    }
    if (hf__tls_new(stream->peer.tls, stream->io.fd, stream->peer.host,
                    &stream->tls, &err) != 0) {
        hf__stream_fail(stream, &err);
        return;
    }
    stream->state = HF__STREAM_SHAKING;
    shake(stream);
}

static void ready(struct hf__io *io, uint32_t events);

/* A socket on its way to @address; 0 or an errno. */
static int aim(struct hf__stream *stream, int family,
               const struct sockaddr *address, socklen_t len)
{
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return errno;
    if (syscall(SYS_connect, fd, address, len) < 0 && errno != EINPROGRESS) {
        int number = errno;

        close_fd(fd);
        return number;
    }
    stream->io.fd = fd;
    stream->io.ready = ready;
    stream->watched = EPOLLOUT;
    if (hf__io_start(stream->loop, &stream->io, EPOLLOUT) != 0) {
        close_fd(fd);
        stream->io.fd = -1;
        return ENOMEM;
    }
    stream->state = HF__STREAM_CONNECTING;
    return 0;
}

/* Try the addresses that are left; 0, or the errno of the last one. */
static int aim_next(struct hf__stream *stream)
{
    int number = EADDRNOTAVAIL;

    while (stream->next) {
        struct addrinfo *address = stream->next;

        stream->next = address->ai_next;
        number = aim(stream, address->ai_family, address->ai_addr,
                     address->ai_addrlen);
        if (number == 0)
            return 0;
    }
    return number;
}

static void connect_ready(struct hf__stream *stream)
{
    int number = 0;
    socklen_t len = sizeof(number);

    if (getsockopt(stream->io.fd, SOL_SOCKET, SO_ERROR, &number, &len) != 0)
        number = errno;
    if (number != 0) {
        drop_socket(stream, /* forked= */ false);
        if (stream->next)
            number = aim_next(stream);
        if (number != 0)
            fail_errno(stream, "cannot connect", number);
        return;
    }
    connected(stream);
}

static void resolve_ready(struct hf__stream *stream)
{
    int rc = hf__resolve_take(stream->resolving, &stream->addresses);
    hf_error err;
    int number;

    hf__io_stop(stream->loop, &stream->io);
    stream->io.fd = -1;
    hf__resolve_free(stream->resolving);
    stream->resolving = NULL;
    if (rc != 0) {
        (void)hf__fail(&err, HF_EUNAVAILABLE, "cannot find the host: %s",
                       gai_strerror(rc));
        hf__stream_fail(stream, &err);
        return;
    }
    stream->next = stream->addresses;
    number = aim_next(stream);
    if (number != 0)
        fail_errno(stream, "cannot connect", number);
}

static void ready(struct hf__io *io, uint32_t events)
{
    struct hf__stream *stream = HF_CONTAINER_OF(io, struct hf__stream, io);

    switch (stream->state) {
    case HF__STREAM_RESOLVING:
        resolve_ready(stream);
        break;
    case HF__STREAM_CONNECTING:
        connect_ready(stream);
        break;
    case HF__STREAM_SHAKING:
        shake(stream);
        break;
    case HF__STREAM_OPEN:
        if (events & EPOLLOUT)
            hf__stream_flush(stream);
        if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
            receive(stream);
        break;
    default:
        break;
    }
}

static int start_unix(struct hf__stream *stream, hf_error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t len = strlen(stream->peer.path);
    int number;

    if (len >= sizeof(address.sun_path))
        return hf__fail(err, HF_ECONFIG, "the socket's path is too long");
    memcpy(address.sun_path, stream->peer.path, len);
    number = aim(stream, AF_UNIX, (struct sockaddr *)&address,
                 (socklen_t)sizeof(address));
    return number == 0 ? 0
                       : hf__fail_engine(err, HF_EUNAVAILABLE, number,
                                         "cannot connect to %s: %s",
                                         stream->peer.path, strerror(number));
}

static int start_lookup(struct hf__stream *stream, hf_error *err)
{
    int rc = hf__resolve_start(stream->peer.host, stream->peer.port,
                               &stream->resolving);

    if (rc != 0)
        return hf__fail(err, rc, "no memory or thread to look up a host");
    stream->io.fd = hf__resolve_fd(stream->resolving);
    stream->io.ready = ready;
    rc = hf__io_start(stream->loop, &stream->io, EPOLLIN);
    if (rc != 0) {
        hf__resolve_free(stream->resolving);
        stream->resolving = NULL;
        stream->io.fd = -1;
        return hf__fail(err, rc, "no memory to look up a host");
    }
    stream->state = HF__STREAM_RESOLVING;
    return 0;
}

int hf__stream_start(struct hf__stream *stream, hf_error *err)
{
    int number;

    assert(stream->state == HF__STREAM_IDLE);
    stream->io.fd = -1;
    if (stream->peer.path)
        return start_unix(stream, err);
    stream->addresses =
        hf__resolve_numeric(stream->peer.host, stream->peer.port);
    if (!stream->addresses)
        return start_lookup(stream, err);
    stream->next = stream->addresses;
    number = aim_next(stream);
    if (number == 0)
        return 0;
    freeaddrinfo(stream->addresses);
    stream->addresses = NULL;
    return hf__fail_engine(err, HF_EUNAVAILABLE, number, "cannot connect: %s",
                           strerror(number));
}
