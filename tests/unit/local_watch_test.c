/* SPDX-License-Identifier: MIT */
/* local_watch_test.c - who is told that the table has changed, and for how
 * long. */
#include "lib/tempdir.h"
#include "lib/test.h"
#include "local_fixture.h"

static struct hf__table_header *header_of(const struct side *side)
{
    return side->local->store.table.header;
}

/* One pair. */
static void change(struct side *side)
{
    (void)side_release(side, side_take(side, "jobs"));
}

TEST(local_watch, nothing_is_counted_while_nobody_watches)
{
    struct side *a = side_new(tempdir_new());

    change(a);
    ASSERT_EQ(atomic_load(&header_of(a)->watched_ns), 0);
    ASSERT_EQ(atomic_load(&header_of(a)->changes), 0);
}

TEST(local_watch, each_swap_is_counted_while_somebody_watches)
{
    struct side *a = side_new(tempdir_new());

    atomic_store(&header_of(a)->watched_ns,
                 hf__table_now(&a->local->store.table) + HF_SECOND);
    change(a);
    ASSERT_EQ(atomic_load(&header_of(a)->changes), 2 * 2);
}

TEST(local_watch, a_watcher_that_was_killed_is_forgotten)
{
    struct side *a = side_new(tempdir_new());

    atomic_store(&header_of(a)->watched_ns,
                 hf__table_now(&a->local->store.table) - 1);
    change(a);
    ASSERT_EQ(atomic_load(&header_of(a)->watched_ns), 0);
    ASSERT_EQ(atomic_load(&header_of(a)->changes), 0);
}

TEST(local_watch, an_instant_that_nobody_can_have_written_is_forgotten)
{
    struct side *a = side_new(tempdir_new());

    atomic_store(&header_of(a)->watched_ns, INT64_MAX);
    change(a);
    ASSERT_EQ(atomic_load(&header_of(a)->watched_ns), 0);
    atomic_store(&header_of(a)->watched_ns, INT64_MIN);
    change(a);
    ASSERT_EQ(atomic_load(&header_of(a)->watched_ns), 0);
}

TEST(local_watch, who_sleeps_on_the_count_is_woken_once)
{
    struct side *a = side_new(tempdir_new());

    atomic_store(&header_of(a)->watched_ns,
                 hf__table_now(&a->local->store.table) + HF_SECOND);
    atomic_store(&header_of(a)->changes, 1); /* somebody sleeps */
    change(a);
    ASSERT_EQ(atomic_load(&header_of(a)->changes), 2 * 2);
}
