/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - questions about locks in general: list, check, break.
 *
 * A list walks through the server's keys by SCAN, a page at a time, and looks
 * at the locks of each page by one script, so that the rows of one lock belong
 * to one moment; the locks of different pages do not. Nothing of it keeps the
 * server busy for long.
 *
 * Failure: a lost connection or an error of the server is the answer. A list
 * that nobody waits for any more ends with the page that is under way.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/redis/connection.h"
#include "engines/redis/errors.h"
#include "engines/redis/inspect.h"
#include "engines/redis/redis.h"
#include "engines/redis/redisson.h"
#include "engines/redis/tickets.h"

/* ---- answers ----------------------------------------------------------- */

static void lost(struct hf__redis *redis, struct hf__query *query)
{
    hf_error err;

    hf__redis_errors_explain_lost(redis, &err);
    hf__up_answer(&redis->base, query, err.code, &err);
}

void hf__redis_inspect_refused(struct hf__redis *redis, struct hf__query *query,
                               const struct hf__resp_value *value)
{
    hf_error err;

    (void)hf__redis_errors_explain(redis, value, &err);
    hf__up_answer(&redis->base, query, err.code, &err);
}

/* It was sent, and may have been done. */
void hf__redis_inspect_unknown(struct hf__redis *redis, struct hf__query *query)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNKNOWN,
                   "%s: no answer; whether it was done is not known",
                   redis->peer);
    hf__up_answer(&redis->base, query, err.code, &err);
}

void hf__redis_inspect_text(struct hf__redis *redis, struct hf__query *query,
                            int code, const char *text)
{
    hf_error err;

    (void)hf__fail(&err, code, "'%s': %s", query->name, text);
    hf__up_answer(&redis->base, query, code, &err);
}

bool hf__redis_inspect_answered(struct hf__redis *redis,
                                struct hf__query *query, struct hf__resp *reply,
                                bool list, struct hf__resp_value *ret_value)
{
    *ret_value = hf__resp_first(reply);
    if (!reply)
        lost(redis, query);
    else if (list ? ret_value->type != HF__RESP_LIST
                  : ret_value->type == HF__RESP_ERROR)
        hf__redis_inspect_refused(redis, query, ret_value);
    else
        return true;
    return false;
}

int hf__redis_inspect_key(struct hf__redis *redis,
                          const struct hf__query *query,
                          const struct hf__redis_dialect *dialect,
                          hf_error *err)
{
    if (!hf__redis_is_up(redis))
        return hf__redis_not_up(redis, err);
    dialect->key(redis, query->name, strlen(query->name));
    if (!hf__buf_failed(&redis->scratch))
        return 0;
    hf__buf_release(&redis->scratch);
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

void hf__redis_inspect_put_key(struct hf__redis *redis)
{
    hf__resp_arg(&redis->stream.out, redis->scratch.text, redis->scratch.len);
}

/* ---- rows -------------------------------------------------------------- */

bool hf__redis_inspect_name(const struct hf__redis *redis,
                            const struct hf__resp_value *key, char *to,
                            size_t size)
{
    const char *prefix = redis->base.host->settings->prefix;
    size_t prefix_len = strlen(prefix);
    size_t len = key->type == HF__RESP_TEXT ? key->len : 0;
    char whole[1024];
    size_t n;

    if (len > 2 && memcmp(key->text + len - 2, ":p", 2) == 0)
        len -= 2;
    if (len < 6 || memcmp(key->text, "hf:{", 4) != 0 ||
        key->text[len - 1] != '}')
        return false;
    n = hf__name_decode(key->text + 4, len - 5, whole, sizeof(whole));
    if (n < prefix_len || n - prefix_len >= size ||
        memcmp(whole, prefix, prefix_len) != 0)
        return false;
    memcpy(to, whole + prefix_len, n - prefix_len);
    to[n - prefix_len] = '\0';
    return n > prefix_len;
}

static int64_t since_ms(const char *record)
{
    int64_t asked_ms =
        (int64_t)hf__redis_tickets_digits(record + HF__RECORD_ASKED, 13);
    int64_t gone_ms = hf__world->wall_us() / 1000 - asked_ms;

    return gone_ms > 0 ? gone_ms : 0;
}

static int add_row(struct hf__query *query, hf_lock_info *row,
                   const char *record, size_t len)
{
    char copy[HF__REDIS_TEXTS];

    if (len < HF__RECORD_TEXTS)
        return 0; /* not ours */
    hf__redis_tickets_record_read(record, len, copy, row);
    if (row->since_ms < 0)
        row->since_ms = since_ms(record);
    return hf__query_add_lock(query, row);
}

/* Granted by a script: the token tells when. */
static int64_t since_token(uint64_t token, int64_t server_ms)
{
    int64_t gone_ms = server_ms - (int64_t)(token / 1000);

    return gone_ms > 0 ? gone_ms : 0;
}

/* A shared or slot holder: its lease's end, then "h" token record. */
static int add_holder(struct hf__query *query, const char *name,
                      struct hf__resp *reply, int64_t server_ms)
{
    struct hf__resp_value ends = hf__resp_next(reply);
    struct hf__resp_value held = hf__resp_next(reply);
    hf_lock_info row = {.role = HF_HOLDER, .name = name};

    if (held.type != HF__RESP_TEXT || held.len < 17 + HF__RECORD_TEXTS)
        return 0;
    row.token = hf__redis_tickets_digits(held.text + 1, 16);
    row.lease_ms = hf__resp_number(&ends, server_ms) - server_ms;
    row.since_ms = since_token(row.token, server_ms);
    return add_row(query, &row, held.text + 17, held.len - 17);
}

/* The exclusive holder, in either form of the gate. */
static int add_exclusive(struct hf__query *query, const char *name,
                         const struct hf__resp_value *gate, int64_t left_ms,
                         uint64_t counter, int64_t server_ms)
{
    hf_lock_info row = {.role = HF_HOLDER, .name = name, .since_ms = -1};
    const char *text = gate->text;

    if (gate->len > HF__RECORD_TEXTS && text[0] != '~') {
        row.lease_ms = left_ms;
        row.token = text[HF__RECORD_BOUND] == '='
                        ? hf__redis_tickets_digits(text + HF__RECORD_TOKEN, 16)
                        : counter;
        return add_row(query, &row, text, gate->len);
    }
    if (gate->len < HF__GATE_SLOW_RECORD + HF__RECORD_TEXTS ||
        text[HF__GATE_SLOW_MODE] != 'x')
        return 0;
    row.lease_ms =
        (int64_t)hf__redis_tickets_digits(text + HF__GATE_SLOW_TILL, 13) -
        server_ms;
    row.token = hf__redis_tickets_digits(text + HF__GATE_SLOW_OWN, 16);
    if (row.token != 0)
        row.since_ms = since_token(row.token, server_ms);
    else
        row.token = hf__redis_tickets_digits(text + HF__GATE_SLOW_LAST, 16);
    if (row.lease_ms <= 0)
        return 0; /* over, and nobody has looked since */
    return add_row(query, &row, text + HF__GATE_SLOW_RECORD,
                   gate->len - HF__GATE_SLOW_RECORD);
}

/* One element of the answer to LOOK. */
static int add_lock(struct hf__query *query, const char *name,
                    struct hf__resp *reply)
{
    struct hf__resp_value gate = hf__resp_next(reply);
    struct hf__resp_value left = hf__resp_next(reply);
    struct hf__resp_value counter = hf__resp_next(reply);
    struct hf__resp_value clock = hf__resp_next(reply);
    struct hf__resp_value list = hf__resp_next(reply);
    int64_t server_ms = hf__resp_number(&clock, 0);
    int rc;

    rc = gate.type == HF__RESP_TEXT
             ? add_exclusive(query, name, &gate, hf__resp_number(&left, -1),
                             (uint64_t)hf__resp_number(&counter, 0), server_ms)
             : 0;
    for (uint32_t i = 0; i + 1 < list.count && rc == 0; i += 2)
        rc = add_holder(query, name, reply, server_ms);
    list = hf__resp_next(reply);
    for (uint32_t i = 0; i < list.count && rc == 0; i++) {
        struct hf__resp_value record = hf__resp_next(reply);
        hf_lock_info row = {.role = HF_WAITER,
                            .name = name,
                            .since_ms = -1,
                            .lease_ms = -1,
                            .place = i + 1};

        if (record.type == HF__RESP_TEXT)
            rc = add_row(query, &row, record.text, record.len);
    }
    return rc;
}

/* One that waits for a condition: until when it lives, place, record. */
static int add_parked_one(struct hf__query *query, const char *name,
                          struct hf__resp *reply, int64_t server_ms)
{
    struct hf__resp_value ends = hf__resp_next(reply);
    struct hf__resp_value place = hf__resp_next(reply);
    struct hf__resp_value record = hf__resp_next(reply);
    hf_lock_info row = {.role = HF_PARKED, .name = name, .since_ms = -1};

    if (record.type != HF__RESP_TEXT)
        return 0;
    row.lease_ms = hf__resp_number(&ends, server_ms) - server_ms;
    row.place = (uint32_t)hf__resp_number(&place, 0);
    return add_row(query, &row, record.text, record.len);
}

/* The answer to LOOK about a list of those. */
static int add_parked(struct hf__query *query, const char *name,
                      struct hf__resp *reply)
{
    struct hf__resp_value clock = hf__resp_next(reply);
    struct hf__resp_value list = hf__resp_next(reply);
    int rc = 0;

    for (uint32_t i = 0; i + 2 < list.count && rc == 0; i += 3)
        rc = add_parked_one(query, name, reply, hf__resp_number(&clock, 0));
    return rc;
}

/* ---- list -------------------------------------------------------------- */

static int send_scan(struct hf__redis *redis, struct hf__query *query,
                     uint64_t cursor, hf_error *err);

/* SCAN is asked for 1000 keys, and may answer with some more. */
enum { PAGE_KEYS = 1000, PAGE_MAX = 100000 };

static void list_done(struct hf__redis *redis, struct hf__query *query, int rc)
{
    hf__up_answer(&redis->base, query, rc, /* err= */ NULL);
}

/* Each lock of the answer carries its own key, first. */
static int add_locks(struct hf__redis *redis, struct hf__query *query,
                     struct hf__resp *reply, uint32_t count)
{
    int rc = 0;

    if (redis->kind)
        return hf__redisson_inspect_add_rows(redis, query, reply, count);
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        struct hf__resp_value lock = hf__resp_next(reply);
        struct hf__resp after = *reply;
        struct hf__resp_value key;
        char name[HF_NAME_MAX + 1];

        hf__resp_skip(&after, &lock);
        if (lock.count == 7 || lock.count == 3) {
            key = hf__resp_next(reply);
            if (hf__redis_inspect_name(redis, &key, name, sizeof(name)))
                rc = lock.count == 7 ? add_lock(query, name, reply)
                                     : add_parked(query, name, reply);
        }
        *reply = after;
    }
    return rc;
}

static void on_look(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value head;
    int rc;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ true,
                                    &head))
        return;
    rc = add_locks(redis, query, reply, head.count);
    if (rc == 0 && !query->waiter)
        rc = HF_EUNAVAILABLE;
    if (rc == 0 && call->ticket != 0) {
        rc = send_scan(redis, query, call->ticket, /* err= */ NULL);
        if (rc == 0)
            return;
    }
    list_done(redis, query, rc);
}

/* The rest of the page cannot be looked at, or kept: for this reason. */
static void on_look_cut(struct hf__redis *redis,
                        const struct hf__redis_call *call,
                        struct hf__resp *reply)
{
    (void)reply;
    list_done(redis, call->query, -(int)call->ticket);
}

/* The last call of the page ends the list with @rc. */
static void cut_page(struct hf__redis *redis, const struct hf__query *query,
                     int rc)
{
    for (uint32_t i = 0; i < redis->calls.n; i++) {
        struct hf__redis_call *call = hf__calls_at(&redis->calls, i);

        if (call->query == query && call->done == on_look) {
            call->done = on_look_cut;
            call->ticket = (uint64_t)-rc;
        }
    }
}

/* Not the last of its page. A lock whose slot leaves while we look is listed
 * by nobody. */
static void on_look_part(struct hf__redis *redis,
                         const struct hf__redis_call *call,
                         struct hf__resp *reply)
{
    struct hf__resp_value head = hf__resp_first(reply);
    int rc = 0;

    if (head.type == HF__RESP_LIST)
        rc = add_locks(redis, call->query, reply, head.count);
    if (rc != 0)
        cut_page(redis, call->query, rc);
}

/* Which lock a key of a page belongs to; false: to none. */
static bool lock_of_key(const struct hf__redis *redis,
                        const struct hf__resp_value *key, char *to, size_t size)
{
    return redis->kind ? hf__redisson_inspect_name(redis, key, to, size)
                       : hf__redis_inspect_name(redis, key, to, size);
}

/* The key of that lock: this one, or what a set beside it is named after. */
static void add_lock_key(struct hf__redis *redis,
                         const struct hf__resp_value *key, const char *name)
{
    const char *prefix = redis->base.host->settings->prefix;
    struct hf__buf *out = &redis->stream.out;

    if (!redis->kind) {
        hf__resp_arg(out, key->text, key->len);
        return;
    }
    hf__resp_arg_begin(out, redis->prefix_len + strlen(name));
    hf__buf_add(out, prefix);
    hf__buf_add(out, name);
    hf__resp_arg_end(out);
}

/* Look at the @n locks among the keys of a page; @cursor: the next page. In a
 * cluster a script works in one slot, so they are looked at one by one. */
static int send_look(struct hf__redis *redis, struct hf__query *query,
                     struct hf__resp keys, uint32_t count, uint32_t n,
                     uint64_t cursor)
{
    struct hf__redis_call call = {.done = on_look_part, .query = query};
    uint32_t each = redis->in_cluster || redis->kind ? 1 : n;
    int script =
        redis->kind ? HF__SCRIPT_REDISSON_LOOK : HF__SCRIPT_NATIVE_LOOK;
    uint32_t asked = 0;
    uint32_t in_call = 0;
    size_t mark = 0;
    int rc = hf__redis_connection_script_load(redis, script);

    while (count-- > 0 && rc == 0) {
        struct hf__resp_value key = hf__resp_next(&keys);
        char name[HF_NAME_MAX + 1];

        if (!lock_of_key(redis, &key, name, sizeof(name)))
            continue;
        if (in_call == 0)
            mark = hf__redis_connection_script_begin(redis, script, each, 0);
        add_lock_key(redis, &key, name);
        if (++in_call < each)
            continue;
        in_call = 0;
        rc = hf__redis_connection_end(redis, mark, &call, /* err= */ NULL);
        asked += rc == 0;
    }
    if (asked == 0)
        return rc == 0 ? HF_EINTERNAL : rc;
    hf__redis_connection_last_call(redis)->done =
        rc == 0 ? on_look : on_look_cut;
    hf__redis_connection_last_call(redis)->ticket =
        rc == 0 ? cursor : (uint64_t)-rc;
    return 0;
}

static void on_scan(struct hf__redis *redis, const struct hf__redis_call *call,
                    struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value head;
    struct hf__resp_value list;
    struct hf__resp keys;
    uint64_t cursor;
    uint32_t n = 0;
    int rc = 0;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ true,
                                    &head))
        return;
    head = hf__resp_next(reply);
    cursor = head.type == HF__RESP_TEXT
                 ? hf__redis_tickets_digits(head.text, head.len)
                 : 0;
    list = hf__resp_next(reply);
    keys = *reply;
    if (!query->waiter || list.count > PAGE_MAX) {
        list_done(redis, query, query->waiter ? HF_ENOSPACE : HF_EUNAVAILABLE);
        return;
    }
    for (uint32_t i = 0; i < list.count; i++) {
        struct hf__resp_value key = hf__resp_next(reply);
        char name[HF_NAME_MAX + 1];

        n += lock_of_key(redis, &key, name, sizeof(name));
    }
    if (n > 0)
        rc = send_look(redis, query, keys, list.count, n, cursor);
    else if (cursor != 0)
        rc = send_scan(redis, query, cursor, /* err= */ NULL);
    if (rc != 0 || (n == 0 && cursor == 0))
        list_done(redis, query, rc);
}

static int send_scan(struct hf__redis *redis, struct hf__query *query,
                     uint64_t cursor, hf_error *err)
{
    struct hf__redis_call call = {.done = on_scan, .query = query};
    struct hf__buf *out = &redis->stream.out;
    struct hf__buf *key = &redis->scratch;
    const char *type = NULL; /* of the keys */
    char text[24];
    size_t mark;

    if (redis->kind)
        type = hf__redisson_inspect_pattern(redis, query->prefix);
    else
        hf__redis_native.key(redis, query->prefix, strlen(query->prefix));
    if (!redis->kind && key->len > 0)
        key->text[key->len - 1] = '*'; /* was the closing brace */
    (void)snprintf(text, sizeof(text), "%" PRIu64, cursor);
    mark = hf__redis_connection_begin(redis, type ? 8 : 6);
    hf__resp_arg_text(out, "SCAN");
    hf__resp_arg_text(out, text);
    hf__resp_arg_text(out, "MATCH");
    hf__redis_inspect_put_key(redis);
    hf__resp_arg_text(out, "COUNT");
    hf__resp_arg_number(out, PAGE_KEYS);
    if (type) {
        hf__resp_arg_text(out, "TYPE");
        hf__resp_arg_text(out, type);
    }
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* What plain shows of one key: the value may be anybody's. */
static void on_plain(struct hf__redis *redis, const struct hf__redis_call *call,
                     struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value;
    struct hf__resp_value left;
    hf_lock_info row = {.role = HF_HOLDER,
                        .name = query->name,
                        .host = "",
                        .note = "",
                        .since_ms = -1,
                        .alive = 2};
    char record[HF__RECORD_TEXTS + HF__REDIS_TEXTS];
    char copy[HF__REDIS_TEXTS];
    size_t head = HF__RECORD_TICKET_WIDTH + 1;
    int rc = 0;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ true,
                                    &value))
        return;
    value = hf__resp_next(reply);
    left = hf__resp_next(reply);
    row.lease_ms = hf__resp_number(&left, -1);
    if (value.type == HF__RESP_TEXT) {
        size_t len =
            value.len < HF__REDIS_TEXTS - 1 ? value.len : HF__REDIS_TEXTS - 1;

        if (len > head && value.text[HF__RECORD_TICKET_WIDTH] == ':') {
            memset(record, '0', HF__RECORD_TEXTS);
            memcpy(record + HF__RECORD_TEXTS, value.text + head, len - head);
            hf__redis_tickets_record_read(record, HF__RECORD_TEXTS + len - head,
                                          copy, &row);
            row.mode = HF_EXCLUSIVE;
            row.slots = 0;
        } else {
            memcpy(copy, value.text, len);
            copy[len] = '\0';
            row.owner = copy;
        }
        rc = hf__query_add_lock(query, &row);
    }
    hf__up_answer(&redis->base, query, rc, /* err= */ NULL);
}

static int plain_show(struct hf__redis *redis, struct hf__query *query,
                      hf_error *err)
{
    struct hf__redis_call call = {.done = on_plain, .query = query};
    size_t mark;
    int rc = hf__redis_inspect_key(redis, query, &hf__redis_plain, err);

    if (rc != 0)
        return rc;
    mark = hf__redis_connection_eval_begin(redis, HF__SCRIPT_PLAIN_LOOK, 1, 0);
    hf__redis_inspect_put_key(redis);
    return hf__redis_connection_end(redis, mark, &call, err);
}

int hf__redis_inspect_list(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = on_look, .query = query};
    size_t mark;
    int rc;

    if (!hf__redis_is_up(redis))
        return hf__redis_not_up(redis, err);
    if (redis->dialect == &hf__redis_plain)
        return query->name
                   ? plain_show(redis, query, err)
                   : hf__fail(err, HF_EUNSUPPORTED,
                              "dialect=plain cannot tell locks from other "
                              "keys: ask for one name, by show");
    if (!query->name)
        return send_scan(redis, query, 0, err);
    rc = hf__redis_inspect_key(redis, query, redis->dialect, err);
    if (rc != 0)
        return rc;
    mark = hf__redis_connection_eval_begin(
        redis, redis->kind ? HF__SCRIPT_REDISSON_LOOK : HF__SCRIPT_NATIVE_LOOK,
        redis->kind ? 1 : 2, 0);
    hf__redis_inspect_put_key(redis);
    if (!redis->kind) {
        hf__buf_add(&redis->scratch, ":p");
        hf__redis_inspect_put_key(redis);
    }
    return hf__redis_connection_end(redis, mark, &call, err);
}

/* ---- tokens ------------------------------------------------------------ */

/* The holder has a range of tokens, or has not told its token yet. If the
 * holder is this client, it knows. */
static void check_own(struct hf__redis *redis, struct hf__query *query,
                      const struct hf__resp_value *value)
{
    struct hf__ticket *ticket = NULL;
    char number[13];

    if (value->len == 1 + HF__RECORD_TICKET_WIDTH &&
        memcmp(value->text + 1, redis->identity, 32) == 0) {
        memcpy(number, value->text + 33, 12);
        number[12] = '\0';
        ticket = hf__redis_tickets_find(redis, strtoull(number, NULL, 16));
    }
    if (!ticket || ticket->token == 0)
        hf__redis_inspect_text(
            redis, query, HF_EUNSUPPORTED,
            "the server learns its token with the next renewal; ask "
            "again then");
    else if (ticket->token == query->token)
        hf__up_answer(&redis->base, query, 0, /* err= */ NULL);
    else
        hf__redis_inspect_text(redis, query, HF_ECONFLICT,
                               "held under another token");
}

static void on_checked(struct hf__redis *redis,
                       const struct hf__redis_call *call,
                       struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value;

    if (!hf__redis_inspect_answered(redis, query, reply, /* list= */ false,
                                    &value))
        return;
    if (hf__resp_is(&value, "y"))
        hf__up_answer(&redis->base, query, 0, /* err= */ NULL);
    else if (hf__resp_is(&value, "n"))
        hf__redis_inspect_text(redis, query, HF_ENOTFOUND, "nobody holds it");
    else if (hf__resp_is(&value, "c"))
        hf__redis_inspect_text(redis, query, HF_ECONFLICT,
                               "held under another token");
    else if (value.type == HF__RESP_TEXT && value.len > 0 &&
             value.text[0] == 'u')
        check_own(redis, query, &value);
    else
        hf__redis_inspect_refused(redis, query, &value);
}

static int no_tokens(const struct hf__redis *redis, int code,
                     const char *advice, hf_error *err)
{
    return hf__fail(err, code, "dialect=%s%s%s has no tokens%s",
                    redis->dialect->name, redis->kind ? "&mode=" : "",
                    redis->kind ? redis->kind->mode : "", advice);
}

int hf__redis_inspect_check_token(struct hf__engine *engine,
                                  struct hf__query *query, hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = on_checked, .query = query};
    size_t mark;
    int rc;

    if ((engine->caps & HF_CAP_CHECK_TOKEN) == 0)
        return no_tokens(redis, HF_EUNSUPPORTED,
                         "; native has, and redisson with mode=fenced", err);
    rc = hf__redis_inspect_key(redis, query, redis->dialect, err);
    if (rc != 0)
        return rc;
    mark = hf__redis_connection_eval_begin(
        redis,
        redis->kind ? HF__SCRIPT_REDISSON_CHECK : HF__SCRIPT_NATIVE_CHECK, 1,
        1);
    hf__redis_inspect_put_key(redis);
    hf__resp_arg_number(&redis->stream.out, (int64_t)query->token);
    return hf__redis_connection_end(redis, mark, &call, err);
}

static void on_broken(struct hf__redis *redis,
                      const struct hf__redis_call *call, struct hf__resp *reply)
{
    struct hf__query *query = call->query;
    struct hf__resp_value value = hf__resp_first(reply);

    if (value.type == HF__RESP_ERROR)
        hf__redis_inspect_refused(redis, query, &value);
    else if (value.type != HF__RESP_NUMBER)
        hf__redis_inspect_unknown(redis, query);
    else if (value.number == 1)
        hf__up_answer(&redis->base, query, 0, /* err= */ NULL);
    else if (value.number == 0)
        hf__redis_inspect_text(redis, query, HF_ENOTFOUND, "nobody holds it");
    else
        hf__redis_inspect_text(redis, query, HF_ECONFLICT,
                               "held under another token or by another owner");
}

int hf__redis_inspect_break(struct hf__engine *engine, struct hf__query *query,
                            hf_error *err)
{
    struct hf__redis *redis = (struct hf__redis *)engine;
    struct hf__redis_call call = {.done = on_broken, .query = query};
    bool plain = redis->dialect == &hf__redis_plain;
    const char *owner = query->owner ? query->owner : "";
    size_t mark;
    int rc;

    if (!hf__redis_is_up(redis))
        return hf__redis_not_up(redis, err);
    if ((engine->caps & HF_CAP_FENCED) == 0 && query->token != 0)
        return no_tokens(redis, HF_ECONFLICT, ": name the owner", err);
    rc = hf__redis_inspect_key(redis, query, redis->dialect, err);
    if (rc != 0)
        return rc;
    if (redis->kind)
        return hf__redisson_inspect_break(redis, query, on_broken, err);
    mark = hf__redis_connection_eval_begin(
        redis, plain ? HF__SCRIPT_PLAIN_BREAK : HF__SCRIPT_NATIVE_BREAK, 1,
        plain ? 1 : 2);
    hf__redis_inspect_put_key(redis);
    if (!plain)
        hf__resp_arg_number(&redis->stream.out, (int64_t)query->token);
    hf__resp_arg_text(&redis->stream.out, owner);
    return hf__redis_connection_end(redis, mark, &call, err);
}
