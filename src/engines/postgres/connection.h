/* SPDX-License-Identifier: MIT */
/*
 * connection.h - one connection: connecting, its calls, its end.
 */
#ifndef HF_POSTGRES_CONNECTION_H
#define HF_POSTGRES_CONNECTION_H

#include "base/buf.h"
#include "engines/common/calls.h"
#include "engines/engine.h"
#include "engines/postgres/answer.h"
#include "engines/postgres/statements.h"
#include "engines/sql/pool.h"

struct hf__pg;
struct hf__pg_call;
struct hf__pg_conn;
struct hf__pg_ticket;
struct hf__resolve;

/* @answer is NULL when the connection was lost before it came. */
typedef void hf__pg_done_fn(struct hf__pg_conn *conn,
                            const struct hf__pg_call *call,
                            const struct hf__pg_answer *answer);

struct hf__pg_call {
    hf__pg_done_fn *done;
    uint64_t ticket;            /* its id; 0: none */
    struct hf__pg_ticket *mine; /* … for @done, which is not told if it is gone
                                 * and there is no query */
    struct hf__query *query;    /* lives until it is answered */
    uint64_t number;            /* for @done */
    int64_t sent_ns;
    bool patient; /* a wait: no answer is no failure */
    /* What libpq will have a result for, in order; the last is the end. */
    struct hf__pg_step {
        uint8_t statement;
        bool prepare;
    } steps[2 * HF__PG_RESULTS];
    uint8_t steps_n;
    uint8_t step; /* whose result comes next */
    bool told;    /* … it came */
};

enum hf__pg_conn_state {
    HF__CONN_IDLE,
    HF__CONN_RESOLVING,
    HF__CONN_CONNECTING,
    HF__CONN_STARTING, /* the first statements */
    HF__CONN_UP,
    HF__CONN_WITH_CALLER /* of hf_sql_connection() */
};

/* Making the tables that are missing. */
enum hf__pg_tables { HF__TABLES_UNTRIED, HF__TABLES_MAKING, HF__TABLES_UNMADE };

/* The backend of a connection that we lost. */
struct hf__pg_orphan {
    int32_t pid;     /* 0: none */
    uint64_t number; /* tells it from others in a call */
    char started[40];
};

struct hf__pg_conn {
    struct hf__sql_link link; /* of the pool; unused in the main one */
    struct hf__pg *engine;
    struct hf__pg_ticket *user; /* of one of the pool: the ticket that has it */
    PGconn *pq;
    struct hf__io io;
    uint32_t watched; /* events */
    uint8_t state;
    bool listening;
    uint8_t tables; /* enum hf__pg_tables */
    bool reading;   /* its answers are being handled */
    bool closing;   /* … and it is to be closed after that */
    bool unpooled;  /* the pool has given it up */
    hf_error fatal;
    int64_t connect_ns;
    /* hosts.c */
    size_t host; /* the next to be resolved */
    struct hf__resolve *resolving;
    struct hf__buf hosts;
    struct hf__buf addresses;
    struct hf__buf ports;
    /* calls.c */
    struct hf__calls calls;  /* struct hf__pg_call */
    struct hf__pg_call next; /* being put together */
    struct hf__pg_answer answer;
    int64_t received;              /* bytes, about */
    int64_t received_from;         /* … when an answer began; 0: none has */
    bool prepared[HF__STMT_COUNT]; /* by enum hf__pg_statement */
    int64_t spoke_ns;              /* when we last sent something */
    /* advisory_*.c */
    int64_t timeout_ms;  /* how long it may be silent; 0: for ever */
    int64_t second_key;  /* of the name that it used last */
    bool has_second_key; /* … it still has it */
    int32_t pid;
    char started[40]; /* backend_start, as the server writes it */
};

/* connect.c: begin to connect. Ends in mode->up() or in the connection's end. */
int hf__pg_connect_start(struct hf__pg_conn *conn, hf_error *err);
/* libpq goes on with it. */
void hf__pg_connect_poll(struct hf__pg_conn *conn);
/* The first statements are answered. */
void hf__pg_connect_answered(struct hf__pg_conn *conn);

/* hosts.c: resolve what has to be, then hf__pg_settings_connect(). */
int hf__pg_hosts_resolve(struct hf__pg_conn *conn, hf_error *err);
void hf__pg_hosts_forget(struct hf__pg_conn *conn);
void hf__pg_hosts_stop(struct hf__pg_conn *conn, bool forked);
/* settings.c: make conn->pq. Ends in hf__pg_connect_poll(). */
int hf__pg_settings_connect(struct hf__pg_conn *conn, hf_error *err);

/* connection.c: close it; nothing is reported. */
void hf__pg_connection_stop(struct hf__pg_conn *conn, bool forked);
/* It cannot be trusted any more: report what was under way. */
void hf__pg_connection_fail(struct hf__pg_conn *conn, const hf_error *err);
/* The same with a reason of our own. */
void hf__pg_connection_refuse(struct hf__pg_conn *conn, int code,
                              const char *why);
/* What was to be sent cannot be: it ends soon. Returns an error. */
int hf__pg_connection_give_up(struct hf__pg_conn *conn, hf_error *err);
/* libpq, or the server, says why it ends. */
void hf__pg_connection_lost(struct hf__pg_conn *conn);
void hf__pg_connection_ended_by(struct hf__pg_conn *conn,
                                const struct hf__pg_error *error);
/* End it now: it is closing. */
void hf__pg_connection_end(struct hf__pg_conn *conn);
/* Wait for events of its socket. */
int hf__pg_connection_watch(struct hf__pg_conn *conn, uint32_t events,
                            hf_error *err);
/* libpq's notices go to the log, not to stderr. */
void hf__pg_connection_log_notices(struct hf__pg_conn *conn);
/* Leave it to libpq and the caller. There must be no call under way. */
int hf__pg_connection_to_caller(struct hf__pg_conn *conn, hf_error *err);
/* It is ours again. Non-zero: it could not be used any more, and has ended.
 * @ret_whole: it is in a transaction in which no statement has failed. */
int hf__pg_connection_from_caller(struct hf__pg_conn *conn, bool *ret_whole);
/* Its backend, once the connection is lost; unchanged if it never had one. */
void hf__pg_connection_orphan(struct hf__pg_conn *conn,
                              struct hf__pg_orphan *ret_orphan);
/* Is its oldest call overdue? If not, when would it be; HF_NEVER for none. */
int64_t hf__pg_connection_overdue(struct hf__pg_conn *conn, int64_t now_ns);

static inline bool hf__pg_connection_is_up(const struct hf__pg_conn *conn)
{
    return conn->state == HF__CONN_UP && !conn->closing;
}

/* calls.c: libpq has made the connection: send @text, the first statements. */
void hf__pg_calls_start(struct hf__pg_conn *conn, const char *text);
/* Send more of them. */
void hf__pg_calls_send_text(struct hf__pg_conn *conn, const char *text);
/* From now on calls are sent. */
int hf__pg_calls_open(struct hf__pg_conn *conn, hf_error *err);
/* Add a statement to the call that is being put together. */
void hf__pg_calls_add(struct hf__pg_conn *conn, enum hf__pg_statement statement,
                      const char *const *values, int n);
/* Send them, as one transaction. Non-zero: nothing was sent, and the connection
 * ends, or is not up. */
int hf__pg_calls_send(struct hf__pg_conn *conn, const struct hf__pg_call *call,
                      hf_error *err);
/* A call of one statement. */
int hf__pg_calls_send_one(struct hf__pg_conn *conn,
                          enum hf__pg_statement statement,
                          const char *const *values, int n,
                          const struct hf__pg_call *call, hf_error *err);
/* Is a call of @ticket under way that @done hears? */
bool hf__pg_calls_has(const struct hf__pg_conn *conn, hf__pg_done_fn *done,
                      uint64_t ticket);
/* The oldest goes, and @answer is told; false: there is none. */
bool hf__pg_calls_finish(struct hf__pg_conn *conn,
                         const struct hf__pg_answer *answer);
/* For calls whose answer changes nothing. */
hf__pg_done_fn hf__pg_calls_ignore;

#endif
