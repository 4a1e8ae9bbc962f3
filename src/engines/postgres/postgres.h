/* SPDX-License-Identifier: MIT */
/*
 * postgres.h - the parts of the PostgreSQL engine to each other.
 *
 *   postgres.c    the engine's table: open, connect, close, the timer
 *   settings.c    what libpq is told: the URL, hosts resolved
 *   greet.c       connecting, and the first words on a connection
 *   connection.c  one connection: calls and their answers in order
 *   answer.c      … checked
 *   schema.c      the tables, made on demand; the statements
 *   tickets.c     which tickets the server may know
 *   advisory.h    mode=advisory, mode=for_update: locks of sessions
 *   row.c         what locks share that are a row
 *   dialect.c     dialect=shedlock, dialect=spring
 *   by_hand.c     dialect=row, and names of the application's tables
 *   table.c       mode=table: rows, leases by the server's clock, NOTIFY
 *   inspect.c     … who holds, who waits; breaking
 *   versions.c    hf_version_*()                        doctor.c
 */
#ifndef HF_POSTGRES_POSTGRES_H
#define HF_POSTGRES_POSTGRES_H

#include "base/buf.h"
#include "engines/engine.h"
#include "engines/postgres/answer.h"
#include "engines/sql/dialect.h"
#include "engines/sql/pool.h"

struct hf__postgres;
struct hf__session;
struct hf__session_call;
struct hf__resolve;

enum {
    HF__PG_BUCKETS = 256,
    HF__PG_NAMES = 1024,
    HF__PG_GHOSTS = 16,
    HF__PG_CHANNEL = 16 /* of the identity's digits: where grants are told */
};

/* ---- schema.c: every statement there is --------------------------------- */

enum hf__pg_statement {
    HF__PG_PING,
    HF__PG_TIMEOUT, /* how long a session may be silent */
    HF__PG_TRY,     /* key → token, or no row */
    HF__PG_TRY_SHARED,
    HF__PG_WAIT, /* key → token, when it is granted */
    HF__PG_WAIT_SHARED,
    HF__PG_UNLOCK,
    HF__PG_UNLOCK_SHARED,
    HF__PG_DOWNGRADE,
    HF__PG_CANCEL,     /* end what a backend of ours does */
    HF__PG_END,        /* end a backend that we lost */
    HF__PG_IS_THERE,   /* … a row if it is */
    HF__PG_END_WAIT,   /* … end it, and wait until it has gone */
    HF__PG_IS_GONE,    /* … is it? */
    HF__PG_IS_WAITING, /* does a backend stand in line? */
    HF__PG_MARK,       /* which name a key stands for */
    HF__PG_UNMARK,
    HF__PG_UNLOCK_ALL,
    HF__PG_STRANGER, /* key, mark → who has it under another name */
    HF__PG_BEGIN,    /* for_update */
    HF__PG_PATIENCE, /* how long to wait for a row: lock_timeout */
    HF__PG_INSERT,
    HF__PG_DELETE,
    HF__PG_OWN_LOCK, /* … a row of the application's */
    HF__PG_WHICH,    /* → transaction */
    HF__PG_SAME,     /* is it still this one? */
    HF__PG_COMMIT,
    HF__PG_ROLLBACK,
    HF__PG_ROW_LOCK, /* table: one at a time per name */
    HF__PG_ROW_PURGE,
    HF__PG_ROW_ASK,
    HF__PG_ROW_TAKE, /* a quiet name: → token, or no row */
    HF__PG_ROW_FREE, /* … 1 row is gone, or none */
    HF__PG_ROW_JOIN, /* a crowded name: 1 row in line, or none */
    HF__PG_ROW_CEDE, /* … ours is gone */
    HF__PG_ROW_PASS, /* … → who is granted then, in which mode */
    HF__PG_ROW_GRANT,
    HF__PG_ROW_LOOK,
    HF__PG_ROW_LEAVE,
    HF__PG_ROW_BEAT,
    HF__PG_ROW_DOWNGRADE,
    HF__PG_LIST,
    HF__PG_BREAK,
    HF__PG_VERSION_READ,
    HF__PG_VERSION_COMMIT,
    HF__PG_DOCTOR,
    HF__PG_TAKE, /* in a dialect: → 1, or no row */
    HF__PG_WHO,  /* … has it, for how long still, since when: ms */
    HF__PG_KEEP, /* → 1, or no row */
    HF__PG_GIVE, /* → 1, or no row */
    HF__PG_HELD, /* all that is: as WHO, and the key */
    HF__PG_STATEMENTS,
    HF__PG_GREETING = HF__PG_STATEMENTS, /* not prepared */
    HF__PG_SCHEMA,
    HF__PG_TEXTS
};
enum { HF__PG_DIALECT_TEXTS = HF__PG_TEXTS - HF__PG_TAKE };

/* The text of @statement; without tokens where there is no sequence. */
const char *hf__pg_statement(const struct hf__postgres *postgres,
                             enum hf__pg_statement statement);
const char *hf__pg_statement_name(enum hf__pg_statement statement);
/* What it answers: answer.h. */
const char *hf__pg_statement_shape(enum hf__pg_statement statement);
/* What a session is set to, and what we want to know of it. */
const char *hf__pg_greeting(const struct hf__postgres *postgres);
/* The tables and the sequence, if they are not there. */
const char *hf__pg_schema(const struct hf__postgres *postgres);
/* What is said in @dialect, with '@' for its table, from HF__PG_TAKE on. */
const char *const *hf__pg_dialect(const struct hf__sql_dialect *dialect);
/* The same for dialect=row: # the key, % the holder. */
const char *const *hf__pg_by_hand(bool has_owner);

/* The columns of the greeting's last statement, and of the schema's. */
extern const char hf__pg_greeting_shape[];

/* ---- connection.c ------------------------------------------------------- */

/* @answer is NULL when the connection was lost before it came. */
typedef void hf__session_done_fn(struct hf__session *session,
                                 const struct hf__session_call *call,
                                 const struct hf__pg_answer *answer);

struct hf__session_call {
    hf__session_done_fn *done;
    uint64_t ticket;         /* its id; 0: none */
    struct hf__query *query; /* lives until it is answered */
    int64_t sent_ns;
    bool patient; /* a wait: no answer is no failure */
    /* What libpq will have a result for, in order; the last is the end. */
    struct hf__session_step {
        uint8_t statement;
        bool prepare;
    } steps[2 * HF__PG_RESULTS];
    uint8_t steps_n;
    uint8_t step; /* whose result comes next */
    bool told;    /* … it came */
};

enum hf__session_state {
    HF__SESSION_IDLE,
    HF__SESSION_RESOLVING,
    HF__SESSION_CONNECTING,
    HF__SESSION_GREETING,
    HF__SESSION_UP,
    HF__SESSION_LENT /* to the caller of hf_sql_connection() */
};

/* A backend whose connection we lost. */
struct hf__ghost {
    int32_t pid; /* 0: none */
    char started[40];
};

/* One connection. */
struct hf__session {
    struct hf__sql_link link; /* of the pool; unused in the main one */
    struct hf__postgres *engine;
    struct hf__postgres_ticket *user; /* of one of the pool: who has it */
    PGconn *conn;
    struct hf__io io;
    uint32_t watched; /* events */
    uint8_t state;
    bool listening;
    uint8_t making; /* tables: 1 being made, 2 they cannot be */
    bool reading;   /* its answers are being handled */
    bool closing;   /* … and it is to be closed after that */
    bool unpooled;  /* the pool has given it up */
    hf_error fatal;
    int64_t connect_ns;
    /* settings.c */
    size_t host; /* the next to be resolved */
    struct hf__resolve *resolving;
    struct hf__buf hosts;
    struct hf__buf addresses;
    struct hf__buf ports;

    struct hf__session_call *calls; /* a ring */
    uint32_t calls_size;
    uint32_t calls_first;
    uint32_t calls_n;
    struct hf__session_call next; /* being put together */
    struct hf__pg_answer answer;
    int64_t received;      /* bytes, about */
    int64_t received_from; /* … when an answer began; 0: none has */
    uint64_t prepared;
    int64_t timeout_ms; /* how long it may be silent; 0: for ever */
    int64_t mark;       /* advisory: of the name that it used last */
    bool marked;        /* … it still has it */
    int64_t spoke_ns;   /* when we last sent something */
    int32_t pid;
    char started[40]; /* backend_start, as the server writes it */
};

/* Begin to connect. Ends in mode->up() or in the session's end. */
int hf__session_start(struct hf__session *session, hf_error *err);
/* Close it; nothing is reported. */
void hf__session_stop(struct hf__session *session, bool forked);
/* It cannot be trusted any more: report what was under way. */
void hf__session_fail(struct hf__session *session, const hf_error *err);
/* Add a statement to the call that is being put together. */
int hf__session_add(struct hf__session *session,
                    enum hf__pg_statement statement, const char *const *values,
                    int n, hf_error *err);
/* Send them, as one transaction. Non-zero: nothing was sent, and the session
 * ends. */
int hf__session_send(struct hf__session *session,
                     const struct hf__session_call *call, hf_error *err);
/* Is a call of @ticket under way that @done hears? */
bool hf__session_awaits(const struct hf__session *session,
                        hf__session_done_fn *done, uint64_t ticket);
/* For calls whose answer changes nothing. */
void hf__session_ignore(struct hf__session *session,
                        const struct hf__session_call *call,
                        const struct hf__pg_answer *answer);
/* Leave it to libpq and the caller. There must be no call under way. */
int hf__session_lend(struct hf__session *session, hf_error *err);
/* It is ours again. Non-zero: it could not be used any more, and has ended.
 * @ret_whole: it is in a transaction in which no statement has failed. */
int hf__session_take_back(struct hf__session *session, bool *ret_whole);
/* Its backend, once the session is lost; unchanged if it never had one. */
void hf__session_ghost(struct hf__session *session,
                       struct hf__ghost *ret_ghost);
/* Fill @err from an error of the server. */
int hf__session_explain(const struct hf__session *session,
                        const struct hf__pg_error *error, hf_error *err);
void hf__session_explain_lost(const struct hf__session *session, hf_error *err);
/* Is its oldest call overdue? If not, when would it be; HF_NEVER for none. */
int64_t hf__session_overdue(struct hf__session *session, int64_t now_ns);

/* … for greet.c: wait for events of its socket. */
int hf__session_watch(struct hf__session *session, uint32_t events,
                      hf_error *err);
/* It says what it must not, or is not what we need: fail. */
void hf__session_refuse(struct hf__session *session, int code, const char *why);
/* Text as it is, any number of statements: the greeting. */
void hf__session_say(struct hf__session *session, const char *text);
/* libpq has made the connection: the greeting comes. */
void hf__session_made(struct hf__session *session);
/* libpq's notices go to the log, not to stderr. */
void hf__session_hear_notices(struct hf__session *session);
/* From now on calls are sent. */
int hf__session_open(struct hf__session *session, hf_error *err);

/* greet.c: the answer to what was said. */
void hf__session_greeted(struct hf__session *session);

/* settings.c: resolve what has to be, then make session->conn. Ends in
 * hf__session_connecting() or hf__session_fail(). */
int hf__session_resolve(struct hf__session *session, hf_error *err);
/* greet.c: libpq makes the connection. */
void hf__session_connecting(struct hf__session *session);
/* Is it a key of libpq's that holdfast has not itself? */
bool hf__postgres_takes(const char *key);
void hf__session_forget_hosts(struct hf__session *session);
void hf__session_resolve_stop(struct hf__session *session, bool forked);

/* ---- tickets.c ---------------------------------------------------------- */

/* Our bytes of every ticket. */
struct hf__postgres_ticket {
    struct hf__sql_want want; /* a connection of the pool */
    struct hf__list bucket;   /* known, by its number */
    struct hf__list link;     /* on the main session, by its key */
    struct hf__postgres *engine;
    struct hf__ticket *ticket;
    struct hf__session *session; /* where it waits or is held; NULL: nowhere */
    int64_t key;
    int64_t mark; /* advisory: tells it from other names with the key */
    uint64_t token;
    int64_t since_ns;     /* advisory: granted then */
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* table: look again then */
    uint8_t state;        /* advisory.h */
    bool known;
    bool asking;     /* an acquire has not been reported yet */
    bool waiting;    /* table: in line */
    bool leaving;    /* withdraw() or release() was called */
    bool releasing;  /* it was release() */
    bool alone;      /* table: its row is the only one, or was */
    bool unsure;     /* something of an earlier attempt may be there */
    bool trying;     /* dialect=row: an INSERT is under way */
    bool has_row;    /* … we have made the row */
    bool refused;    /* advisory: another has it */
    bool marked;     /* … and its session has its mark */
    bool lent;       /* for_update: the caller used the connection */
    bool committing; /* … and its statements are being committed */
    struct hf__query *borrower; /* … and first asked for it just now */
    char transaction[24];       /* … in this one, since it was lent */
    uint64_t beat;              /* table: the renewal that is under way */
    bool beating;               /* a renewal is under way */
    bool queued;                /* advisory: it waits, and the core knows */
    bool cancelling;            /* … and was told to stop */
    struct hf__ghost ghost;     /* a backend that may still have it */
    hf_error *why;              /* what is reported when it is undone */
};

static inline struct hf__postgres_ticket *hf__postgres_ticket(
    const struct hf__postgres *postgres, struct hf__ticket *ticket);

/* What this client knows about a name. */
struct hf__postgres_name {
    int64_t key;
    int64_t mark;       /* of the name that has been checked */
    int64_t checked_ns; /* no other name was seen with the key then */
    uint32_t contended; /* grants at once until it counts as quiet again */
    uint64_t token;     /* table: the last that we were told */
};

/* ---- the modes ----------------------------------------------------------- */

struct hf__postgres_mode {
    const char *name;
    uint64_t caps;
    bool tables;  /* cannot do without them */
    bool listens; /* to NOTIFY */
    int (*acquire)(struct hf__postgres *postgres, struct hf__ticket *ticket,
                   hf_error *err);
    int (*leave)(struct hf__postgres *postgres, struct hf__ticket *ticket,
                 bool releasing, hf_error *err);
    int (*renew)(struct hf__postgres *postgres, struct hf__ticket **tickets,
                 size_t n, hf_error *err);
    int (*downgrade)(struct hf__postgres *postgres, struct hf__ticket *ticket,
                     hf_error *err);
    /* A session of the pool is up. */
    void (*up)(struct hf__session *session);
    /* A session has ended; its calls have been told. */
    void (*down)(struct hf__session *session, const hf_error *err);
    /* What is due at @now_ns; returns when to come again. */
    int64_t (*tick)(struct hf__postgres *postgres, int64_t now_ns);
    /* NOTIFY to our channel. */
    void (*notified)(struct hf__postgres *postgres, const char *text);
    hf__engine_query_fn *list;
    hf__engine_query_fn *check_token;
    hf__engine_query_fn *break_lock;
};

extern const struct hf__postgres_mode hf__postgres_advisory;
extern const struct hf__postgres_mode hf__postgres_for_update;
extern const struct hf__postgres_mode hf__postgres_table;
extern const struct hf__postgres_mode hf__postgres_in_dialect;
extern const struct hf__postgres_mode hf__postgres_by_hand;

struct hf__postgres {
    struct hf__engine base;
    const struct hf__postgres_mode *mode;
    const struct hf__sql_dialect *dialect; /* NULL: our own */
    char *dialect_texts[HF__PG_DIALECT_TEXTS];
    char *own_lock; /* on tables of the application's; NULL: our own */
    char *own_read;
    char *own_commit;
    struct hf__session main;
    struct hf__sql_pool pool;    /* for waits, other leases, transactions */
    struct hf__session *opening; /* is being begun by the pool */
    struct hf__ghost ghosts[HF__PG_GHOSTS];
    struct hf__list held[HF__PG_BUCKETS]; /* on the main session, by key */
    uint32_t held_n;
    struct hf__timer timer;
    uint32_t cancelling;   /* advisory: waits that are being given up */
    uint64_t beats;        /* table: renewals sent so far */
    struct hf__buf record; /* … who asks, for the statement that is next */
    bool listening; /* advisory: to the end of sessions that hold locks */
    bool fenced;    /* there is a sequence */
    bool tables;    /* there are tables */
    bool up;
    struct hf__list known[HF__PG_BUCKETS];
    struct hf__postgres_name names[HF__PG_NAMES];
    char identity[33];
    char peer[280]; /* for people: "postgresql db1:5432" */
};

static inline struct hf__postgres_ticket *hf__postgres_ticket(
    const struct hf__postgres *postgres, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&postgres->base, ticket);
}

static inline struct hf__postgres *hf__postgres_of(struct hf__engine *engine)
{
    return (struct hf__postgres *)engine;
}

/* tickets.c */
void hf__postgres_tickets_init(struct hf__postgres *postgres);
void hf__postgres_know(struct hf__postgres *postgres,
                       struct hf__ticket *ticket);
void hf__postgres_forget(struct hf__postgres_ticket *mine);
struct hf__postgres_ticket *hf__postgres_find(
    const struct hf__postgres *postgres, uint64_t id);
/* The 64 bits that stand for prefix and name; 64 others. */
int64_t hf__postgres_key(const struct hf__postgres *postgres, const char *name,
                         size_t len);
int64_t hf__postgres_mark(const struct hf__postgres *postgres, const char *name,
                          size_t len);
/* The one place for a name's memory; may be another name's: compare key. */
struct hf__postgres_name *hf__postgres_name(struct hf__postgres *postgres,
                                            int64_t key);
/* A number as a text, somewhere in @room. */
enum { HF__PG_DIGITS = HF_DIGITS + 1 };
const char *hf__postgres_number(int64_t number, char room[HF__PG_DIGITS]);
/* Prefix and name, terminated. */
enum { HF__PG_WHOLE = 128 + HF_NAME_MAX + 1 };
void hf__postgres_whole(const struct hf__postgres *postgres, const char *name,
                        char to[HF__PG_WHOLE]);
/* Reports that also tidy up. */
void hf__postgres_failed(struct hf__postgres *postgres,
                         struct hf__postgres_ticket *mine, const hf_error *err);
void hf__postgres_unknown(struct hf__postgres *postgres,
                          struct hf__postgres_ticket *mine,
                          const hf_error *err);

/* postgres.c */
void hf__postgres_wake(struct hf__postgres *postgres, int64_t due_ns);
/* The main session is up, as its mode finds: tell the core. */
void hf__postgres_connected(struct hf__postgres *postgres);
/* … or has ended. */
void hf__postgres_down(struct hf__postgres *postgres, const hf_error *err);

/* row.c: what became of an acquire; leaving; the main session. */
void hf__postgres_row_granted(struct hf__postgres_ticket *mine, uint64_t token,
                              int64_t sent_ns);
void hf__postgres_row_refused(struct hf__postgres_ticket *mine,
                              const struct hf__pg_error *error);
int hf__postgres_row_acquire(struct hf__postgres *postgres,
                             struct hf__ticket *ticket,
                             int (*send)(struct hf__postgres_ticket *mine,
                                         hf_error *err),
                             hf_error *err);
/* False: there is nothing to leave, and that is told. */
bool hf__postgres_row_leaves(struct hf__postgres *postgres,
                             struct hf__ticket *ticket, bool releasing);
/* A row of result @at has a number that is not 0 if it was held; -1: it was. */
void hf__postgres_row_left(struct hf__session *session,
                           const struct hf__session_call *call,
                           const struct hf__pg_answer *answer, int at);
void hf__postgres_row_lose(struct hf__postgres_ticket *mine, int reason);
void hf__postgres_row_up(struct hf__session *session);
void hf__postgres_row_down(struct hf__session *session, const hf_error *err);

/* dialect.c */
/* The values of a statement: key, region or the key as a text, holder, lease. */
struct hf__pg_words {
    char key[HF__SQL_KEY];
    char holder[HF__SQL_HOLDER];
    char lease_ms[24];
    const char *values[4];
    int key_n; /* how many of them are the key */
};
int hf__postgres_words_of_name(struct hf__pg_words *words,
                               const struct hf__postgres *postgres,
                               const char *name, hf_error *err);
int hf__postgres_words(struct hf__pg_words *words,
                       const struct hf__postgres *postgres,
                       const struct hf__ticket *ticket, hf_error *err);
hf__engine_query_fn hf__postgres_dialect_list;
hf__engine_query_fn hf__postgres_dialect_break;
/* by_hand.c */
int hf__postgres_own_open(struct hf__postgres *postgres, hf_error *err);
void hf__postgres_own_close(struct hf__postgres *postgres);
/* dialect.c */
int hf__postgres_dialect_open(struct hf__postgres *postgres, hf_error *err);
void hf__postgres_dialect_close(struct hf__postgres *postgres);

/* table.c, inspect.c */
int hf__postgres_row_lock(struct hf__postgres *postgres, int64_t key,
                          hf_error *err);
int hf__postgres_row_list(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err);
int hf__postgres_row_check(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err);
int hf__postgres_row_break(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err);

/* True if @answer is one; else the query is answered. */
bool hf__postgres_usable(struct hf__session *session, struct hf__query *query,
                         const struct hf__pg_answer *answer);
/* … that there are more rows than an answer has. */
void hf__postgres_too_many(struct hf__session *session,
                           struct hf__query *query);
/* Answer with 0, HF_ENOTFOUND, HF_ECONFLICT or HF_ENOMEM. */
void hf__postgres_answer(struct hf__session *session, struct hf__query *query,
                         int rc);

/* lend.c, versions.c, doctor.c */
int hf__postgres_connection(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err);
int hf__postgres_version_read(struct hf__engine *engine,
                              struct hf__query *query, hf_error *err);
int hf__postgres_version_commit(struct hf__engine *engine,
                                struct hf__query *query, hf_error *err);
int hf__postgres_doctor(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err);

#endif
