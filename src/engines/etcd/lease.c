/* SPDX-License-Identifier: MIT */
/*
 * lease.c - the leases that carry our keys.
 *
 * A client has one lease for each ttl that it uses, mostly one, or a single
 * one of session_timeout. All keys of it live and die together. The server's
 * lease is ttl + lock_delay, counted from when it got the request; ours is ttl,
 * counted from before the last answered one was sent.
 *
 * Renewals of the core keep it alive. A client that only takes locks for short
 * moments never renews. So an acquire with a lease that is older than a third of
 * its time refreshes the lease in passing; from two thirds on it waits for the
 * answer.
 *
 * A lease that is revoked behind our back takes all locks with it. The next
 * renewal would tell, but that may be a third of a lease away. So when a lock
 * has been held for a moment, a key of the lease's own is put beside the
 * queues and watched: we hear of its end at once.
 *
 * Failure: a keepalive that is answered without a ttl, a request with the lease
 * that is refused, or the end of that key: the lease has ended, and every
 * ticket with it is lost, for certain.
 */
#include <inttypes.h>
#include <stdio.h>

#include "engines/etcd/etcd.h"

/* How long a lock is held before its lease is worth a stream. */
#define WATCH_AFTER_NS (300 * HF_MS)

/* ---- which ------------------------------------------------------------- */

static int64_t seconds_for(const struct hf__settings *settings,
                           const struct hf__ticket *ticket)
{
    int64_t ms = settings->session_timeout_ms > 0 ? settings->session_timeout_ms
                                                  : ticket->ttl_ms;

    return (ms + settings->lock_delay_ms + 999) / 1000;
}

struct hf__etcd_lease *hf__etcd_lease_for(struct hf__etcd *etcd,
                                          const struct hf__ticket *ticket)
{
    int64_t seconds = seconds_for(etcd->base.host->settings, ticket);
    struct hf__etcd_lease *longest = &etcd->leases[0];

    for (size_t i = 0; i < HF__ETCD_LEASES; i++) {
        struct hf__etcd_lease *lease = &etcd->leases[i];

        if (lease->asked_s == 0)
            lease->asked_s = seconds;
        if (lease->asked_s == seconds)
            return lease;
        if (lease->asked_s > longest->asked_s)
            longest = lease;
    }
    return longest; /* many different ttls: this one is kept alive more often */
}

void hf__etcd_lease_claim(const struct hf__etcd_lease *lease,
                          const struct hf__ticket *ticket, int64_t sent_ns,
                          struct hf__grant *grant)
{
    int64_t latest_ns;

    grant->lease_ms =
        ticket->ttl_ms < lease->claim_ms ? ticket->ttl_ms : lease->claim_ms;
    latest_ns =
        lease->confirmed_ns + hf__ms_to_ns(lease->claim_ms - grant->lease_ms);
    grant->sent_ns = sent_ns < latest_ns ? sent_ns : latest_ns;
}

/* ---- asking ------------------------------------------------------------ */

static bool still_ours(const struct hf__etcd_lease *lease, int64_t id)
{
    return lease->id == id && id != 0;
}

static void confirmed(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                      int64_t ttl_s, const struct hf__etcd_reply *reply)
{
    int64_t delay_ms = etcd->base.host->settings->lock_delay_ms;

    if (ttl_s > lease->asked_s)
        ttl_s = lease->asked_s; /* nobody asked for more */
    lease->claim_ms = ttl_s * 1000 - delay_ms;
    lease->confirmed_ns =
        HF__PLANTED("lease_from_its_answer") ? hf__now() : reply->sent_ns;
    if (lease->claim_ms <= 0)
        lease->claim_ms = 1; /* what is claimed of it ends at once */
}

static void on_grant(struct hf__etcd *etcd, struct hf__etcd_call *call,
                     const struct hf__etcd_reply *reply)
{
    struct hf__etcd_lease *lease = call->lease;
    struct hf__etcd_reply odd = {.code = HF__ETCD_LOST};
    int64_t ttl_s = (int64_t)hf__pb_number(reply->root, HF__LEASE_GIVEN_TTL);

    lease->asking = false;
    if (reply->code == HF__ETCD_OK) {
        lease->id = (int64_t)hf__pb_number(reply->root, HF__LEASE_GIVEN_ID);
        if (lease->id != 0 && ttl_s > 0) {
            confirmed(etcd, lease, ttl_s, reply);
        } else {
            (void)hf__fail(&odd.err, HF_EUNAVAILABLE,
                           "etcd %s: a lease without number",
                           hf__etcd_connection_peer(etcd));
            lease->id = 0;
            reply = &odd;
        }
    }
    hf__etcd_acquire_lease_ready(etcd, lease, reply);
}

static void on_keepalive(struct hf__etcd *etcd, struct hf__etcd_call *call,
                         const struct hf__etcd_reply *reply)
{
    struct hf__etcd_lease *lease = call->lease;
    int64_t ttl_s = (int64_t)hf__pb_number(reply->root, HF__LEASE_GIVEN_TTL);
    int64_t id = (int64_t)call->n;

    lease->asking = false;
    if (reply->code == HF__ETCD_OK && still_ours(lease, id)) {
        if ((int64_t)hf__pb_number(reply->root, HF__LEASE_GIVEN_ID) != id)
            return; /* of no lease of ours: in silence */
        if (ttl_s > 0)
            confirmed(etcd, lease, ttl_s, reply);
        else
            hf__etcd_lease_ended(etcd, lease);
    }
    hf__etcd_acquire_lease_ready(etcd, lease, reply);
}

int hf__etcd_lease_renew(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                         hf_error *err)
{
    bool there = lease->id != 0;
    struct hf__etcd_call *call;
    int rc;

    if (lease->asking)
        return 0;
    call = hf__etcd_connection_call(etcd,
                                    there ? HF__CALL_KEEPALIVE : HF__CALL_GRANT,
                                    there ? on_keepalive : on_grant);
    call->lease = lease;
    call->n = (size_t)lease->id;
    if (there)
        hf__pb_add_number(&call->rpc.body, HF__LEASE_ID, (uint64_t)lease->id);
    else
        hf__pb_add_number(&call->rpc.body, HF__GRANT_TTL,
                          (uint64_t)lease->asked_s);
    rc = hf__etcd_connection_send(call, err);
    lease->asking = rc == 0;
    return rc;
}

bool hf__etcd_lease_use(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                        int *ret_rc, hf_error *err)
{
    int64_t age_ns = hf__now() - lease->confirmed_ns;
    int64_t third_ns = hf__ms_to_ns(lease->claim_ms) / 3;

    *ret_rc = 0;
    if (lease->id != 0 && age_ns < third_ns)
        return true;
    *ret_rc = hf__etcd_lease_renew(etcd, lease, err);
    return *ret_rc == 0 && lease->id != 0 && age_ns < 2 * third_ns;
}

/* ---- its end ----------------------------------------------------------- */

static void stop_watch(struct hf__etcd *etcd, struct hf__etcd_lease *lease)
{
    if (!lease->watch)
        return;
    hf__etcd_connection_end(HF_STEAL(lease->watch));
    etcd->streams--;
    etcd->base.under_way--;
}

void hf__etcd_lease_ended(struct hf__etcd *etcd, struct hf__etcd_lease *lease)
{
    int64_t id = lease->id;

    stop_watch(etcd, lease);
    lease->id = 0;
    lease->held = 0;
    lease->watch_ns = 0;
    hf__etcd_acquire_lease_lost(etcd, id);
}

static void on_watched(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    struct hf__etcd_lease *lease = call->lease;

    (void)reply;
    if (lease->watch != call)
        return;
    lease->watch = NULL;
    etcd->streams--;
    etcd->base.under_way--;
    if (lease->held > 0 && hf__etcd_connection_is_up(etcd)) {
        lease->watch_ns = hf__now() + 3 * WATCH_AFTER_NS;
        hf__link_wake(&etcd->link, lease->watch_ns);
    }
}

static void on_message(struct hf__grpc_call *rpc, struct hf__pb message)
{
    struct hf__etcd_call *call =
        HF_CONTAINER_OF(rpc, struct hf__etcd_call, rpc);

    /* Only its end is asked for (NO_PUT). */
    if (hf__pb_there(hf__pb_inside(message, HF__WATCH_EVENTS)))
        hf__etcd_lease_ended(call->etcd, call->lease);
}

static void name_lease(struct hf__etcd *etcd,
                       const struct hf__etcd_lease *lease)
{
    char hex[20];
    int n = snprintf(hex, sizeof(hex), "%" PRIx64, (uint64_t)lease->id);

    hf__etcd_queue_key_beside(etcd, "lease", hex, (size_t)n);
}

/* The key is there: watch from its revision on. */
static void on_put(struct hf__etcd *etcd, struct hf__etcd_call *put,
                   const struct hf__etcd_reply *reply)
{
    struct hf__etcd_lease *lease = put->lease;
    struct hf__etcd_call *call;
    size_t create;

    if (!still_ours(lease, (int64_t)put->n) || lease->watch)
        return;
    if (reply->code == HF__ETCD_NOT_FOUND) {
        hf__etcd_lease_ended(etcd, lease);
        return;
    }
    if (reply->code != HF__ETCD_OK || etcd->streams >= HF__ETCD_STREAMS)
        return; /* renewals will tell */
    call = hf__etcd_connection_call(etcd, HF__CALL_WATCH, on_watched);
    call->stream = true;
    call->lease = lease;
    call->rpc.message = on_message;
    name_lease(etcd, lease);
    create = hf__pb_begin(&call->rpc.body, HF__WATCH_CREATE);
    hf__etcd_queue_add_key(etcd, &call->rpc.body, /* range= */ false);
    hf__pb_add_number(&call->rpc.body, HF__WATCH_FROM,
                      hf__etcd_queue_revision_of(reply->root) + 1);
    hf__pb_add_number(&call->rpc.body, HF__WATCH_FILTERS, HF__WATCH_NO_PUT);
    hf__pb_end(&call->rpc.body, create);
    if (hf__etcd_connection_send(call, /* err= */ NULL) != 0)
        return;
    lease->watch = call;
    etcd->streams++;
    etcd->base.under_way++; /* somebody must listen while locks are held */
}

static void start_watch(struct hf__etcd *etcd, struct hf__etcd_lease *lease)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_PUT, on_put);

    call->lease = lease;
    call->n = (size_t)lease->id;
    name_lease(etcd, lease);
    hf__etcd_queue_add_key(etcd, &call->rpc.body, /* range= */ false);
    hf__pb_add_number(&call->rpc.body, HF__PUT_LEASE, (uint64_t)lease->id);
    (void)hf__etcd_connection_send(call, /* err= */ NULL);
}

void hf__etcd_lease_hold(struct hf__etcd *etcd, struct hf__etcd_lease *lease,
                         bool held)
{
    if (!held) {
        if (lease->held > 0 && --lease->held == 0) {
            lease->watch_ns = 0;
            stop_watch(etcd, lease);
        }
        return;
    }
    if (lease->held++ > 0 || lease->watch)
        return;
    lease->watch_ns = hf__now() + WATCH_AFTER_NS;
    hf__link_wake(&etcd->link, lease->watch_ns);
}

int64_t hf__etcd_lease_due(struct hf__etcd *etcd, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    for (size_t i = 0; i < HF__ETCD_LEASES; i++) {
        struct hf__etcd_lease *lease = &etcd->leases[i];

        if (lease->watch_ns == 0)
            continue;
        if (lease->watch_ns <= now_ns) {
            lease->watch_ns = 0;
            if (hf__etcd_connection_is_up(etcd) && lease->id != 0 &&
                !lease->watch)
                start_watch(etcd, lease);
        } else if (lease->watch_ns < next_ns) {
            next_ns = lease->watch_ns;
        }
    }
    return next_ns;
}

static void revoked(struct hf__etcd *etcd)
{
    if (--etcd->revoking == 0)
        hf__up_answer(&etcd->base, HF_STEAL(etcd->finish), 0,
                      /* err= */ NULL);
}

static void on_revoked(struct hf__etcd *etcd, struct hf__etcd_call *call,
                       const struct hf__etcd_reply *reply)
{
    (void)call;
    (void)reply; /* where it failed, the lease ends with its ttl */
    revoked(etcd);
}

static void revoke(struct hf__etcd *etcd, struct hf__etcd_lease *lease)
{
    struct hf__etcd_call *call =
        hf__etcd_connection_call(etcd, HF__CALL_REVOKE, on_revoked);

    hf__pb_add_number(&call->rpc.body, HF__LEASE_ID, (uint64_t)lease->id);
    if (hf__etcd_connection_send(call, /* err= */ NULL) == 0)
        etcd->revoking++;
    lease->id = 0;
}

int hf__etcd_lease_finish(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    struct hf__etcd *etcd = (struct hf__etcd *)engine;

    (void)err;
    etcd->finish = query;
    etcd->revoking = 1; /* this call itself */
    for (size_t i = 0; i < HF__ETCD_LEASES; i++) {
        if (etcd->leases[i].id != 0)
            revoke(etcd, &etcd->leases[i]);
    }
    revoked(etcd);
    return 0;
}
