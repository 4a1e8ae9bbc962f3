/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - questions about locks in general: who holds what, is this token
 * current, take it away, what is the server's configuration.
 *
 * The rows of an answer go to the caller's callback after the monitor is left,
 * so the callback may call anything.
 */
#include "api/inspect.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/client.h"
#include "core/query.h"
#include "core/request.h"

/* ---- who holds what ------------------------------------------------------ */

int hf__inspect_rows(struct hf__query *query, hf_list_cb *each, void *ctx)
{
    struct hf__rows *rows = query->rows;
    int rc = 0;

    hf__query_sort(query);
    for (size_t i = 0; i < rows->n && rc == 0; i++)
        rc = each(&rows->at[i]->is.lock, ctx);
    return rc;
}

static int list(hf_client *client, struct hf__query **query, hf_list_cb *each,
                void *ctx, hf_error *err)
{
    int rc = hf__query_ask(client, offsetof(struct hf__engine_ops, list), query,
                           err);

    return rc != 0 ? rc : hf__inspect_rows(*query, each, ctx);
}

static int look(hf_client *client, const char *text, bool exact,
                hf_list_cb *each, void *ctx, hf_error *err)
{
    struct hf__query *query;
    int rc;

    rc = hf__query_new_list(text, exact, &query, err);
    if (rc != 0)
        return rc;
    rc = list(client, &query, each, ctx, err);
    hf__query_free(query);
    return rc;
}

int hf_list(hf_client *client, const char *prefix, hf_list_cb *each, void *ctx,
            hf_error *err)
{
    if (!client || !each)
        return hf__fail(err, HF_EINVAL, "client or each is NULL");
    return look(client, prefix, /* exact= */ false, each, ctx, err);
}

int hf_show(hf_client *client, const char *name, hf_list_cb *each, void *ctx,
            hf_error *err)
{
    if (!client || !name || !each)
        return hf__fail(err, HF_EINVAL, "client, name or each is NULL");
    return look(client, name, /* exact= */ true, each, ctx, err);
}

/* ---- the same, asynchronously --------------------------------------------- */

static void forget_list(struct hf_request *request, int rc)
{
    int late =
        hf__query_give_up(request->client, &request->query, &request->error);

    if (rc == HF_ETIMEOUT)
        rc = late;
    else
        (void)hf__fail(&request->error, rc, "list: %s", hf_strerror(rc));
    hf__request_unwatch(request);
    hf__request_finish(request, rc);
}

static void conclude_list(struct hf_request *request, int rc)
{
    if (rc != 0) {
        request->error = request->query->err;
        hf__query_free(HF_STEAL(request->query));
    }
    hf__request_finish(request, rc);
}

static void tell_list(struct hf_request *request)
{
    struct hf__query *query = HF_STEAL(request->query);
    hf_error err = request->error;
    int rc = request->rc;

    if (rc == 0) {
        rc = hf__inspect_rows(query, request->each, request->ctx);
        if (rc != 0)
            (void)hf__fail(&err, rc, "the caller ended the list");
    }
    hf__query_free(query);
    request->done(rc, NULL, rc == 0 ? NULL : &err, request->ctx);
}

static void drop_list(struct hf_request *request)
{
    hf__query_free(request->query);
}

static const struct hf__request_kind listing = {
    .forget = forget_list,
    .conclude = conclude_list,
    .tell = tell_list,
    .drop = drop_list,
};

/* With the monitor. */
static int start_list(struct hf_request *request, hf_done_cb *done, void *ctx,
                      hf_request **ret_request, hf_error *err)
{
    hf_client *client = request->client;
    struct hf__waiter *answer = &request->answers[0];
    hf__engine_query_fn *slot =
        hf__query_slot(client, offsetof(struct hf__engine_ops, list), err);
    int rc;

    if (!slot)
        return HF_EUNSUPPORTED;
    rc = hf__request_reserve(client, done, err);
    if (rc != 0)
        return rc;
    request->until_ns = hf__instant_add(
        client->now_ns, hf__ms_to_ns(client->settings.io_timeout_ms));
    hf__request_start(request, &listing, done, ctx);
    *ret_request = request; /* before the callback can ask for it */
    rc = hf__query_begin(client, slot, request->query, answer);
    if (rc != 0)
        hf__waiter_done(client, answer, rc);
    return 0;
}

int hf_list_start(hf_client *client, const char *prefix, uint32_t flags,
                  hf_list_cb *each, hf_done_cb *done, void *ctx,
                  hf_request **ret_request, hf_error *err)
{
    bool exact = (flags & HF_EXACT) != 0;
    struct hf__query *query = NULL;
    struct hf_request *request;
    int rc;

    if (!client || !each || !ret_request || (exact && !prefix) ||
        (flags & ~(uint32_t)HF_EXACT) != 0)
        return hf__fail(err, HF_EINVAL,
                        "client, each, ret_request or the name is NULL, or "
                        "unknown flags");
    rc = hf__query_new_list(prefix, exact, &query, err);
    if (rc != 0)
        return rc;
    request = hf__request_new(client, /* answers_n= */ 1, /* room= */ 0);
    if (request) {
        request->query = query;
        request->each = each;
        rc = hf__monitor_enter(client, err);
    } else {
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    }
    if (rc == 0) {
        rc = start_list(request, done, ctx, ret_request, err);
        hf__monitor_leave(client);
    }
    if (rc != 0) {
        hf__query_free(query);
        hf__free(request);
    }
    return rc;
}

/* ---- tokens --------------------------------------------------------------- */

/* A question about the grant of @name with @token, or of @owner. */
static int ask_about_grant(hf_client *client, const struct hf__query *like,
                           size_t op, hf_error *err)
{
    struct hf__query *query = hf__query_new(err);
    int rc;

    if (!query)
        return HF_ENOMEM;
    query->token = like->token;
    query->changes = like->changes;
    query->breaks = like->breaks;
    rc = hf__query_name(query, like->name, err);
    if (rc == 0 && like->owner)
        rc = hf__query_set(&query->owner, like->owner, err);
    if (rc == 0)
        rc = hf__query_ask(client, op, &query, err);
    hf__query_free(query);
    return rc;
}

int hf_check_token(hf_client *client, const char *name, uint64_t token,
                   hf_error *err)
{
    if (!client || !name || token == 0)
        return hf__fail(err, HF_EINVAL,
                        "client or name is NULL, or token 0: no grant has it");
    return ask_about_grant(client,
                           &(struct hf__query){.name = name, .token = token},
                           offsetof(struct hf__engine_ops, check_token), err);
}

int hf_break(hf_client *client, const char *name, uint64_t token,
             const char *owner, hf_error *err)
{
    const struct hf__query broken = {.name = name,
                                     .token = token,
                                     .owner = owner,
                                     .changes = true,
                                     .breaks = true};

    if (!client || !name || (token == 0 && !owner))
        return hf__fail(err, HF_EINVAL,
                        "client or name is NULL, or neither token nor owner");
    return ask_about_grant(client, &broken,
                           offsetof(struct hf__engine_ops, break_lock), err);
}

/* ---- the doctor ------------------------------------------------------------ */

/* What the configuration tells, the same for every engine. */
static int examine_settings(const hf_client *client, hf_finding_cb *each,
                            void *ctx)
{
    static const hf_finding unverified = {
        .size = (uint32_t)sizeof(unverified),
        .status = HF_FINDING_WARN,
        .check = "tls.verify",
        .detail = "off: anybody on the way can pose as the server",
        .fix = "set tls.ca to the authority of its certificate, and leave out "
               "tls.verify"};

    return client->settings.tls_verify ? 0 : each(&unverified, ctx);
}

struct doctor {
    hf_finding_cb *each;
    void *ctx;
    int rc; /* of each */
};

static int tell_deadlock(const char *text, void *ctx)
{
    struct doctor *doctor = ctx;
    hf_finding finding = {
        .size = (uint32_t)sizeof(finding),
        .status = HF_FINDING_WARN,
        .check = "deadlock",
        .detail = text,
        .fix = "take the locks in one order, or set deadlock=break"};

    doctor->rc = doctor->each(&finding, doctor->ctx);
    return doctor->rc;
}

/* What waiters say of themselves. A store that cannot tell has no finding. */
static int examine_waits(hf_client *client, hf_finding_cb *each, void *ctx)
{
    struct doctor doctor = {.each = each, .ctx = ctx};

    (void)hf_deadlocks(client, tell_deadlock, &doctor, /* err= */ NULL);
    return doctor.rc;
}

int hf_doctor(hf_client *client, hf_finding_cb *each, void *ctx, hf_error *err)
{
    struct hf__query *query;
    struct hf__rows *rows;
    int rc;

    if (!client || !each)
        return hf__fail(err, HF_EINVAL, "client or each is NULL");
    rc = examine_settings(client, each, ctx);
    if (rc != 0)
        return rc;
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    rc = hf__query_ask(client, offsetof(struct hf__engine_ops, doctor), &query,
                       err);
    if (rc == 0) {
        rows = query->rows;
        for (size_t i = 0; i < rows->n && rc == 0; i++)
            rc = each(&rows->at[i]->is.finding, ctx);
    }
    hf__query_free(query);
    if (rc == 0)
        rc = examine_waits(client, each, ctx);
    return rc;
}

/* ---- metrics --------------------------------------------------------------- */

int hf_metrics_write(hf_client *client, hf_write_cb *write, void *ctx)
{
    struct hf__metrics *copy;
    struct hf__buf buf = {0};
    int rc;

    if (!client || !write)
        return HF_EINVAL;
    copy = hf__malloc(sizeof(*copy));
    if (!copy)
        return HF_ENOMEM;
    rc = hf__monitor_enter_any(client, /* err= */ NULL);
    if (rc == 0) {
        *copy = client->metrics;
        HF_LIST_EACH(&client->leaving, link) {
            copy->reaping++;
        }
        hf__monitor_leave(client);
        hf__metrics_render(copy, client->engine_name, &buf);
        if (hf__buf_failed(&buf))
            rc = HF_ENOMEM;
        else
            write(hf__buf_text(&buf), buf.len, ctx);
    }
    hf__buf_release(&buf);
    hf__free(copy);
    return rc;
}
