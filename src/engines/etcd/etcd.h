/* SPDX-License-Identifier: MIT */
/*
 * etcd.h - the parts of the etcd engine to each other.
 *
 *   etcd.c        the engine's table: open, close, timer
 *   connection.c  calls of the v3 API, members one after the other, users
 *   errors.c      what went wrong, in our words
 *   grpc.c        gRPC on our loop     frame.c  what it puts around a message
 *   pb.c          messages of protobuf          messages.h  those of etcd
 *   queue.c       keys and records; who of a queue holds
 *   lease.c       the leases that carry our keys
 *   tickets.c     the tickets by number, and their moves
 *   acquire.c  release.c  renew.c (and downgrade)
 *   wait.c        waiting for those before us
 *   inspect.c     list, check, break     versions.c     doctor.c
 */
#ifndef HF_ETCD_ETCD_H
#define HF_ETCD_ETCD_H

#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/etcd/grpc.h"
#include "engines/etcd/messages.h"

struct hf__etcd;
struct hf__etcd_call;

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

/* One lease of the server; it carries all keys of tickets with the same ttl. */
struct hf__etcd_lease {
    int64_t asked_s;      /* its ttl; 0: this place is free */
    int64_t id;           /* 0: none, or it has ended */
    int64_t claim_ms;     /* what we may claim of it: ttl without lock_delay */
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* watch it from then on; 0: not planned */
    bool asking;          /* grant or keepalive is under way */
    struct hf__etcd_call *watch;
    uint32_t held; /* tickets */
};

struct hf__etcd_call {
    struct hf__grpc_call rpc;
    struct hf__etcd *etcd;
    const char *path;
    struct hf__etcd_other *other; /* a member that is not the one in use */
    hf__etcd_reply_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    int64_t lease_id;        /* … of the key that it is about */
    struct hf__query *query; /* lives until it is answered */
    struct hf__etcd_lease *lease;
    void *data; /* freed with hf__free() */
    size_t n;
    bool stream;
    bool again; /* sent once more with a new token */
};

/*
 * Where a ticket stands. Each arrow is a move of the table in tickets.c.
 *
 *   IDLE ──► PARKED ◄──► ASKING ──► WAITING ──► HELD
 *
 * From everywhere but IDLE a ticket may become RELEASING, and IDLE again. PARKED
 * may become WAITING or HELD, too: a look that was under way decides. An outcome
 * that nobody knows makes ASKING, or PARKED, UNKNOWN; the core asks again, also
 * for one that is WAITING, or HELD where the report was lost.
 */
enum hf__etcd_state {
    HF__ETCD_IDLE,    /* not in the table: the server has nothing of it */
    HF__ETCD_PARKED,  /* an acquire waits for its lease */
    HF__ETCD_ASKING,  /* an acquire has not been reported yet */
    HF__ETCD_WAITING, /* in line */
    HF__ETCD_HELD,
    HF__ETCD_UNKNOWN,   /* an acquire was reported as unknown */
    HF__ETCD_RELEASING, /* withdraw() or release() was called */
    HF__ETCD_STATES
};

/* What the server may have of a ticket. */
enum hf__etcd_key {
    HF__ETCD_NO_KEY,
    HF__ETCD_SENT,   /* the key */
    HF__ETCD_DOUBTED /* and an acquire may still be on its way to it */
};

/* Whether a question about its place is under way. */
enum hf__etcd_look {
    HF__ETCD_NO_LOOK,
    HF__ETCD_LOOKING,
    HF__ETCD_STALE /* something happened since it was sent */
};

/* Our bytes of every ticket. */
struct hf__etcd_ticket {
    struct hf__ticket_entry entry; /* in etcd->tickets */
    struct hf__etcd_lease *lease;
    int64_t lease_id;  /* of the key: the lease may be another by now */
    uint64_t revision; /* our key's create revision; 0: not known */
    int64_t asked_ns;  /* when the last request about its place was sent */
    int64_t look_ns;   /* look again then; 0: not planned */
    struct hf__etcd_call *watch;
    uint8_t state; /* enum hf__etcd_state */
    uint8_t key;   /* enum hf__etcd_key */
    uint8_t look;  /* enum hf__etcd_look */
    bool renewing; /* renew() waits for the lease */
};

enum {
    HF__ETCD_LEASES = 8,
    HF__ETCD_STREAMS = 128, /* more waiters look again from time to time */
    HF__ETCD_BEATS = 100,   /* keys looked at in one transaction */
    HF__ETCD_ROWS = 10000   /* keys of an answer */
};

struct hf__etcd_member {
    const char *host;
    int port;
    char name[HF__GRPC_NAME]; /* "db1:2379" */
};

/* A connection for one question to a member that is not in use. */
struct hf__etcd_other {
    struct hf__list link;
    struct hf__grpc grpc;
    bool
        spent; /* to be freed where it is not in use: hf__etcd_connection_flush() */
};

struct hf__etcd {
    struct hf__engine base;

    /* connection.c */
    struct hf__grpc grpc;
    struct hf__list others;
    struct hf__tls_context *tls; /* NULL: plain */
    char token[HF__GRPC_TOKEN];  /* of the user; "": none */
    struct hf__etcd_member *endpoints;
    size_t n_endpoints;
    size_t endpoint; /* the one in use */
    size_t tried;    /* of this connect() */
    bool up;
    bool connecting;
    bool authenticating;
    struct hf__list parked; /* calls that wait for a new token */
    char version[24];       /* of the server */

    struct hf__timer timer;

    /* lease.c */
    struct hf__etcd_lease leases[HF__ETCD_LEASES];
    struct hf__query *finish; /* while leases are revoked */
    uint32_t revoking;        /* how many are not yet */

    /* tickets.c, wait.c */
    struct hf__ticket_table tickets;
    uint32_t streams;

    /* queue.c */
    char *prefix; /* of every key */
    size_t prefix_len;
    char whoami[96]; /* host LF process LF */
    struct hf__buf key;
};

/* ---- connection.c ------------------------------------------------------------- */

/* Connections to nobody yet. */
void hf__etcd_connection_init(struct hf__etcd *etcd);
void hf__etcd_connection_release(struct hf__etcd *etcd, bool forked);
int hf__etcd_connection_start(struct hf__etcd *etcd, hf_error *err);
/* The member cannot be trusted any more: report what was under way. */
void hf__etcd_connection_fail(struct hf__etcd *etcd, const hf_error *err);
/* A call of @path; its message is added to call->rpc.body. NULL: no memory. */
struct hf__etcd_call *hf__etcd_call_new(struct hf__etcd *etcd, const char *path,
                                        hf__etcd_reply_fn *done);
/* The same, to a member that is not in use. */
struct hf__etcd_call *hf__etcd_call_new_at(struct hf__etcd *etcd,
                                           const struct hf__etcd_member *member,
                                           const char *path,
                                           hf__etcd_reply_fn *done);
/* Send it. Non-zero: it was not, and is gone with its data. */
int hf__etcd_call_send(struct hf__etcd_call *call, hf_error *err);
/* Give back one that was not sent. */
void hf__etcd_call_drop(struct hf__etcd_call *call);
/* End it silently; NULL is ignored. */
void hf__etcd_call_stop(struct hf__etcd_call *call);
/* Send what was started. */
void hf__etcd_connection_flush(struct hf__etcd *etcd);
/* The timer: what is overdue is lost; when is the next? */
int64_t hf__etcd_connection_due(struct hf__etcd *etcd, int64_t now_ns);
/* Which member, for people: "etcd db1:2379". */
const char *hf__etcd_connection_peer(const struct hf__etcd *etcd);

/* ---- errors.c ---------------------------------------------------------- */

int hf__etcd_errors_not_up(struct hf__etcd *etcd, hf_error *err);
/* There is no answer, or none that can be believed: @reply says so. */
void hf__etcd_errors_lost(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                          int code, const char *why);
/* The server's word for what is wrong. */
void hf__etcd_errors_read(struct hf__etcd *etcd, struct hf__etcd_reply *reply,
                          const struct hf__grpc_call *rpc);
/* A query ends with @code and @text; 0: well. */
void hf__etcd_errors_tell(struct hf__etcd *etcd, struct hf__query *query,
                          int code, const char *text);
/* … with what went wrong. */
void hf__etcd_errors_answer(struct hf__etcd *etcd, struct hf__query *query,
                            const struct hf__etcd_reply *reply);
/* The same for one that was to change something: what was sent and not answered
 * may have been carried out. */
void hf__etcd_errors_answer_unsure(struct hf__etcd *etcd,
                                   struct hf__query *query,
                                   const struct hf__etcd_reply *reply);

/* ---- etcd.c ------------------------------------------------------------ */

/* Be woken no later than @due_ns. */
void hf__etcd_wake(struct hf__etcd *etcd, int64_t due_ns);

/* ---- queue.c ----------------------------------------------------------- */

/* One key of a queue. */
struct hf__etcd_entry {
    uint64_t revision; /* when it was created */
    int64_t lease;
    int mode; /* HF_EXCLUSIVE also for keys of others */
    int slots;
    bool holds;       /* hf__etcd_queue_judge() */
    const char *name; /* inspect.c's */
    struct hf__pb key;
    struct hf__pb value;
};

enum { HF__ETCD_RECORD = 1024 };

int hf__etcd_queue_init(struct hf__etcd *etcd);
/* "<prefix><name>/" into etcd->key; @name encoded. */
void hf__etcd_queue_key(struct hf__etcd *etcd, const char *name, size_t len);
/* The ticket's key: "<prefix><name>/<lease>-<ticket>". */
void hf__etcd_queue_key_ticket(struct hf__etcd *etcd,
                               struct hf__ticket *ticket);
/* The sign that the ticket has left: "<prefix>~gone/<lease>-<ticket>". */
void hf__etcd_queue_key_gone(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* A key of our own beside the queues: "<prefix>~<what>/<name>". */
void hf__etcd_queue_key_beside(struct hf__etcd *etcd, const char *what,
                               const char *name, size_t len);
/* What begins a key for every name that begins with @prefix. */
void hf__etcd_queue_key_names(struct hf__etcd *etcd, const char *prefix);
/* Add etcd->key, and with @range the end of all that begin with it, to a
 * message whose HF__OF_KEY and HF__OF_RANGE_END they are. */
void hf__etcd_queue_add_key(struct hf__etcd *etcd, struct hf__buf *to,
                            bool range);
/* Add the comparison of the create revision of etcd->key, or of all keys that
 * begin with it, with @revision, to a transaction. */
void hf__etcd_queue_add_compare(struct hf__etcd *etcd, struct hf__buf *to,
                                bool range, uint64_t revision);
/* Add the request that deletes etcd->key, in case of success. */
void hf__etcd_queue_add_delete(struct hf__etcd *etcd, struct hf__buf *to);
/* A part @field of a transaction that puts etcd->key with the lease @id: begun,
 * for hf__pb_end() of *@ret_put, and then of what is returned. */
size_t hf__etcd_queue_begin_put(struct hf__etcd *etcd, struct hf__buf *to,
                                uint32_t field, int64_t id, size_t *ret_put);
/* Add the request that puts the ticket's key, as a part @field of a
 * transaction: HF__TXN_SUCCESS or HF__TXN_FAILURE. */
void hf__etcd_queue_add_put(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field, struct hf__ticket *ticket);
/* Add the request for etcd->key, without its value. */
void hf__etcd_queue_add_get(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field);
/* Add what the server keeps of @ticket. */
void hf__etcd_queue_add_record(struct hf__etcd *etcd, struct hf__buf *to,
                               const struct hf__ticket *ticket);
/* An element of HF__RANGE_KVS. */
struct hf__etcd_entry hf__etcd_queue_read(struct hf__pb kv);
/* The @i-th answer of a transaction, to an HF__OP_RANGE. */
struct hf__pb hf__etcd_queue_range_of(struct hf__pb root, int i);
/* Are there more keys in it than we look at? No server was asked for that. */
bool hf__etcd_queue_is_long(struct hf__pb range);
/* The first key of it. */
struct hf__pb hf__etcd_queue_first_of(struct hf__pb range);
/* The store's revision in an answer. */
uint64_t hf__etcd_queue_revision_of(struct hf__pb root);
/* @entries, in the order of their revisions, are one queue: who holds? */
void hf__etcd_queue_judge(struct hf__etcd_entry *entries, size_t n);
/* The texts of a record; @info's pointers go into @copy. */
void hf__etcd_queue_read_record(const struct hf__etcd_entry *entry,
                                char copy[HF__ETCD_RECORD], hf_lock_info *info);
/* "db1:4211 (thread 1), \"vacuum\"" for error texts. */
void hf__etcd_queue_read_holder(const struct hf__etcd_entry *entry, char *to,
                                size_t size);

/* ---- lease.c ----------------------------------------------------------- */

/* The lease for @ticket; it may not be there yet. */
struct hf__etcd_lease *hf__etcd_lease_for(struct hf__etcd *etcd,
                                          const struct hf__ticket *ticket);
/* Is it good for a new key, now? If not, it has been asked for, and
 * hf__etcd_acquire_lease_ready() comes. Non-zero in @err: it could not be asked. */
bool hf__etcd_lease_use(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                        int *ret_rc, hf_error *err);
/* Ask for it or keep it alive; hf__etcd_acquire_lease_ready() or _lost() comes. */
int hf__etcd_lease_beat(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                        hf_error *err);
/* The server says that it has ended. */
void hf__etcd_lease_ended(struct hf__etcd *etcd, struct hf__etcd_lease *lease);
/* What a ticket may claim that was confirmed by a request sent at @sent_ns. */
void hf__etcd_lease_claim(const struct hf__etcd_lease *lease,
                          const struct hf__ticket *ticket, int64_t sent_ns,
                          struct hf__grant *grant);
/* One more, or one less, ticket is held with it. */
void hf__etcd_lease_hold(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                         bool held);
/* The timer: start what is planned; when is the next? */
int64_t hf__etcd_lease_due(struct hf__etcd *etcd, int64_t now_ns);
/* Before closing: revoke them all. */
hf__engine_query_fn hf__etcd_lease_finish;

/* ---- tickets.c, acquire.c, release.c ------------------------------------------------------------ */

static inline struct hf__etcd_ticket *hf__etcd_ticket(
    const struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&etcd->base, ticket);
}
/* An acquire is to be reported. */
static inline bool hf__etcd_ticket_asks(const struct hf__etcd_ticket *mine)
{
    return mine->state == HF__ETCD_ASKING || mine->state == HF__ETCD_PARKED;
}
/* Checked against the table of moves. */
void hf__etcd_ticket_move(struct hf__etcd_ticket *mine,
                          enum hf__etcd_state state);
/* @call is about the key that @ticket has now, or asks for. */
void hf__etcd_call_about(struct hf__etcd_call *call, struct hf__ticket *ticket);
/* The ticket of @call; NULL also if its lease has ended since, and with it the
 * key that the answer is about: it may have been asked for again. */
struct hf__ticket *hf__etcd_ticket_of(const struct hf__etcd_call *call);
/* The first known ticket for which @wanted; NULL: none. */
static inline struct hf__ticket *hf__etcd_ticket_seek(
    const struct hf__etcd *etcd, hf__ticket_wanted_fn *wanted, const void *what)
{
    size_t bucket = 0;

    return hf__ticket_table_next(&etcd->tickets, &bucket, wanted, what);
}
static inline const struct hf__etcd_ticket *hf__etcd_ticket_at(
    struct hf__ticket_entry *entry)
{
    return HF_CONTAINER_OF(entry, struct hf__etcd_ticket, entry);
}
/* Its hold, if it is one, does not keep the lease busy any more. */
void hf__etcd_ticket_let_go(struct hf__etcd *etcd,
                            struct hf__etcd_ticket *mine);
/* Before the report that ends it. */
void hf__etcd_ticket_forget(struct hf__etcd *etcd, struct hf__ticket *ticket);
int hf__etcd_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                     hf_error *err);
int hf__etcd_withdraw(struct hf__engine *engine, struct hf__ticket *ticket,
                      hf_error *err);
int hf__etcd_release(struct hf__engine *engine, struct hf__ticket *ticket,
                     hf_error *err);
/* The lease is there: ask for those that waited for it, beat for the rest. */
void hf__etcd_acquire_lease_ready(struct hf__etcd *etcd,
                                  struct hf__etcd_lease *lease,
                                  const struct hf__etcd_reply *reply);
/* The lease @id has ended, and with it all its keys. */
void hf__etcd_acquire_lease_lost(struct hf__etcd *etcd, int64_t id);
/* It is ours. */
void hf__etcd_acquire_granted(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* An acquire ends with @reply's error. */
void hf__etcd_acquire_failed(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             const struct hf__etcd_reply *reply);
/* A certain refusal, of our own. */
void hf__etcd_acquire_refuse(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             const hf_error *err);
/* An answer that etcd cannot have given: nothing of it is believed. */
void hf__etcd_acquire_odd(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* It is in line, and did not want to be. */
void hf__etcd_release_try(struct hf__etcd *etcd, struct hf__ticket *ticket,
                          const struct hf__etcd_entry *holder);
/* Its key is not there any more: ask again. */
void hf__etcd_acquire_place_lost(struct hf__etcd *etcd,
                                 struct hf__ticket *ticket);

/* ---- renew.c ------------------------------------------------------------ */

int hf__etcd_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                   size_t n, hf_error *err);
int hf__etcd_downgrade(struct hf__engine *engine, struct hf__ticket *ticket,
                       hf_error *err);
/* The lease was kept alive, or not: those that wanted it are looked at. */
void hf__etcd_renew_confirmed(struct hf__etcd *etcd,
                              struct hf__etcd_lease *lease,
                              const struct hf__etcd_reply *reply);

/* ---- wait.c ------------------------------------------------------------ */

/* Add the request, in case of success, for those before the ticket's revision:
 * all but exclusive ones need the whole queue. */
void hf__etcd_wait_add_before(struct hf__etcd *etcd, struct hf__buf *to,
                              const struct hf__ticket *ticket);
/* @range has those before it, at @revision of the store: hold, or wait. */
void hf__etcd_wait_decide(struct hf__etcd *etcd, struct hf__ticket *ticket,
                          struct hf__pb range, uint64_t revision);
/* Ask who is before it. */
int hf__etcd_wait_look(struct hf__etcd *etcd, struct hf__ticket *ticket,
                       hf_error *err);
void hf__etcd_wait_stop(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* The timer: look for those who have no stream; when is the next? */
int64_t hf__etcd_wait_due(struct hf__etcd *etcd, int64_t now_ns);

/* ---- inspect.c, versions.c, doctor.c ----------------------------------------------- */

int hf__etcd_list(struct hf__engine *engine, struct hf__query *query,
                  hf_error *err);
int hf__etcd_check_token(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err);
int hf__etcd_break(struct hf__engine *engine, struct hf__query *query,
                   hf_error *err);
int hf__etcd_version_read(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err);
int hf__etcd_version_commit(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err);
int hf__etcd_doctor(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err);

#endif
