/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - questions about locks in general: who holds what, is this token
 * current, take it away, what is the server's configuration.
 *
 * The rows of an answer go to the caller's callback after the monitor is left,
 * so the callback may call anything.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/client.h"
#include "core/query.h"

/* ---- who holds what ------------------------------------------------------ */

static int by_name_then_number(const void *a, const void *b)
{
    const struct hf__row *left = *(struct hf__row *const *)a;
    const struct hf__row *right = *(struct hf__row *const *)b;
    int order = strcmp(left->is.lock.name, right->is.lock.name);

    if (order != 0)
        return order;
    return (left->number > right->number) - (left->number < right->number);
}

static int list(hf_client *client, struct hf__query **query, hf_list_cb *each,
                void *ctx, hf_error *err)
{
    struct hf__rows *rows;
    int rc;

    rc = hf__query_ask(client, offsetof(struct hf__engine_ops, list), query,
                       err);
    if (rc != 0)
        return rc;
    rows = (*query)->rows;
    if (rows->n > 1)
        qsort(rows->at, rows->n, sizeof(struct hf__row *), by_name_then_number);
    for (size_t i = 0; i < rows->n && rc == 0; i++)
        rc = each(&rows->at[i]->is.lock, ctx);
    return rc;
}

int hf_list(hf_client *client, const char *prefix, hf_list_cb *each, void *ctx,
            hf_error *err)
{
    struct hf__query *query;
    int rc;

    if (!client || !each)
        return hf__fail(err, HF_EINVAL, "client or each is NULL");
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    rc = hf__query_set(&query->prefix, prefix ? prefix : "", err);
    if (rc == 0)
        rc = list(client, &query, each, ctx, err);
    hf__query_free(query);
    return rc;
}

int hf_show(hf_client *client, const char *name, hf_list_cb *each, void *ctx,
            hf_error *err)
{
    struct hf__query *query;
    int rc;

    if (!client || !name || !each)
        return hf__fail(err, HF_EINVAL, "client, name or each is NULL");
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    rc = hf__query_name(query, name, err);
    if (rc == 0)
        rc = hf__query_set(&query->prefix, "", err);
    if (rc == 0)
        rc = list(client, &query, each, ctx, err);
    hf__query_free(query);
    return rc;
}

/* ---- tokens --------------------------------------------------------------- */

int hf_check_token(hf_client *client, const char *name, uint64_t token,
                   hf_error *err)
{
    struct hf__query *query;
    int rc;

    if (!client || !name || token == 0)
        return hf__fail(err, HF_EINVAL,
                        "client or name is NULL, or token 0: no grant has it");
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    query->token = token;
    rc = hf__query_name(query, name, err);
    if (rc == 0)
        rc = hf__query_ask(client, offsetof(struct hf__engine_ops, check_token),
                           &query, err);
    hf__query_free(query);
    return rc;
}

int hf_break(hf_client *client, const char *name, uint64_t token,
             const char *owner, hf_error *err)
{
    struct hf__query *query;
    int rc;

    if (!client || !name || (token == 0 && !owner))
        return hf__fail(err, HF_EINVAL,
                        "client or name is NULL, or neither token nor owner");
    query = hf__query_new(err);
    if (!query)
        return HF_ENOMEM;
    query->token = token;
    query->changes = true;
    rc = hf__query_name(query, name, err);
    if (rc == 0 && owner)
        rc = hf__query_set(&query->owner, owner, err);
    if (rc == 0)
        rc = hf__query_ask(client, offsetof(struct hf__engine_ops, break_lock),
                           &query, err);
    hf__query_free(query);
    return rc;
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
