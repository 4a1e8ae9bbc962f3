/* SPDX-License-Identifier: MIT */
/*
 * grpc.h - calls to one server, by HTTP/2, on our loop.
 *
 * A call is one message with one answer, or a stream: messages that leave
 * together, with answers that do not end. All calls of a server share one connection, which is made
 * when there is a call. Calls end by done(), or are stopped and then end
 * silently; never from inside hf__grpc_start() or hf__grpc_flush(). With the
 * owner's monitor held.
 */
#ifndef HF_ETCD_GRPC_H
#define HF_ETCD_GRPC_H

#include <nghttp2/nghttp2.h>

#include "base/list.h"
#include "engines/etcd/frame.h"
#include "net/stream.h"

struct hf__grpc;
struct hf__grpc_call;

/* The call has ended, see call->code. It may be given back inside. */
typedef void hf__grpc_done_fn(struct hf__grpc_call *call);
/* One message of a stream. */
typedef void hf__grpc_message_fn(struct hf__grpc_call *call,
                                 struct hf__pb message);
/* There is no connection any more; its calls have ended. */
typedef void hf__grpc_lost_fn(struct hf__grpc *grpc, const hf_error *err);
/* Call hf__grpc_due() no later than @due_ns. */
typedef void hf__grpc_wake_fn(struct hf__grpc *grpc, int64_t due_ns);

enum {
    HF__GRPC_LOST = -1,   /* no answer */
    HF__GRPC_UNSENT = -2, /* and it certainly was not carried out */
    HF__GRPC_TOKEN = 1024,
    HF__GRPC_TEXT = 160,
    HF__GRPC_NAME = 272 /* "host:port" */
};

struct hf__grpc_call {
    struct hf__list link; /* grpc->active or ended */
    struct hf__grpc *grpc;
    int32_t stream;       /* HTTP/2's number; 0: none */
    struct hf__buf body;  /* the owner adds to it before the start */
    size_t head_at;       /* of the message that is added to */
    size_t body_at;       /* sent up to there */
    struct hf__buf reply; /* frames */
    size_t reply_at;      /* of a stream: told up to there */
    hf__grpc_done_fn *done;
    hf__grpc_message_fn *message; /* NULL: not a stream */
    int64_t sent_ns;
    int64_t due_ns; /* no answer by then is none */
    int status;     /* HTTP's */
    int code;       /* gRPC's, or HF__GRPC_* */
    int problem; /* HF_EUNAVAILABLE, HF_EAUTH, …, where there is no answer */
    char text[HF__GRPC_TEXT]; /* of gRPC, or why there is no answer */
};

/* The owner fills in what comes before @stream, and zeroes the rest. */
struct hf__grpc {
    hf__grpc_lost_fn *lost;
    hf__grpc_wake_fn *wake;
    void *owner;
    size_t call_size;         /* sizeof of what begins with a hf__grpc_call */
    char name[HF__GRPC_NAME]; /* "db1:2379" */
    const char *token;        /* of the user; "": none */
    struct hf__stream stream; /* its loop and peer */

    nghttp2_session *session; /* NULL: no connection */
    bool leaving;             /* the server is */
    size_t kept;              /* bytes of answers, of all calls */
    hf_error why; /* it is broken, which the loop tells; code 0: it is not */
    struct hf__list active;
    struct hf__list ended; /* done() has to be called */
};

/* Load the library. */
int hf__grpc_load(hf_error *err);
void hf__grpc_init(struct hf__grpc *grpc);
/* Everything back; calls end silently. @forked: only close descriptors. */
void hf__grpc_release(struct hf__grpc *grpc, bool forked);
/* Close the connection. Its calls stay in their lists, without an answer. */
void hf__grpc_close(struct hf__grpc *grpc);
/* A call, zeroed beyond its base; NULL without memory. */
struct hf__grpc_call *hf__grpc_call_new(struct hf__grpc *grpc);
/* A stream: what is added to call->body from now on is one more message. */
void hf__grpc_call_next(struct hf__grpc_call *call);
/* More was added to the message of a call that is not sent yet. */
void hf__grpc_call_grown(struct hf__grpc_call *call);
/* Send call->body to @path; @timeout_ms 0: without end. Non-zero: not sent,
 * and the call is still the caller's. */
int hf__grpc_start(struct hf__grpc_call *call, const char *path,
                   int64_t timeout_ms, hf_error *err);
/* End it silently and give it back; NULL is ignored. */
void hf__grpc_stop(struct hf__grpc_call *call);
/* Send what was started. */
void hf__grpc_flush(struct hf__grpc *grpc);
/* The timer: what is overdue has no answer; when is the next? */
int64_t hf__grpc_due(struct hf__grpc *grpc, int64_t now_ns);

#endif
