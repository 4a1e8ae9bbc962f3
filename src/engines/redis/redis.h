/* SPDX-License-Identifier: MIT */
/*
 * redis.h - the parts of the Redis engine to each other.
 *
 *   redis.c       the engine's table: open, connect, close, timers
 *   connection.c  one connection: greeting, calls and their answers in order
 *   sentinel.c    where to connect to, if sentinels know
 *   tickets.c     which tickets the server may know; records and keys
 *   beats.c       renewals, many in one trip
 *   leave.c       release, withdrawal, downgrade
 *   sync.c        replicas have it, or it is not granted
 *   native.c      our own layout        plain.c  SET NX PX, as others have it
 *   redisson.c    the locks of Redisson, by its channels (channels.c)
 *   inspect.c     list, check, break, versions      doctor.c
 */
#ifndef HF_REDIS_REDIS_H
#define HF_REDIS_REDIS_H

#include "engines/common/calls.h"
#include "engines/common/ticket_table.h"
#include "engines/engine.h"
#include "engines/redis/record.h"
#include "engines/redis/resp.h"
#include "engines/redis/scripts.h"
#include "engines/redis/slot.h"
#include "net/stream.h"

struct hf__redis;
struct hf__redis_call;
struct hf__sentinels;

/* The answer to a call. @reply is NULL when the connection was lost before it
 * came. The call's @data is the callee's to free. */
typedef void hf__redis_reply_fn(struct hf__redis *redis,
                                const struct hf__redis_call *call,
                                struct hf__resp *reply);

struct hf__redis_call {
    hf__redis_reply_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    struct hf__query *query; /* lives until it is answered */
    void *data; /* freed with hf__free() if nobody answers any more */
    int64_t sent_ns;
    bool pushed;  /* SUBSCRIBE: a push is the answer, or an error */
    bool movable; /* all that was asked for the ticket: ask elsewhere on ASK */
};

/* How the layouts differ. */
struct hf__redis_dialect {
    const char *name;
    uint64_t caps;
    /* Read the setting mode; NULL: it has none. May narrow base.caps. */
    int (*open)(struct hf__redis *redis, hf_error *err);
    int (*acquire)(struct hf__redis *redis, struct hf__ticket *ticket,
                   hf_error *err);
    /* Make it certain that @ticket neither waits nor holds. Answers 1, or
     * something else if it was not ours. */
    int (*send_leave)(struct hf__redis *redis, struct hf__ticket *ticket,
                      hf__redis_reply_fn *done, void *data, hf_error *err);
    int (*leave_script)(const struct hf__redis *redis);
    int (*renew)(struct hf__redis *redis, struct hf__ticket **tickets, size_t n,
                 hf_error *err);
    /* What hf__redis_beat() sends for each ticket besides its key, and what is
     * done with the answer. @not_beaten: there is none; NULL: so be it. */
    int (*beat_script)(const struct hf__redis *redis);
    uint32_t beat_arguments;
    void (*put_beat)(struct hf__redis *redis, struct hf__ticket *ticket);
    void (*beaten)(struct hf__redis *redis, struct hf__ticket *ticket,
                   const struct hf__resp_value *said, int64_t sent_ns);
    void (*not_beaten)(struct hf__redis *redis, struct hf__ticket *ticket);
    int downgrade_script;
    int (*downgrade)(struct hf__redis *redis, struct hf__ticket *ticket,
                     hf_error *err); /* NULL: cannot */
    /* The key of the lock, into redis->scratch. */
    void (*key)(struct hf__redis *redis, const char *name, size_t len);
    /* A message came on a channel that was subscribed to; NULL: none is. */
    void (*heard)(struct hf__redis *redis, const struct hf__resp_value *channel,
                  const struct hf__resp_value *text);
};

extern const struct hf__redis_dialect hf__redis_native;
extern const struct hf__redis_dialect hf__redis_plain;
extern const struct hf__redis_dialect hf__redis_redisson;

/* Our bytes of every ticket. */
struct hf__redis_ticket {
    struct hf__ticket_entry entry; /* in redis->tickets */
    char *record; /* and the key behind it; NULL: not known here */
    uint32_t record_len;
    uint32_t key_len;
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* in line, and first: look again then */
    struct hf__redis_channel *channel; /* where a wake-up would come, or NULL */
    struct hf__list hearing;           /* in channel->waiters */
    bool asking;            /* an acquire has not been reported yet */
    bool waiting;           /* in line */
    bool leaving;           /* withdraw() or release() was called */
    bool releasing;         /* it was release() */
    bool tried;             /* a fast attempt of this acquire failed */
    bool again;             /* an earlier acquire may have left something */
    bool looking;           /* in line, and a try is under way (redisson) */
    bool importing;         /* the slot is on its way to this node */
    uint64_t sync;          /* awaits the WAIT with this mark; 0: none */
    struct hf__grant grant; /* … and is reported then */
    hf_error *why;          /* given back for this reason */
};

enum {
    HF__REDIS_NAMES = 65536, /* at most */
    HF__REDIS_BEATS = 100,
    HF__REDIS_CHANNELS = 256
};

/* What this connection knows about a name: native.c. */
struct hf__redis_name {
    uint64_t hash;
    int64_t based_ns;   /* a script has based its token then … */
    uint64_t based;     /* … on this */
    uint64_t token;     /* the last one we saw */
    uint32_t contended; /* grants at once until it counts as quiet again */
};

struct hf__redis {
    struct hf__engine base;
    const struct hf__redis_dialect *dialect;
    const struct hf__redis_script *scripts; /* by HF__SCRIPT_… */

    /* connection.c */
    struct hf__stream stream;
    struct hf__resp_scan scan;
    bool loading[HF__SCRIPTS]; /* SCRIPT LOAD is under way */
    struct hf__calls calls;    /* of struct hf__redis_call */
    bool up;
    bool greeting;
    bool subscribed;
    bool in_received;      /* the stream is being read */
    bool may_close;        /* … and a failure waits for the end of it */
    hf_error fatal;        /* what that failure is */
    int64_t connect_ns;    /* when connecting began */
    int64_t connection_id; /* the server's number for this connection */
    int64_t old_id;        /* of the one before, to be ended */
    char run_id[41];       /* of the server */
    char old_run_id[41];
    char version[24]; /* of the server */
    int64_t db;
    struct hf__tls_context *tls;
    struct hf__sentinels *sentinels; /* NULL: the URL names the server */
    /* Of a node of a cluster, else NULL: a slot is served by @to now. */
    void (*moved)(struct hf__redis *redis, const struct hf__slot_redirect *to);
    /* … or this once, because the slot is on its way. False: it cannot be
     * asked there; otherwise @call is not answered here any more. */
    bool (*asked)(struct hf__redis *redis, const struct hf__redis_call *call,
                  const struct hf__slot_redirect *to);
    bool redirected;         /* the answer that is being told was MOVED */
    bool no_trial;           /* doctor: the name to try out is not ours */
    uint32_t *under_way_sum; /* of all nodes; or NULL */
    bool watching;           /* somebody listens, whatever is asked */
    int64_t tickets_since_ns;
    char peer[280]; /* for people: "redis db1:6379" */

    uint64_t sync_last;     /* the last mark that was given */
    uint64_t sync_sent;     /* of the WAIT under way; 0: none */
    struct hf__timer timer; /* answers overdue, and watches */

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
    char whoami[96]; /* host LF process LF */
    size_t whoami_len;

    /* channels.c */
    struct hf__redis_channel *channels[HF__REDIS_CHANNELS];

    /* plain.c */
    const struct hf__plain_shape *shape; /* of values; NULL: ours */

    /* redisson.c */
    const struct hf__redisson_kind *kind;
    char uuid[37]; /* the identity, as Redisson writes it */
};

/* ---- connection.c ------------------------------------------------------ */

int hf__redis_connect(struct hf__redis *redis, hf_error *err);
/* The sentinels have found the master: go on with connecting. */
void hf__redis_found(struct hf__redis *redis, const char *host, int port);
bool hf__redis_has_password(const struct hf__redis *redis);
/* HELLO, with the password where @auth. */
void hf__redis_put_hello(const struct hf__redis *redis, struct hf__buf *out,
                         bool auth);
/* Forget the connection; nothing is reported. */
void hf__redis_disconnect(struct hf__redis *redis, bool forked);
/* The connection cannot be trusted any more: report what was under way. */
void hf__redis_fail(struct hf__redis *redis, const hf_error *err);
/* Begin a command: @arguments of it follow, by hf__resp_arg*() into
 * redis->stream.out, then hf__redis_call_end(). */
size_t hf__redis_call_begin(struct hf__redis *redis, uint32_t arguments);
/* @mark is what _begin() returned. HF_ENOMEM takes the command back. */
int hf__redis_call_end(struct hf__redis *redis, size_t mark,
                       const struct hf__redis_call *call, hf_error *err);
/* The one that _end() was called for last; there has to be one. */
static inline struct hf__redis_call *hf__redis_last_call(
    const struct hf__redis *redis)
{
    return hf__calls_at(&redis->calls, redis->calls.n - 1);
}
/* Begin EVALSHA of @script with @keys keys and @arguments arguments. */
size_t hf__redis_script_begin(struct hf__redis *redis, int script,
                              uint32_t keys, uint32_t arguments);
/* The same by EVAL, for what is asked rarely. */
size_t hf__redis_eval_begin(struct hf__redis *redis, int script, uint32_t keys,
                            uint32_t arguments);
/* Give the server the text of @script. */
int hf__redis_script_load(struct hf__redis *redis, int script);
/* An answer that says nothing: what depends on it will tell. */
hf__redis_reply_fn hf__redis_ignore;
/* ASKING: the next command may be about a slot that is on its way to here. */
void hf__redis_ask(struct hf__redis *redis,
                   const struct hf__redis_ticket *mine);
/* Make sure that grants are heard: SUBSCRIBE once per connection. */
int hf__redis_subscribe(struct hf__redis *redis, hf_error *err);
/* Is the answer "no such script"? */
bool hf__redis_is_noscript(const struct hf__resp_value *value);
/* Fill @err from an error of the server; @what comes before it. True if it is
 * certain that nothing was done. */
bool hf__redis_explain(struct hf__redis *redis,
                       const struct hf__resp_value *value, hf_error *err);
void hf__redis_explain_lost(struct hf__redis *redis, hf_error *err);
/* The value of "key:value" in the text of INFO; "" if it is not there. */
void hf__redis_read_info(const struct hf__resp_value *info, const char *key,
                         char *to, size_t size);
/* Send SUBSCRIBE or UNSUBSCRIBE of @channel. */
int hf__redis_send_subscribe(struct hf__redis *redis, bool on,
                             const char *channel, size_t len, hf_error *err);

/* Where a failover can take the locks away, somebody listens as long as there
 * are any, so that LOST is told when it happens. Not at once, though: a lock
 * that is taken and released in a moment should not wake a thread. */
#define HF__REDIS_WATCH_NS (100 * HF_MS)
/* Answers to come, so that somebody listens. */
static inline void hf__redis_count(struct hf__redis *redis)
{
    uint32_t n = redis->calls.n;

    redis->watching = redis->watching && redis->tickets.n > 0;
    n += redis->watching;
    if (redis->under_way_sum)
        *redis->under_way_sum += n - redis->base.under_way;
    redis->base.under_way = n;
}

/* ---- beats.c ----------------------------------------------------------- */

/* Renew @n tickets by the dialect's script, a hundred in each trip. */
int hf__redis_beat(struct hf__redis *redis, struct hf__ticket **tickets,
                   size_t n, hf_error *err);

/* ---- leave.c ----------------------------------------------------------- */

/* Nobody knows what became of it. */
void hf__redis_unknown(struct hf__redis *redis, struct hf__ticket *ticket);
/* Release, or withdraw. */
int hf__redis_leave(struct hf__redis *redis, struct hf__ticket *ticket,
                    bool releasing, hf_error *err);
/* The server answered an acquire with an error, @value. It is reported when it
 * is certain that neither this attempt nor an earlier one has left anything. */
void hf__redis_refused(struct hf__redis *redis, struct hf__ticket *ticket,
                       const struct hf__resp_value *value);
/* The answer to a downgrade. */
hf__redis_reply_fn hf__redis_downgraded;

/* ---- sync.c ------------------------------------------------------------ */

/* Report a grant, or the renewal of a holder, when enough replicas have it.
 * @pushed: what was granted was written by another. */
void hf__redis_granted(struct hf__redis *redis, struct hf__ticket *ticket,
                       const struct hf__grant *grant, bool pushed);
void hf__redis_renewed(struct hf__redis *redis, struct hf__ticket *ticket,
                       const struct hf__grant *grant);
/* It has left: to be reported, unless it was a grant that is given back; then
 * that is. */
void hf__redis_left(struct hf__redis *redis, struct hf__ticket *ticket, int rc);
/* It is not known whether it has left, or the core wants it to: no longer is
 * it a grant that is given back. */
void hf__redis_stay(struct hf__redis *redis, struct hf__ticket *ticket);

/* ---- redis.c ----------------------------------------------------------- */

/* Be woken no later than @due_ns. */
void hf__redis_wake(struct hf__redis *redis, int64_t due_ns);
/* Look at a waiter again in @ms; negative or too long: never. */
void hf__redis_watch(struct hf__redis *redis, struct hf__redis_ticket *mine,
                     int64_t ms);
/* "not connected". */
int hf__redis_not_up(struct hf__redis *redis, hf_error *err);

/* ---- channels.c -------------------------------------------------------- */

/* Hear what is said on a channel on behalf of a waiting ticket. */
int hf__redis_channel_join(struct hf__redis *redis,
                           struct hf__redis_ticket *mine, const char *text,
                           size_t len, hf_error *err);
/* Subscribe, unless this connection has. */
int hf__redis_channel_listen(struct hf__redis *redis,
                             const struct hf__redis_ticket *mine,
                             hf_error *err);
/* NULL-safe: a ticket that hears nothing. */
void hf__redis_channel_part(struct hf__redis *redis,
                            struct hf__redis_ticket *mine);
/* The server has ended a subscription by itself: who waits looks again. */
void hf__redis_channel_ended(struct hf__redis *redis, const char *text,
                             size_t len);
/* It is not certain that any channel is heard on this connection. */
void hf__redis_channels_unheard(struct hf__redis *redis);
/* The tickets on a channel, as a list of hf__redis_ticket.hearing; or NULL. */
struct hf__list *hf__redis_channel_waiters(struct hf__redis *redis,
                                           const char *text, size_t len);

/* ---- tickets.c --------------------------------------------------------- */

static inline struct hf__redis_ticket *hf__redis_ticket(
    const struct hf__redis *redis, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&redis->base, ticket);
}
static inline struct hf__ticket *hf__redis_ticket_of(
    const struct hf__redis *redis, struct hf__redis_ticket *mine)
{
    return (struct hf__ticket *)((char *)mine - redis->base.ticket_offset);
}
/* Once. 0, or HF_EINTERNAL without random numbers. */
int hf__redis_tickets_init(struct hf__redis *redis);
/* Know @ticket from now on, with record and key. */
int hf__redis_ticket_know(struct hf__redis *redis, struct hf__ticket *ticket,
                          hf_error *err);
/* An acquire could not be sent; what acquire() returns then. A ticket that the
 * server may know of an earlier attempt must not be given up silently. */
int hf__redis_not_asked(struct hf__redis *redis, struct hf__ticket *ticket,
                        bool known, const hf_error *err);
/* The ticket with @id; NULL if it is not known (any more). */
static inline struct hf__ticket *hf__redis_ticket_find(
    const struct hf__redis *redis, uint64_t id)
{
    return hf__ticket_table_find(&redis->tickets, id);
}
/* It is at another server now, with the same record. */
void hf__redis_ticket_move(struct hf__redis *from, struct hf__redis *to,
                           struct hf__ticket *ticket);
/* It may be gone after the next report. */
void hf__redis_ticket_forget(struct hf__redis *redis,
                             struct hf__ticket *ticket);
void hf__redis_ticket_forget_all(struct hf__redis *redis);
static inline const char *hf__redis_ticket_key(
    const struct hf__redis_ticket *mine)
{
    return mine->record + mine->record_len;
}
/* What the texts of a record say; @info's pointers go into @copy. */
enum { HF__REDIS_TEXTS = 1024 };
void hf__redis_record_read(const char *record, size_t len,
                           char copy[HF__REDIS_TEXTS], hf_lock_info *info);
/* "db1:4211, \"vacuum\"" for error texts. */
void hf__redis_record_holder(const char *record, size_t len, char *to,
                             size_t size);
/* 16 digits at @text. */
uint64_t hf__redis_digits(const char *text, size_t len);
void hf__redis_put_digits(char *to, uint64_t number, size_t width);
/* 32 random digits as a UUID, which costs six bits for version and variant. */
void hf__redis_put_uuid(const char *hex, char to[37]);

/* The one place for a name's memory, cleared if it was another name's. */
struct hf__redis_name *hf__redis_name(struct hf__redis *redis, const char *name,
                                      size_t len);
void hf__redis_names_forget(struct hf__redis *redis);
void hf__redis_names_release(struct hf__redis *redis);

/* ---- inspect.c, doctor.c ----------------------------------------------- */

void hf__redis_answer_lost(struct hf__redis *redis, struct hf__query *query);
void hf__redis_answer_refused(struct hf__redis *redis, struct hf__query *query,
                              const struct hf__resp_value *value);
/* The key of query->name in redis->scratch, by @dialect. */
int hf__redis_make_key(struct hf__redis *redis, const struct hf__query *query,
                       const struct hf__redis_dialect *dialect, hf_error *err);

int hf__redis_list(struct hf__engine *engine, struct hf__query *query,
                   hf_error *err);
int hf__redis_check_token(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err);
int hf__redis_break(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err);
int hf__redis_version_read(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err);
int hf__redis_version_commit(struct hf__engine *engine, struct hf__query *query,
                             hf_error *err);
/* The lock that doctor() tries out. */
extern const char hf__redis_doctor_name[];
int hf__redis_doctor(struct hf__engine *engine, struct hf__query *query,
                     hf_error *err);
/* The value after @key in the answer to CONFIG GET; "" if it is not there. */
void hf__redis_read_config(struct hf__resp reply, const char *key, char *to,
                           size_t size);

/* ---- redisson.c, redisson_look.c --------------------------------------- */

/* What one of Redisson's objects is: the value of mode. */
struct hf__redisson_kind {
    const char *mode;
    uint64_t caps;       /* beyond those of all */
    const char *channel; /* before the name in braces */
    bool own_channel;    /* … and behind it the owner */
    bool permits;        /* an owner is 14 bytes, not a text */
    bool no_exclusive;
    bool derived; /* it has keys beside the name's */
    int try_script;
    int leave_script;
    int beat_script;
};
enum { HF__REDISSON_OWNER = 64 };
/* Who a ticket is to Redisson, into @to: its length. */
size_t hf__redisson_owner(const struct hf__redis *redis, uint64_t id,
                          char to[HF__REDISSON_OWNER]);
/* Which keys a list looks at: a pattern for them, in redis->scratch, and their
 * type. */
const char *hf__redisson_pattern(struct hf__redis *redis, const char *prefix);
/* The name of the lock that such a key belongs to; false: it is none. */
bool hf__redisson_name(const struct hf__redis *redis,
                       const struct hf__resp_value *key, char *to, size_t size);
/* The @count values of the answer to LOOK: a key, and rows. */
int hf__redisson_add_rows(struct hf__redis *redis, struct hf__query *query,
                          struct hf__resp *reply, uint32_t count);
/* The key is in redis->scratch. */
int hf__redisson_break(struct hf__redis *redis, struct hf__query *query,
                       hf__redis_reply_fn *done, hf_error *err);

#endif
