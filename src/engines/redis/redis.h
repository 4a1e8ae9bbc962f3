/* SPDX-License-Identifier: MIT */
/*
 * redis.h - the Redis engine: its own struct, and a call.
 *
 *   redis.c       the engine's table: open, connect, close, timers
 *   connection.c  one connection: greeting, calls and their answers in order
 *   resp.c        the protocol           errors.c  errors in our words
 *   sentinel.c    where to connect to, if sentinels know
 *   tickets.c     which tickets the server may know; records (record.h), keys
 *   release.c     release, withdraw, downgrade   renew.c  many in one trip
 *   wait.c        waiters hear of their grant    watch.c  hints of changes
 *   sync.c        report a grant when enough replicas have it
 *   native*.c  plain.c  redisson*.c     the three dialects (dialect.h)
 *   inspect.c     list, check, break     versions.c     doctor.c     board.c
 *   lua/          what runs inside the server (scripts.h)
 *   cluster*.c  redlock*.c     engines made of engines for each server
 *
 * The functions are in connection.h, errors.h, tickets.h, verbs.h, inspect.h,
 * native.h and redisson.h.
 */
#ifndef HF_REDIS_REDIS_H
#define HF_REDIS_REDIS_H

#include "engines/common/calls.h"
#include "engines/common/link.h"
#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/redis/dialect.h"
#include "engines/redis/record.h"
#include "engines/redis/resp.h"
#include "engines/redis/scripts.h"
#include "engines/redis/slot.h"
#include "net/stream.h"

struct hf__redis_ticket;
struct hf__sentinels;

struct hf__redis_call {
    hf__redis_reply_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    struct hf__query *query; /* lives until it is answered */
    void *data; /* freed with hf__free() if nobody answers any more */
    int64_t sent_ns;
    bool pushed;  /* SUBSCRIBE: a push is the answer, or an error */
    bool movable; /* all that was asked for the ticket: ask elsewhere on ASK */
};

enum {
    HF__REDIS_NAMES = 65536, /* at most */
    HF__REDIS_RENEWALS = 100,
    HF__REDIS_CHANNELS = 256
};

/* What this connection knows about a name: native_acquire.c. */
struct hf__redis_name {
    uint64_t hash;
    int64_t based_ns;   /* a script has based its token then … */
    uint64_t based;     /* … on this */
    uint64_t token;     /* the last one we saw */
    uint32_t contended; /* grants at once until it counts as quiet again */
    bool taken;         /* when it was last tried */
};

/* Are we connected to a server, or to enough of several? */
enum hf__redis_peer_state {
    HF__PEER_DOWN,
    HF__PEER_CONNECTING, /* of a node; it has not said who it is */
    HF__PEER_UP,
    HF__PEER_LISTENING, /* … and subscribed to what is ours alone */
    HF__PEER_LATE /* of a node: no answer in time; not asked until it answers */
};

struct hf__redis {
    struct hf__engine base;
    const struct hf__redis_dialect *dialect;
    const struct hf__redis_script *scripts; /* by HF__SCRIPT_… */
    int release_script;                     /* of the dialect, or of kind */
    int renew_script;

    /* connection.c */
    struct hf__stream stream;
    struct hf__resp_scan scan;
    bool loading[HF__SCRIPTS]; /* SCRIPT LOAD is under way */
    bool load_refused;         /* this user may not do it */
    bool release_loaded;       /* … or done, on this connection */
    struct hf__calls calls;    /* of struct hf__redis_call */
    uint8_t state;             /* enum hf__redis_peer_state */
    int64_t connect_ns;        /* when connecting began */
    int64_t connection_id;     /* the server's number for this connection */
    int64_t old_id;            /* of the one before, to be ended */
    char run_id[41];           /* of the server */
    char old_run_id[41];
    char version[24]; /* of the server */
    int64_t db;
    struct hf__tls_context *tls;
    struct hf__sentinels *sentinels; /* NULL: the URL names the server */
    bool in_cluster;                 /* a node of one; the next two are set */
    /* A slot is served by @to now. */
    void (*moved)(struct hf__redis *redis, const struct hf__slot_redirect *to);
    /* … or this once, because the slot is on its way. False: it cannot be
     * asked there; otherwise @call is not answered here any more. */
    bool (*asked)(struct hf__redis *redis, const struct hf__redis_call *call,
                  const struct hf__slot_redirect *to);
    bool redirected;          /* the answer that is being told was MOVED */
    bool no_trial;            /* doctor: the name to try out is not ours */
    uint32_t *under_way_sum;  /* of all nodes; or NULL */
    bool watching;            /* somebody listens, whatever is asked */
    uint32_t live_feeds;      /* … and for the sake of so many feeds */
    struct hf__list trackers; /* watch.c */
    int64_t tickets_since_ns;
    char peer[280]; /* for people: "redis db1:6379" */

    uint64_t sync_last;   /* the last mark that was given */
    uint64_t sync_sent;   /* of the WAIT under way; 0: none */
    struct hf__link link; /* its timer: answers overdue, and watches */

    /* tickets.c */
    struct hf__ticket_table tickets; /* those that have a record */
    uint64_t hash_key[2];
    uint64_t nonces[64]; /* random numbers, taken from the end */
    uint32_t nonces_n;
    struct hf__redis_name *names; /* by hash; &nobody: no table yet */
    uint32_t names_size;          /* a power of two */
    uint32_t names_n;
    struct hf__redis_name nobody;
    struct hf__buf scratch;
    size_t prefix_len; /* of the setting */
    char identity[33];
    char head[HF__RECORD_TEXTS]; /* of every record of ours */
    char whoami[96];             /* host LF process LF */
    size_t whoami_len;

    /* wait.c */
    struct hf__redis_channel *channels[HF__REDIS_CHANNELS];

    /* plain.c */
    const struct hf__plain_shape *shape; /* of values; NULL: ours */

    /* redisson.c */
    const struct hf__redisson_kind *kind;
    char uuid[37]; /* the identity, as Redisson writes it */
};

/* Look at a waiter again in @ms; negative or too long: never. */
void hf__redis_watch(struct hf__redis *redis, struct hf__redis_ticket *mine,
                     int64_t ms);
static inline bool hf__redis_is_up(const struct hf__redis *redis)
{
    return redis->state >= HF__PEER_UP;
}
/* "not connected". */
int hf__redis_not_up(struct hf__redis *redis, hf_error *err);

#endif
