/* SPDX-License-Identifier: MIT */
/*
 * zookeeper.h - an ensemble of three servers for all tests of a program.
 *
 * A Java server takes a second to start, so the ensemble outlives a test:
 * ensemble() starts what is not there, continues what was stopped, and returns
 * when all three serve. The servers die with the program.
 */
#ifndef HF_LIVE_ZOOKEEPER_H
#define HF_LIVE_ZOOKEEPER_H

#include <stdbool.h>

#include "event.h"
#include "proxy.h"
#include "test.h"
#include "test_client.h"

enum { SERVERS = 3 };

/* Three servers that serve. */
void ensemble(void);
int ensemble_port(int server);
/* Which of them leads; fails the test if none does within ten seconds. */
int ensemble_leader(void);
/* The paths of all ephemeral nodes, a line each, as the leader tells them;
 * valid until the next question. */
const char *ensemble_ephemerals(void);
/* SIGKILL, SIGSTOP, SIGCONT. */
void ensemble_kill(int server);
void ensemble_stop(int server);
void ensemble_continue(int server);
/* The same three, started anew: until the end of the test they reach each other
 * through proxies, for ensemble_cut(). */
void ensemble_linked(void);
/* No byte passes between @server and the others any more. The first one: the
 * others might be called by it at addresses that they know of each other. */
void ensemble_cut(int server);
/* "zk://…all three…/locks?QUERY", valid until the next but three. */
const char *ensemble_url(const char *query);

/* A proxy before each of them, and the URL of the proxies. */
struct detour {
    struct proxy *proxies[SERVERS];
};
void detour_start(struct detour *detour);
const char *detour_url(const struct detour *detour, const char *query);
/* The server that the one client behind it is at; fails if there is none. */
int detour_server(const struct detour *detour);

/* How many locks have a node, held or not; -1: nobody knows. */
int zk_nodes(hf_client *client);

#endif
