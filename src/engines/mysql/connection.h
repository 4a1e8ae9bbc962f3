/* SPDX-License-Identifier: MIT */
/*
 * connection.h - one connection, its session at the server, what is under way.
 */
#ifndef HF_MYSQL_CONNECTION_H
#define HF_MYSQL_CONNECTION_H

#include "engines/common/calls.h"
#include "engines/mysql/calls.h"
#include "engines/mysql/tickets.h"
#include "net/resolve.h"

/* How long the server keeps a session that has no lease. */
enum { HF__MYSQL_IDLE_S = 86400 };

enum hf__mysql_step {
    HF__MYSQL_STEP_CLOSED,
    HF__MYSQL_STEP_WANTED, /* the timer will begin */
    HF__MYSQL_STEP_RESOLVING,
    HF__MYSQL_STEP_CONNECTING,
    HF__MYSQL_STEP_IDLE,
    HF__MYSQL_STEP_QUERY,
    HF__MYSQL_STEP_FETCH,
    HF__MYSQL_STEP_NEXT,
    HF__MYSQL_STEP_PREPARE,
    HF__MYSQL_STEP_EXECUTE
};

/* What the loop finds when it comes to a connection. */
enum hf__mysql_later {
    HF__LATER_NOTHING,
    HF__LATER_ANSWERED, /* the answer came while we were sending */
    HF__LATER_BROKEN    /* sending failed: the timer reports it */
};

struct hf__mysql_connection {
    struct hf__sql_link link;
    struct hf__mysql *mysql;
    MYSQL *handle;
    uint8_t step;  /* enum hf__mysql_step */
    bool greeted;  /* its first packet was looked at */
    uint8_t later; /* enum hf__mysql_later */
    int early_rc;
    struct hf__io io;
    uint32_t events;
    struct hf__resolve *resolving;
    struct addrinfo *addresses;
    struct addrinfo *next; /* to be tried */
    char address[64];      /* being tried */
    int64_t since_ns;      /* connecting since */
    /* struct hf__mysql_call *; the first is under way unless IDLE. */
    struct hf__calls calls;
    struct hf__mysql_reply reply;
    MYSQL_RES *result; /* being read */
    MYSQL_ROW row;     /* of it */
    struct hf__mysql_prepared prepared[HF__MYSQL_PREPARED];
    struct hf__mysql_prepared *current; /* being carried out */
    struct hf__mysql_session session;
    uint64_t ticket;  /* the one that has it, of the pool's; 0: none */
    bool with_caller; /* the caller uses it: we neither send nor watch */
    int64_t lease_s;  /* its wait_timeout; 0: a long one */
    int64_t free_ns;  /* since when it holds nothing */
    uint32_t round;   /* of the timer that has looked at it */
    /* The greeting was answered: calls may follow. */
    void (*opened)(struct hf__mysql_connection *connection);
    /* CLOSED now, and every call was told; it may be freed. */
    void (*closed)(struct hf__mysql_connection *connection,
                   const hf_error *err);
};

/* Once; the owner then sets opened and closed. */
void hf__mysql_connection_init(struct hf__mysql_connection *connection,
                               struct hf__mysql *mysql);
/* Begin to connect; ends in opened() or closed(). */
int hf__mysql_connection_start(struct hf__mysql_connection *connection,
                               hf_error *err);
/* Forget it; nothing is reported. */
void hf__mysql_connection_stop(struct hf__mysql_connection *connection,
                               bool forked);
/* Close it: every call gets no answer, then closed() runs. */
void hf__mysql_connection_fail(struct hf__mysql_connection *connection,
                               const hf_error *err);
/* The same, with a message of the library or of ours. */
void hf__mysql_connection_lost(struct hf__mysql_connection *connection,
                               const char *words);
/* Begin to connect, which must not happen inside a call down. */
void hf__mysql_connection_begin(struct hf__mysql_connection *connection);
/* Is something overdue, or broken? If not, when would it be. */
int64_t hf__mysql_connection_check(struct hf__mysql_connection *connection,
                                   int64_t now_ns);
/* Give it up; the timer will close it. */
void hf__mysql_connection_break(struct hf__mysql_connection *connection);
/* Watch for what the library waits for; for the end of an idle session; not at
 * all. */
void hf__mysql_connection_watch(struct hf__mysql_connection *connection,
                                int waits_for);
void hf__mysql_connection_watch_idle(struct hf__mysql_connection *connection);
void hf__mysql_connection_unwatch(struct hf__mysql_connection *connection);

#endif
