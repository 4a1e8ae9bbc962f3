/* SPDX-License-Identifier: MIT */
/*
 * change.h - everything that can happen to a name, each as one transition.
 */
#ifndef HF_LOCAL_CHANGE_H
#define HF_LOCAL_CHANGE_H

#include "engines/local/store.h"

/* A ticket as the table needs it. */
struct hf__asker {
    uint64_t id;
    const char *owner;
    const char *note;
    int64_t lease_ms; /* 0: none */
    int64_t now_ns;   /* the table's time, read before: leases begin here */
    uint32_t reserve;
    uint32_t delay_ms;
    uint16_t slots;
    uint8_t mode;
    bool nowait;
    bool rewake;      /* a client that should have woken others has died */
    bool unpark;      /* its wait is over: it goes to the end of the line */
    const char *cond; /* it was parked; never enters the line anew. Or NULL */
};

enum hf__answer {
    HF__ANSWER_HELD,
    HF__ANSWER_WAITING,
    HF__ANSWER_BUSY,
    HF__ANSWER_PARKED,
    HF__ANSWER_GONE /* with a condition: there is no such ticket */
};

/* What a change left behind. */
struct hf__result {
    uint64_t token;
    uint32_t tokens;
    bool woken; /* held: it bears a wake-up */
    bool ours;  /* the block is the one that we installed just now */
    bool alone; /* and nothing else is in it */
};

/* Ask for, look after, or accept: idempotent for one ticket. Returns an
 * enum hf__answer, or an error: HF_ENOSPACE, HF_ECONFIG (damaged), HF_ENOMEM.
 * store->draft is what the bucket holds then. */
int hf__change_ask(struct hf__store *store, const struct hf__key *key,
                   const struct hf__asker *asker, struct hf__result *ret,
                   hf_error *err);
/* How a ticket leaves. */
struct hf__leave {
    uint64_t id;
    uint64_t used; /* tokens above it go back */
    bool
        in_order; /* a wake-up that it bears is used up; else the next gets it */
};
/* Leave, parked, waiting or holding. 0; 1: we were not there, or it was lost;
 * or an error. */
int hf__change_leave(struct hf__store *store, const struct hf__key *key,
                     const struct hf__leave *leave, hf_error *err);
/* Park in the step in which the holder @old leaves, in order. Idempotent, as
 * hf__change_ask(), whose answers it gives; HF__ANSWER_GONE: @old does not hold.
 */
int hf__change_park(struct hf__store *store, const struct hf__key *key,
                    const struct hf__asker *asker, const struct hf__leave *old,
                    struct hf__result *ret, hf_error *err);
/* Call the first that is parked on @cond, or @all, for the holder @id. *ret_n:
 * how many. 0; HF_ELOST; or an error. */
int hf__change_signal(struct hf__store *store, const struct hf__key *key,
                      uint64_t id, const char *cond, bool all, uint32_t *ret_n,
                      hf_error *err);

struct hf__renewal {
    uint64_t id;
    int64_t lease_ms;
    bool found;
};
/* New leases for @n of our tickets of one bucket, sorted by id. */
int hf__change_renew(struct hf__store *store, uint32_t bucket,
                     struct hf__renewal *renewals, size_t n, int64_t now_ns,
                     struct hf__result *ret, hf_error *err);
/* Exclusive to shared. 0; 1: not ours; or an error. */
int hf__change_downgrade(struct hf__store *store, const struct hf__key *key,
                         const struct hf__asker *asker, hf_error *err);
/* Another owner of this client has it now, and gets a new token. 0; 1: not
 * ours; or an error. */
int hf__change_pass(struct hf__store *store, const struct hf__key *key,
                    const struct hf__asker *asker, struct hf__result *ret,
                    hf_error *err);
/* HF_ECONFLICT, HF_ENOTFOUND. */
int hf__change_break(struct hf__store *store, const struct hf__key *key,
                     uint64_t token, const char *owner, hf_error *err);
/* HF_ECONFLICT. */
int hf__change_commit(struct hf__store *store, const struct hf__key *key,
                      uint64_t expected, uint64_t *ret_version, hf_error *err);

#endif
