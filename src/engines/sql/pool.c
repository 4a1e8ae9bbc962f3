/* SPDX-License-Identifier: MIT */
/*
 * pool.c - connections for locks that need one of their own.
 *
 * First come, first served: a connection that comes back goes to the first
 * want in line, and becomes idle only if there is none. A connection
 * that is being opened belongs to no want: whichever is ready first serves
 * the first want, so that a slow server delays no want that could be served by a
 * release. Of the idle ones the last used is taken first; the others age and
 * are the ones that pool.max_idle closes.
 *
 * Failure: a connection that cannot be opened fails one want, the first; a want
 * that has waited for pool.wait fails with HF_EUNAVAILABLE, which the core
 * tries again for as long as its caller waits.
 */
#include "engines/sql/pool.h"

#include "base/world.h"

void hf__sql_pool_init(struct hf__sql_pool *pool,
                       const struct hf__sql_pool_ops *ops, void *owner,
                       const struct hf__settings *settings)
{
    pool->ops = ops;
    pool->owner = owner;
    pool->settings = settings;
    hf__list_init(&pool->all);
    hf__list_init(&pool->idle);
    hf__list_init(&pool->line);
}

static void enter(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    hf__list_init(&link->idle);
    hf__list_append(&pool->all, &link->all);
    link->opening = true;
    pool->n++;
    pool->n_opening++;
}

static void set_idle(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    hf__list_append(pool->idle.next, &link->idle);
    pool->n_idle++;
}

static void unset_idle(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    if (hf__list_empty(&link->idle))
        return;
    hf__list_remove(&link->idle);
    pool->n_idle--;
}

static void unset_opening(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    pool->n_opening -= link->opening;
    link->opening = link->testing = false;
}

static void leave(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    unset_idle(pool, link);
    unset_opening(pool, link);
    hf__list_remove(&link->all);
    pool->n--;
}

static struct hf__sql_want *step_out(struct hf__sql_pool *pool)
{
    struct hf__list *first = hf__list_first(&pool->line);

    if (!first)
        return NULL;
    hf__list_remove(first);
    pool->n_line--;
    return HF_CONTAINER_OF(first, struct hf__sql_want, link);
}

/* ---- taking ------------------------------------------------------------ */

/* An idle one, or NULL. One that must be tested first counts as being opened. */
static struct hf__sql_link *take_idle(struct hf__sql_pool *pool)
{
    while (!hf__list_empty(&pool->idle)) {
        struct hf__sql_link *link = HF_CONTAINER_OF(hf__list_first(&pool->idle),
                                                    struct hf__sql_link, idle);

        unset_idle(pool, link);
        if (!pool->settings->pool_check)
            return link;
        leave(pool, link);
        if (pool->ops->check(pool->owner, link) == 0) {
            enter(pool, link);
            link->testing = true;
            return NULL;
        }
    }
    return NULL;
}

/* May one more be opened, and is one needed? */
static bool may_open(const struct hf__sql_pool *pool)
{
    return pool->settings->pool_exhausted == HF__POOL_GROW ||
           pool->n < (uint32_t)pool->settings->pool_max;
}

static void stand_in_line(struct hf__sql_pool *pool, struct hf__sql_want *want)
{
    int64_t wait_ms = pool->settings->pool_wait_ms;

    want->until_ns =
        wait_ms == HF_FOREVER ? HF_NEVER : hf__now() + hf__ms_to_ns(wait_ms);
    hf__list_append(&pool->line, &want->link);
    pool->n_line++;
    if (want->until_ns != HF_NEVER)
        pool->ops->wake(pool->owner, want->until_ns);
}

int hf__sql_pool_take(struct hf__sql_pool *pool, struct hf__sql_want *want,
                      hf_error *err)
{
    struct hf__sql_link *link = take_idle(pool);

    if (link) {
        want->got(want, link, NULL);
        return 0;
    }
    if (pool->n_opening <= pool->n_line && may_open(pool)) {
        link = pool->ops->open(pool->owner, err);
        if (!link)
            return err ? err->code : HF_EUNAVAILABLE;
        enter(pool, link);
    } else if (pool->n_opening <= pool->n_line &&
               pool->settings->pool_exhausted == HF__POOL_FAIL) {
        return hf__fail(err, HF_EUNAVAILABLE,
                        "all %d connections are in use (pool.max)",
                        pool->settings->pool_max);
    }
    stand_in_line(pool, want);
    return 0;
}

void hf__sql_pool_forget(struct hf__sql_pool *pool, struct hf__sql_want *want)
{
    if (!want->link.next || hf__list_empty(&want->link))
        return;
    hf__list_remove(&want->link);
    pool->n_line--;
}

/* ---- what became of a connection --------------------------------------- */

static void close_idle(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    leave(pool, link);
    pool->ops->close(pool->owner, link);
}

/* To the first in line; else it is kept, or closed. */
static void hand_on(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    struct hf__sql_want *want = step_out(pool);

    if (want) {
        want->got(want, link, NULL);
        return;
    }
    set_idle(pool, link);
    if (pool->n_idle > (uint32_t)pool->settings->pool_max_idle)
        close_idle(pool,
                   HF_CONTAINER_OF(pool->idle.prev, struct hf__sql_link, idle));
}

void hf__sql_pool_ready(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    unset_opening(pool, link);
    hand_on(pool, link);
}

void hf__sql_pool_give(struct hf__sql_pool *pool, struct hf__sql_link *link)
{
    hand_on(pool, link);
}

/* There is room: open one for a want that has none under way. */
static void replace(struct hf__sql_pool *pool)
{
    struct hf__sql_want *want;
    struct hf__sql_link *link;
    hf_error err;

    if (pool->n_line <= pool->n_opening || !may_open(pool))
        return;
    link = pool->ops->open(pool->owner, &err);
    if (link) {
        enter(pool, link);
        return;
    }
    want = step_out(pool);
    want->got(want, NULL, &err);
}

void hf__sql_pool_gone(struct hf__sql_pool *pool, struct hf__sql_link *link,
                       const hf_error *err)
{
    bool opening = link->opening && !link->testing;
    struct hf__sql_want *want;

    leave(pool, link);
    want = opening ? step_out(pool) : NULL;
    if (want)
        want->got(want, NULL, err);
    replace(pool);
}

void hf__sql_pool_expire(struct hf__sql_pool *pool, int64_t now_ns)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE,
                   "no connection came free within %lld ms: %u are in use "
                   "(pool.max, pool.wait)",
                   (long long)pool->settings->pool_wait_ms, pool->n);
    for (;;) {
        struct hf__list *first = hf__list_first(&pool->line);
        struct hf__sql_want *want =
            first ? HF_CONTAINER_OF(first, struct hf__sql_want, link) : NULL;

        if (!want)
            return;
        if (want->until_ns > now_ns) {
            if (want->until_ns != HF_NEVER)
                pool->ops->wake(pool->owner, want->until_ns);
            return;
        }
        (void)step_out(pool);
        want->got(want, NULL, &err);
    }
}
