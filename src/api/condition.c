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

/* ---- starting -------------------------------------------------------------- */

/* What a wait or a signal is asked with. */
struct wish {
    hf_hold *hold;
    const char *cond;
    int64_t wait_ms; /* a wait */
    bool all;        /* a signal */
    hf_done_cb *done;
    void *ctx;
};

/* With the monitor. */
typedef int start_fn(const struct wish *wish, hf_request **ret_request,
                     hf_error *err);

/* The caller gets the request. */
static int start_for_caller(start_fn *start, const struct wish *wish,
                            hf_request **ret_request, hf_error *err)
{
    hf_client *client = wish->hold->client;
    struct hf_request *request;
    int rc;

    if (!ret_request)
        return hf__fail(err, HF_EINVAL, "ret_request is NULL");
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = start(wish, &request, err);
    if (rc == 0)
        *ret_request = request;
    hf__monitor_leave(client);
    return rc;
}

/* The caller gets the outcome. */
static int start_and_take(start_fn *start, const struct wish *wish,
                          hf_error *err)
{
    hf_client *client = wish->hold->client;
    struct hf_request *request;
    int rc = hf__monitor_enter(client, err);

    if (rc != 0)
        return rc;
    rc = start(wish, &request, err);
    if (rc == 0) {
        rc = hf__request_take(request, err);
        hf__free(request);
    }
    hf__monitor_leave(client);
    return rc;
}

/* ---- waiting --------------------------------------------------------------- */

static const struct hf__request_kind waiting = {
    .forget = hf__parked_forget,
    .tell = hf__start_tell_hold,
    .drop = hf__start_let_go,
};

/* With the monitor. */
static int begin_wait(struct hf_request *request, const struct wish *wish,
                      hf_error *err)
{
    hf_client *client = request->client;
    int rc;

    request->until_ns =
        hf__instant_add(client->now_ns, hf__ms_to_ns(wish->wait_ms));
    hf__request_start(request, &waiting, wish->done, wish->ctx);
    rc = hf__parked_begin(request, wish->cond, err);
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

static int start_wait(const struct wish *wish, hf_request **ret_request,
                      hf_error *err)
{
    struct hf_request *request;
    int rc = check_wait(wish->hold, err);

    if (rc != 0)
        return rc;
    request = request_about(wish->hold, /* answers_n= */ 0);
    rc = hf__start_may(wish->hold->client, request, wish->done, err);
    if (rc == 0) {
        *ret_request = request; /* before the callback can ask for it */
        rc = begin_wait(request, wish, err);
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
    const struct wish wish = {.hold = hold,
                              .cond = cond,
                              .wait_ms = wait_ms,
                              .done = done,
                              .ctx = ctx};
    int rc = check_wait_args(hold, cond, wait_ms, err);

    return rc != 0 ? rc : start_for_caller(start_wait, &wish, ret_request, err);
}

int hf_cond_wait(hf_hold *hold, const char *cond, int64_t wait_ms,
                 hf_error *err)
{
    const struct wish wish = {.hold = hold, .cond = cond, .wait_ms = wait_ms};
    int rc = check_wait_args(hold, cond, wait_ms, err);

    return rc != 0 ? rc : start_and_take(start_wait, &wish, err);
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

static int start_signal(const struct wish *wish, hf_request **ret_request,
                        hf_error *err)
{
    hf_hold *hold = wish->hold;
    struct hf_request *request;
    struct hf__query *query;
    int rc = check_hold(hold, err);

    if (rc != 0)
        return rc;
    query = make_query(hold->name, wish->cond,
                       &(struct hf__query){.ticket = hold->ticket->id,
                                           .token = hold->ticket->token,
                                           .all = wish->all},
                       err);
    if (!query)
        return HF_ENOMEM;
    request = request_about(hold, /* answers_n= */ 1);
    rc = hf__start_may(hold->client, request, wish->done, err);
    if (rc != 0) {
        hf__query_free(query);
        undo(request);
        return rc;
    }
    request->query = query;
    *ret_request = request; /* before the callback can ask for it */
    hf__request_start(request, &signalling, wish->done, wish->ctx);
    attempt(request);
    return 0;
}

int hf_cond_signal_start(hf_hold *hold, const char *cond, int all,
                         hf_done_cb *done, void *ctx, hf_request **ret_request,
                         hf_error *err)
{
    const struct wish wish = {
        .hold = hold, .cond = cond, .all = all != 0, .done = done, .ctx = ctx};
    int rc = check_cond(hold, cond, err);

    return rc != 0 ? rc
                   : start_for_caller(start_signal, &wish, ret_request, err);
}

static int wake(hf_hold *hold, const char *cond, bool all, hf_error *err)
{
    const struct wish wish = {.hold = hold, .cond = cond, .all = all};
    int rc = check_cond(hold, cond, err);

    return rc != 0 ? rc : start_and_take(start_signal, &wish, err);
}

int hf_cond_signal(hf_hold *hold, const char *cond, hf_error *err)
{
    return wake(hold, cond, /* all= */ false, err);
}

int hf_cond_broadcast(hf_hold *hold, const char *cond, hf_error *err)
{
    return wake(hold, cond, /* all= */ true, err);
}
