/* SPDX-License-Identifier: MIT */
/*
 * engine.h - what an engine is to the core. Read this file to write one.
 *
 * An engine stores locks. The core (gate, ticket, keeper, leaving) decides what
 * is asked and when; an engine only asks and reports. All calls of both
 * directions happen with the client's monitor held, except wait() and kick().
 * Engines never block, retry, sleep or print, and never call user code; what an
 * administrator should read goes to hf__engine_log().
 *
 * Calls down (struct hf__engine_ops) start something. Calls up (hf__up_*)
 * report what became of it: from inside the call down if it is known at once
 * (an embedded engine), or later from a descriptor or timer of the loop.
 * Returning non-zero from a call down means that nothing was started and
 * nothing will be reported.
 *
 * THREE OUTCOMES. granted and queued and busy and failed are certain;
 * hf__up_unknown() says that something may or may not have reached the store.
 * The core then asks again (acquire is idempotent for one ticket) or withdraws,
 * until it is certain.
 *
 * WRAPPERS. trace and fault are engines around an engine: they pass calls down
 * to @inner and receive its reports by being its @up. So always report through
 * hf__up_*, never by calling the core.
 */
#ifndef HF_ENGINE_H
#define HF_ENGINE_H

#include "base/error.h"
#include "base/list.h"
#include "base/loop.h"
#include "config/config.h"
#include "config/url.h"
#include "core/ticket.h"

struct hf__engine;
struct hf__engine_up;
struct hf__query;

/* What the core tells an engine about itself; the engine reads it. */
struct hf__engine_host {
    struct hf__loop *loop;
    const struct hf__settings *settings;
    const struct hf__url *url;
    uint8_t identity[16]; /* random, the client's */
    const char *identity_hex;
    const char *host; /* this machine's name */
    int64_t pid;
    /* Start an engine's timer, so that somebody wakes for it. There is room
     * for ops->timers of them, or one; stop it by hf__timer_stop(). */
    void (*timer)(const struct hf__engine_host *host, struct hf__timer *timer,
                  int64_t due_ns);
    /* A line for the application's log: hf__engine_log(). NULL: no log. */
    void (*log)(void *log_owner, int level, const char *text);
    void *log_owner;
};

struct hf__engine {
    const struct hf__engine_ops *ops;
    const struct hf__engine_host *host;
    const struct hf__engine_up *up; /* who hears the reports */
    void *up_owner;                 /* the client, or the wrapping engine */
    struct hf__engine *inner;       /* wrappers: the engine inside; else NULL */
    uint64_t caps;                  /* may be narrowed by open() or connect() */
    size_t ticket_offset;           /* hf__engine_ticket() */
    const char *place;              /* the directory that open() chose, where
                                       the URL names none; NULL: none */
    uint32_t under_way;             /* answers that the loop still has to
                                       read: some thread must poll */
    bool keeps_lost_closed;         /* for close(): a lost lock is in its
                                       lock_delay, which must not end with the
                                       client: leave its session alone */
};

/* The engine's own bytes of @ticket: ops->ticket_size of them, zeroed when the
 * ticket is made and not touched by anybody else. */
static inline void *hf__engine_ticket(const struct hf__engine *engine,
                                      struct hf__ticket *ticket)
{
    return (char *)ticket + engine->ticket_offset;
}

/* ---- calls down -------------------------------------------------------- */

/* Check URL and settings, take memory and descriptors. No I/O that can wait
 * for a peer. @engine is zeroed beyond its base. */
typedef int hf__engine_open_fn(struct hf__engine *engine, hf_error *err);
/* Connect, or connect again after hf__up_down(). Ends in hf__up_connected() or
 * hf__up_down(). */
typedef int hf__engine_connect_fn(struct hf__engine *engine, hf_error *err);
/* Give everything back. Accepts an engine whose open() failed half-way. What
 * it still has on the store may stay until its lease ends: the core has
 * released what it could. With @forked, in a forked child: close descriptors
 * by close() alone, touch neither the store nor the peer. */
typedef void hf__engine_close_fn(struct hf__engine *engine, bool forked);

/*
 * Ask once for @ticket. Ends, exactly once per call, in
 *
 *   hf__up_granted()  held; under HF_CAP_FENCED its token exceeds all before
 *   hf__up_queued()   in line; hf__up_granted() will follow. Where the waiter
 *                     may be dead or stopped, the engine makes a grant count
 *                     only when this side has accepted it
 *   hf__up_busy()     held by another, and not in line. With ticket->nowait
 *                     never queued; without HF_CAP_PUSH always so,
 *                     unless the engine asks again by itself, in line
 *   hf__up_failed()   certain: not held, nothing left behind
 *   hf__up_unknown()  sent, and the answer was lost
 *
 * A pushed grant may be reported before the report "queued": then the latter is
 * dropped. MUST be idempotent for one ticket (ticket->id): asking again
 * reports the grant, or keeps the place in line.
 */
typedef int hf__engine_acquire_fn(struct hf__engine *engine,
                                  struct hf__ticket *ticket, hf_error *err);
/* Make it certain that @ticket neither waits nor holds, whatever became of
 * earlier requests. Ends in hf__up_left() or hf__up_unknown(). May be called in
 * any state, also while an acquire of the ticket is under way; that one then
 * reports nothing any more. */
typedef int hf__engine_withdraw_fn(struct hf__engine *engine,
                                   struct hf__ticket *ticket, hf_error *err);
/* Free a held ticket if it is still ours, and hand on. Ends in hf__up_left()
 * with 0, or HF_ELOST if it was not ours any more, or hf__up_unknown(). */
typedef int hf__engine_release_fn(struct hf__engine *engine,
                                  struct hf__ticket *ticket, hf_error *err);
/* Extend the leases of @n held tickets (and, under HF__BEATS_WAITERS, prove
 * the life of queued ones) in one trip. Ends for each in hf__up_renewed(),
 * hf__up_lost(), or, for all that get no answer, in silence: the core counts
 * the time. A queued ticket that is found granted is reported granted. */
typedef int hf__engine_renew_fn(struct hf__engine *engine,
                                struct hf__ticket **tickets, size_t n,
                                hf_error *err);
/* Exclusive to shared. Ends in hf__up_renewed() (ticket->mode is the new one
 * then), hf__up_lost() or hf__up_unknown(). */
typedef int hf__engine_downgrade_fn(struct hf__engine *engine,
                                    struct hf__ticket *ticket, hf_error *err);
/* A held ticket goes to another owner of this client, without being let go: a
 * new token, and ticket->owner, on the store. At once: 0 and the token, or
 * non-zero, and nothing has changed. Where it is NULL, tokens of a range serve
 * (HF__RESERVES_TOKENS). */
typedef int hf__engine_pass_fn(struct hf__engine *engine,
                               struct hf__ticket *ticket, uint64_t *ret_token);
/*
 * Give up @old, which is held, and park on the condition ticket->cond of its
 * lock, in one step on the store: at no instant is @ticket not there and @old
 * free. A wake-up that @old bears is used up by it. Ends, exactly once per call,
 * in a report about @ticket:
 *
 *   hf__up_parked()   parked; @old is gone, and the engine has forgotten it
 *   hf__up_queued(),  the same, and a signal has called it already: in line, or
 *   hf__up_granted()  holding. These also follow hf__up_parked(), when a signal
 *                     has come
 *   hf__up_lost()     @old is not ours any more; nothing is parked, and the
 *                     engine has forgotten both
 *   hf__up_failed()   certain: nothing has changed, @old is held as before
 *   hf__up_unknown()  sent, and the answer was lost: it will be asked again, or
 *                     both are withdrawn
 *
 * MUST be idempotent for one ticket (ticket->id): asking again answers what
 * @ticket is by now, whatever became of @old. From this call on nothing is
 * reported of @old, unless it is withdrawn or hf__up_failed() keeps it.
 */
typedef int hf__engine_park_fn(struct hf__engine *engine,
                               struct hf__ticket *ticket,
                               struct hf__ticket *old, hf_error *err);
/* The wait of a parked ticket is over: it goes to the end of the line, without
 * a wake-up; one that was called already stays what it is. Ends in
 * hf__up_queued(), hf__up_granted(), hf__up_lost() or hf__up_unknown().
 * Idempotent. */
typedef int hf__engine_unpark_fn(struct hf__engine *engine,
                                 struct hf__ticket *ticket, hf_error *err);
/* One question about locks in general: list, check, break, version, doctor.
 * Ends in hf__up_answer(). */
typedef int hf__engine_query_fn(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err);
/* What a watch of the core wants to hear of. Lives from watch() to unwatch(). */
struct hf__feed {
    struct hf__list link; /* the engine's */
    const char *name;     /* this name; NULL: */
    const char *prefix;   /* the names that begin with this */
    bool live;            /* the engine's: every change is reported by itself;
                             while not, the core looks again and again */
    bool refused;         /* the engine's: do not ask again before the next
                             hf__up_connected() */
    void *engine_data;    /* the engine's */
};
/* watch: from now on call hf__up_changed() when something of @feed may have
 * changed at the store. Called while connected, and for the same feed again
 * after every hf__up_connected(), which ends what there was of it, and now and
 * then while it is not live. unwatch: forget @feed; also while not connected,
 * and for a feed that was never watched. */
typedef void hf__engine_watch_fn(struct hf__engine *engine,
                                 struct hf__feed *feed);
/* Where a blocking caller sleeps instead of in the loop. Called WITHOUT the
 * monitor; returns when something may have happened to a ticket of this
 * client, on kick(), or at @until_ns. The core then calls attend(). */
typedef void hf__engine_wait_fn(struct hf__engine *engine, int64_t until_ns);
/* With the monitor: look what came, report it, and prepare the next wait().
 * Also called when the loop was kicked. */
typedef void hf__engine_attend_fn(struct hf__engine *engine);
/* End a wait(), or the next one. Any thread, async-signal-safe. */
typedef void hf__engine_kick_fn(struct hf__engine *engine);
/* With the monitor. @on: tickets are in line and nobody sits in wait(): from
 * now on kick the loop (hf__loop_kick) when something comes. */
typedef void hf__engine_sentry_fn(struct hf__engine *engine, bool on);
/* With the monitor: send what was gathered. Called before the monitor is left
 * and before polling. */
typedef void hf__engine_flush_fn(struct hf__engine *engine);

/* Engine flags, for the core alone. */
enum {
    /* renew() is also called for queued tickets, every third of a lease. */
    HF__BEATS_WAITERS = 1,
    /* Grants may carry a range of tokens (hf__grant.tokens > 1). */
    HF__RESERVES_TOKENS = 2,
    /* One lease for the whole client: down means JEOPARDY for every hold. */
    HF__SESSION = 4,
    /* renew() is also called for parked tickets, every third of a lease. With
     * HF__BEATS_WAITERS it is in any case. */
    HF__BEATS_PARKED = 8,
    /* A release and the acquire that follows it before flush() cost little more
     * than one of them. */
    HF__JOINS_CALLS = 16
};

struct hf__engine_ops {
    const char *name;     /* "redis" */
    const char *schemes;  /* "redis rediss"; wrappers: their word */
    const char *dialects; /* "native plain" */
    /* Is @key of a URL's query one that it hands to its client library as it
     * is, as "sslmode"? NULL: there are none. */
    bool (*takes)(const char *key);
    uint64_t caps;                    /* the most it can promise */
    uint32_t flags;                   /* HF__BEATS_WAITERS, … */
    size_t size;                      /* sizeof its struct; base comes first */
    size_t ticket_size;               /* its bytes in every ticket */
    uint32_t timers;                  /* how many it runs at once; 0: one */
    hf__engine_open_fn *open;         /* required */
    hf__engine_connect_fn *connect;   /* required */
    hf__engine_close_fn *close;       /* required */
    hf__engine_acquire_fn *acquire;   /* required */
    hf__engine_withdraw_fn *withdraw; /* required */
    hf__engine_release_fn *release;   /* required */
    hf__engine_renew_fn *renew;       /* required */
    hf__engine_downgrade_fn *downgrade; /* NULL: HF_EUNSUPPORTED */
    hf__engine_pass_fn *pass;           /* NULL: by ranges of tokens, or not */
    hf__engine_park_fn *park;           /* these three: all, or all are NULL */
    hf__engine_unpark_fn *unpark;
    /* Wake the first ticket that is parked on query->cond, or with query->all
     * all of them, if query->ticket still holds query->name: compared on the
     * store in the step that calls them. The answer is query->woken;
     * HF_ELOST: it does not hold, and nobody was woken. */
    hf__engine_query_fn *signal;
    hf__engine_query_fn *list; /* NULL: HF_EUNSUPPORTED, as all below */
    hf__engine_query_fn *check_token;
    hf__engine_query_fn *break_lock;
    hf__engine_query_fn *version_read;
    hf__engine_query_fn *version_commit;
    hf__engine_query_fn *doctor;
    /* The board of the store, where clients post what they wait for
     * (core/notice.h). Both or none; a mode without one answers
     * HF_EUNSUPPORTED. query->version: the number of this store, which it made
     * by chance and keeps itself. */
    hf__engine_query_fn *board_post; /* query->text is the notice of the client
                                        query->owner for HF__BOARD_MS; NULL:
                                        it has none any more */
    hf__engine_query_fn *board_read; /* hf__query_add_notice() each */
    /* The connection whose transaction holds query->ticket, for the caller's
     * own statements; from then on the engine leaves it alone until release()
     * or withdraw(). */
    hf__engine_query_fn *connection;
    /* The last question, before close(): what the client as a whole still has
     * on the store goes. Nobody holds or waits any more. NULL: nothing. */
    hf__engine_query_fn *finish;
    hf__engine_watch_fn *watch; /* NULL, both: the core lists in turns */
    hf__engine_watch_fn *unwatch;
    hf__engine_wait_fn *wait; /* NULL: the loop; then the next three
                                         are NULL too */
    hf__engine_attend_fn *attend;
    hf__engine_kick_fn *kick;
    hf__engine_sentry_fn *sentry;
    hf__engine_flush_fn *flush; /* NULL: nothing is gathered */
};

/* ---- reports up -------------------------------------------------------- */

/* What came with a grant. */
struct hf__grant {
    uint64_t token;   /* 0: none */
    uint32_t tokens;  /* the range token … token+tokens-1 is ours; 1 */
    int64_t lease_ms; /* 0: no lease, held until released or dead */
    int64_t sent_ns;  /* when the request, or the last answered beat, was
                          sent: the lease counts from here */
    const char *by;   /* for people: who agreed, where many are asked; NULL */
    bool woken;       /* of a ticket with a condition: it bears a wake-up */
};

struct hf__engine_up {
    void (*connected)(void *owner);
    void (*down)(void *owner, const hf_error *err);
    void (*granted)(void *owner, struct hf__ticket *ticket,
                    const struct hf__grant *grant);
    void (*queued)(void *owner, struct hf__ticket *ticket);
    void (*parked)(void *owner, struct hf__ticket *ticket);
    void (*busy)(void *owner, struct hf__ticket *ticket, int64_t again_ns,
                 const char *holder);
    void (*failed)(void *owner, struct hf__ticket *ticket, const hf_error *err);
    void (*unknown)(void *owner, struct hf__ticket *ticket,
                    const hf_error *err);
    void (*renewed)(void *owner, struct hf__ticket *ticket,
                    const struct hf__grant *grant);
    void (*lost)(void *owner, struct hf__ticket *ticket, int reason);
    void (*left)(void *owner, struct hf__ticket *ticket, int rc);
    void (*answer)(void *owner, struct hf__query *query, int rc,
                   const hf_error *err);
    void (*changed)(void *owner, const char *name);
};

/* The table of the functions PREFIXconnected, PREFIXdown, … */
#define HF__ENGINE_UP(prefix)                                                  \
    {                                                                          \
        .connected = prefix##connected, .down = prefix##down,                  \
        .granted = prefix##granted, .queued = prefix##queued,                  \
        .parked = prefix##parked, .busy = prefix##busy,                        \
        .failed = prefix##failed, .unknown = prefix##unknown,                  \
        .renewed = prefix##renewed, .lost = prefix##lost,                      \
        .left = prefix##left, .answer = prefix##answer,                        \
        .changed = prefix##changed                                             \
    }

/* Connected: requests may be sent. Everything in line or held should be asked
 * about again: the core does, by renew() and acquire(). */
static inline void hf__up_connected(struct hf__engine *engine)
{
    engine->up->connected(engine->up_owner);
}
/* Not connected (any more). HF_EAUTH and HF_ECONFIG are final, everything else
 * is tried again. Every request under way has been, or is now, reported
 * unknown by the engine itself. */
static inline void hf__up_down(struct hf__engine *engine, const hf_error *err)
{
    engine->up->down(engine->up_owner, err);
}
static inline void hf__up_granted(struct hf__engine *engine,
                                  struct hf__ticket *ticket,
                                  const struct hf__grant *grant)
{
    engine->up->granted(engine->up_owner, ticket, grant);
}
static inline void hf__up_queued(struct hf__engine *engine,
                                 struct hf__ticket *ticket)
{
    engine->up->queued(engine->up_owner, ticket);
}
/* Of park: see there. */
static inline void hf__up_parked(struct hf__engine *engine,
                                 struct hf__ticket *ticket)
{
    engine->up->parked(engine->up_owner, ticket);
}
/* @again_ns: ask again at this instant; 0: by the retry policy. @holder: who
 * has it, for the error text ("db1:4211, \"vacuum\""); NULL: not known. */
static inline void hf__up_busy(struct hf__engine *engine,
                               struct hf__ticket *ticket, int64_t again_ns,
                               const char *holder)
{
    engine->up->busy(engine->up_owner, ticket, again_ns, holder);
}
/* Before hf__up_busy(), where the core polls: @rival is a number of the grant that
 * is in the way, which the next grant has not; 0: not known. */
static inline void hf__up_rival(struct hf__ticket *ticket, uint64_t rival)
{
    if (ticket->rival == rival)
        return;
    ticket->rival = rival;
    ticket->rival_ns = hf__now();
}
/* Of acquire: certain, and the caller is told, except HF_EUNAVAILABLE, which
 * is tried again while the caller waits. */
static inline void hf__up_failed(struct hf__engine *engine,
                                 struct hf__ticket *ticket, const hf_error *err)
{
    engine->up->failed(engine->up_owner, ticket, err);
}
/* Of acquire, park, unpark, withdraw, release or downgrade. */
static inline void hf__up_unknown(struct hf__engine *engine,
                                  struct hf__ticket *ticket,
                                  const hf_error *err)
{
    engine->up->unknown(engine->up_owner, ticket, err);
}
/* @grant: lease_ms and sent_ns count; the tokens do not change. */
static inline void hf__up_renewed(struct hf__engine *engine,
                                  struct hf__ticket *ticket,
                                  const struct hf__grant *grant)
{
    engine->up->renewed(engine->up_owner, ticket, grant);
}
/* Certain: neither held nor in line nor parked any more. A queued one is asked
 * for again; in place of a parked one another ticket asks for the lock;
 * an acquire that is under way ends with this report, and is made again.
 * @reason: HF__LOST_*. Nothing of it is left on the store. */
static inline void hf__up_lost(struct hf__engine *engine,
                               struct hf__ticket *ticket, int reason)
{
    engine->up->lost(engine->up_owner, ticket, reason);
}
/* withdraw or release is done. After this the engine forgets the ticket. @rc:
 * 0, HF_ELOST, or HF_EUNKNOWN where the caller's own transaction ended with
 * it and nobody knows how. */
static inline void hf__up_left(struct hf__engine *engine,
                               struct hf__ticket *ticket, int rc)
{
    engine->up->left(engine->up_owner, ticket, rc);
}
static inline void hf__up_answer(struct hf__engine *engine,
                                 struct hf__query *query, int rc,
                                 const hf_error *err)
{
    engine->up->answer(engine->up_owner, query, rc, err);
}

/* Something about @name may have changed, or, if it is NULL, about any name. A
 * hint: the core looks. It may come twice or late; one that was lost is made
 * good by the next. */
static inline void hf__up_changed(struct hf__engine *engine, const char *name)
{
    engine->up->changed(engine->up_owner, name);
}

/* A line of @level (HF_LOG_*) for the application's log hook. */
void hf__engine_log(const struct hf__engine *engine, int level,
                    const char *format, ...) HF_PRINTF(3, 4);

/* ---- queries ----------------------------------------------------------- */

/* A notice that is not posted again ends after this long. */
enum { HF__BOARD_MS = 10000 };

/* A row that list() or doctor() found; strings are copied by the adders. */
struct hf__query {
    struct hf__list link; /* the core's */
    const char *name;     /* list: exact name, or NULL */
    const char *prefix;   /* list: "" for all; ignored with a name */
    const char *owner;    /* break_lock, where token is 0; board_post */
    const char *text;     /* board_post: the notice */
    const char *cond;     /* signal: the condition of the lock @name */
    uint64_t token;       /* check_token, break_lock; version_commit: the
                               expected one */
    uint64_t version;     /* answer of version_read, version_commit,
                                  board_post, board_read */
    uint64_t ticket;      /* connection, signal: the hold's id */
    void *connection;     /* answer of connection */
    void *rows;           /* the core's */
    void *engine_data;    /* the engine's, while under way */
    uint32_t woken;       /* answer of signal: how many */
    bool all;             /* signal: wake all, not one */
    bool changes; /* break_lock, version_commit, signal: once it is sent,
                                  no answer is HF_EUNKNOWN */
    bool breaks;  /* break_lock, for the core's watches */
    struct hf__waiter *waiter; /* the core's; NULL: nobody waits any more */
    int rc;                    /* the core's */
    hf_error err;              /* the core's */
};

/* False once the caller has given up: the engine asks the server for no more
 * of the answer, and ends the query. */
static inline bool hf__query_wanted(const struct hf__query *query)
{
    return query->waiter != NULL;
}

/* Add a row to the answer. An error must be passed to hf__up_answer():
 * HF_ENOMEM, or HF_ENOSPACE when the answer has more rows or bytes than any
 * honest one. The core sorts by name, keeping the order of rows of one name. */
int hf__query_add_lock(struct hf__query *query, const hf_lock_info *row);
/* What the server has is added as it is; the core checks it. */
int hf__query_add_notice(struct hf__query *query, const char *text, size_t len);
int hf__query_add_finding(struct hf__query *query, int status,
                          const char *check, const char *fix,
                          const char *detail_format, ...) HF_PRINTF(5, 6);

/* ---- the registry (registry.c) ----------------------------------------- */

/* The engine for @scheme; HF_EUNSUPPORTED with an install hint. */
int hf__engine_find(const char *scheme, const struct hf__engine_ops **ret_ops,
                    hf_error *err);
/* Is @key of a URL's query one that the engine for @scheme hands on? */
bool hf__engine_takes(const char *scheme, const char *key);
/* The chain of engines for host->url, opened; the outermost reports to @up.
 * Adds the engines' bytes to *ticket_size. */
int hf__engine_new(const struct hf__engine_host *host,
                   const struct hf__engine_up *up, void *up_owner,
                   size_t *ticket_size, struct hf__engine **ret_engine,
                   hf_error *err);
/* Close and free the chain; NULL is ignored. */
void hf__engine_free(struct hf__engine *engine, bool forked);
/* Tests: put one more engine in front of the table; NULL takes it out. */
void hf__engine_register(const struct hf__engine_ops *ops);

extern const struct hf__engine_ops hf__engine_local;
extern const struct hf__engine_ops hf__engine_redis;
extern const struct hf__engine_ops hf__engine_redis_cluster;
extern const struct hf__engine_ops hf__engine_redlock;
extern const struct hf__engine_ops hf__engine_zookeeper;
extern const struct hf__engine_ops hf__engine_etcd;
extern const struct hf__engine_ops hf__engine_mysql;
extern const struct hf__engine_ops hf__engine_postgres;
extern const struct hf__engine_ops hf__engine_memcached;
extern const struct hf__engine_ops hf__engine_trace;
extern const struct hf__engine_ops hf__engine_fault;

#endif
