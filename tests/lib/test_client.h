/* SPDX-License-Identifier: MIT */
/* test_client.h - a client of the library, as a test wants it. */
#ifndef HF_TESTS_TEST_CLIENT_H
#define HF_TESTS_TEST_CLIENT_H

#include "event.h"
#include "holdfast.h"

struct proxy;
struct server;

/* Options that wait so long, with fields of their own: OPTS(0, .slots = 2). */
#define OPTS(wait, ...)                                                        \
    (&(hf_opts){.size = sizeof(hf_opts), .wait_ms = (wait), __VA_ARGS__})

/* Options that wait so long, and are the usual ones otherwise. */
#define WITHIN(ms) OPTS(ms, .flags = 0)

/* Two clients that want the same. */
struct rivals {
    struct server *server; /* of a test with a server of its own */
    struct proxy *proxy;   /* before it, for @client */
    hf_client *client;
    hf_client *rival;
    const char *name; /* of a test of the contract */
};

/* Two clients of @server, by @url. */
struct rivals client_rivals(struct server *server, const char *url);
/* The same by @url of a port and a query; the first through a proxy. */
typedef const char *client_url_fn(int port, const char *query);
struct rivals client_proxied(struct server *server, client_url_fn *url,
                             const char *query, const char *rival_query);
/* Has to succeed; closed at the end of the test. */
hf_client *client_open(const char *url);
/* Waits, and has to succeed. */
hf_hold *client_acquire(hf_client *client, const char *name);
hf_hold *client_acquire_with(hf_client *client, const char *name,
                             const hf_opts *opts);
/* The same, and @events are told what becomes of it. */
hf_hold *client_acquire_told(hf_client *client, const char *name,
                             struct event *events);
/* Begins to wait; and ends in a grant. */
hf_request *client_start(hf_client *client, const char *name);
hf_request *client_start_with(hf_client *client, const char *name,
                              const hf_opts *opts);
hf_hold *client_finish(hf_request *request);
/* What one attempt says; a hold that it gets is released again. */
int client_try(hf_client *client, const char *name, hf_error *err);
/* The same by a client of its own; @config is freed. */
int client_try_url(const char *url, hf_config *config, hf_error *err);
int client_try_with(hf_client *client, const char *name, const hf_opts *opts,
                    hf_error *err);
/* Has to succeed. */
void client_release(hf_hold *hold);
/* How many holders (HF_HOLDER) or waiters hf_show() tells. */
int client_count(hf_client *client, const char *name, int role);

/* A wait on a condition that has begun. */
struct client_wait {
    hf_hold *hold;
    hf_request *request;
};

/* Begins to wait on @cond, without end. */
hf_request *client_wait_start(hf_hold *hold, const char *cond);
/* Acquires @name, and waits on @cond of it; @looks sees one more parked. */
struct client_wait client_park(hf_client *client, const char *name,
                               const char *cond, hf_client *looks);
/* It ends well, and holds the lock, which is released. */
void client_woken(struct client_wait *wait);
/* Acquire, signal, release: how many were woken. */
int client_signal(hf_client *client, const char *name, const char *cond);

/* What the doctor thinks of @check, HF_FINDING_*; -1: nothing. */
int client_finding(hf_client *client, const char *check);

/* @server stands still: @client gets HF_EUNAVAILABLE or HF_EUNKNOWN, and locks
 * again when the server continues. */
void client_outlasts_pause(hf_client *client, struct server *server);
/* A process that holds a lock by @url, with a short lease, is stopped until a
 * client of @next_url has it: it finds out that it has lost, and does not touch
 * the lock of the other. */
void client_loses_by_pause(const char *url, const char *next_url);

/* Rows and findings that nobody looks at. */
/* The port of the (first) server in @url. */
int client_port_of(const char *url);
int client_ignore_lock(const hf_lock_info *info, void *ctx);
int client_ignore_finding(const hf_finding *finding, void *ctx);
int client_ignore_cycle(const char *text, void *ctx);
/* @events were told of jeopardy, then of the loss. */
void client_told_lost(struct event *events);
/* on_event for an event that is told the states. */
void client_on_event(hf_hold *hold, int state, void *ctx);

#endif
