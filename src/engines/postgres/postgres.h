/* SPDX-License-Identifier: MIT */
/*
 * postgres.h - the parts of the PostgreSQL engine to each other.
 *
 *   postgres.c       the ops table, open, connect, close, the timer, the pool
 *   modes.c          what each mode can, and which functions do it
 *   connection.c     one connection: its states, its end
 *   connect.c        connecting, and the first statements on a connection
 *   hosts.c          the hosts, resolved     settings.c  what libpq is told
 *   calls.c          statements and their answers, in order
 *   pq.c             libpq                   answer.c    its results, checked
 *   statements.c     the statements; sql/ has their texts
 *   tickets.c        tickets and their moves
 *   names.c          what stands for a name
 *   advisory_*.c     mode=advisory, mode=for_update (advisory.h)
 *   for_update.c     its transactions; hf_sql_connection()
 *   row.c            what locks share that are a row (row.h)
 *   table_*.c        mode=table              dialect*.c  dialect=… (row.h)
 *   own_tables.c     names of the application's tables in statements
 *   inspect.c        answers to queries      versions.c  hf_version_*()
 *   doctor.c         is this server fit?     errors.c
 */
#ifndef HF_POSTGRES_POSTGRES_H
#define HF_POSTGRES_POSTGRES_H

#include "base/buf.h"
#include "engines/common/link.h"
#include "engines/postgres/connection.h"
#include "engines/postgres/statements.h"
#include "engines/postgres/tickets.h"
#include "engines/sql/dialect.h"

enum {
    HF__PG_BUCKETS = 256,
    HF__PG_NAMES = 1024,
    HF__PG_ORPHANS = 16,
    HF__PG_OWN_LOCK = 0, /* own_texts */
    HF__PG_OWN_READ,
    HF__PG_OWN_COMMIT,
    HF__PG_OWN_TEXTS,
    HF__PG_CHANNEL = 16 /* of the identity's digits: where grants are told */
};

/* What this client knows about a name. */
struct hf__pg_name {
    int64_t key;
    int64_t second_key; /* of the name that has been checked */
    int64_t checked_ns; /* no other name was seen with the key then */
    uint32_t contended; /* grants at once until it counts as quiet again */
    uint64_t token;     /* table: the last that we were told */
};

struct hf__pg_mode {
    const char *name;
    uint64_t caps;
    bool tables;  /* needs them */
    bool listens; /* to NOTIFY */
    bool session; /* a lock lives in one */
    int (*acquire)(struct hf__pg *postgres, struct hf__ticket *ticket,
                   hf_error *err);
    int (*release)(struct hf__pg *postgres, struct hf__ticket *ticket,
                   enum hf__pg_owed owed, hf_error *err);
    int (*renew)(struct hf__pg *postgres, struct hf__ticket **tickets, size_t n,
                 hf_error *err);
    int (*downgrade)(struct hf__pg *postgres, struct hf__ticket *ticket,
                     hf_error *err);
    int (*park)(struct hf__pg *postgres, struct hf__ticket *ticket,
                struct hf__ticket *old, hf_error *err);
    int (*unpark)(struct hf__pg *postgres, struct hf__ticket *ticket,
                  hf_error *err);
    hf__engine_query_fn *signal;
    /* A connection is up, except for what the mode does first. */
    void (*up)(struct hf__pg_conn *conn);
    /* A connection has ended; its calls have been told. */
    void (*down)(struct hf__pg_conn *conn, const hf_error *err);
    /* Do what is due at @now_ns; returns when to come again. NULL: nothing. */
    int64_t (*tick)(struct hf__pg *postgres, int64_t now_ns);
    /* NOTIFY to our channel. */
    void (*notified)(struct hf__pg *postgres, const char *text);
    hf__engine_query_fn *list;
    hf__engine_query_fn *check_token;
    hf__engine_query_fn *break_lock;
};

extern const struct hf__pg_mode hf__pg_mode_advisory;
extern const struct hf__pg_mode hf__pg_mode_for_update;
extern const struct hf__pg_mode hf__pg_mode_table;
extern const struct hf__pg_mode hf__pg_mode_dialect;
extern const struct hf__pg_mode hf__pg_mode_row;

struct hf__pg {
    struct hf__engine base;
    struct hf__link link; /* listens for the end of sessions that hold locks */
    const struct hf__pg_mode *mode;
    const struct hf__sql_dialect *dialect; /* NULL: our own */
    char *dialect_texts[HF__PG_DIALECT_TEXTS];
    /* From HF__STMT_OWN_ROW_LOCK on, on tables of the application's; NULL: it
     * has none. */
    char *own_texts[HF__PG_OWN_TEXTS];
    struct hf__pg_conn main;
    struct hf__sql_pool pool;    /* for waits, other leases, transactions */
    struct hf__pg_conn *opening; /* is being begun by the pool */
    struct hf__pg_orphan orphans[HF__PG_ORPHANS];
    uint64_t orphans_n;                   /* so far */
    struct hf__list held[HF__PG_BUCKETS]; /* on the main connection, by key */
    uint32_t held_n;
    uint32_t cancelling;   /* tickets */
    uint64_t beats;        /* table: renewals sent so far */
    uint64_t parks;        /* table: so far */
    struct hf__buf record; /* … of the ticket in the next statement */
    bool fenced;           /* there is a sequence */
    bool tables;           /* there are tables */
    bool conditions;       /* … also that for conditions */
    bool up;
    struct hf__ticket_table tickets;
    struct hf__pg_name names[HF__PG_NAMES];
    struct hf__url_host hosts[HF__URL_HOSTS]; /* hosts.c */
    size_t hosts_n;
    char identity[33];
    char peer[280]; /* for people: "postgresql db1:5432" */
};

static inline struct hf__pg_ticket *hf__pg_ticket(const struct hf__pg *postgres,
                                                  struct hf__ticket *ticket)
{
    return hf__engine_ticket(&postgres->base, ticket);
}
static inline struct hf__pg *hf__pg_of(struct hf__engine *engine)
{
    return (struct hf__pg *)engine;
}

static inline void hf__pg_wake(struct hf__pg *postgres, int64_t due_ns)
{
    hf__link_wake(&postgres->link, due_ns);
}

/* postgres.c: the main connection is up, as its mode finds: tell the core. */
void hf__pg_connected(struct hf__pg *postgres);
/* … or has ended. */
void hf__pg_down(struct hf__pg *postgres, const hf_error *err);

/* errors.c: fill @err from an error of the server; return its code. */
int hf__pg_errors_explain(const struct hf__pg_conn *conn,
                          const struct hf__pg_error *error, hf_error *err);
int hf__pg_errors_lost(const struct hf__pg_conn *conn, hf_error *err);

/* names.c: the 64 bits that stand for prefix and name; 64 others. */
int64_t hf__pg_names_key(const struct hf__pg *postgres, const char *name,
                         size_t len);
int64_t hf__pg_names_second_key(const struct hf__pg *postgres, const char *name,
                                size_t len);
/* The one place for a name's memory; may be another name's: compare key. */
struct hf__pg_name *hf__pg_names_find(struct hf__pg *postgres, int64_t key);
/* Prefix and name, terminated. */
enum { HF__PG_WHOLE = 128 + HF_NAME_MAX + 1 };
void hf__pg_names_whole(const struct hf__pg *postgres, const char *name,
                        char to[HF__PG_WHOLE]);
/* A number as a text, somewhere in @room. */
enum { HF__PG_DIGITS = HF_DIGITS + 1 };
const char *hf__pg_names_decimal(int64_t number, char room[HF__PG_DIGITS]);

/* hosts.c: the hosts of the URL's query or of the environment, where it has
 * none. */
int hf__pg_hosts_open(struct hf__pg *postgres, hf_error *err);
void hf__pg_hosts_close(struct hf__pg *postgres);
/* settings.c: is it a key of libpq's that holdfast has not itself? */
bool hf__pg_settings_takes(const char *key);
/* own_tables.c, dialect.c: the texts of statements that depend on settings. */
int hf__pg_own_tables_open(struct hf__pg *postgres, hf_error *err);
void hf__pg_own_tables_close(struct hf__pg *postgres);
int hf__pg_dialect_open(struct hf__pg *postgres, hf_error *err);

/* inspect.c: true if @answer is one; else @query is answered. */
bool hf__pg_inspect_usable(struct hf__pg_conn *conn, struct hf__query *query,
                           const struct hf__pg_answer *answer);
/* Add the rows of @answer by @add, and answer @query. */
typedef int hf__pg_add_rows_fn(struct hf__pg *postgres, struct hf__query *query,
                               const struct hf__pg_result *rows);
void hf__pg_inspect_rows(struct hf__pg_conn *conn, struct hf__query *query,
                         const struct hf__pg_answer *answer,
                         hf__pg_add_rows_fn *add);
/* Answer with 0, HF_ENOTFOUND, HF_ECONFLICT or HF_ENOMEM. */
void hf__pg_inspect_answer(struct hf__pg_conn *conn, struct hf__query *query,
                           int rc);

/* for_update.c, versions.c, doctor.c, board.c */
hf__engine_query_fn hf__pg_for_update_connection;
hf__engine_query_fn hf__pg_version_read;
hf__engine_query_fn hf__pg_version_commit;
hf__engine_query_fn hf__pg_doctor;
hf__engine_query_fn hf__pg_board_post;
hf__engine_query_fn hf__pg_board_read;

#endif
