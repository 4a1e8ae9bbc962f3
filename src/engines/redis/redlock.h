/* SPDX-License-Identifier: MIT */
/*
 * redlock.h - the parts of the RedLock engine to each other.
 *
 *   redlock.c         the engine's table: open, connect, close; is there a
 *                     majority
 *   redlock_node.c    one server: a Redis engine of its own; may it vote
 *   redlock_ballot.c  one request, cast at all nodes
 *   redlock_quorum.c  the arithmetic
 *   redlock_doctor.c
 *
 * An engine made of engines: each node is a Redis engine (dialect=plain) whose
 * reports come to us instead of to the core.
 */
#ifndef HF_REDLOCK_REDLOCK_H
#define HF_REDLOCK_REDLOCK_H

#include "engines/engine.h"
#include "engines/redis/redis.h"
#include "engines/redis/redlock_quorum.h"

enum {
    HF__REDLOCK_LEAST = 3,
    HF__REDLOCK_NODES = 9, /* at most */
    HF__REDLOCK_VOTES = 400
};

struct hf__redlock;

struct hf__redlock_node {
    struct hf__redlock *redlock;
    size_t index;
    struct hf__redis *redis; /* the engine of this node */
    struct hf__engine_host host;
    struct hf__url url;
    char name[64];          /* "db1:6379" */
    uint8_t state;          /* enum hf__redis_peer_state */
    bool durable;           /* a restart forgets nothing */
    uint32_t attempts;      /* to connect, in vain */
    struct hf__timer again; /* the next one */
    hf_error err;           /* why it is not up, or could not vote */
    char run_id[41];        /* of the run that we know */
    int64_t seen_ns;        /* when that run was last seen up */
    int64_t uptime_s;       /* what it said in the greeting */
    int64_t quarantine_ns;  /* until then it does not vote */
    const char *quarantine; /* why */
    struct hf__redlock_clock clock;
};

struct hf__redlock {
    struct hf__engine base;
    struct hf__settings settings; /* the nodes'; texts are the core's */
    struct hf__redlock_node nodes[HF__REDLOCK_NODES];
    uint32_t n;
    uint32_t quorum;
    uint8_t state;      /* enum hf__redis_peer_state: UP when a majority is */
    int64_t longest_ms; /* lease that was asked for */
    int64_t shortest_ms;
    uint64_t ballots_made;
    size_t ballot_size;
    struct hf__list ballots;   /* all */
    struct hf__list impatient; /* waiting for votes, oldest first */
    struct hf__timer patience;
    struct hf__timer late; /* while it runs, all are waited for */
};

/*
 * What a node has of a request. redlock_ballot.c asserts the moves:
 *
 *   NONE    -> NONE ASKED
 *   ASKED   -> NONE ASKED YES NO DOUBT LEAVING
 *   YES     -> NONE ASKED YES DOUBT LEAVING
 *   NO      -> ASKED
 *   DOUBT   -> NONE ASKED YES NO DOUBT LEAVING
 *   LEAVING -> NONE OWED WAS
 *   OWED    -> NONE LEAVING
 */
enum hf__redlock_vote {
    HF__VOTE_NONE,    /* nothing */
    HF__VOTE_ASKED,   /* asked, no answer yet */
    HF__VOTE_YES,     /* ours */
    HF__VOTE_NO,      /* nothing: another holds it */
    HF__VOTE_DOUBT,   /* perhaps; it does not count */
    HF__VOTE_LEAVING, /* it is being taken back */
    HF__VOTE_OWED,    /* to be taken back when the node is there */
    HF__VOTE_WAS      /* nothing any more; it was ours until then */
};

/* Our bytes of every ticket. */
struct hf__redlock_ticket {
    struct hf__redlock_ballot *ballot; /* NULL: nothing is under way */
};

/* ---- redlock.c --------------------------------------------------------- */

/* A node came or went: is there (still) a majority? */
void hf__redlock_weigh(struct hf__redlock *redlock);
/* Keep base.under_way true. */
void hf__redlock_count(struct hf__redlock *redlock);

/* ---- redlock_node.c ------------------------------------------------------------ */

int hf__redlock_node_open(struct hf__redlock *redlock, size_t index,
                          size_t ticket_offset, hf_error *err);
void hf__redlock_node_close(struct hf__redlock_node *node, bool forked);
/* Connect now; failure is noted in the node. */
void hf__redlock_node_connect(struct hf__redlock_node *node);
/* Connected and greeted, or not (any more). */
void hf__redlock_node_connected(struct hf__redlock_node *node);
void hf__redlock_node_down(struct hf__redlock_node *node, const hf_error *err);
/* It answered. */
static inline void hf__redlock_node_heard(struct hf__redlock_node *node)
{
    if (node->state < HF__PEER_UP)
        return;
    node->state = HF__PEER_UP;
    node->err.code = 0;
}
bool hf__redlock_node_quarantined(const struct hf__redlock_node *node);
/* May it be asked for a vote? */
bool hf__redlock_node_votes(const struct hf__redlock_node *node);
/* Look at its clock, before the vote that follows. 0 or HF_ENOMEM. */
int hf__redlock_node_look(struct hf__redlock_node *node);
/* Why it does not vote, in a few words. */
void hf__redlock_node_excuse(const struct hf__redlock_node *node, char *to,
                             size_t size);
/* "no majority of 5 servers: db1:6379 away, …". The code is HF_EUNAVAILABLE,
 * unless waiting would not help. */
void hf__redlock_node_no_majority(const struct hf__redlock *redlock,
                                  hf_error *err);

/* ---- redlock_ballot.c ---------------------------------------------------------- */

extern const struct hf__engine_up hf__redlock_ballot_reports;
void hf__redlock_ballot_init(struct hf__redlock *redlock);
/* Where a node's bytes of a ballot begin. */
size_t hf__redlock_ballot_offset(size_t index);
/* @node is connected again: take back what we owe it. */
void hf__redlock_ballot_settle(struct hf__redlock_node *node);
/* @node stays away: forget what has ended by itself. */
void hf__redlock_ballot_sweep(struct hf__redlock_node *node);
void hf__redlock_ballot_free_all(struct hf__redlock *redlock);
hf__engine_acquire_fn hf__redlock_ballot_acquire;
hf__engine_withdraw_fn hf__redlock_ballot_withdraw;
hf__engine_release_fn hf__redlock_ballot_release;
hf__engine_renew_fn hf__redlock_ballot_renew;

/* ---- redlock_doctor.c ---------------------------------------------------------- */

hf__engine_query_fn hf__redlock_doctor;
/* A node has answered its part. */
void hf__redlock_doctor_answered(struct hf__redlock_node *node,
                                 struct hf__query *query, int rc,
                                 const hf_error *err);

#endif
