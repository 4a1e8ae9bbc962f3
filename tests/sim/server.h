/* SPDX-License-Identifier: MIT */
/*
 * server.h - the lock service of the simulation: a reference lock table behind
 * a network that delays, loses and breaks.
 */
#ifndef HF_SIM_SERVER_H
#define HF_SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_CLIENTS = 24, SIM_NAMES = 6 };

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
    SIM_BUG_MARK_DIES,         /* a wake-up ends with its bearer */
    SIM_BUG_PARKS_LATE,        /* the lock is free before the ticket parks */
    SIM_BUGS
};

enum sim_op {
    SIM_CONNECT,
    SIM_ACQUIRE,
    SIM_CONFIRM, /* accept a pushed grant */
    SIM_WITHDRAW,
    SIM_RELEASE,
    SIM_RENEW,
    SIM_DOWNGRADE,
    SIM_PARK,
    SIM_UNPARK,
    SIM_SIGNAL,
    SIM_PUSH,  /* to the client only: a grant */
    SIM_BROKEN /* to the client only: the connection is gone */
};

enum sim_status {
    SIM_GRANTED,
    SIM_QUEUED,
    SIM_BUSY_NOW,
    SIM_RENEWED,
    SIM_LOST,
    SIM_LEFT,
    SIM_LEFT_LOST,
    SIM_INVALID,
    SIM_PARKED
};

struct sim_message {
    uint8_t op;     /* enum sim_op */
    uint8_t status; /* of a reply: enum sim_status */
    int client;
    uint32_t epoch; /* of the connection */
    uint32_t seq;   /* which request of the ticket */
    uint64_t ticket;
    int name; /* number of the lock */
    int mode;
    int slots;
    bool nowait;
    int64_t ttl_ms;
    uint32_t reserve;
    uint64_t token;
    uint32_t tokens; /* of a signal's answer: how many it woke */
    uint64_t old;    /* SIM_PARK: the ticket that it gives up */
    int cond;        /* 1 + number of the condition; 0: none */
    bool all;        /* SIM_SIGNAL: a broadcast */
    bool woken;      /* a grant: it bears a wake-up */
};

struct sim_network {
    int64_t latency_ns;      /* at least a tenth, at most twice */
    uint32_t slow_per_mille; /* messages that take up to slow_max_ns */
    int64_t slow_max_ns;
    uint32_t lost_per_mille;  /* noticed after io_timeout_ns */
    uint32_t break_per_mille; /* the connection breaks instead */
    uint32_t pause_per_mille; /* the service stops for up to pause_max_ns */
    int64_t pause_max_ns;
    int64_t io_timeout_ns;
};

extern struct sim_network sim_network;
extern enum sim_kind sim_kind;
extern enum sim_bug sim_bug;
extern bool sim_verbose; /* print every message */

void sim_server_reset(void);
void sim_server_release(void);

/* A client's side of the network: where messages arrive. */
typedef void sim_arrive_fn(void *owner, const struct sim_message *message);
int sim_client_new(sim_arrive_fn *arrive, void *owner);
void sim_client_gone(int client);
/* Open a new connection; answered by SIM_CONNECT. */
void sim_connect(int client, uint32_t epoch);
void sim_send(const struct sim_message *message);

/* The truth, for the checks. */
int sim_name_number(const char *name);
/* Who holds @token of lock @name right now; false: nobody. */
bool sim_server_holds(int name, uint64_t token, int64_t *ret_granted_ns,
                      bool *ret_first);
/* Holders, waiters and parked ones of all locks, of the clients of machine @machine. */
int sim_server_count(int machine);
void sim_server_print(void);

#endif
