/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - questions about locks in general: list, check, break.
 *
 * All three look at a lock in the same way: its children, then the data of each
 * of them. A barrier comes first, so that nothing is told that had been released
 * before. A list goes from lock to lock; the rows of one lock belong to about one
 * moment, the locks of one list do not.
 *
 * The children and what they say are read one after the other, so a child may
 * be gone when it is asked: it is left out. A token that was checked is of a
 * node that was there, and first, after the question had been asked.
 *
 * Failure: a lost connection or an error of the server is the answer.
 */
#include <stdlib.h>

#include "config/name.h"
#include "engines/common/holder.h"
#include "engines/zookeeper/inspect.h"
#include "engines/zookeeper/zookeeper.h"

static void job_free(struct hf__zk_inspect *job)
{
    hf__buf_release(&job->names);
    hf__buf_release(&job->conds);
    hf__zk_queue_release(&job->line);
    hf__free(job->dir);
    hf__free(job->children);
    hf__free(job);
}

void hf__zk_inspect_drop(struct hf__query *query)
{
    if (query && query->engine_data)
        job_free(query->engine_data);
    if (query)
        query->engine_data = NULL;
}

void hf__zk_inspect_finish(struct hf__zk *zk, struct hf__query *query, int rc,
                           const hf_error *err)
{
    struct hf__zk_inspect *job = query->engine_data;
    hf_error copy;

    if (err)
        copy = *err; /* it may be the job's */
    query->engine_data = NULL;
    job_free(job);
    hf__up_answer(&zk->base, query, rc, err ? &copy : NULL);
}

void hf__zk_inspect_lost(struct hf__zk *zk, struct hf__query *query)
{
    hf_error err;
    int rc = hf__zk_errors_lost(zk, &err);

    hf__zk_inspect_finish(zk, query, rc, &err);
}

static void finish_refused(struct hf__zk *zk, struct hf__query *query,
                           int32_t error)
{
    hf_error err;
    int rc = hf__zk_errors_read(zk, error, &err);

    hf__zk_inspect_finish(zk, query, rc, &err);
}

static void finish_text(struct hf__zk *zk, struct hf__query *query, int code,
                        const char *text)
{
    hf_error err;

    (void)hf__fail(&err, code, "'%s': %s", query->name, text);
    hf__zk_inspect_finish(zk, query, code, &err);
}

/* Are there children, or none, in @reply? If not, the question ends. */
bool hf__zk_inspect_answered(struct hf__zk *zk, const struct hf__zk_call *call,
                             const struct hf__zk_reply *reply)
{
    if (reply && (reply->error == HF__ZK_OK || reply->error == HF__ZK_NO_NODE))
        return true;
    if (reply)
        finish_refused(zk, call->query, reply->error);
    else
        hf__zk_inspect_lost(zk, call->query);
    return false;
}

/* ---- one lock ---------------------------------------------------------- */

static void on_broken(struct hf__zk *zk, const struct hf__zk_call *call,
                      struct hf__zk_reply *reply)
{
    if (!reply)
        finish_text(zk, call->query, HF_EUNKNOWN, "the answer was lost");
    else if (reply->error == HF__ZK_OK)
        hf__zk_inspect_finish(zk, call->query, 0, /* err= */ NULL);
    else if (reply->error == HF__ZK_NO_NODE)
        finish_text(zk, call->query, HF_ENOTFOUND, "it has just been released");
    else
        finish_refused(zk, call->query, reply->error);
}

/* A node is its grant: no other will ever have its name. */
static void break_it(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;
    struct hf__zk_call call = {.done = on_broken, .query = query};
    hf_error err;
    int rc = hf__zk_calls_delete(
        zk,
        hf__zk_nodes_below(zk, hf__zk_wire_text_of(job->dir),
                           job->line.all[job->match].name),
        &call, &err);

    if (rc != 0)
        hf__zk_inspect_finish(zk, query, rc, &err);
}

/* All that there is to know about the lock is known. */
static void judge(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;

    if (job->rc != 0)
        hf__zk_inspect_finish(zk, query, job->rc, &job->err);
    else if (!query->waiter)
        hf__zk_inspect_lost(zk,
                            query); /* nobody waits any more: it ends here */
    else if (job->what == HF__ZK_LIST)
        hf__zk_inspect_parked(zk, query);
    else if (!job->held)
        finish_text(zk, query, HF_ENOTFOUND, "nobody holds it");
    else if (job->match == job->line.n)
        finish_text(zk, query, HF_ECONFLICT, "held by another grant");
    else if (job->what == HF__ZK_CHECK_TOKEN)
        hf__zk_inspect_finish(zk, query, 0, /* err= */ NULL);
    else
        break_it(zk, query);
}

static void add_row(struct hf__query *query, uint32_t place,
                    struct hf__zk_wire_text data,
                    const struct hf__zk_wire_stat *stat)
{
    struct hf__zk_inspect *job = query->engine_data;
    const struct hf__zk_contender *it = &job->line.all[place];
    hf_lock_info row = {.name = job->name,
                        .token = (uint64_t)stat->czxid,
                        .lease_ms = -1,
                        .slots = INT32_MAX};
    char copy[HF__ZK_TEXTS];
    char node[256];
    bool first;

    (void)hf__zk_nodes_read(data, copy, &row);
    if (stat->owner != 0)
        row.alive = 1; /* its session is */
    if (row.owner[0] == '\0') {
        size_t len = it->name.len < 255 ? it->name.len : 255;

        memcpy(node, it->name.text, len);
        node[len] = '\0';
        row.owner = node;
    }
    row.mode = it->kind == HF__ZK_READ   ? HF_SHARED
               : it->kind == HF__ZK_SLOT ? HF_SLOT
                                         : HF_EXCLUSIVE;
    row.role = hf__zk_queue_blocker(&job->line, place, row.slots, &first) ==
                       job->line.n
                   ? HF_HOLDER
                   : HF_WAITER;
    row.slots = row.mode == HF_SLOT && row.slots != INT32_MAX ? row.slots : 0;
    row.since_ms = hf__holder_age_ms(stat->ctime_ms);
    if (row.role == HF_WAITER) {
        row.place = ++job->waiters;
        row.token = 0;
        row.lease_ms = -1;
    } else {
        job->held = true;
        if (query->token != 0
                ? row.token == query->token
                : query->owner && strcmp(row.owner, query->owner) == 0)
            job->match = place;
    }
    if (job->what == HF__ZK_LIST && job->rc == 0)
        job->rc = hf__query_add_lock(query, &row);
    if (job->rc == HF_ENOMEM)
        (void)hf__fail(&job->err, HF_ENOMEM, "out of memory");
}

void hf__zk_inspect_node(struct hf__zk *zk, const struct hf__zk_call *call,
                         struct hf__zk_reply *reply, hf__zk_inspect_add_fn *add)
{
    struct hf__zk_inspect *job = call->query->engine_data;
    struct hf__zk_wire_text data;
    struct hf__zk_wire_stat stat;

    job->left--;
    if (!reply) {
        job->rc = hf__zk_errors_lost(zk, &job->err);
    } else if (reply->error == HF__ZK_OK) {
        data = hf__zk_wire_text(&reply->in);
        hf__zk_wire_stat(&reply->in, &stat);
        add(call->query, (uint32_t)call->number, data, &stat);
    } else if (reply->error != HF__ZK_NO_NODE) {
        job->rc = hf__zk_errors_read(zk, reply->error, &job->err);
    }
}

static void on_data(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    const struct hf__zk_inspect *job = call->query->engine_data;

    hf__zk_inspect_node(zk, call, reply, add_row);
    if (job->left == 0)
        judge(zk, call->query);
}

/* Ask all contenders who they are, in one trip. */
static void ask_all(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;

    for (uint32_t i = 0;
         i < job->line.n && job->rc == 0 && job->asked < HF__ZK_ROWS; i++) {
        struct hf__zk_call call = {
            .done = on_data, .query = query, .number = (int32_t)i};

        job->rc = hf__zk_calls_ask(
            zk, HF__ZK_GET_DATA,
            hf__zk_nodes_below(zk, hf__zk_wire_text_of(job->dir),
                               job->line.all[i].name),
            /* watch= */ false, &call, &job->err);
        job->asked += job->rc == 0;
        job->left += job->rc == 0;
    }
    if (job->left == 0)
        judge(zk, query);
}

void hf__zk_inspect_read_line(struct hf__zk *zk, struct hf__zk_inspect *job,
                              struct hf__zk_reply *reply)
{
    size_t len = (size_t)(reply->in.end - reply->in.at);

    hf__zk_queue_release(&job->line);
    hf__free(job->children);
    job->children =
        reply->error == HF__ZK_OK && len > 0 ? hf__malloc(len) : NULL;
    if (job->children) {
        struct hf__zk_wire in = {job->children, job->children + len, false};

        memcpy(job->children, reply->in.at, len);
        job->rc = hf__zk_queue_read(&job->line, &in);
    } else if (reply->error == HF__ZK_OK) {
        job->rc = HF_ENOMEM;
    }
    if (job->rc != 0)
        (void)hf__fail(&job->err, job->rc,
                       "%s: the list of children cannot be read", zk->peer);
}

static void on_lock(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__zk_inspect *job = call->query->engine_data;

    if (!hf__zk_inspect_answered(zk, call, reply))
        return;
    hf__zk_inspect_read_line(zk, job, reply);
    job->match = job->line.n;
    ask_all(zk, call->query);
}

/* Look at job->name. */
static int ask_lock(struct hf__zk *zk, struct hf__query *query, hf_error *err)
{
    struct hf__zk_inspect *job = query->engine_data;
    struct hf__zk_call call = {.done = on_lock, .query = query};
    struct hf__zk_wire_text dir;

    hf__free(job->dir);
    (void)hf__zk_nodes_path(zk, /* beside= */ "", job->name, strlen(job->name));
    if (zk->dialect->semaphore)
        hf__buf_add(&zk->scratch, "/leases");
    dir = hf__zk_nodes_spelled(zk);
    job->dir = dir.text ? hf__strndup(dir.text, dir.len) : NULL;
    if (!job->dir)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    job->held = false;
    job->waiters = 0;
    return hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN, dir, /* watch= */ false,
                            &call, err);
}

/* ---- all locks --------------------------------------------------------- */

/* The name of the lock whose node is @child; false if it is none of ours, or
 * not asked for. */
static bool name_of_child(const struct hf__zk *zk,
                          const struct hf__query *query,
                          struct hf__zk_wire_text child,
                          char to[HF_NAME_MAX + 1])
{
    return hf__zk_nodes_name(zk, child, to) &&
           strncmp(to, query->prefix, strlen(query->prefix)) == 0;
}

void hf__zk_inspect_next(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_inspect *job = query->engine_data;
    hf_error err;
    int rc;

    if (job->names_at >= job->names.len || job->asked >= HF__ZK_ROWS) {
        hf__zk_inspect_finish(zk, query, 0, /* err= */ NULL);
        return;
    }
    hf__text_copy(job->name, sizeof(job->name),
                  job->names.text + job->names_at);
    job->names_at += strlen(job->names.text + job->names_at) + 1;
    rc = ask_lock(zk, query, &err);
    if (rc != 0)
        hf__zk_inspect_finish(zk, query, rc, &err);
}

static hf__zk_reply_fn on_root;

/* A lock whose waiters are all parked may have no node of its own. */
static void ask_conditions(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_call call = {.done = on_root, .query = query, .number = 1};
    hf_error err;
    int rc = hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN,
                              hf__zk_nodes_below(zk, hf__zk_nodes_root(zk),
                                                 hf__zk_wire_text_of("~cond")),
                              /* watch= */ false, &call, &err);

    if (rc != 0)
        hf__zk_inspect_finish(zk, query, rc, &err);
}

static bool is_listed(const struct hf__zk_inspect *job, const char *name)
{
    for (size_t at = 0; at < job->names.len;
         at += strlen(job->names.text + at) + 1) {
        if (strcmp(job->names.text + at, name) == 0)
            return true;
    }
    return false;
}

/* The names of all locks, then those of the locks that have conditions
 * (call->number): most of these are known already. */
static void on_root(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply)
{
    struct hf__zk_inspect *job = call->query->engine_data;
    char name[HF_NAME_MAX + 1];
    uint32_t count;

    if (!hf__zk_inspect_answered(zk, call, reply))
        return;
    count = reply->error == HF__ZK_OK ? hf__zk_wire_count(&reply->in, 4) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (name_of_child(zk, call->query, hf__zk_wire_text(&reply->in),
                          name) &&
            (call->number == 0 || !is_listed(job, name)))
            hf__buf_append(&job->names, name, strlen(name) + 1);
    }
    if (hf__buf_failed(&job->names)) {
        (void)hf__fail(&job->err, HF_ENOMEM, "out of memory");
        hf__zk_inspect_finish(zk, call->query, HF_ENOMEM, &job->err);
        return;
    }
    if (call->number == 0 && (zk->base.caps & HF_CAP_CONDITIONS))
        ask_conditions(zk, call->query);
    else
        hf__zk_inspect_next(zk, call->query);
}

/* ---- the questions ----------------------------------------------------- */

static int start(struct hf__engine *engine, struct hf__query *query,
                 enum hf__zk_inspect_what what, hf_error *err)
{
    struct hf__zk *zk = (struct hf__zk *)engine;
    struct hf__zk_call call = {.done = on_root, .query = query};
    struct hf__zk_inspect *job;
    int rc;

    job = hf__calloc(1, sizeof(*job));
    if (!job)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    job->what = what;
    query->engine_data = job;
    rc = hf__zk_calls_barrier(zk, err);
    if (rc == 0 && query->name) {
        hf__text_copy(job->name, sizeof(job->name), query->name);
        rc = ask_lock(zk, query, err);
    } else if (rc == 0) {
        rc = hf__zk_calls_ask(zk, HF__ZK_GET_CHILDREN,
                              hf__zk_wire_text_of(zk->top),
                              /* watch= */ false, &call, err);
    }
    if (rc != 0) {
        query->engine_data = NULL;
        job_free(job);
    }
    return rc;
}

int hf__zk_inspect_list(struct hf__engine *engine, struct hf__query *query,
                        hf_error *err)
{
    return start(engine, query, HF__ZK_LIST, err);
}

int hf__zk_inspect_check(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return start(engine, query, HF__ZK_CHECK_TOKEN, err);
}

int hf__zk_inspect_break(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return start(engine, query, HF__ZK_BREAK, err);
}
