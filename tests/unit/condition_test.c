/* SPDX-License-Identifier: MIT */
/* Who of a condition's waiters is called: examples, and random histories. */
#include "engines/common/condition.h"

#include "test.h"

/* ---- examples ------------------------------------------------------------ */

static struct hf__condition parse(const char *text)
{
    struct hf__condition condition;

    ASSERT_EQ(hf__condition_read(&condition, text, strlen(text)), 0);
    return condition;
}

static size_t called_by(const char *text, const uint64_t *made, size_t n)
{
    struct hf__condition condition = parse(text);
    size_t called = hf__condition_called(&condition, made, n);

    hf__condition_release(&condition);
    return called;
}

TEST(condition, a_stamp_calls_the_first_that_was_there)
{
    static const uint64_t made[] = {2, 5, 9};

    ASSERT_EQ(called_by("", made, 3), 0);
    ASSERT_EQ(called_by("s2", made, 3), 0);
    ASSERT_EQ(called_by("s3", made, 3), 1);
    ASSERT_EQ(called_by("s3 s3", made, 3), 1);
    ASSERT_EQ(called_by("s6 s6", made, 3), 2);
    ASSERT_EQ(called_by("b6", made, 3), 2);
    ASSERT_EQ(called_by("b6 s10", made, 3), 3);
    ASSERT_EQ(called_by("b10", made, 3), 3);
    ASSERT_EQ(called_by("s10 b10", made, 0), 0);
}

static void assert_used_up(const char *before, uint64_t made, const char *after)
{
    struct hf__condition condition = parse(before);
    struct hf__buf text = {0};

    hf__condition_use_up(&condition, made);
    hf__condition_write(&condition, &text);
    ASSERT_STREQ(hf__buf_text(&text), after);
    hf__buf_release(&text);
    hf__condition_release(&condition);
}

TEST(condition, a_bearer_uses_up_the_oldest_stamp_that_is_newer)
{
    assert_used_up("s3 s6 s8", 4, "s3 s8");
    assert_used_up("s3 s6 s8", 1, "s6 s8");
    assert_used_up("s3", 3, "s3");
    assert_used_up("", 3, "");
    assert_used_up("b6 s8", 4, "b6 s8"); /* the broadcast is for others, too */
    assert_used_up("b6 s8", 7, "b6");
}

TEST(condition, a_broadcast_replaces_what_is_older)
{
    struct hf__condition condition = parse("s3 s6");
    struct hf__buf text = {0};

    ASSERT_EQ(hf__condition_signal(&condition, 9, /* all= */ true), 0);
    ASSERT_EQ(hf__condition_signal(&condition, 7, /* all= */ false), 0);
    hf__condition_write(&condition, &text);
    ASSERT_STREQ(hf__buf_text(&text), "b9 s9");
    hf__condition_clean(&condition, 8);
    ASSERT_EQ(condition.n, 2);
    hf__condition_clean(&condition, 9);
    ASSERT_EQ(condition.n, 0);
    hf__buf_release(&text);
    hf__condition_release(&condition);
}

TEST(condition, of_which_the_store_has_nothing_is_empty)
{
    struct hf__condition condition;

    ASSERT_EQ(hf__condition_read(&condition, NULL, 0), 0);
    ASSERT_EQ(condition.n, 0);
    hf__condition_release(&condition);
}

TEST(condition, what_is_malformed_is_refused)
{
    static const char *const bad[] = {
        "s",
        " ",
        "s1 ",
        " s1",
        "x1",
        "s1s2",
        "s1  s2",
        "s1 1",
        "s-1",
        "s1,s2",
        "s18446744073709551616",
        "b1 s",
        "s1\n",
        "1",
        "s 1",
    };
    struct hf__condition condition;

    for (size_t i = 0; i < HF_COUNT_OF(bad); i++) {
        ASSERT_EQ(hf__condition_read(&condition, bad[i], strlen(bad[i])),
                  HF_EINTERNAL);
        hf__condition_release(&condition);
    }
    condition = parse("s18446744073709551615");
    ASSERT_EQ(condition.stamps[0].at, UINT64_MAX);
    hf__condition_release(&condition);
}

TEST(condition, a_list_without_end_is_refused)
{
    struct hf__condition condition;
    struct hf__buf text = {0};

    for (int i = 0; i < HF__CONDITION_STAMPS; i++)
        hf__buf_add(&text, i > 0 ? " s7" : "s7");
    ASSERT_EQ(hf__condition_read(&condition, text.text, text.len), 0);
    ASSERT_EQ(hf__condition_signal(&condition, 8, false), HF_ENOSPACE);
    hf__condition_release(&condition);
    hf__buf_add(&text, " s7");
    ASSERT_EQ(hf__condition_read(&condition, text.text, text.len),
              HF_EINTERNAL);
    hf__condition_release(&condition);
    hf__buf_release(&text);
}

/* ---- random histories ---------------------------------------------------- */

enum { STEPS = 60, HISTORIES = 60000 };

/* Rules for the one that leaves; those other than GOOD are wrong. */
enum rule { GOOD, AGAINST_A_BROADCAST, NEWEST_STAMP, RULES };

struct history {
    uint64_t seed;
    uint64_t made[STEPS]; /* the records that are left */
    size_t n;
    struct hf__condition condition;
    size_t called; /* before the step */
    size_t gone;   /* which record the step removed; n: none */
    bool used;     /* it left in order */
};

static uint64_t chance(struct history *h, uint64_t below)
{
    h->seed =
        h->seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (h->seed >> 33) % below;
}

static void remove_record(struct history *h, size_t i)
{
    memmove(h->made + i, h->made + i + 1, (h->n - i - 1) * sizeof(h->made[0]));
    h->n--;
    h->gone = i;
}

static void wrong_use_up(struct hf__condition *condition, uint64_t made,
                         enum rule rule)
{
    size_t found = condition->n;

    for (size_t i = 0; i < condition->n; i++) {
        if (condition->stamps[i].at > made && !condition->stamps[i].all &&
            (rule == NEWEST_STAMP || found == condition->n))
            found = i;
    }
    if (found == condition->n)
        return;
    condition->n--;
    memmove(condition->stamps + found, condition->stamps + found + 1,
            (condition->n - found) * sizeof(condition->stamps[0]));
}

static void leave_in_order(struct history *h, enum rule rule)
{
    size_t i;

    if (h->called == 0)
        return;
    i = chance(h, h->called);
    if (rule == GOOD)
        hf__condition_use_up(&h->condition, h->made[i]);
    else
        wrong_use_up(&h->condition, h->made[i], rule);
    remove_record(h, i);
    h->used = true;
}

static bool signal_now(struct history *h, uint64_t now, bool all)
{
    if (h->called == h->n)
        return true; /* forgotten */
    ASSERT_EQ(hf__condition_signal(&h->condition, now, all), 0);
    return hf__condition_called(&h->condition, h->made, h->n) ==
           (all ? h->n : h->called + 1);
}

static bool clean_now(struct history *h)
{
    size_t called = hf__condition_called(&h->condition, h->made, h->n);

    hf__condition_clean(&h->condition, h->n > 0 ? h->made[0] : UINT64_MAX);
    return hf__condition_called(&h->condition, h->made, h->n) == called;
}

/* A called one that is left is still called, and leaving calls nobody. */
static bool is_right(const struct history *h)
{
    size_t left = h->called - (h->gone < h->called);
    size_t called = hf__condition_called(&h->condition, h->made, h->n);

    return called >= left && (!h->used || called == left);
}

static bool step(struct history *h, uint64_t now, enum rule rule)
{
    bool right = true;

    h->called = hf__condition_called(&h->condition, h->made, h->n);
    h->gone = STEPS;
    h->used = false;
    switch (chance(h, 9)) {
    case 0:
    case 1:
        h->made[h->n++] = now;
        break;
    case 2:
    case 3:
        right = signal_now(h, now, /* all= */ false);
        break;
    case 4:
        right = signal_now(h, now, /* all= */ true);
        break;
    case 5:
    case 6:
        if (h->n > 0)
            remove_record(h, chance(h, h->n));
        break;
    default:
        leave_in_order(h, rule);
        break;
    }
    right = right && is_right(h);
    if (chance(h, 3) == 0)
        right = clean_now(h) && right;
    return right;
}

static bool play(uint64_t seed, enum rule rule)
{
    struct history h = {.seed = seed};
    bool right = true;

    for (uint64_t now = 1; now <= STEPS && right; now++)
        right = step(&h, now, rule);
    hf__condition_release(&h.condition);
    return right;
}

TEST(condition, no_history_strands_a_waiter)
{
    for (uint64_t seed = 0; seed < HISTORIES; seed++)
        ASSERT_TRUE(play(seed, GOOD));
}

TEST(condition, the_histories_find_a_wrong_rule)
{
    for (enum rule rule = GOOD + 1; rule < RULES; rule++) {
        size_t wrong = 0;

        for (uint64_t seed = 0; seed < 1000; seed++)
            wrong += !play(seed, rule);
        ASSERT_TRUE(wrong > 10);
    }
}
