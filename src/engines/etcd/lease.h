/* SPDX-License-Identifier: MIT */
/*
 * lease.h - the leases that carry our keys.
 */
#ifndef HF_ETCD_LEASE_H
#define HF_ETCD_LEASE_H

#include "engines/engine.h"

struct hf__etcd;
struct hf__etcd_call;

/* One lease of the server; it carries all keys of tickets with the same ttl. */
struct hf__etcd_lease {
    int64_t asked_s;      /* its ttl; 0: this place is free */
    int64_t id;           /* 0: none, or it has ended */
    int64_t claim_ms;     /* what we may claim of it: ttl without lock_delay */
    int64_t confirmed_ns; /* when the last answered request was sent */
    int64_t watch_ns;     /* watch it from then on; 0: not planned */
    bool asking;          /* grant or keepalive is under way */
    struct hf__etcd_call *watch;
    uint32_t held; /* tickets */
};

/* The lease for @ticket; it may not be there yet. */
struct hf__etcd_lease *hf__etcd_lease_for(struct hf__etcd *etcd,
                                          const struct hf__ticket *ticket);
/* Is it good for a new key, now? If not, it has been asked for, and
 * hf__etcd_acquire_lease_ready() comes. Non-zero in @err: it could not be asked. */
bool hf__etcd_lease_use(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                        int *ret_rc, hf_error *err);
/* Ask for it or keep it alive; hf__etcd_acquire_lease_ready() or _lost() comes. */
int hf__etcd_lease_renew(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                         hf_error *err);
/* The server says that it has ended. */
void hf__etcd_lease_ended(struct hf__etcd *etcd, struct hf__etcd_lease *lease);
/* What a ticket may claim that was confirmed by a request sent at @sent_ns. */
void hf__etcd_lease_claim(const struct hf__etcd_lease *lease,
                          const struct hf__ticket *ticket, int64_t sent_ns,
                          struct hf__grant *grant);
/* One more, or one less, ticket is held with it. */
void hf__etcd_lease_hold(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                         bool held);
/* The timer: start what is planned; when is the next? */
int64_t hf__etcd_lease_due(struct hf__etcd *etcd, int64_t now_ns);
/* Before closing: revoke them all. */
hf__engine_query_fn hf__etcd_lease_finish;

#endif
