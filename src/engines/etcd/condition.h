/* SPDX-License-Identifier: MIT */
/*
 * condition.h - the conditions that this client has something to do with.
 */
#ifndef HF_ETCD_CONDITION_H
#define HF_ETCD_CONDITION_H

#include "engines/common/signals.h"
#include "engines/engine.h"
#include "engines/etcd/pb.h"

struct hf__etcd;
struct hf__etcd_call;

/* What we know about a ticket's record among the parked ones. */
enum hf__etcd_record {
    HF__ETCD_RECORD_NONE,
    HF__ETCD_RECORD_UNSURE,  /* a park() is under way */
    HF__ETCD_RECORD_DOUBTED, /* one without an answer may still be on its way */
    HF__ETCD_RECORD_KNOWN,
    HF__ETCD_RECORD_CALLED /* … and it bears a wake-up */
};

/* Whether a ticket's place, or a condition, is looked at. */
enum hf__etcd_look {
    HF__ETCD_NO_LOOK,
    HF__ETCD_LOOK_DUE, /* of a condition: a renewal is due */
    HF__ETCD_LOOKING,
    HF__ETCD_STALE /* something happened since it was asked for */
};

/* One of those that are parked or bear a wake-up. */
struct hf__etcd_parked {
    struct hf__pb key;
    uint64_t made;     /* its create revision */
    uint64_t modified; /* later than that: it was touched */
};

/* The records of a condition, and who of them is called, at one revision. What
 * it points to is the answer's. */
struct hf__etcd_view {
    struct hf__etcd_parked *line; /* in their order */
    uint64_t *made;
    size_t n;
    size_t called; /* so many, from the beginning */
    struct hf__condition wakes;
    uint64_t stamped;  /* the mod revision of the stamps; 0: none are there */
    uint64_t revision; /* of the store */
};

/* One condition of one lock. It is there while one of our tickets has a record
 * there, or signals. */
struct hf__etcd_condition {
    struct hf__list link; /* etcd->conditions */
    uint64_t id;          /* a pointer might outlive it */
    struct hf__list tickets;
    struct hf__list signals; /* of common/signals.h */
    struct hf__etcd_call *watch;
    char *watched; /* for whom, and behind whom: what the watch is about */
    uint32_t round;
    uint32_t steps; /* looks that had to be repeated; bounded */
    enum hf__etcd_look look;
    char *name; /* of the lock */
    char *cond;
};

/* The condition of the lock @name, made if it is not known; NULL: no memory. */
struct hf__etcd_condition *hf__etcd_condition_get(struct hf__etcd *etcd,
                                                  const char *name,
                                                  const char *cond);
/* NULL: it is not known any more. */
struct hf__etcd_condition *hf__etcd_condition_find(const struct hf__etcd *etcd,
                                                   uint64_t id);
/* Forget it if nobody needs it. */
void hf__etcd_condition_tidy(struct hf__etcd *etcd,
                             struct hf__etcd_condition *condition);
/* The ticket has a record there, or has none any more. */
void hf__etcd_condition_join(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             struct hf__etcd_condition *condition);
void hf__etcd_condition_leave(struct hf__etcd *etcd, struct hf__ticket *ticket);
/* Read who is there and who is called, and act on it. */
void hf__etcd_condition_look(struct hf__etcd *etcd,
                             struct hf__etcd_condition *condition);
/* Look for a parked ticket that is renewed, with the next look at news. */
void hf__etcd_condition_beat(struct hf__etcd *etcd, struct hf__ticket *ticket);
void hf__etcd_condition_look_at_news(struct hf__etcd *etcd);
/* It is neither in line nor holds any more: what is left of it goes, and then
 * that is reported. */
void hf__etcd_condition_lose(struct hf__etcd *etcd, struct hf__ticket *ticket,
                             int reason);
void hf__etcd_condition_forget_all(struct hf__etcd *etcd);
/* Add the request that touches the record @key, in case of success. */
void hf__etcd_condition_add_touch(struct hf__buf *to, struct hf__pb key);
/* Add what makes the stamps @wakes, where they were @stamped: a comparison, and
 * with @changed a put or a delete. */
void hf__etcd_condition_add_stamps(struct hf__etcd *etcd, struct hf__buf *to,
                                   const struct hf__etcd_condition *condition,
                                   const struct hf__condition *wakes,
                                   uint64_t stamped, bool changed);

#endif
