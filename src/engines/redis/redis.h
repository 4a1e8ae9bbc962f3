/* SPDX-License-Identifier: MIT */
/*
 * redis.h - the Redis engine: its own struct, a call and a ticket.
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

/*
 * Where a ticket is. tickets.c asserts the moves:
 *   IDLE        -> IDLE ASKING
 *   ASKING      -> IDLE ASKING TRIED SYNCING WAITING PARKED HELD UNKNOWN
 *   ASKING      -> WITHDRAWING RELEASING
 *   TRIED       -> IDLE ASKING TRIED SYNCING WAITING HELD UNKNOWN
 *   TRIED       -> WITHDRAWING RELEASING
 *   SYNCING     -> IDLE ASKING SYNCING WAITING PARKED UNPARKING HELD UNKNOWN
 *   SYNCING     -> WITHDRAWING RELEASING
 *   WAITING     -> IDLE ASKING LOOKING SYNCING UNPARKING HELD WITHDRAWING
 *   LOOKING     -> IDLE ASKING LOOKING WAITING SYNCING HELD WITHDRAWING
 *   PARKED      -> IDLE ASKING WAITING UNPARKING SYNCING HELD WITHDRAWING
 *   UNPARKING   -> IDLE UNPARKING WAITING SYNCING HELD UNKNOWN WITHDRAWING
 *   HELD        -> IDLE ASKING UNPARKING YIELDING WITHDRAWING RELEASING
 *   YIELDING    -> IDLE YIELDING HELD WITHDRAWING RELEASING
 *   UNKNOWN     -> IDLE ASKING UNPARKING WITHDRAWING RELEASING
 *   WITHDRAWING -> IDLE WAITING UNKNOWN WITHDRAWING RELEASING
 *   RELEASING   -> IDLE WITHDRAWING RELEASING
 */
enum hf__redis_state {
    HF__REDIS_IDLE,        /* the server knows nothing of it */
    HF__REDIS_ASKING,      /* an acquire has not been reported yet */
    HF__REDIS_TRIED,       /* … and a fast attempt of it failed */
    HF__REDIS_SYNCING,     /* … granted, but replicas have to have it first */
    HF__REDIS_WAITING,     /* in line */
    HF__REDIS_LOOKING,     /* … and a try is under way (redisson) */
    HF__REDIS_PARKED,      /* on a condition, or in line by now */
    HF__REDIS_UNPARKING,   /* … and unpark() has not been reported yet */
    HF__REDIS_HELD,        /* … as far as we know */
    HF__REDIS_YIELDING,    /* … unless the park of another has ended it */
    HF__REDIS_UNKNOWN,     /* reported unknown */
    HF__REDIS_WITHDRAWING, /* withdraw() was called, or a grant is given back */
    HF__REDIS_RELEASING,   /* release() was called */
    HF__REDIS_STATES
};

/* Our bytes of every ticket. */
struct hf__redis_ticket {
    struct hf__ticket_entry entry; /* in redis->tickets */
    char *record; /* and the key behind it; NULL: not known here */
    uint32_t record_len;
    uint32_t key_len;
    uint64_t name_hash;   /* under redis->hash_key; 0: not computed */
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* in line, and first: look again then */
    struct hf__redis_channel *channel; /* where a wake-up would come, or NULL */
    struct hf__list hearing;           /* in channel->waiters */
    uint8_t state;                     /* enum hf__redis_state */
    bool in_line;           /* it was reported as queued, and not yet as held */
    bool again;             /* an earlier acquire may have left something */
    bool importing;         /* the slot is on its way to this node */
    bool stale;             /* parked, and may have missed a signal */
    struct hf__ticket *old; /* park() gives this one up; NULL: it is done */
    uint64_t sync;          /* awaits the WAIT with this mark; 0: none */
    struct hf__grant grant; /* … and is reported then */
    hf_error *why;          /* given back for this reason */
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
    bool up;
    bool greeting;
    bool subscribed;
    int64_t connect_ns;    /* when connecting began */
    int64_t connection_id; /* the server's number for this connection */
    int64_t old_id;        /* of the one before, to be ended */
    char run_id[41];       /* of the server */
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
/* "not connected". */
int hf__redis_not_up(struct hf__redis *redis, hf_error *err);

#endif
