/* SPDX-License-Identifier: MIT */
/*
 * board.c - the board: ROOT/.waits, whose data is the number of this store, and
 * under it an ephemeral node for each client that has a notice.
 *
 * To post is to write the node, or to make it, or first the one above it; then
 * the number is read. To read is to list the children, and to ask all of them
 * in one trip; one that is gone by then is left out.
 *
 * Clients of one board may have different prefixes of names: each prefix makes
 * another number of it.
 *
 * Failure: a lost connection or an error of the server is the answer.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/zookeeper/zookeeper.h"

enum { NOTICES_MAX = 300, STEPS_MAX = 8 };

static void answer_lost(struct hf__zk *zk, struct hf__query *query)
{
    hf_error err;
    int rc = hf__zk_errors_lost(zk, &err);

    hf__up_answer(&zk->base, query, rc, &err);
}

static void answer_refused(struct hf__zk *zk, struct hf__query *query,
                           int32_t error)
{
    hf_error err;
    int rc = hf__zk_errors_read(zk, error, &err);

    hf__up_answer(&zk->base, query, rc, &err);
}

/* What could not be sent ends the question. */
static void answer_unsent(struct hf__zk *zk, struct hf__query *query, int rc,
                          const hf_error *err)
{
    if (rc != 0)
        hf__up_answer(&zk->base, query, rc, err);
}

/* ROOT/.waits, or the node of @child there, in zk->scratch. */
static int board_path(struct hf__zk *zk, const char *child, size_t len,
                      hf_error *err)
{
    if (!hf__zk_connection_is_up(zk))
        return hf__zk_errors_not_up(zk, err);
    zk->scratch.len = 0;
    hf__buf_append(&zk->scratch, zk->root, zk->root_len);
    hf__buf_add(&zk->scratch, "/.waits");
    if (len > 0) {
        hf__buf_add_char(&zk->scratch, '/');
        hf__buf_append(&zk->scratch, child, len);
    }
    if (!hf__buf_failed(&zk->scratch))
        return 0;
    hf__buf_release(&zk->scratch);
    return hf__fail(err, HF_ENOMEM, "out of memory");
}

/* The number in @data, for our prefix; 0: there is none. */
static uint64_t read_number(const struct hf__zk *zk,
                            struct hf__zk_wire_text data)
{
    const char *prefix = zk->base.host->settings->prefix;
    char digits[17] = "";
    uint64_t key[2];
    char *end;

    if (data.len == 0 || data.len >= sizeof(digits))
        return 0;
    memcpy(digits, data.text, data.len);
    key[0] = key[1] = strtoull(digits, &end, 16);
    if (*end != '\0' || key[0] == 0)
        return 0;
    return prefix[0] == '\0' ? key[0]
                             : hf__name_hash(prefix, strlen(prefix), key) | 1;
}

/* ---- posting ----------------------------------------------------------------- */

static hf__zk_reply_fn on_written;
static hf__zk_reply_fn on_above;
static hf__zk_reply_fn on_number;

/* Each step is one more: a server that sends us round and round is cut off. */
static struct hf__zk_call next_call(struct hf__query *query,
                                    const struct hf__zk_call *before,
                                    hf__zk_reply_fn *done)
{
    return (struct hf__zk_call){.done = done,
                                .query = query,
                                .number = before ? before->number + 1 : 0};
}

static int write_notice(struct hf__zk *zk, struct hf__query *query,
                        hf_error *err)
{
    struct hf__zk_call call = next_call(query, /* before= */ NULL, on_written);
    size_t mark;
    int rc = board_path(zk, query->owner, strlen(query->owner), err);

    if (rc != 0)
        return rc;
    if (!query->text)
        return hf__zk_calls_delete(zk, zk->scratch.text, zk->scratch.len, &call,
                                   err);
    mark = hf__zk_calls_begin(zk, HF__ZK_SET_DATA);
    hf__zk_wire_put_text(&zk->stream.out, zk->scratch.text, zk->scratch.len);
    hf__zk_wire_put_text(&zk->stream.out, query->text, strlen(query->text));
    hf__zk_wire_put_int(&zk->stream.out, -1);
    return hf__zk_calls_end(zk, mark, &call, err);
}

static int make_notice(struct hf__zk *zk, const struct hf__zk_call *before,
                       hf_error *err)
{
    struct hf__query *query = before->query;
    struct hf__zk_call call = next_call(query, before, on_written);
    struct hf__buf data = {.text = (char *)(uintptr_t)query->text,
                           .len = strlen(query->text)};
    int rc = board_path(zk, query->owner, strlen(query->owner), err);

    return rc != 0 ? rc
                   : hf__zk_calls_create(zk, zk->scratch.text, zk->scratch.len,
                                         &data, HF__ZK_EPHEMERAL, &call, err);
}

static int make_board(struct hf__zk *zk, const struct hf__zk_call *before,
                      hf_error *err)
{
    struct hf__zk_call call = next_call(before->query, before, on_above);
    struct hf__buf data = {0};
    uint64_t number;
    int rc = board_path(zk, "", 0, err);

    if (rc == 0 && hf__world->random(&number, sizeof(number)) != 0)
        rc = hf__fail(err, HF_EINTERNAL, "no random numbers");
    if (rc != 0)
        return rc;
    hf__buf_printf(&data, "%llx", (unsigned long long)(number | 1));
    rc = hf__buf_failed(&data)
             ? hf__fail(err, HF_ENOMEM, "out of memory")
             : hf__zk_calls_create(zk, zk->scratch.text, zk->scratch.len, &data,
                                   HF__ZK_PERSISTENT, &call, err);
    hf__buf_release(&data);
    return rc;
}

static int ask_number(struct hf__zk *zk, const struct hf__zk_call *before,
                      hf_error *err)
{
    struct hf__zk_call call = next_call(before->query, before, on_number);
    int rc = board_path(zk, "", 0, err);

    return rc != 0 ? rc
                   : hf__zk_calls_ask(zk, HF__ZK_GET_DATA, zk->scratch.text,
                                      zk->scratch.len, /* watch= */ false,
                                      &call, err);
}

/* Is there an answer that the next step can be made of? @also: an error that it
 * is, too. Otherwise the question is answered. */
static bool goes_on(struct hf__zk *zk, const struct hf__zk_call *call,
                    const struct hf__zk_reply *reply, int32_t also)
{
    if (!reply)
        answer_lost(zk, call->query);
    else if (call->number >= STEPS_MAX ||
             (reply->error != HF__ZK_OK && reply->error != also))
        answer_refused(zk, call->query, reply->error);
    else
        return true;
    return false;
}

/* The notice was written, made or deleted. */
static void on_written(struct hf__zk *zk, const struct hf__zk_call *call,
                       struct hf__zk_reply *reply)
{
    bool first = call->number == 0;
    hf_error err;
    int rc;

    if (!goes_on(zk, call, reply, HF__ZK_NO_NODE))
        return;
    if (reply->error == HF__ZK_OK || !call->query->text)
        rc = ask_number(zk, call, &err);
    else if (first)
        rc = make_notice(zk, call, &err);
    else
        rc = make_board(zk, call, &err);
    answer_unsent(zk, call->query, rc, &err);
}

/* The board was made, or somebody else was quicker. */
static void on_above(struct hf__zk *zk, const struct hf__zk_call *call,
                     struct hf__zk_reply *reply)
{
    hf_error err;
    int rc;

    if (!goes_on(zk, call, reply, HF__ZK_NODE_EXISTS))
        return;
    rc = call->query->text ? make_notice(zk, call, &err)
                           : ask_number(zk, call, &err);
    answer_unsent(zk, call->query, rc, &err);
}

static void on_number(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    struct hf__query *query = call->query;
    hf_error err;

    if (!goes_on(zk, call, reply, HF__ZK_NO_NODE))
        return;
    if (reply->error == HF__ZK_NO_NODE) {
        answer_unsent(zk, query, make_board(zk, call, &err), &err);
        return;
    }
    query->version = read_number(zk, hf__zk_wire_text(&reply->in));
    if (query->version == 0)
        answer_unsent(zk, query,
                      hf__fail(&err, HF_EUNAVAILABLE,
                               "%s: the data of the board is not ours",
                               zk->peer),
                      &err);
    else
        hf__up_answer(&zk->base, query, 0, /* err= */ NULL);
}

/* Other programs' layouts do not say which process a node is of. */
static int check_dialect(const struct hf__zk *zk, hf_error *err)
{
    if (zk->dialect == &hf__zk_nodes_dialects[0])
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "dialect=%s cannot tell which waiters wait for one another",
                    zk->dialect->name);
}

int hf__zk_board_post(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    int rc = check_dialect(zk, err);

    return rc != 0 ? rc : write_notice(zk, query, err);
}

/* ---- reading ------------------------------------------------------------------ */

/* While it is under way query->token counts the answers that are to come. */

static void on_notice(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__zk_wire_text data;

    query->token--;
    if (reply && reply->error == HF__ZK_OK) {
        data = hf__zk_wire_text(&reply->in);
        (void)hf__query_add_notice(query, data.text, data.len);
    }
    if (query->token > 0)
        return;
    if (reply)
        hf__up_answer(&zk->base, query, 0, /* err= */ NULL);
    else
        answer_lost(zk, query);
}

static int ask_notice(struct hf__zk *zk, struct hf__query *query,
                      struct hf__zk_wire_text child, hf_error *err)
{
    struct hf__zk_call call = {.done = on_notice, .query = query};
    int rc = board_path(zk, child.text, child.len, err);

    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_GET_DATA, zk->scratch.text,
                              zk->scratch.len, /* watch= */ false, &call, err);
    if (rc == 0)
        query->token++;
    return rc;
}

static void on_children(struct hf__zk *zk, const struct hf__zk_call *call,
                        struct hf__zk_reply *reply)
{
    struct hf__query *query = call->query;
    uint32_t n;
    hf_error err;
    int rc = 0;

    if (!goes_on(zk, call, reply, HF__ZK_NO_NODE))
        return;
    n = reply->error == HF__ZK_OK ? hf__zk_wire_count(&reply->in, 4) : 0;
    query->token = 0;
    for (uint32_t i = 0; i < n && i < NOTICES_MAX && rc == 0; i++) {
        struct hf__zk_wire_text child = hf__zk_wire_text(&reply->in);

        if (!reply->in.bad && child.len == 32)
            rc = ask_notice(zk, query, child, &err);
    }
    if (query->token == 0)
        hf__up_answer(&zk->base, query, rc, rc != 0 ? &err : NULL);
}

static void on_board(struct hf__zk *zk, const struct hf__zk_call *call,
                     struct hf__zk_reply *reply)
{
    struct hf__query *query = call->query;
    struct hf__zk_call next = {.done = on_children, .query = query};
    hf_error err;
    int rc;

    if (!goes_on(zk, call, reply, HF__ZK_NO_NODE))
        return;
    if (reply->error == HF__ZK_OK)
        query->version = read_number(zk, hf__zk_wire_text(&reply->in));
    if (query->version == 0) { /* nobody has posted yet */
        hf__up_answer(&zk->base, query, 0, /* err= */ NULL);
        return;
    }
    rc = board_path(zk, "", 0, &err);
    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN, zk->scratch.text,
                              zk->scratch.len, /* watch= */ false, &next, &err);
    answer_unsent(zk, query, rc, &err);
}

int hf__zk_board_read(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_call call = {.done = on_board, .query = query};
    int rc = check_dialect(zk, err);

    if (rc == 0)
        rc = board_path(zk, "", 0, err);
    if (rc == 0)
        rc = hf__zk_calls_sync(zk, err);
    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_GET_DATA, zk->scratch.text,
                              zk->scratch.len, /* watch= */ false, &call, err);
    return rc;
}
