/* SPDX-License-Identifier: MIT */
/*
 * stream.h - one byte stream to a server: TCP, a Unix socket, or TLS.
 *
 * Lives in its owner, who hears of it by three calls, made from the loop and
 * never from inside hf__stream_start() or hf__stream_flush(). With the owner's
 * monitor held.
 */
#ifndef HF_NET_STREAM_H
#define HF_NET_STREAM_H

#include <netdb.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/loop.h"

struct hf__stream;
struct hf__resolve;
struct hf__tls;
struct hf__tls_context;

typedef void hf__stream_fn(struct hf__stream *stream);
typedef void hf__stream_closed_fn(struct hf__stream *stream,
                                  const hf_error *err);

enum hf__stream_state {
    HF__STREAM_IDLE,
    HF__STREAM_RESOLVING,
    HF__STREAM_CONNECTING,
    HF__STREAM_SHAKING, /* hands, by TLS */
    HF__STREAM_OPEN
};

/* Where to. */
struct hf__stream_peer {
    const char *host; /* a name or an address; NULL: @path */
    int port;
    const char *path;            /* of a Unix socket */
    struct hf__tls_context *tls; /* NULL: plain */
    int64_t patience_ms; /* of a TCP peer that is silent; 0: the system's */
};

/* The owner fills in the first five, and zeroes the rest. */
struct hf__stream {
    struct hf__loop *loop;
    struct hf__stream_peer peer;
    hf__stream_fn *opened;
    /* Bytes came: in.text + in_at … in.len. The owner moves in_at. */
    hf__stream_fn *received;
    /* It is IDLE again. */
    hf__stream_closed_fn *closed;

    uint8_t state;
    bool broken;    /* a send failed; the loop will tell */
    bool receiving; /* received() is running */
    bool failed;    /* … and the stream ends when it returns, because of */
    hf_error why;
    uint32_t watched; /* events */
    struct hf__io io;
    struct hf__resolve *resolving;
    struct addrinfo *addresses;
    struct addrinfo *next; /* to be tried */
    struct hf__tls *tls;
    struct hf__buf out;
    size_t out_at;
    struct hf__buf in;
    size_t in_at;
};

/* Begin to connect. Ends in opened() or closed(). Non-zero: not begun. */
int hf__stream_start(struct hf__stream *stream, hf_error *err);
/* Close, without a call to closed(). @forked: by close() alone. */
void hf__stream_stop(struct hf__stream *stream, bool forked);
/* Send what is in stream->out as far as the socket takes it. Failures are
 * told later, by the loop. */
void hf__stream_flush(struct hf__stream *stream);

/* End it because of @err, with a call to closed(): at once, or, if received() is
 * running, when that has returned; stream->failed says so. The first @err counts.
 * An IDLE one is only told closed(). */
static inline void hf__stream_fail(struct hf__stream *stream,
                                   const hf_error *err)
{
    if (!stream->receiving) {
        hf__stream_stop(stream, /* forked= */ false);
        stream->closed(stream, err);
    } else if (!stream->failed) {
        stream->failed = true;
        stream->why = *err;
    }
}
/* Call received(), and end the stream if that failed it. */
static inline void hf__stream_deliver(struct hf__stream *stream)
{
    hf_error why;

    stream->failed = false;
    stream->receiving = true;
    stream->received(stream);
    stream->receiving = false;
    if (!stream->failed)
        return;
    why = stream->why;
    hf__stream_fail(stream, &why);
}

/* recv() and send() that are no cancellation points and raise no signal. */
ssize_t hf__net_recv(int fd, void *to, size_t size);
ssize_t hf__net_send(int fd, const void *from, size_t len);

#endif
