/* SPDX-License-Identifier: MIT */
/*
 * condition.h - the conditions that this client has something to do with.
 */
#ifndef HF_ZOOKEEPER_CONDITION_H
#define HF_ZOOKEEPER_CONDITION_H

#include "engines/common/signals.h"
#include "engines/engine.h"
#include "engines/zookeeper/calls.h"
#include "engines/zookeeper/queue.h"

struct hf__zk;

/* What we know about a ticket's record among the parked ones. */
enum hf__zk_record {
    HF__ZK_RECORD_NONE,
    HF__ZK_RECORD_UNSURE, /* its creation or deletion has not been answered */
    HF__ZK_RECORD_KNOWN,
    HF__ZK_RECORD_CALLED /* … and it bears a wake-up */
};

/* What two answers say about a condition. */
enum hf__zk_seen {
    HF__ZK_SEEN_NONE, /* there is no node of it, as far as we know */
    HF__ZK_SEEN_THERE,
    HF__ZK_SEEN_CHANGED, /* something happened between the two */
    HF__ZK_SEEN_FAILED   /* one was lost, or could not be read */
};

/* Whether a condition is looked at. */
enum hf__zk_look {
    HF__ZK_NO_LOOK,
    HF__ZK_LOOK_DUE, /* a watch has fired, or a renewal is due */
    HF__ZK_LOOKING,
    HF__ZK_LOOK_STALE /* something happened since it was asked for */
};

/* The records of a condition, and who of them is called, at one moment. */
struct hf__zk_view {
    char *children; /* the answer to getChildren; line points into it */
    struct hf__zk_queue line;
    struct hf__condition wakes;
    uint64_t *made;  /* the numbers of line, for wakes */
    uint32_t called; /* so many of line, from its beginning */
    int32_t version; /* of the list of stamps */
    int32_t children_version;
    enum hf__zk_seen seen;
};

/* One condition of one lock. It is there while one of our tickets has a record
 * there, or signals. */
struct hf__zk_condition {
    struct hf__list link; /* zk->conditions */
    uint64_t id;          /* a pointer might outlive it */
    struct hf__list tickets;
    struct hf__list signals; /* of common/signals.h */
    struct hf__zk_view view; /* being read */
    uint32_t left;           /* answers that are still to come for it */
    uint32_t steps;          /* looks since anything happened; bounded */
    enum hf__zk_look look;
    bool guards;             /* our first waiter is the first of all: every
                                change is told since the last look */
    uint64_t watched_own;    /* hash of its record's path; 0: not watched */
    uint64_t touched;        /* … of the last record whose watch has fired */
    uint64_t watched_before; /* … of the one before it */
    uint32_t round;          /* of looking at the tickets */
    uint32_t dir_len;
    char dir[]; /* ROOT/~cond/NAME/COND */
};

/* The condition of the lock @name, made if it is not known; NULL: no memory. */
struct hf__zk_condition *hf__zk_condition_get(struct hf__zk *zk,
                                              const char *name, size_t name_len,
                                              const char *cond);
/* NULL: it is not known any more. */
struct hf__zk_condition *hf__zk_condition_find(const struct hf__zk *zk,
                                               uint64_t id);
/* Forget it if nobody needs it. */
void hf__zk_condition_tidy(struct hf__zk_condition *condition);
/* The ticket has a record there, or has none any more. */
void hf__zk_condition_join(struct hf__zk *zk, struct hf__ticket *ticket,
                           struct hf__zk_condition *condition);
void hf__zk_condition_leave(struct hf__zk *zk, struct hf__ticket *ticket);
/* Read who is there and who is called, and act on it. */
void hf__zk_condition_look(struct hf__zk *zk,
                           struct hf__zk_condition *condition);
/* Its node. */
struct hf__zk_wire_text hf__zk_condition_dir(
    const struct hf__zk_condition *condition);
/* The path of @ticket's record up to the number, and with it. */
struct hf__zk_wire_text hf__zk_condition_base(struct hf__zk *zk,
                                              struct hf__ticket *ticket);
struct hf__zk_wire_text hf__zk_condition_path(struct hf__zk *zk,
                                              struct hf__ticket *ticket);
/* Where @ticket's record is in @line; line->n: nowhere. */
uint32_t hf__zk_condition_place(struct hf__zk *zk, struct hf__ticket *ticket,
                                const struct hf__zk_queue *line);
/* Delete the ticket's record. Then it goes on leaving, or is lost, for @reason. */
int hf__zk_condition_delete(struct hf__zk *zk, struct hf__ticket *ticket,
                            int reason, hf_error *err);
/* It is neither in line nor holds any more: what is left of it goes, and then
 * that is reported. */
void hf__zk_condition_lose(struct hf__zk *zk, struct hf__ticket *ticket,
                           int reason);
/* Look for a parked ticket that is renewed, with the next look at news. */
void hf__zk_condition_beat(struct hf__zk *zk, struct hf__ticket *ticket);
void hf__zk_condition_look_at_news(struct hf__zk *zk);
/* A watch has fired. */
void hf__zk_condition_event(struct hf__zk *zk, uint64_t hash);
/* The connection is gone, and all watches with it. */
void hf__zk_condition_unwatch_all(struct hf__zk *zk);
void hf__zk_condition_forget_all(struct hf__zk *zk);
/* The stamps of @data, which the server keeps as numbers of 32 bits, in the
 * numbering of a line that begins with @first: 0, HF_ENOMEM or HF_EINTERNAL. And
 * back, in place. */
int hf__zk_condition_read(struct hf__condition *wakes,
                          struct hf__zk_wire_text data, int32_t first);
void hf__zk_condition_write(struct hf__condition *wakes, int32_t first,
                            struct hf__buf *to);
/* The place of a number in that numbering. */
uint64_t hf__zk_condition_number(int32_t sequence, int32_t first);

#endif
