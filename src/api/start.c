/* SPDX-License-Identifier: MIT */
/*
 * start.c - release and verify without waiting: hf_release_start(),
 * hf_verify_start().
 *
 * They do what the blocking calls do up to the point where those wait. A
 * multi-lock needs one answer for each member.
 *
 * A release consumes the caller's reference at once; the request has it until
 * the outcome is told, because a callback of the hold may be running just now,
 * and is not waited for. No other one begins: it is taken off the list.
 */
#include "api/start.h"

#include "api/release.h"
#include "api/request.h"
#include "core/client.h"

void hf__start_tell(struct hf_request *request)
{
    hf_error err = request->error;

    request->done(request->rc, NULL, request->rc >= 0 ? NULL : &err,
                  request->ctx);
}

static uint32_t members_of(const hf_hold *hold)
{
    return hold->members_n > 0 ? hold->members_n : 1;
}

static hf_hold *member_at(hf_hold *hold, uint32_t i)
{
    return hold->members_n > 0 ? hold->members[i] : hold;
}

int hf__start_may(hf_client *client, const struct hf_request *request,
                  hf_done_cb *done, hf_error *err)
{
    if (client->closed)
        return hf__fail(err, HF_ECLOSED, "the client is closed");
    if (!request)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return hf__request_reserve(client, done, err);
}

/* ---- release ------------------------------------------------------------- */

/* A release cannot be undone: who does not wait for it does not know. */
static void forget_release(struct hf_request *request, int rc)
{
    (void)rc;
    hf__request_unwatch(request);
    hf__request_finish(
        request,
        hf__release_explain(request->hold->name, HF_EUNKNOWN, &request->error));
}

static void conclude_release(struct hf_request *request, int rc)
{
    hf__request_finish(
        request, hf__release_explain(request->hold->name, rc, &request->error));
}

/* No callback of the hold runs now: this one is next. */
void hf__start_let_go(struct hf_request *request)
{
    if (request->hold)
        hf__release_unref(HF_STEAL(request->hold));
}

static const struct hf__request_kind releasing = {
    .forget = forget_release,
    .conclude = conclude_release,
    .prepare = hf__start_let_go,
    .tell = hf__start_tell,
    .drop = hf__start_let_go,
    .outlasts_close = true,
};

static void release_members(struct hf_request *request)
{
    hf_hold *hold = request->hold;

    for (uint32_t i = request->answers_n; i > 0; i--) {
        hf_hold *member = member_at(hold, i - 1);
        struct hf__waiter *answer = &request->answers[i - 1];
        int rc;

        hf__callbacks_unlist(&member->callback);
        rc = hf__release_begin(member, answer);
        if (rc != HF__RELEASE_PENDING)
            hf__waiter_done(request->client, answer, rc);
    }
    if (hold->members_n > 0)
        atomic_store_explicit(&hold->state, HF_RELEASED, memory_order_release);
}

/* With the monitor: there will be no outcome, but the lock is free. */
static void release_unasked(hf_hold *hold)
{
    for (uint32_t i = members_of(hold); i > 0; i--) {
        hf__callbacks_unlist(&member_at(hold, i - 1)->callback);
        hf__request_let_go(member_at(hold, i - 1));
    }
    hf__release_unref(hold);
}

int hf_release_start(hf_hold *hold, hf_done_cb *done, void *ctx,
                     hf_request **ret_request, hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc;

    if (!hold)
        return hf__fail(err, HF_EINVAL, "hold is NULL");
    if (hf__forked(hold->fork_generation))
        return hf__release_forked(hold, err);
    client = hold->client;
    request = hf__request_new(client, members_of(hold), /* room= */ 0);
    (void)hf__monitor_enter_any(client, err); /* not forked: it cannot fail */
    rc = ret_request ? hf__start_may(client, request, done, err)
                     : hf__fail(err, HF_EINVAL, "ret_request is NULL");
    if (rc == 0) {
        request->hold = hold;
        request->until_ns = hf__release_deadline(client);
        hf__request_start(request, &releasing, done, ctx);
        *ret_request = request; /* before the callback can ask for it */
        release_members(request);
    } else {
        release_unasked(hold);
    }
    hf__monitor_leave(client);
    if (rc != 0)
        hf__free(request);
    return rc;
}

/* ---- verify -------------------------------------------------------------- */

static void conclude_verify(struct hf_request *request, int rc)
{
    if (rc != 0 && request->error.code != rc)
        (void)hf__fail(&request->error, rc, "verify '%s': %s",
                       request->hold->name, hf_strerror(rc));
    hf__request_finish(request, rc);
}

static void forget_verify(struct hf_request *request, int rc)
{
    hf__request_unwatch(request);
    conclude_verify(request, rc == HF_ETIMEOUT ? HF_EUNKNOWN : rc);
}

void hf__start_tell_hold(struct hf_request *request)
{
    hf_hold *hold = HF_STEAL(request->hold);
    hf_error err = request->error;

    request->done(request->rc, hold, request->rc == 0 ? NULL : &err,
                  request->ctx);
    hf_hold_unref(hold);
}

static const struct hf__request_kind verifying = {
    .forget = forget_verify,
    .conclude = conclude_verify,
    .tell = hf__start_tell_hold,
    .drop = hf__start_let_go,
};

static void verify_members(struct hf_request *request)
{
    for (uint32_t i = 0; i < request->answers_n; i++) {
        struct hf__waiter *answer = &request->answers[i];
        int rc = hf__release_verify(member_at(request->hold, i), answer,
                                    &request->error);

        if (rc != HF__RELEASE_PENDING)
            hf__waiter_done(request->client, answer, rc);
    }
}

int hf_verify_start(hf_hold *hold, hf_done_cb *done, void *ctx,
                    hf_request **ret_request, hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc;

    if (!hold || !ret_request)
        return hf__fail(err, HF_EINVAL, "hold or ret_request is NULL");
    client = hold->client;
    rc = hf__monitor_enter_any(client, err);
    if (rc != 0)
        return rc;
    request = hf__request_new(client, members_of(hold), /* room= */ 0);
    rc = hf__start_may(client, request, done, err);
    if (rc == 0) {
        request->hold = hf_hold_ref(hold);
        request->until_ns = hf__release_deadline(client);
        hf__request_start(request, &verifying, done, ctx);
        *ret_request = request; /* before the callback can ask for it */
        verify_members(request);
    }
    hf__monitor_leave(client);
    if (rc != 0)
        hf__free(request);
    return rc;
}
