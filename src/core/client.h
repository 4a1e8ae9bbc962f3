/* SPDX-License-Identifier: MIT */
/*
 * client.h - one connection to one engine, and the monitor around it.
 *
 * Everything inside a client is touched only between hf__monitor_enter() and
 * hf__monitor_leave(). That is the whole threading rule; docs/internals/
 * monitor.md has the states and the reasons.
 */
#ifndef HF_CLIENT_H
#define HF_CLIENT_H

#include <pthread.h>

#include "config/config.h"
#include "config/url.h"
#include "core/callbacks.h"
#include "core/gate.h"
#include "core/hold.h"
#include "core/metrics.h"
#include "core/waiter.h"
#include "engines/engine.h"

enum { HF__CLIENT_WAKES = 16, HF__CLIENT_SPARES = 64, HF__CLIENT_BATCH = 256 };

/* Backoff for an optimisation that may not pay. */
struct hf__trial {
    int64_t from_ns;  /* suspended until here */
    int64_t pause_ns; /* after the next failure, suspended for this long */
};

/* The connection, as the engine has told of it. */
enum hf__connection_state {
    HF__CONNECTION_DOWN,
    HF__CONNECTION_GIVEN_UP, /* by the retry policy; the next ask tries */
    HF__CONNECTION_CONNECTING,
    HF__CONNECTION_UP
};

struct hf_client {
    pthread_mutex_t monitor;
    uint32_t fork_generation; /* of the process that opened it */
    bool closing;             /* new calls get HF_ECLOSED */
    bool closed;              /* threads and engine are gone; only the memory
                                 stays, until the last handle goes */
    int64_t now_ns;           /* read at the last entry or turn */

    struct hf__settings settings;
    hf_config *config; /* for its [lock PATTERN] sections */
    struct hf__url *url;
    struct hf__engine_host host;
    char identity_hex[33];
    char host_name[65];

    struct hf__engine *engine; /* the outermost */
    size_t ticket_size;        /* struct hf__ticket and the engines' bytes */
    uint8_t connection;        /* enum hf__connection_state */
    bool was_up;
    hf_error down_err;       /* why it is not up; code 0: it was never */
    struct hf__list openers; /* waiters for the first connection */
    hf_error unfit;          /* what require= asks for and it has not */
    _Atomic uint64_t caps;   /* engine->caps once it was up */
    const char *engine_name; /* the engine's constant; outlives it */
    uint32_t connect_attempts;
    int64_t connect_since_ns;
    struct hf__timer connect_timer;

    struct hf__loop loop;
    uint32_t timer_users; /* objects that may run a timer */

    /* Driving. */
    struct hf__list waiters;
    uint32_t waiters_n;
    struct hf__waiter *driver; /* NULL: nobody, or the background thread */
    bool polling;              /* the driver is outside, waiting */
    _Atomic bool beckoned;     /* it is outside, spinning: come in */
    uint32_t served;           /* waiters that are done, on their way out */
    uint32_t expected;         /* served waiters that have not asked again */
    uint32_t yields;           /* that a driver may make for them */
    struct hf__trial gather;   /* yielding before a poll */
    struct hf__trial spin;     /* polling before a sleep */
    struct hf__trial linger;   /* yielding before a thread parks */
    _Atomic uint32_t lingers;  /* so many threads do */
    _Atomic bool dear;         /* to yield, when a thread last lingered */
    int64_t crowded_ns;        /* when a thread last rested beside a driver */
    int64_t listened_ns;       /* when a driver last came back */
    uint32_t asked;            /* tickets ASKING or QUEUED */
    uint32_t owed;             /* tickets LEAVING or renewing */
    uint32_t awaited;          /* requests other than acquires, unfinished */
    bool sentry;               /* the engine was told to kick the loop */

    /* The background thread. */
    struct hf__thread *background;
    struct hf__alarm alarm;
    int64_t background_until_ns; /* it wakes no later than this */
    bool background_drives;
    bool background_awake; /* it is inside, and plans anew when it leaves */
    bool background_stop;

    struct hf__callbacks callbacks;

    /* Locks. */
    struct hf__gate **gates; /* hash table, power of two */
    uint32_t gates_size;
    uint32_t gates_count;
    uint64_t gate_key[2];
    uint64_t next_ticket;
    struct hf__list leaving;  /* tickets that leaving.c takes back */
    struct hf__list requests; /* asynchronous ones, unfinished */
    struct hf__list queries;  /* questions under way */
    struct hf__list watches;  /* hf_watch_start() */
    _Atomic(struct hf_request *) cancels;       /* pushed by hf_cancel() */
    struct hf__ticket *batch[HF__CLIENT_BATCH]; /* renewals to be sent */
    uint32_t batch_n;

    /* Memory kept for the next acquire. */
    struct hf__list spare_tickets;
    struct hf__list spare_holds;
    struct hf__gate *idle_gate; /* still in the table: likely asked for again */
    bool walking;               /* hf__gate_each(): an idle gate goes at once */
    uint32_t spare_tickets_n;
    uint32_t spare_holds_n;

    /* Leaving the monitor. */
    uint32_t users;            /* threads inside calls */
    struct hf__waiter *closer; /* hf_close(), until it is the only user */
    uint32_t handles;          /* holds, requests: they keep the memory */
    _Atomic uint32_t bell;     /* how often it rang; the word of 32 waiters */
    uint32_t calls;            /* the bits that they have */
    uint32_t called;           /* the bits of waiters to be woken */
    uint32_t wakes_n;
    _Atomic uint32_t *wakes[HF__CLIENT_WAKES];
    struct hf__log_hook log; /* the configuration's */
    struct hf__log_line *log_first;
    struct hf__log_line **log_last;

    struct hf__metrics metrics;
    struct hf__list link;          /* all clients of the process (fork.c) */
    _Atomic uint32_t keepers;      /* threads that keep it: fork.h */
    bool unkept;                   /* it goes: nobody may keep it any more */
    struct hf__detector *detector; /* of deadlocks; NULL: nobody has waited */
    uint64_t store; /* the number of the store behind it; 0: not known */
};

/* HF_EFORK or HF_ECLOSED, or 0 with the monitor held, the clock read and
 * everything that was due done. */
int hf__monitor_enter(hf_client *client, hf_error *err);
/* The same for calls that work on a closed client: never HF_ECLOSED. */
int hf__monitor_enter_any(hf_client *client, hf_error *err);
/* What a client that is being closed, or does not fit, answers. */
int hf__monitor_closed(const hf_client *client, hf_error *err);
/* Send what was gathered, leave, wake served waiters, log. */
void hf__monitor_leave(hf_client *client);

/* Drive or sleep until @waiter is done, or @until_ns. Returns waiter->done;
 * an answer that arrived in time wins over the deadline. */
bool hf__monitor_wait(hf_client *client, struct hf__waiter *waiter,
                      int64_t until_ns);
void hf__waiter_init(struct hf__waiter *waiter);
/* Tell the waiter; @waiter may be NULL. */
void hf__waiter_done(hf_client *client, struct hf__waiter *waiter, int rc);

/* Unpark @word after the monitor is left. */
void hf__monitor_wake_word(hf_client *client, _Atomic uint32_t *word);

/* Start @timer, and lower the time at which the background thread wakes. */
void hf__monitor_timer(hf_client *client, struct hf__timer *timer,
                       int64_t due_ns);
/* Room for the timer of one more object; given back by _timer_user_gone(). */
int hf__monitor_timer_user(hf_client *client);
void hf__monitor_timer_user_gone(hf_client *client);
/* The background thread must be there before anything is owed. */
int hf__monitor_need_background(hf_client *client, hf_error *err);

/* Does the engine promise what require= asks for? */
int hf__client_requires(const hf_client *client, hf_error *err);
/* And what lock_delay= asks for, now that it is known what it promises? */
int hf__client_fits(hf_client *client, hf_error *err);
/* A client with nothing in it; NULL without memory. */
hf_client *hf__client_new(void);
/* Reports of the engine that are not about a ticket. */
void hf__client_connected(hf_client *client);
void hf__client_down(hf_client *client, const hf_error *err);
static inline bool hf__client_is_up(const hf_client *client)
{
    return client->connection == HF__CONNECTION_UP;
}
/* Connect if that is not under way; for asks that find the engine down. */
void hf__client_connect(hf_client *client);
/* A handle keeps the memory of the client. */
void hf__monitor_handle_gone(hf_client *client);
/* A line for the log hook, which gets it after the monitor is left. */
void hf__monitor_log(hf_client *client, int level, const char *format, ...)
    HF_PRINTF(3, 4);

/* fork.c */
extern _Atomic uint32_t hf__fork_generation;
int hf__fork_watch(hf_client *client);
void hf__fork_unwatch(hf_client *client);
/* In a forked child: close what we have open, by close() alone. */
void hf__client_abandon(hf_client *client);
static inline bool hf__forked(uint32_t generation)
{
    return generation !=
           atomic_load_explicit(&hf__fork_generation, memory_order_relaxed);
}

#endif
