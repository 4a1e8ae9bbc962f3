/* SPDX-License-Identifier: MIT */
/*
 * request.c - what all requests have in common: a beginning, and one outcome.
 *
 * A started request waits for answers: of its gate (an acquire), of tickets (a
 * release, a verification), of a query or of the first connection. When the
 * last one is there, when its time is over, or when somebody cancels it,
 * whichever is first inside the monitor, it is finished, once. The outcome goes
 * to the callback thread, or to the thread in hf_request_wait().
 *
 * With the monitor held, but for the telling.
 */
#include "core/request.h"

#include "core/client.h"
#include "core/query.h"

static void deadline_fire(struct hf__timer *timer)
{
    struct hf_request *request =
        HF_CONTAINER_OF(timer, struct hf_request, timer);

    request->kind->forget(request, HF_ETIMEOUT);
}

static void prepare_outcome(struct hf__callback *callback)
{
    struct hf_request *request =
        HF_CONTAINER_OF(callback, struct hf_request, callback);

    if (request->kind->prepare)
        request->kind->prepare(request);
}

static void tell_outcome(struct hf__callback *callback)
{
    struct hf_request *request =
        HF_CONTAINER_OF(callback, struct hf_request, callback);

    request->kind->tell(request);
}

struct hf_request *hf__request_new(hf_client *client, uint32_t answers_n,
                                   size_t room)
{
    struct hf_request *request = hf__calloc(
        1, sizeof(*request) + answers_n * sizeof(struct hf__waiter) + room);

    if (!request)
        return NULL;
    request->client = client;
    request->until_ns = HF_NEVER;
    hf__list_init(&request->link);
    request->answers_n = answers_n;
    for (uint32_t i = 0; i < answers_n; i++) {
        hf__waiter_init(&request->answers[i]);
        request->answers[i].request = request;
    }
    return request;
}

int hf__request_reserve(hf_client *client, hf_done_cb *done, hf_error *err)
{
    int rc;

    rc = hf__monitor_need_background(client, err);
    if (rc == 0 && done)
        rc = hf__callbacks_need(client, err);
    if (rc == 0 && hf__monitor_timer_user(client) != 0)
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    return rc;
}

void hf__request_start(struct hf_request *request,
                       const struct hf__request_kind *kind, hf_done_cb *done,
                       void *ctx)
{
    hf_client *client = request->client;

    request->started = true;
    request->kind = kind;
    request->done = done;
    request->ctx = ctx;
    request->err = &request->error;
    request->timer.fire = deadline_fire;
    request->callback.prepare = prepare_outcome;
    request->callback.tell = tell_outcome;
    request->open = kind->at_the_gate ? 0 : request->answers_n;
    request->awaited = request->open > 0;
    client->awaited += request->awaited;
    hf__list_append(&client->requests, &request->all);
    client->handles++;
    if (request->until_ns != HF_NEVER)
        hf__monitor_timer(client, &request->timer, request->until_ns);
}

static void off_the_books(struct hf_request *request)
{
    hf_client *client = request->client;

    hf__list_remove(&request->all);
    hf__timer_stop(&client->loop, &request->timer);
    client->awaited -= request->awaited;
    request->awaited = false;
}

void hf__request_undo(struct hf_request *request)
{
    off_the_books(request);
    hf__monitor_timer_user_gone(request->client);
    hf__monitor_handle_gone(request->client);
}

void hf__request_finish(struct hf_request *request, int rc)
{
    hf_client *client = request->client;

    request->finished = true;
    request->rc = rc;
    if (request->started) {
        off_the_books(request);
        if (HF_UNLIKELY(request->query && request->kind->at_the_gate))
            (void)hf__query_give_up(client, &request->query, /* err= */ NULL);
        if (request->done)
            hf__callbacks_add(client, &request->callback);
    }
    hf__waiter_done(client, request->waiter, rc);
}

void hf__request_answered(struct hf_request *request, int rc)
{
    /* Of several answers a loss is the worst, then the first failure. */
    if (rc != 0 && (request->rc == 0 || rc == HF_ELOST))
        request->rc = rc;
    request->open--;
    if (request->open == 0)
        request->kind->conclude(request, request->rc);
}

void hf__request_unwatch(struct hf_request *request)
{
    for (uint32_t i = 0; i < request->answers_n; i++) {
        request->answers[i].done = true;
        hf__list_remove(&request->answers[i].watch);
    }
}

void hf__request_close(hf_client *client, bool late)
{
    HF_LIST_EACH(&client->requests, link) {
        struct hf_request *request =
            HF_CONTAINER_OF(link, struct hf_request, all);

        if (late || !request->kind->outlasts_close)
            request->kind->forget(request, HF_ECLOSED);
    }
}
