/* SPDX-License-Identifier: MIT */
/* etcd.h - an etcd cluster for a test, and a word with it. */
#ifndef HF_LIVE_ETCD_H
#define HF_LIVE_ETCD_H

#include "proxy.h"
#include "server.h"
#include "test.h"
#include "test_client.h"

enum { ETCD_MEMBERS = 3 };

struct etcd {
    struct server *members[ETCD_MEMBERS];
    int n;
    struct proxy *links[ETCD_MEMBERS]; /* before their peer ports, or NULL */
};

/* @n members that have a leader; stopped when the test is over. */
struct etcd *etcd_start(int n);
/* Three that reach each other through proxies, for etcd_cut(). */
struct etcd *etcd_start_linked(void);
/* No byte passes between @member and the others any more. */
void etcd_cut(struct etcd *etcd, int member);
/* What etcdctl says to @format, valid until the next call. */
const char *etcd_ctl(struct etcd *etcd, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Which member leads; -1: none. */
int etcd_leader(struct etcd *etcd);
/* How many keys there are under "@name/"; all that should not stay for "". */
int etcd_keys(struct etcd *etcd, const char *name);

/* "etcd://127.0.0.1:P1,…?@query", valid until the end of the test. */
const char *etcd_url(const int *ports, int n, const char *query);
/* A client that is closed when the test is over: of all members, or of one
 * port. */
hf_client *etcd_open(struct etcd *etcd, const char *query);
hf_client *etcd_open_port(int port, const char *query);

/* One member, and a client that reaches it through a proxy. */
struct etcd_detour {
    struct etcd *etcd;
    struct proxy *proxy;
    hf_client *client;
};
struct etcd_detour etcd_detour(const char *query);

#endif
