/* SPDX-License-Identifier: MIT */
/* What happened between two lists. */
#include "core/diff.h"

#include "base/world.h"
#include "test.h"

static struct hf__query *lists[2];
static char told[1024];

static void free_lists(void *arg)
{
    (void)arg;
    hf__query_free(lists[0]);
    hf__query_free(lists[1]);
    lists[0] = lists[1] = NULL;
}

static void begin(void)
{
    lists[0] = hf__query_new(NULL);
    lists[1] = hf__query_new(NULL);
    test_defer(free_lists, NULL);
    ASSERT_TRUE(lists[0] && lists[1]);
    told[0] = '\0';
}

static struct hf__row *add(int list, const char *name, int role,
                           const char *owner, uint64_t token)
{
    struct hf__rows *rows = lists[list]->rows;
    hf_lock_info info = {.role = role,
                         .name = name,
                         .owner = owner,
                         .host = "db1",
                         .pid = 7,
                         .token = token,
                         .lease_ms = 3000,
                         .alive = HF_ALIVE_UNKNOWN};

    ASSERT_EQ(hf__query_add_lock(lists[list], &info), 0);
    return rows->at[rows->n - 1];
}

/* "released a/alice, …". */
static void write_down(void *ctx, enum hf__change change, struct hf__row *row)
{
    static const char *const words[] = {"ended", "granted", "left", "queued"};
    size_t len = strlen(told);

    (void)ctx;
    (void)snprintf(told + len, sizeof(told) - len, "%s%s %s/%s",
                   len ? ", " : "", words[change], row->is.lock.name,
                   row->is.lock.owner);
}

static const char *difference(void)
{
    struct hf__rows *before = lists[0]->rows;
    struct hf__rows *after = lists[1]->rows;

    hf__query_sort(lists[0]);
    hf__query_sort(lists[1]);
    ASSERT_EQ(hf__diff_rows((struct hf__diff_list){before->at, before->n},
                            (struct hf__diff_list){after->at, after->n},
                            write_down, NULL),
              0);
    return told;
}

TEST(diff, equal_lists_have_no_difference)
{
    begin();
    ASSERT_STREQ(difference(), "");
    for (int list = 0; list < 2; list++) {
        add(list, "a", HF_HOLDER, "alice", 5);
        add(list, "a", HF_WAITER, "bob", 0);
        add(list, "b", HF_HOLDER, "carol", 6);
    }
    ASSERT_STREQ(difference(), "");
}

TEST(diff, comings_and_goings_are_told_name_by_name)
{
    begin();
    add(0, "b", HF_HOLDER, "bob", 1);
    add(0, "a", HF_HOLDER, "alice", 2);
    add(1, "b", HF_WAITER, "dora", 0);
    add(1, "c", HF_HOLDER, "carol", 3);
    ASSERT_STREQ(difference(),
                 "ended a/alice, ended b/bob, queued b/dora, granted c/carol");
}

TEST(diff, a_waiter_that_holds_now_has_not_left)
{
    begin();
    add(0, "a", HF_HOLDER, "alice", 1);
    add(0, "a", HF_WAITER, "bob", 0);
    add(0, "a", HF_WAITER, "carol", 0);
    add(1, "a", HF_HOLDER, "bob", 2);
    ASSERT_STREQ(difference(), "ended a/alice, granted a/bob, left a/carol");
}

TEST(diff, another_token_is_another_grant)
{
    begin();
    add(0, "a", HF_HOLDER, "alice", 1);
    add(1, "a", HF_HOLDER, "alice", 2);
    ASSERT_STREQ(difference(), "ended a/alice, granted a/alice");
}

TEST(diff, equal_rows_are_counted)
{
    begin();
    add(0, "a", HF_WAITER, "bob", 0);
    add(1, "a", HF_WAITER, "bob", 0);
    add(1, "a", HF_WAITER, "bob", 0);
    add(1, "a", HF_WAITER, "bob", 0);
    ASSERT_STREQ(difference(), "queued a/bob, queued a/bob");
}

TEST(diff, an_owner_that_waits_twice_is_promoted_once)
{
    begin();
    add(0, "a", HF_WAITER, "bob", 0);
    add(0, "a", HF_WAITER, "bob", 0);
    add(1, "a", HF_HOLDER, "bob", 9);
    ASSERT_STREQ(difference(), "granted a/bob, left a/bob");
}

TEST(diff, other_roles_are_nobodys_event)
{
    begin();
    add(0, "a", 2, "alice", 0);
    add(1, "a", 2, "bob", 0);
    ASSERT_STREQ(difference(), "");
}

static int count(const char *word)
{
    int n = 0;

    for (const char *at = told; (at = strstr(at, word)) != NULL; at++)
        n++;
    return n;
}

static int rows_of(int list, int role)
{
    struct hf__rows *rows = lists[list]->rows;
    int n = 0;

    for (size_t i = 0; i < rows->n; i++)
        n += rows->at[i]->is.lock.role == role;
    return n;
}

TEST(diff, what_is_told_makes_one_list_of_the_other)
{
    static const char *const owners[] = {"alice", "bob", "carol", "dora"};
    static const char *const names[] = {"a", "b", "c"};
    uint64_t chance = 1;

    for (int round = 0; round < 2000; round++) {
        int promoted;

        begin();
        for (int i = 0; i < 24; i++) {
            int role;

            chance = chance * 6364136223846793005u + 1442695040888963407u;
            role = (int)((chance >> 50) % 2);
            add((int)(chance >> 63), names[(chance >> 40) % 3], role,
                owners[(chance >> 45) % 4],
                role == HF_HOLDER ? 1 + (chance >> 33) % 2 : 0);
        }
        (void)difference();
        ASSERT_EQ(count("granted ") - count("ended "),
                  rows_of(1, HF_HOLDER) - rows_of(0, HF_HOLDER));
        promoted = count("queued ") - count("left ") -
                   (rows_of(1, HF_WAITER) - rows_of(0, HF_WAITER));
        ASSERT_GE(promoted, 0);
        ASSERT_LE(promoted, count("granted "));
        free_lists(NULL);
    }
}

TEST(diff, a_holder_is_lost_when_its_lease_was_over)
{
    struct hf__row *row;

    begin();
    row = add(0, "a", HF_HOLDER, "alice", 1);
    row->seen_ns = 100 * HF_SECOND;
    ASSERT_EQ(hf__diff_ending(row, 102 * HF_SECOND), HF_EV_RELEASED);
    ASSERT_EQ(hf__diff_ending(row, 103 * HF_SECOND), HF_EV_LOST);
    row->is.lock.lease_ms = -1;
    ASSERT_EQ(hf__diff_ending(row, 103 * HF_SECOND), HF_EV_RELEASED);
    row->is.lock.alive = HF_ALIVE_NO;
    ASSERT_EQ(hf__diff_ending(row, 100 * HF_SECOND), HF_EV_LOST);
    row->broken = true;
    ASSERT_EQ(hf__diff_ending(row, 100 * HF_SECOND), HF_EV_BROKEN);
}
