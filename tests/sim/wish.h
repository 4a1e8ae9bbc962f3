/* SPDX-License-Identifier: MIT */
/*
 * wish.h - one lock that a program of the simulation asks for, holds and
 * releases.
 */
#ifndef HF_SIM_WISH_H
#define HF_SIM_WISH_H

#include "check.h"
#include "holdfast.h"
#include "world.h"

/* How many locks there are, and the one that guards the store. */
enum { WISH_LOCKS = 4, WISH_STORE = 4 };
extern const char *const wish_names[WISH_LOCKS + 1];
extern uint64_t wish_owners; /* so many have been named */

/* A program, on a machine of its own. */
struct program {
    int number;
    struct sim_machine *machine;
    hf_client *client;
    int workers;
    bool beats;       /* renew=beat: holders give signs of life, or not */
    bool dispatches;  /* drive=app: a thread calls hf_dispatch() */
    bool closing;     /* nobody may begin a call any more */
    bool unconfirmed; /* shutdown left something behind */
    bool done;
};

/* One thing that is asked for, and all that is to be known about it. */
struct wish {
    struct program *program;
    hf_opts opts;
    char owner[16];
    struct claim what; /* what will be claimed */
    uint64_t seen[CLAIM_NAMES];
    int64_t asked_ns;
    struct claim *claim; /* NULL: not held */
    hf_hold *hold;
    hf_request *request;
    bool expect_hold; /* the callback keeps the hold for the worker */
    int outcomes;
    bool freed;
};

/* Draw what is asked for, of lock @name. */
void wish_init(struct wish *wish, struct program *program, int name);
/* Print @what it does, if the run is verbose. */
void wish_tell(const struct wish *wish, const char *what);
/* It is about to be asked for. */
void wish_ask(struct wish *wish);
/* It was granted: claim it. */
void wish_granted(struct wish *wish, hf_hold *hold);
/* Did the call return in time, and with an outcome that it may have? */
void wish_check_in_time(const struct wish *wish, const char *what);
void wish_check_refusal(const struct wish *wish, const char *what, int rc,
                        const hf_error *err);
/* Use the lock for a while, in some of the ways that there are. */
void wish_hold(struct wish *wish);
void wish_release(struct wish *wish);

#endif
