/* SPDX-License-Identifier: MIT */
/*
 * zookeeper.h - the parts of the ZooKeeper engine to each other.
 *
 *   zookeeper.c  the engine's table: open, connect, close, the timer
 *   session.c    one connection and one session: greeting, calls, watches
 *   tickets.c    which tickets the server may know; paths and records
 *   lock.c       acquire
 *   leave.c      release and withdraw
 *   keep.c       renewals, downgrades, watches, the end of a session
 *   semaphore.c  the two lines of Curator's semaphore
 *   seek.c       finding a node whose name does not tell that it is ours
 *   inspect.c    list, check, break     versions.c     acl.c
 *   doctor.c     is this ensemble fit   words.c  and each of its servers
 *   contend.c    who stands where in line (pure)    jute.c  the wire format
 *   proof.c      how long a session is good for (pure)
 */
#ifndef HF_ZOOKEEPER_ZOOKEEPER_H
#define HF_ZOOKEEPER_ZOOKEEPER_H

#include "engines/common/calls.h"
#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/zookeeper/contend.h"
#include "engines/zookeeper/jute.h"
#include "engines/zookeeper/proof.h"
#include "net/stream.h"

struct hf__zk;
struct hf__zk_call;

/* Requests. */
enum {
    HF__ZK_CREATE_PLAIN = 1, /* inside a transaction */
    HF__ZK_DELETE = 2,
    HF__ZK_EXISTS = 3,
    HF__ZK_GET_DATA = 4,
    HF__ZK_SET_DATA = 5,
    HF__ZK_GET_CHILDREN = 8,
    HF__ZK_SYNC = 9,
    HF__ZK_PING = 11,
    HF__ZK_MULTI = 14,
    HF__ZK_CREATE = 15, /* create2: the answer has the Stat */
    HF__ZK_CREATE_CONTAINER = 19,
    HF__ZK_AUTH = 100,
    HF__ZK_CLOSE = -11
};

/* Kinds of nodes. */
enum {
    HF__ZK_PERSISTENT = 0,
    HF__ZK_EPHEMERAL = 1,
    HF__ZK_EPHEMERAL_SEQUENTIAL = 3,
    HF__ZK_CONTAINER = 4
};

/* Errors of the server that we know by number. */
enum {
    HF__ZK_OK = 0,
    HF__ZK_UNIMPLEMENTED = -6,
    HF__ZK_NO_NODE = -101,
    HF__ZK_NO_AUTH = -102,
    HF__ZK_BAD_VERSION = -103,
    HF__ZK_NODE_EXISTS = -110,
    HF__ZK_SESSION_EXPIRED = -112,
    HF__ZK_INVALID_ACL = -114,
    HF__ZK_AUTH_FAILED = -115,
    HF__ZK_SESSION_MOVED = -118,
    HF__ZK_QUOTA = -125
};

struct hf__zk_reply {
    int32_t error;
    struct hf__jute in;
};

/* The answer to a call. @reply is NULL when the connection was lost before it
 * came. */
typedef void hf__zk_reply_fn(struct hf__zk *zk, const struct hf__zk_call *call,
                             struct hf__zk_reply *reply);

enum {
    /* Goes through the leader. Never two of one session at a time. */
    HF__ZK_WRITES = 1,
    /* Belongs to the call before it: travels with that. */
    HF__ZK_TRAILS = 2
};

struct hf__zk_call {
    hf__zk_reply_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    struct hf__query *query; /* lives until it is answered */
    int32_t number;          /* the callee's */
    uint32_t flags;
    int32_t type; /* HF__ZK_EXISTS, …: what its answer looks like */
    int32_t xid;
    int64_t sent_ns;
    int64_t known_ns; /* WRITES: hf__zk_proof_known() */
};

/* A call that waits until the write before it is answered. */
struct hf__zk_pending {
    struct hf__zk_pending *next;
    struct hf__zk_call call;
    size_t len;
    char bytes[];
};

/* The layout of the nodes of a lock. */
struct hf__zk_dialect {
    const char *name;
    const char *before;    /* before the id in a child's name: "_c_" */
    bool dashes;           /* the id is written as a UUID, with a dash behind */
    const char *marker[3]; /* by enum hf__zk_kind; NULL: not to be had */
    bool semaphore;        /* of Curator: two lines, semaphore.c */
    bool bare;             /* no id in the name: seek.c */
};

/*
 * Where a ticket stands. tickets.c asserts these moves:
 *
 *   IDLE        -> ASKING
 *   ASKING      -> ASKING WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   WAITING     -> ASKING WAITING HELD UNKNOWN RELEASING WITHDRAWING IDLE
 *   HELD        -> ASKING RELEASING WITHDRAWING IDLE
 *   UNKNOWN     -> ASKING WAITING HELD RELEASING WITHDRAWING IDLE
 *   RELEASING   -> UNKNOWN RELEASING WITHDRAWING IDLE
 *   WITHDRAWING -> UNKNOWN RELEASING WITHDRAWING IDLE
 *
 * The core asks again for a ticket that is UNKNOWN. The answer to an earlier
 * step may come first, and decide.
 */
enum hf__zk_state {
    HF__ZK_IDLE,    /* not in the table: the server has nothing of it */
    HF__ZK_ASKING,  /* an acquire has not been reported yet */
    HF__ZK_WAITING, /* in line */
    HF__ZK_HELD,
    HF__ZK_UNKNOWN,   /* reported as unknown, or as a place that was lost */
    HF__ZK_RELEASING, /* release() was called */
    HF__ZK_WITHDRAWING,
    HF__ZK_STATES
};

/* What we know about a ticket's node. */
enum hf__zk_node {
    HF__ZK_NODE_NONE,
    HF__ZK_NODE_UNSURE, /* a create was sent, and its answer was lost */
    HF__ZK_NODE_FOUND,  /* … it is there, by its number: seek.c */
    HF__ZK_NODE_KNOWN,  /* it is there: path_len */
    HF__ZK_NODE_MISSING /* we expected one, and it was gone */
};

/* The line that a ticket stands in. */
enum hf__zk_line_of {
    HF__ZK_LINE_LOCK,  /* of the lock */
    HF__ZK_LINE_MUTEX, /* of Curator's semaphore: for its mutex … */
    HF__ZK_LINE_LEASES /* … and for a slot */
};

/* Our bytes of every ticket. */
struct hf__zk_ticket {
    struct hf__ticket_entry entry; /* in zk->tickets */
    char *path;                    /* of our node; NULL: not known here */
    uint32_t dir_len;              /* the part that is the lock's node */
    uint32_t id_len;               /* the part that no other node begins with */
    uint32_t base_len;             /* the part without the number */
    uint32_t path_len;             /* the whole path; 0 unless NODE_KNOWN */
    uint32_t path_size;
    uint32_t name_len; /* the part that is the name's node */
    char *mutex;       /* semaphore.c: our node in the first line */
    uint64_t czxid;
    int32_t renamed;    /* how often our node got another name */
    uint64_t watched;   /* hash of the path that we wait for; 0: none */
    uint32_t steps;     /* of this ask; bounded, should the store play tricks */
    uint8_t state;      /* enum hf__zk_state */
    uint8_t node;       /* enum hf__zk_node */
    uint8_t line;       /* enum hf__zk_line_of */
    bool under_way;     /* a step of asking or releasing is at the server */
    bool waited;        /* was in line: it marks its slot when it is granted */
    int32_t number;     /* NODE_FOUND */
    int32_t seek_error; /* a child that could not be read */
    uint32_t seeking;   /* answers that are still to come */
    hf_error refused;   /* why the create failed; code 0: it did not */
};

enum {
    HF__ZK_ACLS = 16,
    HF__ZK_ROWS = 10000 /* nodes that are asked who they are, for one answer */
};

/* words.c: one server of the URL after the other is asked. */
struct hf__zk_words {
    struct hf__query *query; /* NULL: nothing is asked */
    struct hf__stream stream;
    struct hf__timer timer;
    size_t next;
    bool told; /* what the one that is being asked says, or that it does not */
};

struct hf__zk_acl {
    int32_t permissions;
    char *scheme;
    char *id;
};

struct hf__zk {
    struct hf__engine base;
    const struct hf__zk_dialect *dialect;
    char *root; /* where the locks are: "/holdfast" */
    size_t root_len;
    struct hf__zk_acl acls[HF__ZK_ACLS];
    size_t n_acls;
    char *credentials; /* "user:password"; NULL: none */

    /* session.c */
    struct hf__stream stream;
    struct hf__tls_context *tls;
    size_t server;          /* of the URL, that we are at or try */
    struct hf__calls calls; /* struct hf__zk_call */
    uint32_t writes;        /* under way: 0 or 1 */
    struct hf__zk_pending *pending;
    struct hf__zk_pending **pending_last;
    bool up;
    bool greeted;     /* the session is there, the credentials are checked */
    bool in_received; /* the stream is being read */
    bool may_close;   /* … and a failure waits for the end of it */
    hf_error fatal;   /* what that failure is */
    int32_t xid;
    int32_t type;       /* of the request that was begun last */
    int64_t connect_ns; /* when connecting began */
    int64_t sent_ns;    /* when anything was sent last */
    int64_t nudge_ns;   /* ping if the first call is not answered by then */
    struct hf__zk_proof proof;
    int64_t proven_ns; /* a lease may begin here: hf__zk_proof_since() */
    int64_t zxid;      /* the newest state that we have seen */
    size_t refusals;   /* connections in a row that ended before a greeting */
    int64_t session;
    char password[16];
    int32_t session_ms; /* as granted by the server */
    char peer[280];     /* for people: "zookeeper db1:2181" */

    struct hf__timer timer; /* answers overdue, and beats */
    struct hf__zk_words words;

    /* keep.c */
    uint32_t held;     /* tickets */
    bool listening;    /* counted in base.under_way */
    int64_t listen_ns; /* … from then on */

    /* tickets.c */
    struct hf__ticket_table tickets;
    uint64_t hash_key[2];
    struct hf__buf scratch;
    char whoami[112];
};

/* ---- session.c --------------------------------------------------------- */

int hf__zk_connect(struct hf__zk *zk, hf_error *err);
/* The address of a server of the URL. */
void hf__zk_peer(const struct hf__zk *zk, size_t server,
                 struct hf__stream_peer *peer);
/* Forget the connection; nothing is reported. */
void hf__zk_disconnect(struct hf__zk *zk, bool forked);
/* The connection cannot be trusted any more: report what was under way. */
void hf__zk_fail(struct hf__zk *zk, const hf_error *err);
/* Begin a request: its fields follow, by hf__jute_put_*() into
 * zk->stream.out, then hf__zk_end(). */
size_t hf__zk_begin(struct hf__zk *zk, int32_t type);
/* @mark is what _begin() returned. Non-zero takes the request back. */
int hf__zk_end(struct hf__zk *zk, size_t mark, const struct hf__zk_call *call,
               hf_error *err);
/* The requests that are a path and a yes or no. */
int hf__zk_ask(struct hf__zk *zk, int32_t type, const char *path, size_t len,
               bool watch, const struct hf__zk_call *call, hf_error *err);
/* A round trip to the leader. What was said before it is known after it. */
int hf__zk_sync(struct hf__zk *zk, hf_error *err);
int hf__zk_delete(struct hf__zk *zk, const char *path, size_t len,
                  const struct hf__zk_call *call, hf_error *err);
/* create2 or createContainer. */
int hf__zk_create(struct hf__zk *zk, const char *path, size_t len,
                  const struct hf__buf *data, int32_t kind,
                  const struct hf__zk_call *call, hf_error *err);
/* The oldest call under way; there is one. */
static inline const struct hf__zk_call *hf__zk_oldest(const struct hf__zk *zk)
{
    return hf__calls_at(&zk->calls, 0);
}
/* Fill @err from an error of the server. */
int hf__zk_explain(const struct hf__zk *zk, int32_t error, hf_error *err);
int hf__zk_explain_lost(const struct hf__zk *zk, hf_error *err);
int hf__zk_not_up(const struct hf__zk *zk, hf_error *err);
/* The lease that the session is good for. */
int64_t hf__zk_lease_ms(const struct hf__zk *zk);
/* The timeout that we ask for. */
int32_t hf__zk_wanted_ms(const struct hf__zk *zk);
void hf__zk_close_session(struct hf__zk *zk);
/* The longest time in which we say nothing. */
int64_t hf__zk_beat_ns(const struct hf__zk *zk);
/* Calls are under way: ping if it is time; returns when it will be. */
int64_t hf__zk_nudge(struct hf__zk *zk, int64_t now_ns);
/* How long an answer may take. */
int64_t hf__zk_patience_ns(const struct hf__zk *zk);

/* ---- zookeeper.c ------------------------------------------------------- */

/* Be woken no later than @due_ns. */
void hf__zk_wake(struct hf__zk *zk, int64_t due_ns);

/* ---- tickets.c --------------------------------------------------------- */

extern const struct hf__zk_dialect hf__zk_dialects[];

static inline struct hf__zk_ticket *hf__zk_ticket(const struct hf__zk *zk,
                                                  struct hf__ticket *ticket)
{
    return hf__engine_ticket(&zk->base, ticket);
}
/* release() or withdraw() was called. */
static inline bool hf__zk_ticket_leaves(const struct hf__zk_ticket *mine)
{
    return mine->state == HF__ZK_RELEASING || mine->state == HF__ZK_WITHDRAWING;
}
/* Checked against the table of moves. */
void hf__zk_ticket_move(struct hf__zk *zk, struct hf__zk_ticket *mine,
                        enum hf__zk_state state);
/* Its node, if it has one, is not known any more. */
void hf__zk_ticket_lose(struct hf__zk_ticket *mine, enum hf__zk_node node);
/* Once. 0, or HF_EINTERNAL without random numbers. */
int hf__zk_tickets_init(struct hf__zk *zk);
/* Know @ticket from now on, and the path of its node up to the number. */
int hf__zk_ticket_know(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err);
/* Our node is called @name. False if it is not ours. */
bool hf__zk_ticket_adopt(struct hf__zk_ticket *mine, const char *name,
                         size_t len);
/* NULL: it is gone. */
static inline struct hf__ticket *hf__zk_ticket_find(const struct hf__zk *zk,
                                                    uint64_t id)
{
    return hf__ticket_table_find(&zk->tickets, id);
}
void hf__zk_ticket_forget(struct hf__zk *zk, struct hf__ticket *ticket);
void hf__zk_ticket_forget_all(struct hf__zk *zk);
/* The path of @name's node in zk->scratch; HF_ENOMEM. */
int hf__zk_path(struct hf__zk *zk, const char *name, size_t len);
/* The marker and kind of what @mode asks for. */
enum hf__zk_kind hf__zk_kind_of(int32_t mode);
/* What a node says about its owner. @token: 0, or what replaces the czxid.
 * @held: a slot is marked. In @to. */
void hf__zk_record_write(const struct hf__zk *zk,
                         const struct hf__ticket *ticket, uint64_t token,
                         bool held, struct hf__buf *to);
enum { HF__ZK_TEXTS = 1024 };
/* The reverse, of our own records and of others'; @row's pointers go into
 * @copy. Returns whether a slot is marked. */
bool hf__zk_record_read(struct hf__jute_text data, char copy[HF__ZK_TEXTS],
                        hf_lock_info *row);
/* Is @data what we have written for @ticket, in a dialect with bare names? */
bool hf__zk_record_is_of(struct hf__zk *zk, const struct hf__ticket *ticket,
                         struct hf__jute_text data);
uint64_t hf__zk_hash(const struct hf__zk *zk, const char *path, size_t len);

/* ---- lock.c ------------------------------------------------------------ */

int hf__zk_acquire(struct hf__zk *zk, struct hf__ticket *ticket, hf_error *err);
/* List the children of the lock's node, and see what follows for @ticket.
 * @watch: and tell us when they change. */
int hf__zk_look(struct hf__zk *zk, struct hf__ticket *ticket, bool watch,
                uint32_t flags, hf_error *err);
/* The same for one in line, unless it is under way. */
void hf__zk_look_again(struct hf__zk *zk, struct hf__ticket *ticket,
                       bool watch);
/* There is no node of @ticket, whatever it wanted. */
void hf__zk_not_there(struct hf__zk *zk, struct hf__ticket *ticket);
/* The path of another child of the same node in zk->scratch. */
int hf__zk_neighbour(struct hf__zk *zk, const struct hf__zk_ticket *mine,
                     const struct hf__zk_contender *other, hf_error *err);
struct hf__grant hf__zk_grant(const struct hf__zk *zk,
                              const struct hf__ticket *ticket, uint64_t token);

/* ---- leave.c ----------------------------------------------------------- */

int hf__zk_leave(struct hf__zk *zk, struct hf__ticket *ticket, bool releasing,
                 hf_error *err);
/* Take the next step of leaving, whatever is known of its nodes. */
int hf__zk_begin_leave(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err);
/* Delete its node: it leaves, or was only tried (busy), or is refused. */
int hf__zk_delete_node(struct hf__zk *zk, struct hf__ticket *ticket,
                       hf_error *err);
/* The step under way has no outcome: whoever asked is told that much. */
void hf__zk_unknown(struct hf__zk *zk, struct hf__ticket *ticket,
                    const hf_error *err);
void hf__zk_answer_lost(struct hf__zk *zk, struct hf__ticket *ticket);
/* Certain: it cannot be had, and nothing is left of it. */
void hf__zk_failed(struct hf__zk *zk, struct hf__ticket *ticket,
                   const hf_error *why);
/* The lock is lost. */
void hf__zk_gone(struct hf__zk *zk, struct hf__ticket *ticket, int reason);

/* ---- keep.c ------------------------------------------------------------ */

int hf__zk_renew(struct hf__zk *zk, struct hf__ticket **tickets, size_t n,
                 hf_error *err);
int hf__zk_downgrade(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err);
/* One ticket more is held, or one less. */
void hf__zk_hold(struct hf__zk *zk, bool held);
/* The timer: listen if it is time; returns when it will be. */
int64_t hf__zk_listen(struct hf__zk *zk, int64_t now_ns);
/* A watch has fired for @path. */
void hf__zk_watched(struct hf__zk *zk, struct hf__jute_text path);
/* The session is no more: nothing of ours is left on the server. */
void hf__zk_session_gone(struct hf__zk *zk);

/* ---- semaphore.c ------------------------------------------------------- */

/* The node that @mine stands with from now on is in the line for the mutex, or
 * for a slot. */
void hf__zk_semaphore_line(struct hf__zk_ticket *mine,
                           enum hf__zk_line_of line);
/* First in the first line: into the second. 0, or HF_ENOMEM. */
int hf__zk_semaphore_enter(struct hf__zk_ticket *mine);
/* Leave the first line. */
int hf__zk_semaphore_pass(struct hf__zk *zk, const struct hf__ticket *ticket,
                          const struct hf__zk_call *call, hf_error *err);
/* Nothing of it is in the first line any more. */
void hf__zk_semaphore_passed(struct hf__zk_ticket *mine);

/* ---- seek.c ------------------------------------------------------------- */

/* Ask the children of @line which of them is @ticket's; what follows is done
 * when they have answered. */
int hf__zk_seek(struct hf__zk *zk, struct hf__ticket *ticket,
                const struct hf__zk_line *line, hf_error *err);

/* ---- acl.c ------------------------------------------------------------- */

/* What the nodes that we make allow whom: acl=, or the standard. */
int hf__zk_acl_read(struct hf__zk *zk, const char *text, hf_error *err);
void hf__zk_acl_put(const struct hf__zk *zk, struct hf__buf *out);
void hf__zk_acl_release(struct hf__zk *zk);

/* ---- inspect.c, versions.c, doctor.c ------------------------------------ */

/* Nobody will answer @query: its memory. NULL is ignored. */
void hf__zk_query_drop(struct hf__query *query);
int hf__zk_list(struct hf__engine *engine, struct hf__query *query,
                hf_error *err);
int hf__zk_check_token(struct hf__engine *engine, struct hf__query *query,
                       hf_error *err);
int hf__zk_break(struct hf__engine *engine, struct hf__query *query,
                 hf_error *err);
int hf__zk_version_read(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err);
int hf__zk_version_commit(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err);
int hf__zk_doctor(struct hf__engine *engine, struct hf__query *query,
                  hf_error *err);

/* ---- words.c ------------------------------------------------------------ */

/* Add what each server says, and answer @query. */
void hf__zk_words_ask(struct hf__zk *zk, struct hf__query *query);
/* Nobody will hear it. */
void hf__zk_words_stop(struct hf__zk *zk, bool forked);

#endif
