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
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/zookeeper/zookeeper.h"

enum { NOTICES_MAX = 300, STEPS_MAX = 8 };

/* What could not be sent ends the question. */
static void answer_unsent(struct hf__zk *zk, struct hf__query *query, int rc,
                          const hf_error *err)
{
    if (rc != 0)
        hf__up_answer(&zk->base, query, rc, err);
}

/* ROOT/.waits, or the node of @child there. */
static struct hf__zk_wire_text board_path(struct hf__zk *zk,
                                          struct hf__zk_wire_text child)
{
    struct hf__buf *path = hf__zk_nodes_begin(zk);

    hf__buf_add(path, child.len > 0 ? "/.waits/" : "/.waits");
    hf__buf_append(path, child.text, child.len);
    return hf__zk_nodes_spelled(zk);
}

static struct hf__zk_wire_text own_path(struct hf__zk *zk,
                                        const struct hf__query *query)
{
    return board_path(zk, hf__zk_wire_text_of(query->owner));
}

static struct hf__zk_wire_text whole_path(struct hf__zk *zk)
{
    return board_path(zk, hf__zk_wire_text_of(""));
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

    if (!query->text)
        return hf__zk_calls_delete(zk, own_path(zk, query), &call, err);
    return hf__zk_calls_set(zk, own_path(zk, query),
                            hf__zk_wire_text_of(query->text),
                            HF__ZK_ANY_VERSION, &call, err);
}

static int make_notice(struct hf__zk *zk, const struct hf__zk_call *before,
                       hf_error *err)
{
    struct hf__query *query = before->query;
    struct hf__zk_call call = next_call(query, before, on_written);

    return hf__zk_calls_create(zk, own_path(zk, query),
                               hf__zk_wire_text_of(query->text),
                               HF__ZK_EPHEMERAL, &call, err);
}

static int make_board(struct hf__zk *zk, const struct hf__zk_call *before,
                      hf_error *err)
{
    struct hf__zk_call call = next_call(before->query, before, on_above);
    char digits[17];
    uint64_t number;

    if (hf__world->random(&number, sizeof(number)) != 0)
        return hf__fail(err, HF_EINTERNAL, "no random numbers");
    (void)snprintf(digits, sizeof(digits), "%" PRIx64, number | 1);
    return hf__zk_calls_create(zk, whole_path(zk), hf__zk_wire_text_of(digits),
                               HF__ZK_PERSISTENT, &call, err);
}

static int ask_number(struct hf__zk *zk, const struct hf__zk_call *before,
                      hf_error *err)
{
    struct hf__zk_call call = next_call(before->query, before, on_number);

    return hf__zk_calls_ask(zk, HF__ZK_GET_DATA, whole_path(zk),
                            /* watch= */ false, &call, err);
}

/* Is there an answer that the next step can be made of? @also: an error that it
 * is, too. Otherwise the question is answered. */
static bool goes_on(struct hf__zk *zk, const struct hf__zk_call *call,
                    const struct hf__zk_reply *reply, int32_t also)
{
    if (reply && call->number < STEPS_MAX &&
        (reply->error == HF__ZK_OK || reply->error == also))
        return true;
    hf__zk_errors_answer(zk, call->query, reply);
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
        hf__zk_errors_answer(zk, query, reply);
}

static int ask_notice(struct hf__zk *zk, struct hf__query *query,
                      struct hf__zk_wire_text child, hf_error *err)
{
    struct hf__zk_call call = {.done = on_notice, .query = query};
    int rc = hf__zk_calls_ask(zk, HF__ZK_GET_DATA, board_path(zk, child),
                              /* watch= */ false, &call, err);

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
    rc = hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN, whole_path(zk),
                          /* watch= */ false, &next, &err);
    answer_unsent(zk, query, rc, &err);
}

int hf__zk_board_read(struct hf__engine *engine, struct hf__query *query,
                      hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_call call = {.done = on_board, .query = query};
    int rc = check_dialect(zk, err);

    if (rc == 0)
        rc = hf__zk_calls_sync(zk, err);
    if (rc == 0)
        rc = hf__zk_calls_ask(zk, HF__ZK_GET_DATA, whole_path(zk),
                              /* watch= */ false, &call, err);
    return rc;
}
