/* SPDX-License-Identifier: MIT */
/*
 * inspect_parked.c - the rows of those who are parked.
 *
 * Behind the rows of a lock come those of its conditions, one condition after
 * the other: its records and stamps, then the data of each record that is not
 * called. Who is called stands in the lock's line, or is about to.
 *
 * Failure: as of every list, the answer of the question.
 */
#include "config/name.h"
#include "engines/common/holder.h"
#include "engines/zookeeper/inspect.h"
#include "engines/zookeeper/zookeeper.h"

static void next_condition(struct hf__zk *zk, struct hf__query *query);

static void fail(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;

    hf__zk_inspect_finish(zk, query, job->rc, &job->err);
}

/* ROOT/~cond/NAME, or with @cond ROOT/~cond/NAME/COND, or with @record that and
 * its name. */
static struct hf__zk_wire_text spell(struct hf__zk *zk,
                                     const struct hf__zk_inspect *job,
                                     const char *cond,
                                     const struct hf__zk_contender *record)
{
    char encoded[3 * HF_COND_MAX + 1];

    (void)hf__zk_nodes_path(zk, "/~cond", job->name, strlen(job->name));
    if (cond) {
        hf__buf_add_char(&zk->scratch, '/');
        hf__buf_append(
            &zk->scratch, encoded,
            hf__name_encode(cond, strlen(cond), encoded, sizeof(encoded)));
    }
    if (record) {
        hf__buf_add_char(&zk->scratch, '/');
        hf__buf_append(&zk->scratch, record->name.text, record->name.len);
    }
    return hf__zk_nodes_spelled(zk);
}

static void add_row(struct hf__query *query, uint32_t place,
                    struct hf__zk_wire_text data,
                    const struct hf__zk_wire_stat *stat)
{
    struct hf__zk_inspect *job = query->engine_data;
    hf_lock_info row = {.name = job->name,
                        .cond = job->cond,
                        .role = HF_PARKED,
                        .mode = HF_EXCLUSIVE,
                        .place = place - job->called + 1};
    char copy[HF__ZK_TEXTS];

    (void)hf__zk_nodes_read(data, copy, &row);
    row.token = 0;
    row.slots = 0;
    row.alive = HF_ALIVE_YES; /* its session is */
    row.since_ms = hf__holder_age_ms(stat->ctime_ms);
    if (job->rc == 0)
        job->rc = hf__query_add_lock(query, &row);
    if (job->rc != 0)
        (void)hf__fail(&job->err, job->rc, "out of memory");
}

/* All records of the condition have answered: the next one. */
static void go_on(struct hf__zk *zk, struct hf__query *query)
{
    const struct hf__zk_inspect *job = query->engine_data;

    if (job->left > 0)
        return;
    if (job->rc != 0)
        fail(zk, query);
    else
        next_condition(zk, query);
}

static void on_record(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    hf__zk_inspect_node(zk, call, reply, add_row);
    go_on(zk, call->query);
}

/* Ask all that are not called who they are, in one trip. */
static void ask_records(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;

    for (uint32_t i = job->called;
         i < job->line.n && job->rc == 0 && job->asked < HF__ZK_ROWS; i++) {
        struct hf__zk_call call = {
            .done = on_record, .query = query, .number = (int32_t)i};

        job->rc = hf__zk_calls_ask(zk, HF__ZK_GET_DATA,
                                   spell(zk, job, job->cond, &job->line.all[i]),
                                   /* watch= */ false, &call, &job->err);
        job->asked += job->rc == 0;
        job->left += job->rc == 0;
    }
    go_on(zk, query);
}

/* How many of the line are called, by the stamps in @data. */
static int count_called(struct hf__zk_inspect *job,
                        struct hf__zk_wire_text data)
{
    int32_t first = job->line.n > 0 ? job->line.all[0].sequence : 0;
    uint64_t *made = hf__malloc((job->line.n + (size_t)1) * sizeof(*made));
    struct hf__condition wakes = {0};
    int rc = made ? hf__zk_condition_read(&wakes, data, first) : HF_ENOMEM;

    for (uint32_t i = 0; i < job->line.n && rc == 0; i++)
        made[i] = hf__zk_condition_number(job->line.all[i].sequence, first);
    if (rc == 0)
        job->called = (uint32_t)hf__condition_called(&wakes, made, job->line.n);
    hf__condition_release(&wakes);
    hf__free(made);
    return rc;
}

static void on_stamps(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    struct hf__zk_inspect *job = call->query->engine_data;

    if (!hf__zk_inspect_answered(zk, call, reply))
        return;
    job->called = 0;
    if (job->rc == 0 && reply->error == HF__ZK_OK)
        job->rc = count_called(job, hf__zk_wire_text(&reply->in));
    if (job->rc != 0) {
        (void)hf__fail(&job->err, job->rc,
                       "%s: the condition '%s' of '%s' cannot be read",
                       zk->peer, job->cond, job->name);
        fail(zk, call->query);
        return;
    }
    ask_records(zk, call->query);
}

static void on_records(struct hf__zk *zk, const struct hf__zk_call *call,
                       struct hf__zk_reply *reply)
{
    struct hf__zk_inspect *job = call->query->engine_data;
    struct hf__zk_call stamps = {.done = on_stamps, .query = call->query};

    if (!hf__zk_inspect_answered(zk, call, reply))
        return;
    hf__zk_inspect_read_line(zk, job, reply);
    if (job->rc == 0)
        job->rc = hf__zk_calls_ask(
            zk, HF__ZK_GET_DATA, spell(zk, job, job->cond, /* record= */ NULL),
            /* watch= */ false, &stamps, &job->err);
    if (job->rc != 0)
        fail(zk, call->query);
}

/* The records of @cond, or, if it is NULL, the lock's conditions. */
static void ask_children(struct hf__zk *zk, struct hf__query *query,
                         const char *cond, hf__zk_reply_fn *done)
{
    struct hf__zk_inspect *job = query->engine_data;
    struct hf__zk_call call = {.done = done, .query = query};

    job->rc = hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN,
                               spell(zk, job, cond, /* record= */ NULL),
                               /* watch= */ false, &call, &job->err);
    if (job->rc != 0)
        fail(zk, query);
}

static void next_condition(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;

    if (job->conds_at >= job->conds.len || job->asked >= HF__ZK_ROWS ||
        !hf__query_wanted(query)) {
        hf__zk_inspect_next(zk, query);
        return;
    }
    job->asked++; /* for its stamps */
    hf__text_copy(job->cond, sizeof(job->cond),
                  job->conds.text + job->conds_at);
    job->conds_at += strlen(job->conds.text + job->conds_at) + 1;
    ask_children(zk, query, job->cond, on_records);
}

static void on_conditions(struct hf__zk *zk, const struct hf__zk_call *call,
                          struct hf__zk_reply *reply)
{
    struct hf__zk_inspect *job = call->query->engine_data;
    uint32_t count;

    if (!hf__zk_inspect_answered(zk, call, reply))
        return;
    count = reply->error == HF__ZK_OK ? hf__zk_wire_count(&reply->in, 4) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct hf__zk_wire_text child = hf__zk_wire_text(&reply->in);
        char cond[HF_COND_MAX + 1];
        size_t n = hf__name_decode(child.text, child.len, cond, sizeof(cond));

        cond[n] = '\0';
        if (n > 0)
            hf__buf_append(&job->conds, cond, n + 1);
    }
    if (hf__buf_failed(&job->conds)) {
        job->rc = hf__fail(&job->err, HF_ENOMEM, "out of memory");
        fail(zk, call->query);
    } else {
        next_condition(zk, call->query);
    }
}

void hf__zk_inspect_parked(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;

    if (!(zk->base.caps & HF_CAP_CONDITIONS)) {
        hf__zk_inspect_next(zk, query);
        return;
    }
    job->conds.len = 0;
    job->conds_at = 0;
    ask_children(zk, query, /* cond= */ NULL, on_conditions);
}
