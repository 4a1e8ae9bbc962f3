/* SPDX-License-Identifier: MIT */
/* server.h - the lock service of the simulation: a reference lock table. */
#ifndef HF_SIM_SERVER_H
#define HF_SIM_SERVER_H

#include "network.h"

enum { SIM_NAMES = 6 };

/* How the service gives out locks. */
enum sim_kind {
    SIM_BEATS,  /* FIFO, pushes; waiters prove their life by renew() */
    SIM_ACCEPT, /* FIFO, pushes; a pushed grant counts when it is accepted */
    SIM_BUSY,   /* no line: "busy, ask again" */
    SIM_KINDS
};

/* Planted bugs, which the checks have to find. */
enum sim_bug {
    SIM_BUG_NONE,
    SIM_BUG_GRANTS_TWICE,      /* the service does not look who holds it */
    SIM_BUG_ARRIVAL_IS_START,  /* leases count from the answer's arrival */
    SIM_BUG_WITHDRAW_FORGETS,  /* "left" is said, and nothing was done */
    SIM_BUG_PUSH_LOST,         /* a grant is not pushed */
    SIM_BUG_TOKEN_RESTARTS,    /* an idle lock forgets its last token */
    SIM_BUG_RELEASE_FREES_ALL, /* a release frees whoever holds it */
    SIM_BUG_RENEW_LIES,        /* "renewed" is said of what has expired */
    SIM_BUG_STALE_PUSH,        /* a push of an earlier attempt is believed */
    SIM_BUG_LOST_WAKE,         /* the world loses wake-ups */
    SIM_BUG_CLOCK,             /* clocks differ by more than was agreed */
    SIM_BUG_TOKEN_OF_CLOCK,    /* tokens are what the wall clock says */
    SIM_BUG_BREAK_FREES_ALL,   /* a break does not compare tokens */
    SIM_BUG_MARK_DIES,         /* a wake-up ends with its bearer */
    SIM_BUG_PARKS_LATE,        /* the lock is free before the ticket parks */
    SIM_BUGS
};

extern enum sim_kind sim_kind;
extern enum sim_bug sim_bug;
/* The engine sets its timer to the past while an answer is overdue. */
extern bool sim_impatient;

/* Also resets the network. */
void sim_server_reset(void);
/* A request has arrived. */
void sim_server_serve(const struct sim_message *message);
/* It stops by chance; until when it does. */
int64_t sim_server_pause(void);

/* Somebody broke the grant of tokens from @first up to @end: whoever had it may
 * claim it until @until_ns, when its lease would have ended. */
typedef void sim_broken_fn(int name, uint64_t first, uint64_t end,
                           int64_t until_ns);
extern sim_broken_fn *sim_broken;

/* The truth, for the checks. */
int sim_name_number(const char *name);
/* Who holds @token of lock @name right now; false: nobody. */
bool sim_server_holds(int name, uint64_t token, int64_t *ret_granted_ns,
                      bool *ret_first);
/* One holder of, or one waiter for, a lock. */
struct sim_row {
    int client;
    int mode;
    bool holds;
    uint64_t token;
};
/* Holders, then waiters in order, of lock @name. Returns how many. */
int sim_server_rows(int name, struct sim_row *rows, int max);
/* Holders, waiters and parked ones of all locks, of the clients of machine @machine. */
int sim_server_count(int machine);
void sim_server_print(void);

#endif
