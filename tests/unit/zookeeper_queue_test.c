/* SPDX-License-Identifier: MIT */
/* Who stands where among the children of a lock, and who is in whose way. */
#include "engines/zookeeper/queue.h"
#include "test.h"

static struct hf__buf bytes;
static struct hf__zk_queue line;

static void forget(void *arg)
{
    (void)arg;
    hf__zk_queue_release(&line);
    hf__buf_release(&bytes);
}

/* Read the line of the children @names, which end with NULL. */
static void line_up(const char *const *names)
{
    struct hf__zk_wire in;
    int32_t n = 0;

    while (names[n])
        n++;
    hf__zk_wire_put_int(&bytes, n);
    for (int32_t i = 0; i < n; i++)
        hf__zk_wire_put_text(&bytes, names[i], strlen(names[i]));
    in = (struct hf__zk_wire){bytes.text, bytes.text + bytes.len, false};
    test_defer(forget, NULL);
    ASSERT_EQ(hf__zk_queue_read(&line, &in), 0);
}

/* Who is in the way of @name, as a number; 0: nobody. */
static int blocker(const char *name, int slots)
{
    uint32_t place = hf__zk_queue_find(&line, name, strlen(name));
    uint32_t found;
    bool first;

    ASSERT_LT(place, line.n);
    found = hf__zk_queue_blocker(&line, place, slots, &first);
    return found == line.n ? 0 : line.all[found].sequence;
}

TEST(contend, the_shapes_of_all_libraries_are_known)
{
    static const struct {
        const char *name;
        int kind;
        int sequence;
    } shapes[] = {
        {"_c_0b3c-lock-0000000007", HF__ZK_LOCK, 7},
        {"_c_0b3c-__WRIT__0000000008", HF__ZK_LOCK, 8},
        {"_c_0b3c-__READ__0000000009", HF__ZK_READ, 9},
        {"_c_0b3c-latch-0000000010", HF__ZK_LOCK, 10},
        {"deadbeef__lock__0000000011", HF__ZK_LOCK, 11},
        {"deadbeef__rlock__0000000012", HF__ZK_READ, 12},
        {"lock-0000000013", HF__ZK_LOCK, 13},
        {"x-1f-0000000014", HF__ZK_LOCK, 14},
        {"write-0000000015", HF__ZK_LOCK, 15},
        {"read-0000000016", HF__ZK_READ, 16},
        {"semaphore-0000000017", HF__ZK_SLOT, 17},
        {"_c_0b3c-lock--2147483648", HF__ZK_LOCK, INT32_MIN},
        {"deadbeef__lock__-2147483647", HF__ZK_LOCK, INT32_MIN + 1},
    };

    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct hf__zk_wire_text name = {shapes[i].name, strlen(shapes[i].name)};
        struct hf__zk_contender it;

        ASSERT_TRUE(hf__zk_queue_read_contender(&it, name));
        ASSERT_EQ(it.kind, shapes[i].kind);
        ASSERT_EQ(it.sequence, shapes[i].sequence);
    }
}

TEST(contend, what_has_no_number_is_not_in_line)
{
    static const char *const names[] = {"locks",           "leases",
                                        "0000000001",      "lock-000000001",
                                        "lock-9999999999", NULL};

    line_up(names);
    ASSERT_EQ(line.n, 0);
}

TEST(contend, the_first_holds_and_each_waits_for_the_one_before)
{
    static const char *const names[] = {
        "c-lock-0000000003", "a-lock-0000000001", "b-lock-0000000002", NULL};

    line_up(names);
    ASSERT_EQ(blocker("a-", 0), 0);
    ASSERT_EQ(blocker("b-", 0), 1);
    ASSERT_EQ(blocker("c-", 0), 2);
}

TEST(contend, the_order_survives_the_overflow_of_the_number)
{
    static const char *const names[] = {
        "b-lock--2147483648", "a-lock-2147483647", "c-lock--2147483647", NULL};

    line_up(names);
    ASSERT_EQ(blocker("a-", 0), 0);
    ASSERT_EQ(blocker("b-", 0), INT32_MAX);
    ASSERT_EQ(blocker("c-", 0), INT32_MIN);
}

TEST(contend, readers_wait_for_the_nearest_writer_only)
{
    static const char *const names[] = {
        "a-__READ__0000000001", "b-lock-0000000002", "c-__READ__0000000003",
        "d-__READ__0000000004", NULL};

    line_up(names);
    ASSERT_EQ(blocker("a-", 0), 0);
    ASSERT_EQ(blocker("b-", 0), 1);
    ASSERT_EQ(blocker("c-", 0), 2);
    ASSERT_EQ(blocker("d-", 0), 2);
}

TEST(contend, a_reader_does_not_wait_for_the_writer_it_was)
{
    static const char *const names[] = {"a-lock-0000000005",
                                        "a-__READ__0000000005",
                                        "b-__READ__0000000006", NULL};

    line_up(names);
    ASSERT_EQ(blocker("a-__READ__", 0), 0);
    ASSERT_EQ(blocker("b-", 0), 5);
}

TEST(contend, so_many_slots_hold_and_the_next_is_told_to_watch_them_all)
{
    static const char *const names[] = {
        "a-__SLOT__0000000001", "b-__SLOT__0000000002", "c-__SLOT__0000000003",
        "d-__SLOT__0000000004", NULL};
    bool first;

    line_up(names);
    ASSERT_EQ(blocker("a-", 2), 0);
    ASSERT_EQ(blocker("b-", 2), 0);
    ASSERT_EQ(blocker("c-", 2), 2);
    (void)hf__zk_queue_blocker(&line, 2, 2, &first);
    ASSERT_TRUE(first);
    ASSERT_EQ(blocker("d-", 2), 3);
    (void)hf__zk_queue_blocker(&line, 3, 2, &first);
    ASSERT_FALSE(first);
}

TEST(contend, a_malformed_list_is_refused)
{
    static const char text[] = "\x00\x00\x00\x02\x00\x00\x00\x09lock";
    struct hf__zk_wire in = {text, text + sizeof(text) - 1, false};

    ASSERT_EQ(hf__zk_queue_read(&line, &in), HF_EINTERNAL);
    ASSERT_NULL(line.all);
}
