/* SPDX-License-Identifier: MIT */
/*
 * connection.h - calls of etcd's v3 API, and their answers.
 */
#ifndef HF_ETCD_CONNECTION_H
#define HF_ETCD_CONNECTION_H

#include "engines/engine.h"
#include "engines/etcd/grpc.h"

/*
 * Whether we are connected. connection.c asserts these moves:
 *
 *   DOWN           -> CONNECTING
 *   CONNECTING     -> UP DOWN
 *   UP             -> AUTHENTICATING DOWN
 *   AUTHENTICATING -> UP DOWN
 */
enum hf__etcd_connection {
    HF__ETCD_DOWN,
    HF__ETCD_CONNECTING, /* asking the members, one after the other */
    HF__ETCD_UP,
    HF__ETCD_AUTHENTICATING /* up, and what is asked waits for a new token */
};

struct hf__etcd;
struct hf__etcd_call;
struct hf__etcd_lease;
struct hf__etcd_member;

/* Codes of gRPC that we act on. */
enum {
    HF__ETCD_LOST = HF__GRPC_LOST,     /* also an answer that is odd */
    HF__ETCD_UNSENT = HF__GRPC_UNSENT, /* certainly not carried out */
    HF__ETCD_OK = 0,
    HF__ETCD_INVALID = 3,
    HF__ETCD_NOT_FOUND = 5, /* of requests with a lease: it has ended */
    HF__ETCD_DENIED = 7,
    HF__ETCD_EXHAUSTED = 8,
    HF__ETCD_PRECONDITION = 9,
    HF__ETCD_UNIMPLEMENTED = 12,
    HF__ETCD_UNAUTHENTICATED = 16
};

struct hf__etcd_reply {
    int code;
    struct hf__pb root; /* with code 0 */
    int64_t sent_ns;
    hf_error err; /* with another code */
};

/* The answer to a call. Afterwards the call, and its @data, are gone. */
typedef void hf__etcd_reply_fn(struct hf__etcd *etcd,
                               struct hf__etcd_call *call,
                               const struct hf__etcd_reply *reply);

struct hf__etcd_call {
    struct hf__grpc_call rpc;
    struct hf__etcd *etcd;
    const char *path;
    struct hf__etcd_other *other; /* a member that is not the one in use */
    hf__etcd_reply_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    int64_t lease_id;        /* … of the key that it is about */
    uint64_t joined;         /* whose acquire travels with it; 0: none */
    uint64_t condition;      /* its id; 0: none */
    struct hf__query *query; /* lives until it is answered */
    struct hf__etcd_lease *lease;
    struct hf__feed *feed; /* watch.c's */
    void *data;            /* freed with hf__free() */
    size_t n;
    bool stream;
    bool again; /* sent once more with a new token */
};

/* Connections to nobody yet. */
void hf__etcd_connection_init(struct hf__etcd *etcd);
void hf__etcd_connection_release(struct hf__etcd *etcd, bool forked);
hf__engine_connect_fn hf__etcd_connection_start;
/* The member cannot be trusted any more: report what was under way. */
void hf__etcd_connection_fail(struct hf__etcd *etcd, const hf_error *err);
/* A call of @path; its message is added to call->rpc.body. There is always one:
 * that it found no memory hf__etcd_connection_send() says. */
struct hf__etcd_call *hf__etcd_connection_call(struct hf__etcd *etcd,
                                               const char *path,
                                               hf__etcd_reply_fn *done);
/* The same, to a member that is not in use. */
struct hf__etcd_call *hf__etcd_connection_call_at(
    struct hf__etcd *etcd, const struct hf__etcd_member *member,
    const char *path, hf__etcd_reply_fn *done);
/* Adds the message that @query asks for. */
typedef void hf__etcd_add_fn(struct hf__etcd *etcd, struct hf__buf *to,
                             const struct hf__query *query);
/* Ask for @query in one call of @path. */
int hf__etcd_connection_ask(struct hf__etcd *etcd, struct hf__query *query,
                            const char *path, hf__etcd_add_fn *add,
                            hf__etcd_reply_fn *done, hf_error *err);
/* Send it. Non-zero: it was not, and is gone with its data. */
int hf__etcd_connection_send(struct hf__etcd_call *call, hf_error *err);
/* Give back one that was not sent. */
void hf__etcd_connection_drop(struct hf__etcd_call *call);
/* End it silently; NULL is ignored. */
void hf__etcd_connection_end(struct hf__etcd_call *call);
/* Send what was started. */
void hf__etcd_connection_flush(struct hf__etcd *etcd);
/* The timer: what is overdue is lost; when is the next? */
int64_t hf__etcd_connection_due(struct hf__etcd *etcd, int64_t now_ns);
/* Which member, for people: "etcd db1:2379". */
const char *hf__etcd_connection_peer(const struct hf__etcd *etcd);

#endif
