/* SPDX-License-Identifier: MIT */
/*
 * network.h - messages of the simulation, and a network that delays and loses
 * them, and breaks connections.
 */
#ifndef HF_SIM_NETWORK_H
#define HF_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_CLIENTS = 24 };

enum sim_op {
    SIM_CONNECT,
    SIM_ACQUIRE,
    SIM_CONFIRM, /* accept a pushed grant */
    SIM_WITHDRAW,
    SIM_RELEASE,
    SIM_RENEW,
    SIM_DOWNGRADE,
    SIM_BREAK,
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
    SIM_UNSURE, /* done, or not: the service does not know */
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
    uint32_t lost_per_mille;   /* noticed after io_timeout_ns */
    uint32_t break_per_mille;  /* the connection breaks instead */
    uint32_t unsure_per_mille; /* the service answers SIM_UNSURE */
    uint32_t pause_per_mille;  /* the service stops for up to pause_max_ns */
    int64_t pause_max_ns;
    int64_t io_timeout_ns;
};

extern struct sim_network sim_network;
extern bool sim_verbose; /* print every message */

/* A client's side of the network: where messages arrive. */
typedef void sim_arrive_fn(void *owner, const struct sim_message *message);
int sim_client_new(sim_arrive_fn *arrive, void *owner);
void sim_client_gone(int client);
/* Open a new connection; answered by SIM_CONNECT. */
void sim_connect(int client, uint32_t epoch);
void sim_send(const struct sim_message *message);

/* Where it runs. */
int sim_client_machine(int client);

/* The service's side. */
void sim_network_reply(const struct sim_message *message);
void sim_network_push(struct sim_message *message, int64_t delay_ns);
/* How long a message takes. */
int64_t sim_network_travel_ns(void);
void sim_network_reset(void);
void sim_network_release(void);
struct sim_message *sim_message_new(const struct sim_message *from);
void sim_message_free(struct sim_message *message);

#endif
