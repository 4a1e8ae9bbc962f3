/* SPDX-License-Identifier: MIT */
/*
 * check.h - what must be true at every step of the simulation.
 *
 *   A claim is what a program may believe: from the return of its acquire
 *   until it calls release, or hf_check() would say LOST.
 *
 *   1. Claims of different owners to one lock are compatible, always.
 *   2. Behind every claim stands a holder at the service.
 *   3. A claim that has ended does not come back.
 *   4. A grant's token is larger than all that were known when it was asked;
 *      of a shared one, or a slot: than all exclusive ones.
 *   5. LOST is told, within a moment, to whoever asked to be told.
 *   6. Calls return in time; without faults a grant is known at once.
 *   7. Nobody waits on a condition, all being quiet, for what is there: what it
 *      waits for came with a signal after it had begun to wait.
 *   8. In the end nothing is left at the service, nobody waits, all memory is
 *      given back, and every request had exactly one outcome.
 */
#ifndef HF_SIM_CHECK_H
#define HF_SIM_CHECK_H

#include "holdfast.h"
#include "world.h"

enum { CLAIM_NAMES = 3 };

struct claim {
    hf_hold *hold; /* NULL: not in use */
    struct sim_machine *machine;
    uint64_t owner;
    int mode;
    int slots;
    int n;
    int names[CLAIM_NAMES];
    uint64_t tokens[CLAIM_NAMES];
    bool wants_told; /* LOST is to be told by on_event */
    bool told;
    bool lost; /* hf_check() has said so */
    int64_t lost_ns;
};

void check_reset(void);
/* False once something was found wrong; the sentence is check_why(). */
bool check_is_good(void);
const char *check_why(void);
__attribute__((format(printf, 1, 2))) void check_fail(const char *format, ...);

/* The token of @name that a grant in @mode must exceed, if asked for now. */
uint64_t check_token_seen(int name, int mode);
/* A new claim. @seen: check_token_seen() of each name when it was asked. */
struct claim *check_claim(hf_hold *hold, const struct claim *what,
                          const uint64_t *seen, int64_t asked_ns);
/* The program lets go; before it calls release. */
void check_unclaim(struct claim *claim);
/* A callback runs on @machine, or has ended: others are told later. */
void check_teller_busy(struct sim_machine *machine, bool busy);
/* After every step. */
bool check_step(void);
/* Without faults grants must be known at once. */
extern bool check_promptness;

#endif
