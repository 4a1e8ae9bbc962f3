/* SPDX-License-Identifier: MIT */
/*
 * zookeeper.h - the parts of the ZooKeeper engine to each other.
 *
 *   zookeeper.c   the ops table, open, connect, close, the timer
 *   connection.c  one connection: frames in and out
 *   calls.c       the calls under way, one flight at a time
 *   multi.c       transactions
 *   session.c     greeting, timeouts, the end of a session
 *   wire.c        the protocol's encoding, jute (pure)
 *   tickets.c     tickets, their moves, outcomes of any step
 *   nodes.c       names and data of nodes, dialects
 *   queue.c       who stands where in line (pure)
 *   lease.c       how long a session is good for (pure)
 *   acquire.c  release.c  renew.c (and downgrade)  wait.c
 *   park.c (and unpark)  signal.c  condition.c  who is parked, and called
 *   curator_semaphore.c  the two lines of Curator's semaphore
 *   medallion_seek.c     finding a node whose name does not tell that it is ours
 *   inspect.c     list, check, break       watch.c  hints of changes
 *   doctor.c      is this ensemble fit?    doctor_members.c  is each server?
 *   versions.c    errors.c    acl.c
 */
#ifndef HF_ZOOKEEPER_ZOOKEEPER_H
#define HF_ZOOKEEPER_ZOOKEEPER_H

#include "engines/common/calls.h"
#include "engines/common/link.h"
#include "engines/zookeeper/calls.h"
#include "engines/zookeeper/condition.h"
#include "engines/zookeeper/connection.h"
#include "engines/zookeeper/curator_semaphore.h"
#include "engines/zookeeper/lease.h"
#include "engines/zookeeper/multi.h"
#include "engines/zookeeper/park.h"
#include "engines/zookeeper/release.h"
#include "engines/zookeeper/session.h"
#include "engines/zookeeper/signal.h"
#include "engines/zookeeper/tickets.h"
#include "engines/zookeeper/wait.h"

enum {
    HF__ZK_ACLS = 16,
    HF__ZK_ROWS = 10000 /* nodes whose data we read for one answer */
};

/* doctor_members.c: one server of the URL after the other is asked. */
struct hf__zk_members {
    struct hf__query *query; /* NULL: nothing is asked */
    struct hf__stream stream;
    struct hf__timer timer;
    size_t next;
    bool told; /* what the one that is being asked says, or that it does not */
};

struct hf__zk_acl {
    int32_t permissions;
    char *scheme;
    char *id;
};

struct hf__zk {
    struct hf__engine base;
    const struct hf__zk_dialect *dialect;
    char *root; /* a lock's path is this, a slash, and its name: "/holdfast" */
    size_t root_len;
    const char *top; /* the node that this is: "/" for the root "" */
    struct hf__zk_acl acls[HF__ZK_ACLS];
    size_t n_acls;
    char *credentials; /* "user:password"; NULL: none */

    /* connection.c, calls.c, session.c */
    struct hf__stream stream;
    struct hf__tls_context *tls;
    size_t server;          /* of the URL, that we are at or try */
    struct hf__calls calls; /* struct hf__zk_call */
    uint32_t writes;        /* under way */
    uint32_t boarding;      /* of those, in the buffer */
    struct hf__zk_pending *pending;
    struct hf__zk_pending **pending_last;
    enum hf__zk_connection connection;
    int32_t xid;
    int32_t type;       /* of the request that was begun last */
    int64_t connect_ns; /* when connecting began */
    int64_t sent_ns;    /* when anything was sent last */
    int64_t nudge_ns;   /* ping if the first call is not answered by then */
    struct hf__zk_lease lease;
    int64_t proven_ns; /* a lease may begin here: hf__zk_lease_since() */
    int64_t zxid;      /* the newest state that we have seen */
    size_t refusals;   /* connections in a row that ended before a greeting */
    int64_t session;
    char password[16];
    int32_t session_ms; /* as granted by the server */
    char peer[280];     /* for people: "zookeeper db1:2181" */

    struct hf__link link; /* its timer: answers overdue, silence, listening */
    struct hf__zk_members members;

    /* watch.c */
    struct hf__list feeds;
    int32_t feed_number; /* of the last one */
    bool cannot_watch;   /* the server is too old */

    /* tickets.c, nodes.c */
    struct hf__ticket_table tickets;
    uint64_t hash_key[2];
    struct hf__list conditions; /* condition.c */
    uint64_t condition_ids;
    struct hf__buf scratch;
    char whoami[112];
};

static inline struct hf__zk_ticket *hf__zk_ticket(const struct hf__zk *zk,
                                                  struct hf__ticket *ticket)
{
    return hf__engine_ticket(&zk->base, ticket);
}
static inline bool hf__zk_connection_is_up(const struct hf__zk *zk)
{
    return zk->connection == HF__ZK_UP;
}
/* NULL: it is gone. */
static inline struct hf__ticket *hf__zk_tickets_find(const struct hf__zk *zk,
                                                     uint64_t id)
{
    return hf__ticket_table_find(&zk->tickets, id);
}

/* errors.c: fill @err, return its code. @error is the server's. */
int hf__zk_errors_read(const struct hf__zk *zk, int32_t error, hf_error *err);
int hf__zk_errors_lost(const struct hf__zk *zk, hf_error *err);
int hf__zk_errors_not_up(const struct hf__zk *zk, hf_error *err);
/* Answer @query with what is wrong: @reply was lost, or has an error. */
void hf__zk_errors_answer(struct hf__zk *zk, struct hf__query *query,
                          const struct hf__zk_reply *reply);

/* acquire.c */
hf__engine_acquire_fn hf__zk_acquire;
/* List the children of the lock's node, and see what follows for @ticket.
 * @watch: and tell us when they change. */
int hf__zk_acquire_look(struct hf__zk *zk, struct hf__ticket *ticket,
                        bool watch, hf_error *err);
/* The same behind everything that is to be written now. */
int hf__zk_acquire_look_behind(struct hf__zk *zk, struct hf__ticket *ticket,
                               hf_error *err);
/* A ticket with a condition asks for the lock: it was called, or unparked. */
void hf__zk_acquire_called(struct hf__zk *zk, struct hf__ticket *ticket);
/* The lock's node is missing, or that of the condition: make it, and go on. */
int hf__zk_acquire_make_container(struct hf__zk *zk, struct hf__ticket *ticket,
                                  hf_error *err);
/* There is no node of @ticket, whatever it wanted. */
void hf__zk_acquire_not_there(struct hf__zk *zk, struct hf__ticket *ticket);
struct hf__grant hf__zk_acquire_grant(const struct hf__zk *zk,
                                      const struct hf__ticket *ticket,
                                      uint64_t token);

/* renew.c */
hf__engine_renew_fn hf__zk_renew;
hf__engine_downgrade_fn hf__zk_renew_downgrade;
/* Is its node there? Tell us, too, when it goes: somebody may break it. */
int hf__zk_renew_ask(struct hf__zk *zk, struct hf__ticket *ticket,
                     hf_error *err);

/* medallion_seek.c */
/* Ask the children of @line which of them is @ticket's; what follows is done
 * when they have answered. */
int hf__zk_medallion_seek(struct hf__zk *zk, struct hf__ticket *ticket,
                          const struct hf__zk_queue *line, hf_error *err);

/* acl.c: the permissions of the nodes that we make, from acl=. */
int hf__zk_acl_read(struct hf__zk *zk, const char *text, hf_error *err);
void hf__zk_acl_put(const struct hf__zk *zk, struct hf__buf *out);
void hf__zk_acl_release(struct hf__zk *zk);

/* watch.c */
hf__engine_watch_fn hf__zk_watch;
hf__engine_watch_fn hf__zk_watch_stop;
/* The node at @path has come, changed or gone. */
void hf__zk_watch_event(struct hf__zk *zk, struct hf__zk_wire_text path);
/* The connection is gone, and its watches with it. */
void hf__zk_watch_lose(struct hf__zk *zk);

/* inspect.c. _drop(): nobody will answer @query; NULL is ignored. */
void hf__zk_inspect_drop(struct hf__query *query);
hf__engine_query_fn hf__zk_inspect_list;
hf__engine_query_fn hf__zk_inspect_check;
hf__engine_query_fn hf__zk_inspect_break;
hf__engine_query_fn hf__zk_versions_read;
hf__engine_query_fn hf__zk_versions_commit;
hf__engine_query_fn hf__zk_doctor;
hf__engine_query_fn hf__zk_board_post; /* board.c */
hf__engine_query_fn hf__zk_board_read;
/* doctor_members.c: add what each server says, and answer @query. */
void hf__zk_doctor_members_ask(struct hf__zk *zk, struct hf__query *query);
void hf__zk_doctor_members_stop(struct hf__zk *zk, bool forked);
/* Do servers of @version lose data, so that their copies differ? */
bool hf__zk_doctor_members_may_differ(const char *version);

#endif
