/* SPDX-License-Identifier: MIT */
/*
 * local_store_test.c - the store beneath the embedded engine: tokens that
 * outlive it, growth, a full disk, damage, another clock.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/proc.h"
#include "lib/tempdir.h"
#include "lib/test.h"
#include "local_fixture.h"

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Sanitizers need an address space of their own, and time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED true
#else
#define SANITIZED false
#endif

/* ---- tokens ------------------------------------------------------------ */

static _Atomic int64_t wall_us;

static int64_t test_wall(void)
{
    return atomic_load(&wall_us);
}

static void own_the_wall(int64_t us)
{
    atomic_store(&wall_us, us);
    side_world()->wall_us = test_wall;
}

TEST(token, grows_while_the_clock_stands_still)
{
    struct side *a;
    uint64_t last = 0;

    own_the_wall(1000000);
    a = side_new(tempdir_new());
    for (int i = 0; i < 100; i++) {
        struct ask *ask = side_take(a, "jobs");

        ASSERT_GT(ask->grant.token, last);
        last = ask->grant.token;
        (void)side_release(a, ask);
    }
    ASSERT_EQ(last, 1000099);
}

TEST(token, grows_when_the_clock_is_set_back)
{
    struct side *a;
    struct ask *ask;
    uint64_t before;

    own_the_wall(INT64_C(9000000000));
    a = side_new(tempdir_new());
    ask = side_take(a, "jobs");
    before = ask->grant.token;
    (void)side_release(a, ask);
    atomic_store(&wall_us, 5);
    a->local->store.mark.wall_at_ns = 0; /* read it again */
    ASSERT_EQ(side_take(a, "jobs")->grant.token, before + 1);
}

TEST(token, grows_over_the_deletion_of_the_store_with_a_clock_set_back)
{
    const char *dir = tempdir_new();
    struct side *a;
    uint64_t before;

    own_the_wall(INT64_C(9000000000));
    a = side_new(dir);
    before = side_take(a, "jobs")->grant.token;
    ASSERT_EQ(unlink(side_path(dir, "table")), 0);
    atomic_store(&wall_us, 5);
    ASSERT_GT(side_take(side_new(dir), "jobs")->grant.token, before);
}

TEST(token, of_a_reserved_range_the_unused_part_is_given_back)
{
    struct side *a;
    struct ask *ask;
    uint64_t first;

    own_the_wall(1000);
    a = side_new(tempdir_new());
    ask = side_ask_with(a, "jobs", HF_EXCLUSIVE, 0, 1000, 17, false);
    first = ask->grant.token;
    ASSERT_EQ(ask->grant.tokens, 17);
    ask->ticket->token += 3; /* passed on three times */
    (void)side_release(a, ask);
    ASSERT_EQ(side_take(a, "jobs")->grant.token, first + 4);
}

TEST(token, of_a_reserved_range_is_not_given_back_if_others_came_after)
{
    struct side *a;
    struct ask *one;
    struct ask *two;

    own_the_wall(1000);
    a = side_new(tempdir_new());
    one = side_ask_with(a, "data", HF_SHARED, 0, 1000, 10, false);
    two = side_ask(a, "data", HF_SHARED, 0);
    (void)side_release(a, one);
    (void)side_release(a, two);
    ASSERT_EQ(side_take(a, "data")->grant.token, two->grant.token + 1);
}

TEST(token, mark_is_the_greatest_of_the_files_and_strangers_do_not_count)
{
    const char *dir = tempdir_new();
    struct hf__mark mark = {.fd = open(dir, O_RDONLY | O_DIRECTORY),
                            .name = "tokens-"};

    ASSERT_EQ(hf__mark_read(&mark), 0);
    ASSERT_EQ(hf__mark_write(&mark, 500), 0);
    ASSERT_EQ(hf__mark_write(&mark, 400), 0); /* a slower one */
    ASSERT_EQ(hf__mark_read(&mark), 500);
    ASSERT_EQ(hf__mark_write(&mark, 600), 0);
    ASSERT_EQ(access(side_path(dir, "tokens-1f4"), F_OK), -1);
    ASSERT_EQ(
        close(open(side_path(dir, "tokens-ffffffffffffffff"), O_CREAT, 0600)),
        0);
    ASSERT_EQ(close(open(side_path(dir, "tokens-zz"), O_CREAT, 0600)), 0);
    ASSERT_EQ(hf__mark_read(&mark), 600);
    ASSERT_EQ(close(mark.fd), 0);
}

TEST(token, without_a_place_for_the_mark_still_grows_and_the_doctor_says_so)
{
    struct side *a = side_new(tempdir_new());
    struct ask *ask;
    struct rows rows;
    uint64_t before;

    ASSERT_EQ(close(a->local->store.mark.fd), 0);
    a->local->store.mark.fd = -1;
    ask = side_take(a, "jobs");
    before = ask->grant.token;
    (void)side_release(a, ask);
    ASSERT_GT(side_take(a, "jobs")->grant.token, before);
    ASSERT_OK(side_doctor(a, &rows), NULL);
    ASSERT_HAS(rows.found[5], "1 tokens: the high-water mark cannot be kept");
}

/* ---- growth ------------------------------------------------------------ */

static int64_t store_bytes(const char *dir)
{
    struct stat st;

    ASSERT_EQ(stat(side_path(dir, "table"), &st), 0);
    return (int64_t)st.st_blocks * 512;
}

TEST(store, is_small_when_new)
{
    const char *dir = tempdir_new();
    int64_t begin_ns = hf__now();
    struct side *a = side_new(dir);

    test_note("made in %lld us", (long long)(hf__now() - begin_ns) / 1000);
    (void)side_take(a, "jobs");
    ASSERT_LT(store_bytes(dir), 5 << 20);
}

TEST(store, keeps_many_locks_in_little_memory_and_gives_the_blocks_back)
{
    enum { N = 20000 };
    const char *dir = tempdir_new();
    struct side *a = side_new(dir);
    struct ask **asks = calloc(N, sizeof(struct ask *));
    int64_t empty = store_bytes(dir);
    int64_t full;
    struct rows rows;

    ASSERT_NOT_NULL(asks);
    test_defer(free, asks);
    for (int round = 0; round < 3; round++) {
        char name[40];

        for (int i = 0; i < N; i++) {
            (void)snprintf(name, sizeof(name), "round-%d-lock-%d", round, i);
            asks[i] = side_take(a, name);
        }
        full = store_bytes(dir);
        ASSERT_LT((full - empty) / N, 400);
        ASSERT_OK(side_list(a, NULL, &rows), NULL);
        ASSERT_EQ(rows.holders, N);
        for (int i = 0; i < N; i++)
            ASSERT_EQ(side_release(a, asks[i]), LEFT);
        if (round == 0)
            empty = 0;
        else
            ASSERT_EQ(store_bytes(dir), full);
    }
}

TEST(store, has_room_for_a_thousand_waiters_of_one_name)
{
    enum { N = 1000 };
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct ask *first = side_ask(at.b, "jobs", HF_EXCLUSIVE, 0);
    struct rows rows;

    for (int i = 1; i < N; i++)
        ASSERT_EQ(side_ask(at.b, "jobs", HF_EXCLUSIVE, 0)->report, QUEUED);
    ASSERT_OK(side_list(at.a, "jobs", &rows), NULL);
    ASSERT_EQ(rows.waiters, N);
    (void)side_release(at.a, held);
    ASSERT_TRUE(side_wait_for(at.b, first, GRANTED, 1000));
}

TEST(store, says_so_when_one_bucket_is_full)
{
    struct side *a = side_new(tempdir_new());
    char name[HF_NAME_MAX + 1];
    struct ask *ask;
    int n = 0;

    if (SANITIZED) {
        test_not_tested("a full bucket takes too long with a sanitizer");
        return;
    }
    memset(name, 'x', HF_NAME_MAX);
    name[HF_NAME_MAX] = '\0';
    do {
        ask = side_ask(a, name, HF_SLOT, HF_SLOTS_MAX);
        n++;
    } while (ask->report == GRANTED && n < 20000);
    ASSERT_EQ(ask->report, FAILED);
    ASSERT_EQ(ask->err.code, HF_ENOSPACE);
    ASSERT_GT(n, 3000);
}

static void die_with_many(struct proc *self, void *arg)
{
    struct side *side = side_new(arg);
    char name[40];

    for (int i = 0; i < 3000; i++) {
        (void)snprintf(name, sizeof(name), "of-%d-%d", (int)getpid(), i);
        (void)side_take(side, name);
    }
    proc_tell(self, "ready");
    (void)proc_hear(self);
}

TEST(store, does_not_grow_when_holders_of_many_die_again_and_again)
{
    static char dir[512];
    int64_t before = 0;

    (void)snprintf(dir, sizeof(dir), "%s", tempdir_new());
    for (int i = 0; i < 6; i++) {
        struct proc *child = proc_start(die_with_many, dir);

        proc_expect(child, "ready");
        proc_kill(child);
        if (i == 1)
            before = store_bytes(dir);
    }
    ASSERT_LE(store_bytes(dir), before + (1 << 19));
}

/* ---- a full disk ------------------------------------------------------- */

static void unmount(void *arg)
{
    (void)umount2(arg, MNT_DETACH);
}

TEST(store, full_disk_is_an_error_and_every_release_works)
{
    enum { N = 40000 };
    const char *dir = tempdir_new();
    static struct ask *asks[N];
    struct ask *ask = NULL;
    struct side *a;
    char name[40];
    int n = 0;

    if (geteuid() != 0 ||
        mount("none", dir, "tmpfs", 0, "size=4m,mode=700") != 0) {
        test_not_tested("a small tmpfs needs root");
        return;
    }
    test_defer(unmount, (void *)(uintptr_t)dir);
    a = side_new(dir);
    while (n < N) {
        (void)snprintf(name, sizeof(name), "lock-%d", n);
        ask = side_ask(a, name, HF_EXCLUSIVE, 0);
        if (ask->report != GRANTED)
            break;
        asks[n++] = ask;
    }
    ASSERT_NOT_NULL(ask);
    ASSERT_EQ(ask->report, FAILED);
    ASSERT_EQ(ask->err.code, HF_ENOSPACE);
    ASSERT_HAS(ask->err.text, "full");
    ASSERT_GT(n, 1000);
    for (int i = 0; i < n; i++)
        ASSERT_EQ(side_release(a, asks[i]), LEFT);
    (void)side_take(a, "again");
}

TEST(store, no_room_for_the_store_itself_is_an_error)
{
    const char *dir = tempdir_new();
    struct side *a;
    hf_error err;

    if (geteuid() != 0 ||
        mount("none", dir, "tmpfs", 0, "size=1m,mode=700") != 0) {
        test_not_tested("a small tmpfs needs root");
        return;
    }
    test_defer(unmount, (void *)(uintptr_t)dir);
    a = side_prepare(side_url(dir));
    ASSERT_RC(side_connect(a, &err), HF_ENOSPACE, &err);
    ASSERT_EQ(access(side_path(dir, "table.new"), F_OK), -1);
}

TEST_FORKED(store, file_size_limit_is_an_error_and_no_signal)
{
    const struct rlimit limit = {1 << 20, 1 << 20};
    struct side *a = side_prepare(side_url(tempdir_new()));
    hf_error err;

    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ASSERT_RC(side_connect(a, &err), HF_ENOSPACE, &err);
    ASSERT_HAS(err.text, "ulimit -f");
}

TEST_FORKED(store, little_address_space_is_enough)
{
    const struct rlimit limit = {300 << 20, 300 << 20};
    const char *dir = tempdir_new();
    struct rows rows;
    struct side *a;

    if (SANITIZED) {
        test_not_tested("a sanitizer needs much address space");
        return;
    }
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        FAIL("setrlimit");
    a = side_new(dir);
    (void)side_take(a, "jobs");
    ASSERT_OK(side_doctor(a, &rows), NULL);
    ASSERT_HAS(rows.found[3], "1 address space");
}

/* ---- damage ------------------------------------------------------------ */

static void write_at(const char *path, uint64_t offset, const void *bytes,
                     size_t len)
{
    int fd = open(path, O_WRONLY);

    ASSERT_GE(fd, 0);
    ASSERT_EQ(pwrite(fd, bytes, len, (off_t)offset), (ssize_t)len);
    ASSERT_EQ(close(fd), 0);
}

TEST(damage, of_another_layout_is_refused_and_left_alone)
{
    const char *dir = tempdir_new();
    const uint32_t layout = 99;
    struct side *b;
    hf_error err;

    (void)side_new(dir);
    write_at(side_path(dir, "table"), offsetof(struct hf__table_header, layout),
             &layout, sizeof(layout));
    b = side_prepare(side_url(dir));
    ASSERT_RC(side_connect(b, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "layout 99");
    ASSERT_EQ(access(side_path(dir, "table"), F_OK), 0);
}

TEST(damage, what_is_no_table_is_refused)
{
    const char *dir = tempdir_new();
    struct side *a;
    hf_error err;
    int fd = open(side_path(dir, "table"), O_CREAT | O_WRONLY, 0600);

    ASSERT_EQ(write(fd, "hello", 5), 5);
    ASSERT_EQ(close(fd), 0);
    a = side_prepare(side_url(dir));
    ASSERT_RC(side_connect(a, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "damaged");
    ASSERT_EQ(truncate(side_path(dir, "table"), 64 << 20), 0);
    ASSERT_RC(a->engine->ops->connect(a->engine, &err), HF_ECONFIG, &err);
}

TEST(damage, of_another_boot_is_replaced_if_nobody_uses_it)
{
    const char *dir = tempdir_new();
    const uint8_t boot_id[16] = {1, 2, 3};
    uint64_t at = offsetof(struct hf__table_header, boot_id);
    struct side *a = side_new(dir);
    struct side *b;
    uint64_t before = side_take(a, "jobs")->grant.token;
    hf_error err;

    write_at(side_path(dir, "table"), at, boot_id, sizeof(boot_id));
    b = side_prepare(side_url(dir));
    ASSERT_RC(side_connect(b, &err), HF_ECONFIG, &err);
    ASSERT_HAS(err.text, "another kernel");
    a->engine->ops->close(a->engine, /* forked= */ false);
    hf__free(a->engine);
    a->engine = NULL;
    ASSERT_OK(b->engine->ops->connect(b->engine, &err), &err);
    ASSERT_GT(side_take(b, "jobs")->grant.token, before);
}

/* A block of one held lock, every byte changed in turn: nobody else gets the
 * lock, and nobody crashes. */
TEST(damage, of_any_byte_of_a_block_never_makes_a_second_holder)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct hf__local_ticket *mine =
        hf__engine_ticket(at.a->engine, held->ticket);
    unsigned char *block = (unsigned char *)hf__table_block_at(
        &at.a->local->store.table, hf__word_unit(mine->word));
    size_t used = sizeof(struct hf__table_block) + 64 + 16;

    for (size_t i = 8; i < used; i++) {
        for (int bit = 0; bit < 8; bit++) {
            struct ask *ask;

            block[i] ^= (unsigned char)(1 << bit);
            ask = side_ask_with(at.b, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true);
            ASSERT_NE(ask->report, GRANTED);
            block[i] ^= (unsigned char)(1 << bit);
        }
    }
    ASSERT_EQ(side_renew(at.a, held), RENEWED);
}

TEST(damage, of_a_byte_of_the_bucket_never_makes_a_second_holder)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "jobs");
    struct hf__local_ticket *mine =
        hf__engine_ticket(at.a->engine, held->ticket);
    _Atomic uint64_t *word =
        &at.a->local->store.table.buckets[mine->bucket].word;
    uint64_t good = atomic_load(word);

    for (int byte = 0; byte < 8; byte++) {
        for (uint64_t value = 0; value < 256; value++) {
            uint64_t bad =
                (good & ~(UINT64_C(255) << (byte * 8))) | value << (byte * 8);
            struct ask *ask;

            atomic_store(word, bad);
            ask = side_ask_with(at.b, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true);
            ASSERT_NE(ask->report, GRANTED);
        }
        atomic_store(word, good);
    }
    ASSERT_EQ(side_release(at.a, held), LEFT);
}

/* Random bytes all over a live table: errors, and no crash, no endless loop. */
TEST_FORKED(damage, all_over_the_table_is_survived)
{
    enum { ROUNDS = 3000 };
    const char *dir = tempdir_new();
    struct side *a = side_new(dir);
    struct side *b = side_new(dir);
    uint64_t heap = HF__TABLE_HEAP_AT + HF__TABLE_SEGMENT;
    struct rows rows;
    char name[16];

    for (int i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof(name), "n%d", i);
        (void)side_ask(a, name, i % 3, 2);
    }
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t at = i % 4 == 0   ? hf__random_below(4096 + 64)
                      : i % 4 == 1 ? HF__TABLE_SLOTS_AT + hf__random_below(4096)
                                   : heap + hf__random_below(0x10000);
        struct ask *ask;
        char byte;

        if (i % 4 == 3)
            at = HF__TABLE_BUCKETS_AT + hf__random_below(0x200000);
        byte = (char)hf__random_below(256);
        ASSERT_EQ(pwrite(a->local->store.table.fd, &byte, 1, (off_t)at), 1);
        (void)snprintf(name, sizeof(name), "n%d", i % 50);
        ask = side_ask_with(b, name, HF_EXCLUSIVE, 0, 1000, 1, true);
        if (ask->report == GRANTED && i % 2 == 0)
            (void)side_withdraw(b, ask);
        if (i % 100 == 0)
            (void)side_list(b, NULL, &rows);
    }
}

static void ask_in_another_time(struct proc *self, void *arg)
{
    struct side *side;
    struct ask *ask;
    struct rows rows;
    int fd = unshare(CLONE_NEWTIME) != 0
                 ? -1
                 : open("/proc/self/timens_offsets", O_WRONLY);

    if (fd < 0 || write(fd, "boottime 100000 0\n", 18) != 18) {
        proc_tell(self, "cannot");
        return;
    }
    (void)close(fd);
    (void)proc_hear(self);
    if (fork() != 0)
        return; /* only children live in the new namespace */
    side = side_new(arg);
    ask = side_ask_with(side, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true);
    (void)side_list(side, "jobs", &rows);
    proc_tell(self, "%d %lld %lld", (int)ask->report,
              (long long)rows.last.lease_ms,
              (long long)side->local->store.table.offset_ns);
    _exit(0);
}

TEST(clock, of_another_time_namespace_is_translated)
{
    static char dir[512];
    struct side *a;
    struct proc *child;
    const char *line;
    long long lease_ms;
    long long offset_ns;
    int report;

    (void)snprintf(dir, sizeof(dir), "%s", tempdir_new());
    child = proc_start(ask_in_another_time, dir);
    a = side_new(dir);
    (void)side_take(a, "jobs");
    proc_say(child, "go");
    line = proc_next(child, 5000);
    ASSERT_NOT_NULL(line);
    if (strcmp(line, "cannot") == 0) {
        test_not_tested("a time namespace needs root, and a kernel with it");
        return;
    }
    ASSERT_EQ(sscanf(line, "%d %lld %lld", &report, &lease_ms, &offset_ns), 3);
    ASSERT_EQ(offset_ns, 100000 * HF_SECOND);
    ASSERT_EQ(report, BUSY);
    ASSERT_GT(lease_ms, 20000);
    ASSERT_LE(lease_ms, 30000);
}
