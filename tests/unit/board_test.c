/* SPDX-License-Identifier: MIT */
/*
 * board_test.c - cycles that a process finds by notices alone: it has no client
 * of the stores.
 */
#include "core/board.h"

#include "test.h"

enum { STORE = 7 };

struct hold_of {
    const char *name;
    uint64_t token;
    int mode;
};

/* Owner @number of process 100 + @number holds something and waits for @name. */
static struct hf__notice_wait waiting(uint64_t number, const char *name,
                                      struct hold_of held)
{
    struct hf__notice_wait wait = {.process = 100 + number,
                                   .owner = number,
                                   .serial = 10 * number,
                                   .since = number,
                                   .store = STORE,
                                   .mode = HF_EXCLUSIVE,
                                   .breaks = true,
                                   .holds_n = 1,
                                   .pid = (int64_t)number,
                                   .host = "db1"};

    wait.holds[0] = (struct hf__notice_hold){
        .store = STORE,
        .hash = hf__notice_hash(held.name, strlen(held.name)),
        .token = held.token,
        .mode = held.mode};
    (void)snprintf(wait.name, sizeof(wait.name), "%s", name);
    return wait;
}

static void free_look(void *look)
{
    hf__board_look_free(look);
}

/* A look without a store that could be asked, at all of @waits. */
static struct hf__board_look *look_at(const struct hf__notice_wait *waits,
                                      uint32_t n)
{
    struct hf__board_look *look = hf__board_look_new(NULL, 0);
    hf_error err;

    ASSERT_NOT_NULL(look);
    test_defer(free_look, look);
    for (uint32_t i = 0; i < n; i++)
        hf__board_look_add(look, &waits[i]);
    ASSERT_OK(hf__board_look_read(look, n, &err), &err);
    return look;
}

/* The first holds "a" and waits for "b", the second the other way round. */
static void make_pair(struct hf__notice_wait pair[2])
{
    pair[0] = waiting(1, "b", (struct hold_of){"a", 5, HF_EXCLUSIVE});
    pair[1] = waiting(2, "a", (struct hold_of){"b", 6, HF_EXCLUSIVE});
}

static bool finds_cycle(const struct hf__notice_wait *waits, uint32_t n,
                        struct hf__board_cycle *ret_cycle)
{
    return hf__board_look_cycle(look_at(waits, n), 0, ret_cycle);
}

TEST(notices, of_a_cycle_are_enough_where_nobody_can_be_asked)
{
    struct hf__notice_wait waits[3];
    struct hf__board_cycle cycle;
    struct hf__board_look *look;
    struct hf__buf text = {0};

    waits[0] = waiting(1, "b", (struct hold_of){"a", 5, HF_EXCLUSIVE});
    waits[1] = waiting(2, "c", (struct hold_of){"b", 6, HF_EXCLUSIVE});
    waits[2] = waiting(3, "a", (struct hold_of){"c", 7, HF_EXCLUSIVE});
    look = look_at(waits, 3);
    ASSERT_TRUE(hf__board_look_cycle(look, 0, &cycle));
    ASSERT_EQ(cycle.cycle_n, 3);
    hf__board_look_tell(look, &cycle, &text);
    ASSERT_STREQ(hf__buf_text(&text),
                 "a: db1:1 waits for b held by db1:2, who waits for c held by "
                 "db1:3, who waits for a");
    hf__buf_release(&text);
}

TEST(notices, that_do_not_meet_are_no_cycle)
{
    struct hf__notice_wait pair[2];
    struct hf__board_cycle cycle;

    make_pair(pair);
    ASSERT_TRUE(finds_cycle(pair, 2, &cycle));
    pair[1].holds[0].mode = HF_SHARED; /* others may have it as well */
    ASSERT_FALSE(finds_cycle(pair, 2, &cycle));
    make_pair(pair);
    pair[1].holds[0].store = STORE + 1;
    ASSERT_FALSE(finds_cycle(pair, 2, &cycle));
    make_pair(pair);
    pair[1].holds[0].hash++;
    ASSERT_FALSE(finds_cycle(pair, 2, &cycle));
}

TEST(notices, confirm_a_cycle_unless_a_hold_or_a_wait_is_another_one)
{
    struct hf__notice_wait pair[2];
    struct hf__board_cycle cycle;

    make_pair(pair);
    ASSERT_TRUE(finds_cycle(pair, 2, &cycle));
    ASSERT_TRUE(hf__board_look_confirms(look_at(pair, 2), &cycle));
    pair[1].holds[0].token++; /* released, and got again */
    ASSERT_FALSE(hf__board_look_confirms(look_at(pair, 2), &cycle));
    make_pair(pair);
    pair[0].serial++;
    ASSERT_FALSE(hf__board_look_confirms(look_at(pair, 2), &cycle));
    make_pair(pair);
    ASSERT_FALSE(hf__board_look_confirms(look_at(pair, 1), &cycle));
}

/* The number of the one who gives way. */
static int victim_of(const struct hf__notice_wait *pair)
{
    struct hf__board_cycle cycle;
    struct hf__board_look *look = look_at(pair, 2);

    ASSERT_TRUE(hf__board_look_cycle(look, 0, &cycle));
    return hf__board_look_victim(look, &cycle);
}

TEST(victim, is_the_youngest_that_can_give_way_and_everybody_says_the_same)
{
    struct hf__notice_wait pair[2];

    make_pair(pair);
    ASSERT_EQ(victim_of(pair), 1);
    pair[1].breaks = false;
    ASSERT_EQ(victim_of(pair), 0);
    pair[0].breaks = false;
    ASSERT_EQ(victim_of(pair), HF__DEADLOCK_NOBODY);
    make_pair(pair);
    pair[0].since = pair[1].since;
    ASSERT_EQ(victim_of(pair), 1); /* by its process */
    pair[0].process = 200;
    ASSERT_EQ(victim_of(pair), 0);
    pair[1].process = 200;
    ASSERT_EQ(victim_of(pair), 1); /* by its owner */
}

TEST(look, that_would_have_too_many_members_is_not_certain)
{
    struct hf__board_look *look = hf__board_look_new(NULL, 0);
    hf_error err;

    ASSERT_NOT_NULL(look);
    test_defer(free_look, look);
    for (uint64_t i = 0; i <= HF__DEADLOCK_MEMBERS; i++) {
        struct hf__notice_wait wait =
            waiting(i + 1, "b", (struct hold_of){"a", i, HF_EXCLUSIVE});

        hf__board_look_add(look, &wait);
    }
    ASSERT_RC(hf__board_look_read(look, 1, &err), HF_ENOSPACE, &err);
}
