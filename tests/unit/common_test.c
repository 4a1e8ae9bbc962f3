/* SPDX-License-Identifier: MIT */
/* The parts that engines share: calls under way, and tickets by number. */
#include "engines/common/calls.h"
#include "engines/common/link.h"
#include "engines/common/ticket_table.h"
#include "test.h"

struct call {
    uint64_t number;
    char padding[20];
};

static void release_calls(void *calls)
{
    hf__calls_release(calls);
}

TEST(calls, come_out_in_the_order_in_which_they_went_in)
{
    static struct hf__calls calls;
    struct call call = {0};
    uint64_t in = 0;
    uint64_t out = 0;

    hf__calls_init(&calls, sizeof(struct call));
    test_defer(release_calls, &calls);
    ASSERT_FALSE(hf__calls_take(&calls, &call));
    /* The ring wraps around several times while it grows. */
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 40; i++) {
            call.number = in++;
            ASSERT_NOT_NULL(hf__calls_add(&calls, &call));
        }
        ASSERT_EQ(((struct call *)hf__calls_at(&calls, 0))->number, out);
        ASSERT_EQ(((struct call *)hf__calls_at(&calls, calls.n - 1))->number,
                  in - 1);
        for (int i = 0; i < 30; i++) {
            ASSERT_TRUE(hf__calls_take(&calls, &call));
            ASSERT_EQ(call.number, out++);
        }
    }
    ASSERT_EQ(calls.n, in - out);
    while (calls.n > 0)
        ASSERT_TRUE(hf__calls_take(&calls, &call));
    ASSERT_FALSE(hf__calls_take(&calls, &call));
}

static void count(struct hf__ticket *ticket, void *ctx)
{
    *(uint64_t *)ctx += ticket->id;
}

TEST(ticket_table, finds_tickets_by_number_until_they_are_removed)
{
    enum { N = 3000 };
    static struct hf__ticket_table table;
    static struct hf__ticket tickets[N];
    static struct hf__ticket_entry entries[N];
    uint64_t sum = 0;

    hf__ticket_table_each(&table, count, &sum);
    ASSERT_EQ(sum, 0);
    hf__ticket_table_init(&table);
    for (uint64_t i = 0; i < N; i++) {
        tickets[i].id = i + 1;
        ASSERT_TRUE(hf__ticket_table_add(&table, &entries[i], &tickets[i]));
        ASSERT_FALSE(hf__ticket_table_add(&table, &entries[i], &tickets[i]));
    }
    ASSERT_EQ(hf__ticket_table_find(&table, 257), &tickets[256]);
    ASSERT_NULL(hf__ticket_table_find(&table, N + 1));
    hf__ticket_table_each(&table, count, &sum);
    ASSERT_EQ(sum, (uint64_t)N * (N + 1) / 2);
    ASSERT_TRUE(hf__ticket_table_remove(&table, &entries[256]));
    ASSERT_FALSE(hf__ticket_table_remove(&table, &entries[256]));
    ASSERT_NULL(hf__ticket_table_find(&table, 257));
    ASSERT_EQ(hf__ticket_table_find(&table, 257 + HF__TICKET_BUCKETS),
              &tickets[256 + HF__TICKET_BUCKETS]);
    ASSERT_EQ(table.n, N - 1);
    ASSERT_GE(table.size, N / 2); /* so that chains stay short */
    hf__ticket_table_release(&table);
    ASSERT_EQ(table.n, 0);
}

static bool is_multiple(struct hf__ticket_entry *entry, const void *divisor)
{
    return entry->ticket->id % *(const uint64_t *)divisor == 0;
}

static struct hf__ticket_table walked; /* of the tests that walk */
static struct hf__ticket walked_tickets[3000];
static struct hf__ticket_entry walked_entries[3000];

/* @n tickets, of which the first @known are in the table. */
static void fill(uint64_t n, uint64_t known)
{
    hf__ticket_table_init(&walked);
    memset(walked_entries, 0, sizeof(walked_entries));
    for (uint64_t i = 0; i < n; i++) {
        walked_tickets[i].id = i + 1;
        if (i < known)
            (void)hf__ticket_table_add(&walked, &walked_entries[i],
                                       &walked_tickets[i]);
    }
}

/* The next one of the walk whose id is a multiple of @of, taken out; 0: none. */
static uint64_t take_next(size_t *bucket, uint64_t of)
{
    const struct hf__ticket *ticket =
        hf__ticket_table_next(&walked, bucket, is_multiple, &of);

    if (!ticket)
        return 0;
    ASSERT_TRUE(
        hf__ticket_table_remove(&walked, &walked_entries[ticket->id - 1]));
    return ticket->id;
}

TEST(ticket_table, walks_over_the_wanted_tickets_while_they_are_removed)
{
    enum { N = 3000 };
    const uint64_t seven = 7;
    size_t bucket = 0;
    uint64_t id;
    uint32_t n = 0;

    fill(N, N);
    while ((id = take_next(&bucket, seven)) != 0) {
        ASSERT_EQ(id % seven, 0);
        n++;
    }
    ASSERT_EQ(n, N / seven);
    ASSERT_EQ(walked.n, N - n);
    hf__ticket_table_release(&walked);
}

TEST(ticket_table, that_grows_under_a_walk_shows_every_ticket)
{
    enum { FIRST = HF__TICKET_BUCKETS, N = 40 * FIRST };
    size_t bucket = 0;
    uint64_t n = 0;
    uint64_t id;

    fill(N, FIRST);
    while ((id = take_next(&bucket, 1)) != 0) {
        n += id <= FIRST;
        for (uint64_t i = FIRST; n == FIRST / 2 && i < N; i++)
            (void)hf__ticket_table_add(&walked, &walked_entries[i],
                                       &walked_tickets[i]);
    }
    ASSERT_EQ(n, FIRST);
    hf__ticket_table_release(&walked);
}

/* ---- the link ------------------------------------------------------------- */

static int64_t due_ns; /* of the timer that was started last */

static void start_timer(const struct hf__engine_host *host,
                        struct hf__timer *timer, int64_t at_ns)
{
    (void)host;
    (void)timer;
    due_ns = at_ns;
}

TEST(link, counts_an_answer_to_come_when_a_lock_is_held_for_a_moment)
{
    struct hf__engine_host host = {.timer = start_timer};
    struct hf__engine engine = {.host = &host};
    struct hf__link link = {0};
    int64_t listen_ns;

    hf__link_init(&link, &engine, /* fire= */ NULL, 100 * HF_MS);
    ASSERT_EQ(hf__link_listen_due(&link, hf__now()), HF_NEVER);
    hf__link_hold(&link, /* held= */ true);
    listen_ns = due_ns;
    ASSERT_GT(listen_ns, hf__now() - 100 * HF_MS);
    ASSERT_EQ(hf__link_listen_due(&link, listen_ns - 1), listen_ns);
    ASSERT_EQ(engine.under_way, 0);
    ASSERT_EQ(hf__link_listen_due(&link, listen_ns), HF_NEVER);
    ASSERT_EQ(engine.under_way, 1);
    hf__link_hold(&link, /* held= */ true);
    hf__link_hold(&link, /* held= */ false);
    ASSERT_EQ(engine.under_way, 1);
    hf__link_hold(&link, /* held= */ false);
    ASSERT_EQ(engine.under_way, 0);
}

TEST(link, that_held_nothing_for_a_moment_does_not_listen)
{
    struct hf__engine_host host = {.timer = start_timer};
    struct hf__engine engine = {.host = &host};
    struct hf__link link = {0};

    hf__link_init(&link, &engine, /* fire= */ NULL, 100 * HF_MS);
    hf__link_hold(&link, /* held= */ true);
    hf__link_hold(&link, /* held= */ false);
    ASSERT_EQ(hf__link_listen_due(&link, due_ns), HF_NEVER);
    ASSERT_EQ(engine.under_way, 0);
    due_ns = 0;
    hf__link_wake(&link, HF_NEVER);
    ASSERT_EQ(due_ns, 0);
}
