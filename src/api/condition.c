/* SPDX-License-Identifier: MIT */
/*
 * condition.c - the public calls of conditions: wait, signal, broadcast.
 *
 * The blocking calls are the started ones, waited for at once; there is no
 * second path. parked.c has the wait.
 *
 * A signal is one question to the engine. A lost answer is asked for again until
 * it is certain, which may wake one waiter more than was meant, or until the
 * hold itself is lost: then nobody knows (HF_EUNKNOWN).
 */
#include "api/request.h"
#include "api/start.h"
#include "config/name.h"
#include "core/client.h"
#include "core/parked.h"
#include "core/query.h"
#include "core/retry.h"

/* ---- checking -------------------------------------------------------------- */

static int check_cond(const hf_hold *hold, const char *cond, hf_error *err)
{
    if (!hold || !cond)
        return hf__fail(err, HF_EINVAL, "hold or condition is NULL");
    return hf__name_check_text("condition", cond, strlen(cond), 1, HF_COND_MAX,
                               err);
}

static int has_conditions(const hf_client *client, hf_error *err)
{
    if (client->engine->caps & HF_CAP_CONDITIONS)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "%s has no conditions in this mode: local, redis and "
                    "redis-cluster (native), zookeeper (curator, kazoo), etcd, "
                    "and mode=table of PostgreSQL and MySQL have them",
                    client->engine_name);
}

/* With the monitor: is @hold ours, and of a kind that has conditions? */
static int check_hold(hf_hold *hold, hf_error *err)
{
    struct hf__ticket *ticket = hold->ticket;
    int rc = has_conditions(hold->client, err);

    if (rc != 0)
        return rc;
    if (hold->members_n > 0 || hold->whole)
        return hf__fail(err, HF_EINVAL, "a multi-lock has no conditions");
    if (!ticket)
        return hf__hold_none(hold, err);
    if (hold->client->now_ns >= ticket->deadline_ns ||
        hf__hold_seen_lost(hold)) {
        hf__ticket_lose(ticket, ticket->lost_reason, /* certain= */ false);
        return hf__hold_none(hold, err);
    }
    if (ticket->mode != HF_EXCLUSIVE || ticket->downgrading)
        return hf__fail(err, HF_EINVAL,
                        "'%s' is not held exclusively: it has no conditions",
                        hold->name);
    return 0;
}

static int check_wait(hf_hold *hold, hf_error *err)
{
    int rc = check_hold(hold, err);

    if (rc == 0 && hold->ticket->holds.next != hold->ticket->holds.prev)
        rc = hf__fail(err, HF_EINVAL,
                      "'%s' was entered again: who entered first would find "
                      "its token changed",
                      hold->name);
    return rc;
}

/* ---- waiting --------------------------------------------------------------- */

static const struct hf__request_kind waiting = {
    .forget = hf__parked_forget,
    .tell = hf__start_tell_hold,
    .drop = hf__start_let_go,
};

/* With the monitor. */
static int begin_wait(struct hf_request *request, const char *cond,
                      int64_t wait_ms, hf_done_cb *done, void *ctx,
                      hf_error *err)
{
    hf_client *client = request->client;
    int rc;

    request->until_ns = hf__instant_add(client->now_ns, hf__ms_to_ns(wait_ms));
    hf__request_start(request, &waiting, done, ctx);
    rc = hf__parked_begin(request, cond, err);
    if (rc != 0)
        hf__request_undo(request);
    return rc;
}

/* A request with a reference to @hold; NULL without memory. */
static struct hf_request *request_about(hf_hold *hold, uint32_t answers_n)
{
    struct hf_request *request =
        hf__request_new(hold->client, answers_n, /* room= */ 0);

    if (request)
        request->hold = hf_hold_ref(hold);
    return request;
}

/* With the monitor: it did not begin. */
static void undo(struct hf_request *request)
{
    if (!request)
        return;
    hf__start_let_go(request);
    hf__free(request);
}

/* With the monitor. */
static int start_wait(hf_hold *hold, const char *cond, int64_t wait_ms,
                      hf_done_cb *done, void *ctx, hf_request **ret_request,
                      hf_error *err)
{
    struct hf_request *request;
    int rc = check_wait(hold, err);

    if (rc != 0)
        return rc;
    request = request_about(hold, /* answers_n= */ 0);
    rc = hf__start_may(hold->client, request, done, err);
    if (rc == 0) {
        *ret_request = request; /* before the callback can ask for it */
        rc = begin_wait(request, cond, wait_ms, done, ctx, err);
    }
    if (rc != 0)
        undo(request);
    return rc;
}

static int check_wait_args(const hf_hold *hold, const char *cond,
                           int64_t wait_ms, hf_error *err)
{
    if (wait_ms < HF_FOREVER || wait_ms > HF_DURATION_MAX)
        return hf__fail(err, HF_EINVAL, "wait_ms of %lld", (long long)wait_ms);
    return check_cond(hold, cond, err);
}

int hf_cond_wait_start(hf_hold *hold, const char *cond, int64_t wait_ms,
                       hf_done_cb *done, void *ctx, hf_request **ret_request,
                       hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc = check_wait_args(hold, cond, wait_ms, err);

    if (rc == 0 && !ret_request)
        rc = hf__fail(err, HF_EINVAL, "ret_request is NULL");
    if (rc != 0)
        return rc;
    client = hold->client;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = start_wait(hold, cond, wait_ms, done, ctx, &request, err);
    if (rc == 0)
        *ret_request = request;
    hf__monitor_leave(client);
    return rc;
}

int hf_cond_wait(hf_hold *hold, const char *cond, int64_t wait_ms,
                 hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc = check_wait_args(hold, cond, wait_ms, err);

    if (rc != 0)
        return rc;
    client = hold->client;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = start_wait(hold, cond, wait_ms, /* done= */ NULL, /* ctx= */ NULL,
                    &request, err);
    if (rc == 0) {
        rc = hf__request_take(request, err);
        hf__free(request);
    }
    hf__monitor_leave(client);
    return rc;
}

/* ---- signalling ------------------------------------------------------------ */

static void finish_signal(struct hf_request *request, int rc, const char *why)
{
    if (rc < 0)
        rc = hf__fail(&request->error, rc, "signal a condition of '%s': %s",
                      request->hold->name, why);
    hf__request_finish(request, rc);
}

/* The ticket that signals, if it is still what the hold stands for. */
static struct hf__ticket *signaller(const struct hf_request *request)
{
    struct hf__ticket *ticket = request->hold->ticket;

    return ticket && ticket->id == request->query->ticket &&
                   request->client->now_ns < ticket->deadline_ns
               ? ticket
               : NULL;
}

static void finish_lost(struct hf_request *request)
{
    struct hf__ticket *ticket = request->hold->ticket;

    if (ticket && ticket->id == request->query->ticket)
        hf__ticket_lose(ticket, HF__LOST_TAKEN, /* certain= */ false);
    if (request->spurious)
        finish_signal(request, HF_EUNKNOWN,
                      "it was lost before the engine answered");
    else
        finish_signal(request, HF_ELOST, "it was lost before");
}

static void attempt_later(struct hf_request *request)
{
    hf_client *client = request->client;

    hf__monitor_timer(client, &request->timer,
                      client->now_ns + hf__retry_pause_ns(&client->settings,
                                                          request->attempts++));
}

static bool worth_another_try(int rc)
{
    return rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE;
}

static void conclude_signal(struct hf_request *request, int rc)
{
    request->spurious |= rc == HF_EUNKNOWN;
    if (rc == 0)
        finish_signal(request, (int)request->query->woken, "");
    else if (rc == HF_ELOST)
        finish_lost(request);
    else if (worth_another_try(rc))
        attempt_later(request);
    else
        finish_signal(request, rc, request->query->err.text);
}

static struct hf__query *make_query(const char *name, const char *cond,
                                    const struct hf__query *like, hf_error *err)
{
    struct hf__query *query = hf__query_new(err);

    if (!query)
        return NULL;
    if (hf__query_set(&query->name, name, err) != 0 ||
        hf__query_set(&query->cond, cond, err) != 0) {
        hf__query_free(query);
        return NULL;
    }
    query->ticket = like->ticket;
    query->token = like->token;
    query->all = like->all;
    query->changes = true;
    return query;
}

/* Ask. The answer is awaited for io_timeout. */
static void attempt(struct hf_request *request)
{
    hf_client *client = request->client;
    int rc;

    if (!signaller(request)) {
        finish_lost(request);
        return;
    }
    hf__waiter_init(&request->answers[0]);
    request->answers[0].request = request;
    request->open = 1;
    request->rc = 0;
    request->query->woken = 0;
    request->query->engine_data = NULL;
    hf__monitor_timer(
        client, &request->timer,
        hf__instant_add(client->now_ns,
                        hf__ms_to_ns(client->settings.io_timeout_ms)));
    rc = hf__query_begin(client, client->engine->ops->signal, request->query,
                         &request->answers[0]);
    if (rc != 0) {
        request->open = 0;
        conclude_signal(request, rc); /* it was not sent */
    }
}

/* Nobody waits for the answer any more; @another question may be asked in place
 * of the one that is open. */
static void stop_asking(struct hf_request *request, struct hf__query *another)
{
    if (request->open == 0)
        return;
    request->open = 0;
    request->spurious = true;
    (void)hf__query_give_up(request->client, &request->query, /* err= */ NULL);
    request->query = another;
}

static void forget_signal(struct hf_request *request, int rc)
{
    const struct hf__query *query = request->query;
    struct hf__query *another = NULL;

    if (rc == HF_ETIMEOUT && request->open > 0) {
        another = make_query(query->name, query->cond, query, &request->error);
        rc = another ? rc : HF_ENOMEM;
    }
    stop_asking(request, another);
    if (rc == HF_ETIMEOUT)
        attempt(request);
    else
        finish_signal(request, rc, hf_strerror(rc));
}

static void drop_signal(struct hf_request *request)
{
    hf__query_free(HF_STEAL(request->query));
    hf__start_let_go(request);
}

static const struct hf__request_kind signalling = {
    .forget = forget_signal,
    .conclude = conclude_signal,
    .tell = hf__start_tell,
    .drop = drop_signal,
};

/* With the monitor. */
static int start_signal(hf_hold *hold, const char *cond, bool all,
                        hf_done_cb *done, void *ctx, hf_request **ret_request,
                        hf_error *err)
{
    struct hf_request *request;
    struct hf__query *query;
    int rc = check_hold(hold, err);

    if (rc != 0)
        return rc;
    query = make_query(hold->name, cond,
                       &(struct hf__query){.ticket = hold->ticket->id,
                                           .token = hold->ticket->token,
                                           .all = all},
                       err);
    if (!query)
        return HF_ENOMEM;
    request = request_about(hold, /* answers_n= */ 1);
    rc = hf__start_may(hold->client, request, done, err);
    if (rc != 0) {
        hf__query_free(query);
        undo(request);
        return rc;
    }
    request->query = query;
    *ret_request = request; /* before the callback can ask for it */
    hf__request_start(request, &signalling, done, ctx);
    attempt(request);
    return 0;
}

int hf_cond_signal_start(hf_hold *hold, const char *cond, int all,
                         hf_done_cb *done, void *ctx, hf_request **ret_request,
                         hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc = check_cond(hold, cond, err);

    if (rc == 0 && !ret_request)
        rc = hf__fail(err, HF_EINVAL, "ret_request is NULL");
    if (rc != 0)
        return rc;
    client = hold->client;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = start_signal(hold, cond, all != 0, done, ctx, &request, err);
    if (rc == 0)
        *ret_request = request;
    hf__monitor_leave(client);
    return rc;
}

static int signal_and_wait(hf_hold *hold, const char *cond, bool all,
                           hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc = check_cond(hold, cond, err);

    if (rc != 0)
        return rc;
    client = hold->client;
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = start_signal(hold, cond, all, /* done= */ NULL, /* ctx= */ NULL,
                      &request, err);
    if (rc == 0) {
        rc = hf__request_take(request, err);
        hf__free(request);
    }
    hf__monitor_leave(client);
    return rc;
}

int hf_cond_signal(hf_hold *hold, const char *cond, hf_error *err)
{
    return signal_and_wait(hold, cond, /* all= */ false, err);
}

int hf_cond_broadcast(hf_hold *hold, const char *cond, hf_error *err)
{
    return signal_and_wait(hold, cond, /* all= */ true, err);
}
