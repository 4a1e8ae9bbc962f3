/* SPDX-License-Identifier: MIT */
/*
 * mysql.h - the parts of the MariaDB engine to each other.
 *
 *   mysql.c       the engine's table: open, connect, close, the timer
 *   connection.c  one connection: greeting, calls and their answers in order
 *   errors.c      what the server's error numbers mean for a lock
 *   statements.c  the SQL, and how values get into it
 *   tickets.c     which tickets the server may know
 *   table.c       mode=table
 *   inspect.c     list, check, break, versions
 */
#ifndef HF_MYSQL_MYSQL_H
#define HF_MYSQL_MYSQL_H

#include "base/buf.h"
#include "engine.h"
#include "engines/mysql/library.h"
#include "engines/sql/pool.h"
#include "net/resolve.h"

struct hf__mysql;
struct hf__mysql_call;
struct hf__mysql_connection;

enum { HF__MYSQL_BATCH = 64, HF__MYSQL_BUCKETS = 1024 };

/* What the server said to one call. */
struct hf__mysql_reply {
    unsigned code;   /* its error number; 0: none */
    char text[200];  /* and its words */
    MYSQL_RES *rows; /* the first result that has rows; NULL: none */
    uint32_t n;      /* statements that were carried out */
    uint64_t affected[HF__MYSQL_BATCH];
};

/* @reply is NULL when the connection was lost before it came. */
typedef void hf__mysql_done_fn(struct hf__mysql *mysql,
                               struct hf__mysql_call *call,
                               struct hf__mysql_reply *reply);

/* One text of statements, from being queued to being answered. */
struct hf__mysql_call {
    struct hf__list link;
    struct hf__mysql_connection *connection;
    hf__mysql_done_fn *done;
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    struct hf__query *query; /* lives until it is answered */
    size_t n;                /* of @tickets */
    uint64_t *tickets;       /* of a batch */
    int64_t sent_ns;
    int64_t wait_ms; /* the server may take so much longer than io_timeout */
    bool again;      /* the tables have been made for it already */
    bool kept;       /* somebody has it: do not free it when it is answered */
    struct hf__mysql_call *then; /* what waits for the tables */
    struct hf__buf sql;
};

enum hf__mysql_step {
    HF__MYSQL_CLOSED,
    HF__MYSQL_WANTED, /* the timer will begin */
    HF__MYSQL_RESOLVING,
    HF__MYSQL_CONNECTING,
    HF__MYSQL_IDLE,
    HF__MYSQL_QUERY,
    HF__MYSQL_STORE,
    HF__MYSQL_NEXT
};

struct hf__mysql_connection {
    struct hf__sql_link link;
    struct hf__mysql *mysql;
    MYSQL *handle;
    uint8_t step; /* enum hf__mysql_step */
    bool broken;  /* found while sending: the timer will tell */
    bool early;   /* answered while sending: the timer will tell */
    int early_rc;
    struct hf__io io;
    uint32_t events;
    struct hf__resolve *resolving;
    struct addrinfo *addresses;
    struct addrinfo *next; /* to be tried */
    char address[64];      /* being tried */
    int64_t since_ns;      /* connecting since */
    struct hf__list calls; /* the first is under way unless IDLE */
    struct hf__mysql_reply reply;
    uint64_t serial; /* which connection of this client it is */
    int64_t idle_s;  /* wait_timeout: the server ends it when it is silent */
    /* The greeting was answered: calls may follow. */
    void (*opened)(struct hf__mysql_connection *connection);
    /* CLOSED now, and every call was told; it may be freed. */
    void (*closed)(struct hf__mysql_connection *connection,
                   const hf_error *err);
};

/* Our bytes of every ticket. */
struct hf__mysql_ticket {
    struct hf__ticket *next; /* in mysql->tickets */
    bool known;
    bool asking;     /* an acquire has not been reported yet */
    bool waiting;    /* in line */
    bool polling;    /* a question about its place is under way */
    bool leaving;    /* withdraw() or release() was called */
    bool releasing;  /* it was release() */
    bool in_row;     /* it has, or may have, a row in holdfast_ticket */
    int64_t poll_ns; /* look again then; 0: not now */
};

struct hf__mysql {
    struct hf__engine base;
    struct hf__mysql_connection main;
    bool up;
    bool ending_old;     /* the connection before is being ended */
    uint64_t old_serial; /* of it; 0: none */
    uint64_t serials;
    struct hf__timer timer;
    struct hf__ticket *tickets[HF__MYSQL_BUCKETS];
    struct hf__buf scratch;
    const char *database; /* NULL: none */
    char peer[280];       /* for people: "mysql db1:3306" */
    int port;
    bool tls;
};

/* ---- connection.c ------------------------------------------------------ */

/* Once; the owner then sets opened and closed. */
void hf__mysql_connection_init(struct hf__mysql_connection *connection,
                               struct hf__mysql *mysql);
/* Begin to connect; ends in opened() or closed(). */
int hf__mysql_connection_start(struct hf__mysql_connection *connection,
                               hf_error *err);
/* Forget it; nothing is reported. */
void hf__mysql_connection_stop(struct hf__mysql_connection *connection,
                               bool forked);
/* It cannot be trusted any more: tell every call, then closed(). */
void hf__mysql_connection_fail(struct hf__mysql_connection *connection,
                               const hf_error *err);
/* Go on with what must not happen inside a call down: begin to connect, hear
 * an answer that came at once. */
void hf__mysql_connection_begin(struct hf__mysql_connection *connection);
/* Is something overdue, or broken? If not, when would it be. */
int64_t hf__mysql_connection_check(struct hf__mysql_connection *connection,
                                   int64_t now_ns);
/* A call to fill in; NULL without memory. */
struct hf__mysql_call *hf__mysql_call_new(hf__mysql_done_fn *done,
                                          hf_error *err);
void hf__mysql_call_free(struct hf__mysql_call *call);
/* The name of the lock that says that the session of @serial lives. */
void hf__mysql_session_name(const struct hf__mysql *mysql, uint64_t serial,
                            struct hf__buf *to);
/* Send it, or when its turn comes; takes @call in every case. */
int hf__mysql_call_send(struct hf__mysql_connection *connection,
                        struct hf__mysql_call *call, hf_error *err);
/* The next row; false at the end. Fields and lengths live until the next. */
bool hf__mysql_row(struct hf__mysql_reply *reply, MYSQL_ROW *ret_row,
                   unsigned long **ret_lengths);
/* A field that is a number; 0 if it is none. */
uint64_t hf__mysql_number(const char *field);

/* ---- errors.c ---------------------------------------------------------- */

/* What an error of the server means, in our words. */
int hf__mysql_explain(const struct hf__mysql *mysql,
                      const struct hf__mysql_reply *reply, hf_error *err);
int hf__mysql_explain_lost(const struct hf__mysql *mysql, hf_error *err);
/* A deadlock or a lock that took too long: nothing was done, ask again. */
bool hf__mysql_is_collision(const struct hf__mysql_reply *reply);
bool hf__mysql_is_no_table(const struct hf__mysql_reply *reply);

/* ---- statements.c ------------------------------------------------------ */

/* What is put in the place of a '$' and a letter. */
struct hf__mysql_values {
    /* N name, T number, R record, L lease in µs, M mode, S slots, W may wait */
    const struct hf__ticket *ticket;
    const char *name;  /* N, where there is no ticket; Z its length */
    const char *owner; /* O */
    uint64_t token;    /* K */
};
/* A waiter that has not asked for so long is forgotten: A. */
enum { HF__MYSQL_LIFE_US = 3000000 };
void hf__mysql_statement(struct hf__mysql *mysql, struct hf__buf *to,
                         const char *text,
                         const struct hf__mysql_values *values);
void hf__mysql_put_hex(struct hf__buf *to, const void *bytes, size_t len);

extern const char hf__mysql_make_tables[];
extern const char hf__mysql_acquire_fast[];
extern const char hf__mysql_acquire_slow[];
extern const char hf__mysql_leave_fast[];
extern const char hf__mysql_leave_slow[];
extern const char hf__mysql_renew_exclusive[];
extern const char hf__mysql_renew_row[];
extern const char hf__mysql_downgrade[];
extern const char hf__mysql_list[];
extern const char hf__mysql_show[];
extern const char hf__mysql_check[];
extern const char hf__mysql_break[];
extern const char hf__mysql_version_read[];
extern const char hf__mysql_version_commit[];

/* ---- mysql.c ----------------------------------------------------------- */

/* Be woken no later than @due_ns. */
void hf__mysql_wake(struct hf__mysql *mysql, int64_t due_ns);
/* May calls be sent on the main connection? If not, 0 is not returned. */
int hf__mysql_is_up(const struct hf__mysql *mysql, hf_error *err);

/* ---- tickets.c --------------------------------------------------------- */

static inline struct hf__mysql_ticket *hf__mysql_ticket(
    const struct hf__mysql *mysql, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&mysql->base, ticket);
}
void hf__mysql_ticket_know(struct hf__mysql *mysql, struct hf__ticket *ticket);
struct hf__ticket *hf__mysql_ticket_find(const struct hf__mysql *mysql,
                                         uint64_t id);
void hf__mysql_ticket_forget(struct hf__mysql *mysql,
                             struct hf__ticket *ticket);

/* ---- table.c ----------------------------------------------------------- */

int hf__mysql_table_acquire(struct hf__mysql *mysql, struct hf__ticket *ticket,
                            hf_error *err);
int hf__mysql_table_leave(struct hf__mysql *mysql, struct hf__ticket *ticket,
                          bool releasing, hf_error *err);
int hf__mysql_table_renew(struct hf__mysql *mysql, struct hf__ticket **tickets,
                          size_t n, hf_error *err);
int hf__mysql_table_downgrade(struct hf__mysql *mysql,
                              struct hf__ticket *ticket, hf_error *err);
/* Look again for those in line whose time has come; returns the next one. */
int64_t hf__mysql_table_poll(struct hf__mysql *mysql, int64_t now_ns);
/* If the tables were not there: make them, and ask again. True: it is done. */
bool hf__mysql_remake(struct hf__mysql *mysql, struct hf__mysql_call *call,
                      const struct hf__mysql_reply *reply);

/* ---- inspect.c --------------------------------------------------------- */

hf__engine_query_fn hf__mysql_list_locks;
hf__engine_query_fn hf__mysql_check_token;
hf__engine_query_fn hf__mysql_break_lock;
hf__engine_query_fn hf__mysql_version_read_op;
hf__engine_query_fn hf__mysql_version_commit_op;

#endif
