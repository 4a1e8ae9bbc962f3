/* SPDX-License-Identifier: MIT */
/*
 * election.c - stand as a candidate until told otherwise.
 *
 * An election is a lock whose holder leads. The candidacy is an asynchronous
 * request; elected, its hold is kept; lost, it is released and the next request
 * starts. Everything happens in callbacks of those, so on the callbacks's thread
 * or in hf_dispatch(), one at a time. The guard protects what hf_elect_check()
 * and hf_elect_stop() read from other threads; it is never held while the host's
 * callback runs.
 *
 * Failure: a request that ends without a hold for a reason that may pass is
 * started again; for one that will not (no rights, client closed) the candidacy
 * ends and hf_elect_check() says why.
 */
#include <pthread.h>

#include "api/request.h"
#include "base/error.h"
#include "base/world.h"
#include "config/name.h"

struct hf_election {
    pthread_mutex_t guard;
    hf_client *client;
    char *name;
    char *owner;
    char *note;
    hf_opts opts;
    hf_event_cb *on_change;
    void *ctx;
    hf_request *request; /* while a candidate */
    hf_hold *hold;       /* while leading */
    int rc;              /* why the candidacy ended */
    bool stopping;
};

static int campaign(hf_election *election, hf_error *err);

/* Has on_change() acquired it again? */
static bool leads_again(const hf_hold *hold)
{
    int state = hf_check(hold);

    return state == HF_HELD || state == HF_JEOPARDY;
}

static void on_event(hf_hold *hold, int state, void *ctx)
{
    hf_election *election = ctx;
    hf_hold *lost = NULL;

    election->on_change(hold, state, election->ctx);
    if (state != HF_LOST || leads_again(hold))
        return;
    (void)pthread_mutex_lock(&election->guard);
    if (!election->stopping)
        lost = HF_STEAL(election->hold);
    (void)pthread_mutex_unlock(&election->guard);
    if (lost) {
        (void)hf_release(lost, /* err= */ NULL); /* it says HF_ELOST */
        (void)campaign(election, /* err= */ NULL);
    }
}

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    hf_election *election = ctx;
    bool stopping;

    (void)err;
    (void)pthread_mutex_lock(&election->guard);
    stopping = election->stopping;
    if (!stopping)
        election->hold = hold;
    (void)pthread_mutex_unlock(&election->guard);
    if (stopping)
        hf_hold_unref(hold); /* hf_elect_stop() does not know of it */
    else if (rc == 0)
        election->on_change(hold, HF_HELD, election->ctx);
    else if (hf_is_retriable(rc))
        (void)campaign(election, /* err= */ NULL);
    else
        election->rc = rc;
}

/* Ask, in place of the request before. */
static int campaign(hf_election *election, hf_error *err)
{
    hf_request *before;
    int rc = 0;

    (void)pthread_mutex_lock(&election->guard);
    before = HF_STEAL(election->request);
    if (!election->stopping)
        rc = hf_acquire_start(election->client, election->name, &election->opts,
                              on_done, election, &election->request, err);
    if (rc != 0)
        election->rc = rc;
    (void)pthread_mutex_unlock(&election->guard);
    hf_request_free(before);
    return rc;
}

static void election_free(hf_election *election)
{
    (void)pthread_mutex_destroy(&election->guard);
    hf__free(election->name);
    hf__free(election->owner);
    hf__free(election->note);
    hf__free(election);
}

static int copy_texts(hf_election *election, const char *name, hf_error *err)
{
    hf_opts *opts = &election->opts;

    election->name = hf__strdup(name);
    election->owner = opts->owner ? hf__strdup(opts->owner) : NULL;
    election->note = opts->note ? hf__strdup(opts->note) : NULL;
    if (!election->name || (opts->owner && !election->owner) ||
        (opts->note && !election->note))
        return hf__fail(err, HF_ENOMEM, "out of memory");
    opts->owner = election->owner;
    opts->note = election->note;
    return 0;
}

int hf_elect_start(hf_client *client, const char *name, const hf_opts *opts,
                   hf_event_cb *on_change, void *ctx,
                   hf_election **ret_election, hf_error *err)
{
    hf_election *election;
    int rc;

    if (!client || !name || !on_change || !ret_election)
        return hf__fail(err, HF_EINVAL,
                        "client, name, on_change or ret_election is NULL");
    election = hf__calloc(1, sizeof(*election));
    if (!election)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__request_opts(opts, &election->opts, err);
    if (rc != 0) {
        hf__free(election);
        return rc;
    }
    (void)pthread_mutex_init(&election->guard, NULL);
    election->opts.wait_ms = HF_FOREVER;
    election->opts.on_event = on_event;
    election->opts.ctx = election;
    election->client = client;
    election->on_change = on_change;
    election->ctx = ctx;
    rc = copy_texts(election, name, err);
    if (rc == 0)
        rc = campaign(election, err);
    if (rc != 0) {
        election_free(election);
        return rc;
    }
    *ret_election = election;
    return 0;
}

int hf_elect_check(const hf_election *election)
{
    hf_election *self = (hf_election *)(uintptr_t)election;
    int state = HF_RELEASED;

    if (!election)
        return HF_EINVAL;
    (void)pthread_mutex_lock(&self->guard);
    if (self->rc != 0)
        state = self->rc;
    else if (self->hold)
        state = hf_check(self->hold);
    (void)pthread_mutex_unlock(&self->guard);
    return state == HF_LOST ? HF_RELEASED : state;
}

int hf_elect_stop(hf_election *election, hf_error *err)
{
    hf_request *request;
    hf_hold *hold;
    int rc = 0;

    if (!election)
        return 0;
    (void)pthread_mutex_lock(&election->guard);
    election->stopping = true;
    request = HF_STEAL(election->request);
    hold = HF_STEAL(election->hold);
    (void)pthread_mutex_unlock(&election->guard);
    /* Both return after a callback of theirs that is under way. */
    hf_request_free(request);
    if (hold)
        rc = hf_release(hold, err);
    election_free(election);
    return rc;
}
