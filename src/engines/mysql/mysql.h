/* SPDX-License-Identifier: MIT */
/*
 * mysql.h - the parts of the MariaDB and MySQL engine to each other.
 *
 *   mysql.c       the ops table, open, connect, close, the timer
 *   connection.c  one connection: looking up, greeting, ending
 *   calls.c       calls, one after the other    answer.c  what comes back
 *   library.c     libmariadb, loaded
 *   tickets.c     tickets, their moves, outcomes of locks that are a row
 *   statements.c  values into SQL               sql/      the SQL
 *   schema.c      our tables are made when they are missing
 *   renew.c       renewals of all modes
 *   errors.c      what the server's error numbers mean for a lock
 *
 *   table_acquire.c  table_wait.c  table_release.c (and downgrade)  mode=table
 *   table_condition.c  conditions of its locks
 *   dialect.c     dialect=shedlock, dialect=spring
 *   row.c         dialect=row
 *   get_lock.c    mode=get_lock                 for_update.c  mode=for_update
 *   session.c  session_acquire.c  session_release.c           of both
 *   orphans.c     sessions that were lost, and may still hold
 *   lease.c       how long a session may be silent
 *   pool.c        the connections that sessions need beside the main one
 *
 *   inspect.c     list, check, break    versions.c    doctor.c
 */
#ifndef HF_MYSQL_MYSQL_H
#define HF_MYSQL_MYSQL_H

#include "engines/common/link.h"
#include "engines/mysql/connection.h"
#include "engines/mysql/session.h"
#include "engines/mysql/statements.h"
#include "engines/mysql/table.h"
#include "engines/sql/dialect.h"

enum { HF__MYSQL_ORPHANS = 16 };

/* How the ways to lock differ. */
struct hf__mysql_mode {
    const char *name;
    uint64_t caps;
    int (*acquire)(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err);
    /* The ticket is RELEASING or WITHDRAWING. */
    int (*release)(struct hf__mysql *mysql, struct hf__ticket *ticket,
                   hf_error *err);
    int (*renew)(struct hf__mysql *mysql, struct hf__ticket **tickets, size_t n,
                 hf_error *err);
    int (*downgrade)(struct hf__mysql *mysql, struct hf__ticket *ticket,
                     hf_error *err); /* NULL: cannot */
    /* The timer's part; returns when to run again. NULL: nothing. */
    int64_t (*attend)(struct hf__mysql *mysql, int64_t now_ns);
    /* The main connection was lost; it is up again. NULL: nothing to do. */
    void (*lost)(struct hf__mysql *mysql);
    void (*regained)(struct hf__mysql *mysql);
};

/* What a mode is made of whose locks are rows. */
#define HF__MYSQL_OF_ROWS(acquire_, release_)                                  \
    .acquire = (acquire_), .release = (release_), .renew = hf__mysql_renew_rows
extern const struct hf__mysql_mode hf__mysql_table_acquire_mode;
extern const struct hf__mysql_mode hf__mysql_dialect_mode;
extern const struct hf__mysql_mode hf__mysql_row_mode;
extern const struct hf__mysql_mode hf__mysql_get_lock_mode;
extern const struct hf__mysql_mode hf__mysql_for_update_mode;

/* The texts of a dialect. */
enum hf__mysql_dialect_text {
    HF__MYSQL_MAKE, /* the table, if it is not there; NULL: not ours to make */
    HF__MYSQL_ACQUIRE, /* → is it ours, is the row the name's, who has it */
    HF__MYSQL_RENEW,
    HF__MYSQL_RELEASE,
    HF__MYSQL_SHOW,   /* as hf__mysql_sql_table_show */
    HF__MYSQL_LIST,   /* as hf__mysql_sql_table_list, with keys for names */
    HF__MYSQL_BREAK,  /* as hf__mysql_sql_table_break */
    HF__MYSQL_DOCTOR, /* every right that a lock needs, and nothing stays */
    HF__MYSQL_DIALECT_TEXTS
};

struct hf__mysql {
    struct hf__engine base;
    const struct hf__mysql_mode *mode;
    const struct hf__sql_dialect *dialect; /* NULL: our own tables */
    const char *const *dialect_texts;      /* of it */
    struct hf__sql_pool pool;
    uint32_t round;         /* of the timer */
    int64_t sweep_ns;       /* remove rows of dead clients then; 0: never */
    bool sweeps_conditions; /* … of holdfast_cond too */
    bool sweeping;          /* those of holdfast_cond, now */
    uint32_t swept;         /* of them, one after the other */
    uint32_t main_users;    /* tickets that ask, or hold, on the main session */
    bool proven;            /* the last answer about a row was one; dialect=row:
                            the column is unique */
    struct hf__mysql_connection main;
    bool up;
    struct hf__mysql_session old; /* the main one before */
    struct hf__mysql_orphan {
        struct hf__mysql_session session;
        bool ending;              /* the next check is under way */
    } orphans[HF__MYSQL_ORPHANS]; /* newest first */
    bool own_row;            /* for_update: rows of the application's table */
    bool own_versions;       /* … and versions in its column */
    bool is_mariadb;         /* else MySQL */
    char server[80];         /* its version */
    char server_comment[80]; /* and its maker */
    uint64_t serials;
    struct hf__link link; /* the timer, listening */
    struct hf__ticket_table tickets;
    struct hf__buf scratch;
    const char *database; /* of the URL */
    char schema[260];     /* as the server calls it */
    char peer[280];       /* for people: "mysql db1:3306" */
    int port;
    bool tls;
};

static inline struct hf__mysql_ticket *hf__mysql_ticket(
    const struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&mysql->base, ticket);
}
/* NULL: it is gone. */
static inline struct hf__ticket *hf__mysql_tickets_find(
    const struct hf__mysql *mysql, uint64_t id)
{
    return hf__ticket_table_find(&mysql->tickets, id);
}
static inline int64_t hf__mysql_lease_ms(const struct hf__mysql *mysql,
                                         const struct hf__ticket *ticket)
{
    return mysql->mode->caps & HF_CAP_LEASED ? ticket->ttl_ms : 0;
}

/* mysql.c: 0 if calls may be sent on the main connection, else an error. */
int hf__mysql_is_up(const struct hf__mysql *mysql, hf_error *err);

/* errors.c: fill @err, return its code. */
int hf__mysql_errors_read(const struct hf__mysql *mysql,
                          const struct hf__mysql_reply *reply, hf_error *err);
int hf__mysql_errors_lost(const struct hf__mysql *mysql, hf_error *err);
/* A deadlock, a lock that took too long, a table that was changed meanwhile:
 * nothing was done, ask again. */
bool hf__mysql_errors_is_collision(const struct hf__mysql_reply *reply);
bool hf__mysql_errors_is_no_table(const struct hf__mysql_reply *reply);
/* A prepared statement that takes what is free found that it is not. */
bool hf__mysql_errors_is_taken(const struct hf__mysql_reply *reply);

/* schema.c: if the tables were not there, make them and send @call again. True:
 * that is under way. */
bool hf__mysql_schema_make(struct hf__mysql_call *call,
                           const struct hf__mysql_reply *reply);

/* renew.c */
int hf__mysql_renew_rows(struct hf__mysql *mysql, struct hf__ticket **tickets,
                         size_t n, hf_error *err);
int hf__mysql_renew_sessions(struct hf__mysql *mysql,
                             struct hf__ticket **tickets, size_t n,
                             hf_error *err);

/* dialect.c, row.c */
void hf__mysql_dialect_open(struct hf__mysql *mysql);
const char *const *hf__mysql_row_texts(const struct hf__mysql *mysql);

/* inspect.c. _ask(): send the query's @text; _fail(): answer it with an error of
 * ours; _failed(): answer what is no answer of @columns, and say so; _unknown():
 * the same for a change that may have been made. */
int hf__mysql_inspect_ask(struct hf__mysql *mysql, struct hf__query *query,
                          const char *text, hf__mysql_done_fn *done,
                          hf_error *err);
void hf__mysql_inspect_fail(struct hf__mysql *mysql, struct hf__query *query,
                            int code, const char *text);
bool hf__mysql_inspect_failed(struct hf__mysql *mysql, struct hf__query *query,
                              const struct hf__mysql_reply *reply,
                              unsigned columns);
bool hf__mysql_inspect_unknown(struct hf__mysql *mysql,
                               const struct hf__mysql_call *call,
                               const struct hf__mysql_reply *reply,
                               unsigned columns);
hf__engine_query_fn hf__mysql_inspect_list;
hf__engine_query_fn hf__mysql_inspect_check;
hf__engine_query_fn hf__mysql_inspect_break;
hf__engine_query_fn hf__mysql_versions_read;
hf__engine_query_fn hf__mysql_versions_commit;
hf__engine_query_fn hf__mysql_doctor;

#endif
