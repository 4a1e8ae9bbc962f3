/* SPDX-License-Identifier: MIT */
/*
 * query.c - one question to the engine: list, check, break, version, doctor.
 *
 * A query is allocated, handed to the engine, and waited for up to io_timeout.
 * The engine adds the rows of its answer with the monitor held. A query whose
 * caller has given up stays in the client's list until the engine answers, and
 * is freed then.
 */
#include "core/query.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "core/client.h"
#include "core/watch.h"

/* No honest store has more: a server that goes on is cut off. */
#define ROWS_MAX ((size_t)1000000)
#define BYTES_MAX ((size_t)256 << 20)

/* ---- rows --------------------------------------------------------------- */

/* A row with @room bytes of texts; NULL with *ret_rc set. */
static struct hf__row *new_row(struct hf__query *query, size_t room,
                               int *ret_rc)
{
    struct hf__rows *rows = query->rows;
    struct hf__row *row = NULL;

    *ret_rc = HF_ENOSPACE;
    rows->bytes += sizeof(*row) + room;
    if (rows->n < ROWS_MAX && rows->bytes <= BYTES_MAX) {
        row = hf__malloc(sizeof(*row) + room);
        *ret_rc = HF_ENOMEM;
    }
    if (row) {
        atomic_init(&row->refs, 1);
        row->broken = false;
        row->seen_ns = 0;
    }
    return row;
}

void hf__query_row_unref(struct hf__row *row)
{
    if (atomic_fetch_sub_explicit(&row->refs, 1, memory_order_acq_rel) == 1)
        hf__free(row);
}

void hf__query_rows_release(struct hf__rows *rows)
{
    for (size_t i = 0; i < rows->n; i++)
        hf__query_row_unref(rows->at[i]);
    hf__free(rows->at);
    memset(rows, 0, sizeof(*rows));
}

static int keep_row(struct hf__query *query, struct hf__row *row)
{
    struct hf__rows *rows = query->rows;

    if (rows->n == rows->size) {
        size_t size = rows->size ? rows->size * 2 : 32;
        struct hf__row **at =
            hf__realloc(rows->at, size * sizeof(struct hf__row *));

        if (!at) {
            hf__free(row);
            return HF_ENOMEM;
        }
        rows->at = at;
        rows->size = size;
    }
    row->number = rows->n;
    rows->at[rows->n++] = row;
    return 0;
}

static const char *put_text(char **to, const char *text)
{
    size_t len = strlen(text ? text : "") + 1;
    char *at = *to;

    memcpy(at, text ? text : "", len);
    *to += len;
    return at;
}

static size_t room_for(const char *text)
{
    return strlen(text ? text : "") + 1;
}

int hf__query_add_lock(struct hf__query *query, const hf_lock_info *info)
{
    int rc;
    struct hf__row *row = new_row(
        query,
        room_for(info->name) + room_for(info->owner) + room_for(info->host) +
            room_for(info->note) + room_for(info->cond),
        &rc);
    char *to;

    if (!row)
        return rc;
    row->is.lock = *info;
    row->is.lock.size = (uint32_t)sizeof(*info);
    to = row->texts;
    row->is.lock.name = put_text(&to, info->name);
    row->is.lock.owner = put_text(&to, info->owner);
    row->is.lock.host = put_text(&to, info->host);
    row->is.lock.note = put_text(&to, info->note);
    row->is.lock.cond = put_text(&to, info->cond);
    return keep_row(query, row);
}

int hf__query_add_notice(struct hf__query *query, const char *text, size_t len)
{
    int rc;
    struct hf__row *row = new_row(query, len, &rc);

    if (!row)
        return rc;
    row->is.notice_len = len;
    memcpy(row->texts, text, len);
    return keep_row(query, row);
}

int hf__query_add_finding(struct hf__query *query, int status,
                          const char *check, const char *fix,
                          const char *detail_format, ...)
{
    char detail[512];
    struct hf__row *row;
    va_list args;
    char *to;
    int rc;

    va_start(args, detail_format);
    (void)vsnprintf(detail, sizeof(detail), detail_format, args);
    va_end(args);
    row =
        new_row(query, room_for(check) + room_for(fix) + room_for(detail), &rc);
    if (!row)
        return rc;
    to = row->texts;
    row->is.finding.size = (uint32_t)sizeof(hf_finding);
    row->is.finding.status = status;
    row->is.finding.check = put_text(&to, check);
    row->is.finding.fix = put_text(&to, fix);
    row->is.finding.detail = put_text(&to, detail);
    return keep_row(query, row);
}

/* ---- queries ------------------------------------------------------------ */

struct hf__query *hf__query_new(hf_error *err)
{
    struct hf__query *query =
        hf__calloc(1, sizeof(*query) + sizeof(struct hf__rows));

    if (!query) {
        (void)hf__fail(err, HF_ENOMEM, "out of memory");
        return NULL;
    }
    query->rows = query + 1;
    hf__list_init(&query->link);
    return query;
}

void hf__query_free(struct hf__query *query)
{
    if (!query)
        return;
    hf__query_rows_release(query->rows);
    hf__free((char *)(uintptr_t)query->name);
    hf__free((char *)(uintptr_t)query->prefix);
    hf__free((char *)(uintptr_t)query->owner);
    hf__free((char *)(uintptr_t)query->text);
    hf__free((char *)(uintptr_t)query->cond);
    hf__free(query);
}

int hf__query_new_list(const char *text, bool exact,
                       struct hf__query **ret_query, hf_error *err)
{
    struct hf__query *query = hf__query_new(err);
    int rc = 0;

    if (!query)
        return HF_ENOMEM;
    if (exact)
        rc = hf__query_name(query, text, err);
    if (rc == 0)
        rc = hf__query_set(&query->prefix, exact || !text ? "" : text, err);
    if (rc != 0) {
        hf__query_free(query);
        return rc;
    }
    *ret_query = query;
    return 0;
}

static int by_name_then_number(const void *a, const void *b)
{
    const struct hf__row *left = *(struct hf__row *const *)a;
    const struct hf__row *right = *(struct hf__row *const *)b;
    int order = strcmp(left->is.lock.name, right->is.lock.name);

    if (order != 0)
        return order;
    return (left->number > right->number) - (left->number < right->number);
}

void hf__query_sort(struct hf__query *query)
{
    struct hf__rows *rows = query->rows;

    if (rows->n > 1)
        qsort(rows->at, rows->n, sizeof(struct hf__row *), by_name_then_number);
}

void hf__query_answered(hf_client *client, struct hf__query *query, int rc,
                        const hf_error *err)
{
    hf__list_remove(&query->link);
    if (rc == 0 && query->breaks)
        hf__watch_broke(client, query);
    if (!query->waiter) {
        hf__query_free(query);
        return;
    }
    query->rc = rc;
    if (rc != 0 && err)
        query->err = *err;
    else if (rc != 0)
        (void)hf__fail(&query->err, rc, "%s", hf_strerror(rc));
    hf__waiter_done(client, query->waiter, rc);
}

void hf__query_abandon(hf_client *client)
{
    struct hf__list *link;

    while ((link = hf__list_first(&client->queries)) != NULL) {
        hf__list_remove(link);
        hf__query_free(HF_CONTAINER_OF(link, struct hf__query, link));
    }
}

int hf__query_begin(hf_client *client, hf__engine_query_fn *slot,
                    struct hf__query *query, struct hf__waiter *waiter)
{
    int rc = 0;

    if (!hf__client_is_up(client) && client->down_err.code != 0)
        rc = hf__fail_pass(&query->err, &client->down_err);
    if (rc == 0) {
        query->waiter = waiter;
        hf__list_append(&client->queries, &query->link);
        rc = slot(client->engine, query, &query->err);
        if (rc != 0)
            hf__list_remove(&query->link);
    }
    if (rc != 0) /* else the answer may be there already */
        query->rc = rc;
    return rc;
}

int hf__query_give_up(const hf_client *client, struct hf__query **query,
                      hf_error *err)
{
    struct hf__query *given_up = HF_STEAL(*query);

    given_up->waiter = NULL;
    return hf__fail(err, given_up->changes ? HF_EUNKNOWN : HF_EUNAVAILABLE,
                    "%s does not answer within %lld ms", client->url->redacted,
                    (long long)client->settings.io_timeout_ms);
}

/* With the monitor. The query is gone if this fails with the answer open. */
static int ask(hf_client *client, hf__engine_query_fn *slot,
               struct hf__query **query, hf_error *err)
{
    struct hf__waiter waiter;
    int rc;

    hf__waiter_init(&waiter);
    rc = hf__query_begin(client, slot, *query, &waiter);
    if (rc == 0 && !waiter.done &&
        !hf__monitor_wait(
            client, &waiter,
            hf__instant_add(client->now_ns,
                            hf__ms_to_ns(client->settings.io_timeout_ms))))
        return hf__query_give_up(client, query, err);
    return (*query)->rc == 0 ? 0 : hf__fail_pass(err, &(*query)->err);
}

/* What somebody wants who asks for this slot. */
static const char *wish(size_t slot_offset)
{
    switch (slot_offset) {
    case offsetof(struct hf__engine_ops, list):
        return "tell who holds or waits";
    case offsetof(struct hf__engine_ops, check_token):
        return "tell whether a token is current";
    case offsetof(struct hf__engine_ops, break_lock):
        return "take a lock away from its holder";
    case offsetof(struct hf__engine_ops, version_read):
    case offsetof(struct hf__engine_ops, version_commit):
        return "keep versions";
    case offsetof(struct hf__engine_ops, board_read):
        return "tell which waiters wait for one another";
    default:
        return "do that";
    }
}

hf__engine_query_fn *hf__query_slot(const hf_client *client, size_t slot_offset,
                                    hf_error *err)
{
    hf__engine_query_fn *slot;

    memcpy(&slot, (const char *)client->engine->ops + slot_offset,
           sizeof(slot));
    if (!slot)
        (void)hf__fail(err, HF_EUNSUPPORTED, "%s cannot %s",
                       client->engine_name, wish(slot_offset));
    return slot;
}

int hf__query_ask(hf_client *client, size_t slot_offset,
                  struct hf__query **query, hf_error *err)
{
    hf__engine_query_fn *slot;
    int rc;

    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    slot = hf__query_slot(client, slot_offset, err);
    rc = slot ? ask(client, slot, query, err) : HF_EUNSUPPORTED;
    hf__monitor_leave(client);
    return rc;
}

void hf__query_finish(hf_client *client)
{
    hf__engine_query_fn *finish = client->engine->ops->finish;
    struct hf__query *query;

    if (!finish || !hf__client_is_up(client))
        return;
    query = hf__query_new(/* err= */ NULL);
    if (query)
        (void)ask(client, finish, &query, /* err= */ NULL);
    hf__query_free(query);
}

int hf__query_set(const char **to, const char *text, hf_error *err)
{
    *to = hf__strdup(text);
    return *to ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

int hf__query_name(struct hf__query *query, const char *name, hf_error *err)
{
    int rc = hf_name_check(name, name ? strlen(name) : 0, err);

    return rc != 0 ? rc : hf__query_set(&query->name, name, err);
}
