/* SPDX-License-Identifier: MIT */
/*
 * etcd.h - the parts of the etcd engine to each other.
 *
 *   etcd.c        the engine's table: open, close, timer
 *   connection.c  calls of the v3 API, members one after the other, users
 *   errors.c      what went wrong, in our words
 *   grpc.c        gRPC on our loop     frame.c  what it puts around a message
 *   pb.c          messages of protobuf          messages.h  those of etcd
 *   queue.c       keys and records; who of a queue holds
 *   lease.c       the leases that carry our keys
 *   tickets.c     the tickets by number, and their moves
 *   acquire.c  release.c  renew.c (and downgrade)
 *   wait.c        waiting for those before us   watch.c  hints of changes
 *   park.c (and unpark)  signal.c  condition.c  who is parked, and called
 *   inspect.c     list, check, break     versions.c     doctor.c
 *   board.c       notices of who waits for whom
 */
#ifndef HF_ETCD_ETCD_H
#define HF_ETCD_ETCD_H

#include "engines/common/link.h"
#include "engines/etcd/condition.h"
#include "engines/etcd/connection.h"
#include "engines/etcd/errors.h"
#include "engines/etcd/lease.h"
#include "engines/etcd/park.h"
#include "engines/etcd/queue.h"
#include "engines/etcd/signal.h"
#include "engines/etcd/tickets.h"

enum {
    HF__ETCD_LEASES = 8,
    HF__ETCD_STREAMS = 128,  /* more waiters look again from time to time */
    HF__ETCD_RENEWALS = 100, /* keys looked at in one transaction */
    HF__ETCD_ROWS = 10000    /* keys of an answer */
};

struct hf__etcd_member {
    const char *host;
    int port;
    char name[HF__GRPC_NAME]; /* "db1:2379" */
};

/* A connection for one question to a member that is not in use. */
struct hf__etcd_other {
    struct hf__list link;
    struct hf__grpc grpc;
    bool spent; /* hf__etcd_connection_flush() frees it, where nobody uses it */
};

struct hf__etcd {
    struct hf__engine base;

    /* connection.c */
    struct hf__grpc grpc;
    struct hf__list others;
    struct hf__tls_context *tls; /* NULL: plain */
    char token[HF__GRPC_TOKEN];  /* of the user; "": none */
    struct hf__etcd_member *endpoints;
    size_t n_endpoints;
    size_t endpoint; /* the one in use */
    size_t tried;    /* of this connect() */
    enum hf__etcd_connection connection;
    struct hf__etcd_call unsent;    /* stands for one without memory */
    struct hf__list delayed;        /* calls that wait for a new token */
    struct hf__etcd_call *boarding; /* a release that is not sent yet, which an
                                       acquire may join; NULL: none */
    char version[24];               /* of the server */

    struct hf__link link;

    /* lease.c */
    struct hf__etcd_lease leases[HF__ETCD_LEASES];
    struct hf__query *finish; /* while leases are revoked */
    uint32_t revoking;        /* how many are not yet */

    /* tickets.c, wait.c */
    struct hf__ticket_table tickets;
    uint32_t streams;

    /* condition.c */
    struct hf__list conditions;
    uint64_t condition_ids;

    /* queue.c */
    char *prefix; /* of every key */
    size_t prefix_len;
    char whoami[96]; /* host LF process LF */
    struct hf__buf key;
};

/* ---- etcd.c -------------------------------------------------------------- */

static inline struct hf__etcd_ticket *hf__etcd_ticket(
    const struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&etcd->base, ticket);
}
static inline bool hf__etcd_connection_is_up(const struct hf__etcd *etcd)
{
    return etcd->connection >= HF__ETCD_UP;
}

/* ---- acquire.c, release.c ------------------------------------------------ */

hf__engine_acquire_fn hf__etcd_acquire;
hf__engine_withdraw_fn hf__etcd_release_withdraw;
hf__engine_release_fn hf__etcd_release;
/* The lease is there: ask for those that waited for it, renew the rest. */
void hf__etcd_acquire_lease_ready(struct hf__etcd *etcd,
                                  struct hf__etcd_lease *lease,
                                  const struct hf__etcd_reply *reply);
/* The lease @id has ended, and with it all its keys. */
void hf__etcd_acquire_lease_lost(struct hf__etcd *etcd, int64_t id);
/* A ticket with a condition asks for the lock: it was called, or unparked. */
void hf__etcd_acquire_called(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* A release that could not be carried out as it was asked. @ours: its key is
 * still the one that we were granted. */
int hf__etcd_release_again(struct hf__etcd *etcd, struct hf__ticket *ticket,
                           bool ours, hf_error *err);
/* The answer to a release that an acquire has joined. False: neither was carried
 * out, and the release has been sent again. */
bool hf__etcd_release_joined(struct hf__etcd *etcd, struct hf__etcd_call *call,
                             const struct hf__etcd_reply *reply);
/* It is ours. */
void hf__etcd_acquire_granted(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* An acquire ends with @reply's error. */
void hf__etcd_acquire_failed(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             const struct hf__etcd_reply *reply);
/* A certain refusal, of our own. */
void hf__etcd_acquire_refuse(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             const hf_error *err);
/* An answer that etcd cannot have given: nothing of it is believed. */
void hf__etcd_acquire_odd(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* It is in line, and did not want to be. */
void hf__etcd_release_try(struct hf__etcd *etcd, struct hf__ticket *ticket,
                          const struct hf__etcd_entry *holder);
/* Its key is not there any more: ask again. */
void hf__etcd_acquire_place_lost(struct hf__etcd *etcd,
                                 struct hf__ticket *ticket);

/* ---- renew.c ------------------------------------------------------------- */

hf__engine_renew_fn hf__etcd_renew;
hf__engine_downgrade_fn hf__etcd_renew_downgrade;
/* The lease was kept alive, or not: those that wanted it are looked at. */
void hf__etcd_renew_confirmed(struct hf__etcd *etcd,
                              struct hf__etcd_lease *lease,
                              const struct hf__etcd_reply *reply);

/* ---- wait.c -------------------------------------------------------------- */

/* Add the request, in case of success, for those before the ticket's revision:
 * all but exclusive ones need the whole queue. */
void hf__etcd_wait_add_before(struct hf__etcd *etcd, struct hf__buf *to,
                              const struct hf__ticket *ticket);
/* @range has those before it, at @revision of the store: hold, or wait. */
void hf__etcd_wait_decide(struct hf__etcd *etcd, struct hf__ticket *ticket,
                          struct hf__pb range, uint64_t revision);
/* Is @range more than that asks for? A whole queue may have any length. */
bool hf__etcd_wait_is_odd(const struct hf__ticket *ticket, struct hf__pb range);
/* Ask who is before it. If that cannot be sent, the ticket looks later, or its
 * acquire fails. */
void hf__etcd_wait_look(struct hf__etcd *etcd, struct hf__ticket *ticket);
void hf__etcd_wait_stop(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* Does a server of @version serve a watch late if others write while it is
 * made? Fixed in 3.4.38, 3.5.22 and 3.6.2. */
bool hf__etcd_wait_is_late(const char *version);
/* The timer: look for those who have no stream; when is the next? */
int64_t hf__etcd_wait_due(struct hf__etcd *etcd, int64_t now_ns);

/* ---- watch.c ------------------------------------------------------------- */

hf__engine_watch_fn hf__etcd_watch;
hf__engine_watch_fn hf__etcd_watch_stop;

/* ---- inspect.c, versions.c, doctor.c ------------------------------------- */

/* Add the request for the keys "~@what/…" of the locks that are asked for. */
void hf__etcd_inspect_parked_ask(struct hf__etcd *etcd, struct hf__buf *to,
                                 const struct hf__query *query,
                                 const char *what);
/* Add the rows of those who are parked, by the answers to that. 0, HF_ENOMEM,
 * HF_EUNAVAILABLE or HF_EINTERNAL. */
int hf__etcd_inspect_parked_add(struct hf__etcd *etcd, struct hf__query *query,
                                struct hf__pb range, struct hf__pb stamps);
hf__engine_query_fn hf__etcd_inspect_list;
hf__engine_query_fn hf__etcd_inspect_check;
hf__engine_query_fn hf__etcd_inspect_break;
hf__engine_query_fn hf__etcd_versions_read;
hf__engine_query_fn hf__etcd_versions_commit;
hf__engine_query_fn hf__etcd_doctor;

/* ---- board.c -------------------------------------------------------------- */

hf__engine_query_fn hf__etcd_board_post;
hf__engine_query_fn hf__etcd_board_read;

#endif
