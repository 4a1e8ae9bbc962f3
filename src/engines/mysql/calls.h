/* SPDX-License-Identifier: MIT */
/*
 * calls.h - calls and their answers, in order, on one connection.
 */
#ifndef HF_MYSQL_CALLS_H
#define HF_MYSQL_CALLS_H

#include "base/buf.h"
#include "engines/engine.h"
#include "engines/mysql/library.h"

struct hf__mysql;
struct hf__mysql_call;
struct hf__mysql_connection;

enum {
    HF__MYSQL_BATCH = 64,  /* statements of one call */
    HF__MYSQL_PARAMS = 8,  /* of a prepared statement */
    HF__MYSQL_PREPARED = 8 /* on one connection */
};

/* The most that we accept as the answer to one call. */
enum {
    HF__MYSQL_COLUMNS = 16,
    HF__MYSQL_ROWS = 1 << 17,
    HF__MYSQL_BYTES = 16 << 20,
};

/* A field of a row; ends with a NUL that is not counted. */
struct hf__mysql_field {
    const char *text; /* NULL: NULL */
    size_t len;
};

/* The answer to one call. */
struct hf__mysql_reply {
    unsigned code;  /* its error number; 0: none */
    char text[200]; /* and its message */
    uint32_t n;     /* statements that were carried out */
    uint64_t affected[HF__MYSQL_BATCH];
    uint64_t number;         /* a prepared statement's LAST_INSERT_ID() */
    bool was_in_transaction; /* after the first of them */
    bool in_transaction;     /* after the last of them */
    /* The one result with rows that a call may have. */
    unsigned columns; /* 0: there was none */
    uint32_t rows;
    struct hf__buf bytes; /* of each field its length, and it */
    size_t at;            /* what hf__mysql_answer_row() reads next */
};

/* @reply is NULL when the connection was lost before it came. */
typedef void hf__mysql_done_fn(struct hf__mysql *mysql,
                               struct hf__mysql_call *call,
                               struct hf__mysql_reply *reply);
/* The same for a call of @ticket, which is still there. */
typedef void hf__mysql_answered_fn(struct hf__mysql *mysql,
                                   struct hf__ticket *ticket,
                                   struct hf__mysql_call *call,
                                   struct hf__mysql_reply *reply);

/* A value that goes beside a prepared statement. */
struct hf__mysql_param {
    bool is_number;
    uint64_t number;
    size_t at; /* where its bytes are, in the call's sql */
    unsigned long len;
};

/* Making the tables that a call misses. */
enum hf__mysql_tables {
    HF__TABLES_UNTRIED,
    HF__TABLES_MAKING, /* schema.c keeps the call until they are */
    HF__TABLES_MADE,
    HF__TABLES_UNMADE /* they could not be */
};

/* One text of statements, or one prepared statement, from being queued to being
 * answered. */
struct hf__mysql_call {
    struct hf__mysql_connection *connection;
    hf__mysql_done_fn *done;
    hf__mysql_answered_fn *answered; /* instead of @done, for a ticket */
    uint64_t ticket;         /* its id; 0: none. A pointer might outlive it */
    struct hf__query *query; /* lives until it is answered */
    size_t n;                /* of @tickets */
    uint64_t *tickets;       /* of a batch */
    int64_t sent_ns;
    int64_t wait_ms; /* the server may take so much longer than io_timeout */
    uint8_t tables;  /* enum hf__mysql_tables */
    struct hf__mysql_call *then; /* what waits for the tables */
    const char *text;            /* prepared; NULL: @sql is the text */
    unsigned n_params;
    struct hf__mysql_param params[HF__MYSQL_PARAMS];
    struct hf__buf sql;
};

/* A statement that the server has parsed, on one connection. */
struct hf__mysql_prepared {
    const char *text; /* which one: a text of sql.h, by its address */
    MYSQL_STMT *handle;
    bool ready;
    struct hf__buf sql; /* while it is being prepared */
};

/* A call to fill in; NULL without memory. */
struct hf__mysql_call *hf__mysql_call_new(hf__mysql_done_fn *done,
                                          hf_error *err);
void hf__mysql_call_free(struct hf__mysql_call *call);
/* Send it, or when its turn comes; takes @call in every case. */
int hf__mysql_call_send(struct hf__mysql_connection *connection,
                        struct hf__mysql_call *call, hf_error *err);
/* Send @text as it is, without a ticket. */
int hf__mysql_call_say(struct hf__mysql_connection *connection,
                       const char *text, hf__mysql_done_fn *done);
/* Send a text of sql.h with the values of @ticket. */
int hf__mysql_call_ask(struct hf__mysql_connection *connection,
                       struct hf__ticket *ticket, const char *text,
                       hf__mysql_answered_fn *answered, hf_error *err);
/* The same for one statement that is prepared, where we can. It may take
 * @wait_ms longer than io_timeout. */
int hf__mysql_call_prepared(struct hf__mysql_connection *connection,
                            struct hf__ticket *ticket, const char *text,
                            hf__mysql_answered_fn *answered, int64_t wait_ms,
                            hf_error *err);
/* Report what became of it. */
void hf__mysql_call_tell(struct hf__mysql *mysql, struct hf__mysql_call *call,
                         struct hf__mysql_reply *reply);
/* The one under way, or NULL. */
struct hf__mysql_call *hf__mysql_call_first(
    const struct hf__mysql_connection *connection);
/* The descriptor is ready; _early(): the answer came while we were sending. */
void hf__mysql_calls_ready(struct hf__mysql_connection *connection, int ready);
void hf__mysql_calls_early(struct hf__mysql_connection *connection);
/* Forget all of them; @told: after telling each that its answer is lost. */
void hf__mysql_calls_end(struct hf__mysql_connection *connection, bool told);
void hf__mysql_calls_free_prepared(struct hf__mysql_connection *connection);

/* answer.c: the text for an answer that makes no sense. */
extern const char hf__mysql_answer_strange[];
/* Empty it. */
void hf__mysql_answer_release(struct hf__mysql_reply *reply);
/* Keep a row of the library's; false if it is too much. */
bool hf__mysql_answer_keep(struct hf__mysql_reply *reply, char *const *row,
                           const unsigned long *lengths);
/* The next row, if there is one and it has so many columns. */
bool hf__mysql_answer_row(struct hf__mysql_reply *reply, unsigned columns,
                          struct hf__mysql_field row[]);
/* A field that is a number; 0 if it is none. */
uint64_t hf__mysql_answer_number(struct hf__mysql_field field);

#endif
