/* SPDX-License-Identifier: MIT */
/* The pool of connections, without any: who gets which, and when. */
#include "base/base.h"
#include "base/world.h"
#include "engines/sql/pool.h"
#include "test.h"

enum { LINKS = 8 };

static struct hf__settings settings;
static struct hf__sql_pool pool;
static struct hf__sql_link links[LINKS];
static int opened;
static int checked;
static int closed;
static bool can_open;
static bool can_check;
static int64_t wake_ns;

struct want {
    struct hf__sql_want want;
    struct hf__sql_link *link;
    int failed; /* the error, once it is told */
};

static struct hf__sql_link *open_one(void *owner, hf_error *err)
{
    (void)owner;
    if (!can_open) {
        (void)hf__fail(err, HF_EUNAVAILABLE, "no");
        return NULL;
    }
    return &links[opened++];
}

static int check_one(void *owner, struct hf__sql_link *link)
{
    (void)owner;
    (void)link;
    checked++;
    return can_check ? 0 : HF_EUNAVAILABLE;
}

static void close_one(void *owner, struct hf__sql_link *link)
{
    (void)owner;
    (void)link;
    closed++;
}

static void wake(void *owner, int64_t due_ns)
{
    (void)owner;
    wake_ns = due_ns;
}

static void got(struct hf__sql_want *want, struct hf__sql_link *link,
                const hf_error *err)
{
    struct want *mine = HF_CONTAINER_OF(want, struct want, want);

    mine->link = link;
    mine->failed = link ? 0 : err->code;
}

static void set_up(int max, int max_idle, int exhausted)
{
    static const struct hf__sql_pool_ops ops = {open_one, check_one, close_one,
                                                wake};

    memset(&settings, 0, sizeof(settings));
    memset(&pool, 0, sizeof(pool));
    memset(links, 0, sizeof(links));
    settings.pool_max = max;
    settings.pool_max_idle = max_idle;
    settings.pool_exhausted = exhausted;
    settings.pool_wait_ms = 1000;
    opened = checked = closed = 0;
    can_open = can_check = true;
    hf__sql_pool_init(&pool, &ops, NULL, &settings);
}

static struct want a; /* of the running test */
static struct want b;

static int take(struct want *want)
{
    hf_error err;

    memset(want, 0, sizeof(*want));
    want->want.got = got;
    return hf__sql_pool_take(&pool, &want->want, &err);
}

/* Take one, and let it come up. */
static void take_ready(struct want *want)
{
    ASSERT_EQ(take(want), 0);
    if (!want->link)
        hf__sql_pool_ready(&pool, &links[opened - 1]);
    ASSERT_TRUE(want->link != NULL);
}

static void end(struct hf__sql_link *link, int code)
{
    hf_error err;

    (void)hf__fail(&err, code, "it ended");
    hf__sql_pool_gone(&pool, link, &err);
}

TEST(pool, opens_up_to_max_and_then_lets_stand_in_line)
{
    struct want c;
    struct want d;

    set_up(2, 2, HF__POOL_BLOCK);
    take_ready(&a);
    take_ready(&b);
    ASSERT_EQ(take(&c), 0);
    ASSERT_EQ(take(&d), 0);
    ASSERT_EQ(opened, 2);
    ASSERT_NULL(c.link);
    hf__sql_pool_give(&pool, b.link);
    ASSERT_TRUE(c.link == b.link); /* who came first */
    ASSERT_NULL(d.link);
    hf__sql_pool_give(&pool, a.link);
    ASSERT_TRUE(d.link == a.link);
}

TEST(pool, a_want_that_is_forgotten_is_not_served)
{
    struct want c;

    set_up(1, 1, HF__POOL_BLOCK);
    take_ready(&a);
    ASSERT_EQ(take(&b), 0);
    ASSERT_EQ(take(&c), 0);
    hf__sql_pool_forget(&pool, &b.want);
    hf__sql_pool_forget(&pool, &b.want);
    hf__sql_pool_give(&pool, a.link);
    ASSERT_NULL(b.link);
    ASSERT_TRUE(c.link != NULL);
}

TEST(pool, whichever_is_ready_first_serves_who_came_first)
{
    set_up(2, 2, HF__POOL_BLOCK);
    ASSERT_EQ(take(&a), 0);
    ASSERT_EQ(take(&b), 0);
    ASSERT_EQ(opened, 2);
    hf__sql_pool_ready(&pool, &links[1]);
    ASSERT_TRUE(a.link == &links[1]);
    ASSERT_NULL(b.link);
}

TEST(pool, keeps_max_idle_and_gives_the_last_used_first)
{
    struct want wants[3];
    struct want next;

    set_up(3, 2, HF__POOL_BLOCK);
    for (int i = 0; i < 3; i++)
        take_ready(&wants[i]);
    for (int i = 0; i < 3; i++)
        hf__sql_pool_give(&pool, wants[i].link);
    ASSERT_EQ(closed, 1);
    ASSERT_EQ(pool.n_idle, 2);
    ASSERT_EQ(pool.n, 2);
    take_ready(&next);
    ASSERT_TRUE(next.link == wants[2].link);
    ASSERT_EQ(opened, 3);
}

TEST(pool, exhausted_fails_at_once_if_it_should)
{
    set_up(1, 1, HF__POOL_FAIL);
    take_ready(&a);
    ASSERT_EQ(take(&b), HF_EUNAVAILABLE);
    ASSERT_EQ(pool.n_line, 0);
    hf__sql_pool_give(&pool, a.link);
    take_ready(&b);
}

TEST(pool, exhausted_grows_if_it_may)
{
    struct want wants[3];

    set_up(1, 1, HF__POOL_GROW);
    for (int i = 0; i < 3; i++)
        take_ready(&wants[i]);
    ASSERT_EQ(opened, 3);
    for (int i = 0; i < 3; i++)
        hf__sql_pool_give(&pool, wants[i].link);
    ASSERT_EQ(closed, 2); /* and comes back to max_idle */
}

TEST(pool, who_has_waited_for_pool_wait_is_told)
{
    struct want c;

    set_up(1, 1, HF__POOL_BLOCK);
    take_ready(&a);
    ASSERT_EQ(take(&b), 0);
    ASSERT_EQ(wake_ns, b.want.until_ns);
    ASSERT_EQ(take(&c), 0);
    c.want.until_ns++;
    hf__sql_pool_expire(&pool, b.want.until_ns - 1);
    ASSERT_EQ(b.failed, 0);
    hf__sql_pool_expire(&pool, b.want.until_ns);
    ASSERT_EQ(b.failed, HF_EUNAVAILABLE);
    ASSERT_EQ(c.failed, 0);
    ASSERT_EQ(wake_ns, c.want.until_ns);
    hf__sql_pool_give(&pool, a.link);
    ASSERT_TRUE(c.link != NULL);
}

/* One that is idle, and is tested when somebody wants it. */
static void set_up_idle(int exhausted)
{
    set_up(1, 1, exhausted);
    settings.pool_check = 1;
    take_ready(&a);
    hf__sql_pool_give(&pool, a.link);
}

TEST(pool, an_idle_one_is_tested_before_it_is_given)
{
    set_up_idle(HF__POOL_BLOCK);
    ASSERT_EQ(take(&b), 0);
    ASSERT_EQ(checked, 1);
    ASSERT_NULL(b.link); /* not before it has answered */
    hf__sql_pool_ready(&pool, a.link);
    ASSERT_TRUE(b.link == a.link);
    ASSERT_EQ(opened, 1);
}

TEST(pool, an_idle_one_that_is_dead_is_replaced)
{
    set_up_idle(HF__POOL_BLOCK);
    can_check = false;
    take_ready(&b);
    ASSERT_EQ(opened, 2);
    ASSERT_EQ(pool.n, 1);
}

TEST(pool, an_idle_one_that_fails_its_test_is_replaced)
{
    set_up_idle(HF__POOL_FAIL);
    ASSERT_EQ(take(&b), 0);
    end(a.link, HF_EUNAVAILABLE);
    ASSERT_EQ(b.failed, 0);
    ASSERT_EQ(opened, 2);
    hf__sql_pool_ready(&pool, &links[1]);
    ASSERT_TRUE(b.link == &links[1]);
    ASSERT_EQ(pool.n, 1);
}

TEST(pool, one_that_cannot_be_opened_fails_one_want)
{
    set_up(2, 2, HF__POOL_BLOCK);
    ASSERT_EQ(take(&a), 0);
    ASSERT_EQ(take(&b), 0);
    end(&links[0], HF_EAUTH);
    ASSERT_EQ(a.failed, HF_EAUTH);
    ASSERT_EQ(b.failed, 0);
    hf__sql_pool_ready(&pool, &links[1]);
    ASSERT_TRUE(b.link == &links[1]);
    can_open = false;
    ASSERT_EQ(take(&a), HF_EUNAVAILABLE);
}

TEST(pool, a_broken_one_makes_room_for_who_waits)
{
    set_up(1, 1, HF__POOL_BLOCK);
    take_ready(&a);
    ASSERT_EQ(take(&b), 0);
    end(a.link, HF_EUNAVAILABLE);
    ASSERT_EQ(opened, 2);
    hf__sql_pool_ready(&pool, &links[1]);
    ASSERT_TRUE(b.link == &links[1]);
    ASSERT_EQ(pool.n, 1);
}
