/* SPDX-License-Identifier: MIT */
#include "base/loop.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test.h"

enum { MANY = 500 };

struct clockwork {
    struct hf__timer timer;
    int number;
};

static struct hf__loop loop;
static int order[MANY];
static int fired;

static void loop_end(void *arg)
{
    (void)arg;
    hf__loop_release(&loop);
}

static void begin(void)
{
    ASSERT_EQ(hf__loop_init(&loop), 0);
    test_defer(loop_end, NULL);
    ASSERT_EQ(hf__loop_reserve(&loop, MANY + 1), 0);
    fired = 0;
}

static void on_fire(struct hf__timer *timer)
{
    order[fired++] = HF_CONTAINER_OF(timer, struct clockwork, timer)->number;
}

TEST(loop, fires_timers_in_the_order_in_which_they_are_due)
{
    static struct clockwork works[MANY];
    uint32_t seed = 12345;

    begin();
    for (int i = 0; i < MANY; i++) {
        seed = seed * 1664525u + 1013904223u;
        works[i].number = (int)(seed >> 8) % 10000;
        works[i].timer = (struct hf__timer){.fire = on_fire};
        hf__timer_start(&loop, &works[i].timer, works[i].number);
    }
    for (int i = 0; i < MANY; i += 3)
        hf__timer_stop(&loop, &works[i].timer);
    for (int i = 1; i < MANY; i += 3) {
        works[i].number = 10000 - works[i].number;
        hf__timer_start(&loop, &works[i].timer, works[i].number);
    }
    ASSERT_EQ(hf__loop_run_timers(&loop, 20000), MANY - (MANY + 2) / 3);
    for (int i = 1; i < fired; i++)
        ASSERT_LE(order[i - 1], order[i]);
    ASSERT_EQ(hf__loop_next_due(&loop), HF_NEVER);
}

TEST(loop, fires_only_what_is_due)
{
    struct clockwork early = {{.fire = on_fire}, 1};
    struct clockwork late = {{.fire = on_fire}, 2};

    begin();
    hf__timer_start(&loop, &late.timer, 200);
    hf__timer_start(&loop, &early.timer, 100);
    ASSERT_EQ(hf__loop_run_timers(&loop, 150), 1);
    ASSERT_EQ(order[0], 1);
    ASSERT_FALSE(hf__timer_running(&early.timer));
    ASSERT_EQ(hf__loop_next_due(&loop), 200);
    hf__timer_stop(&loop, &late.timer);
    hf__timer_stop(&loop, &late.timer); /* twice is once */
    ASSERT_EQ(hf__loop_run_timers(&loop, 500), 0);
}

static void fire_again(struct hf__timer *timer)
{
    fired++;
    hf__timer_start(&loop, timer, 0);
}

TEST(loop, a_timer_that_starts_itself_for_the_past_does_not_hang_the_loop)
{
    struct hf__timer timer = {.fire = fire_again};

    begin();
    hf__timer_start(&loop, &timer, 0);
    ASSERT_EQ(hf__loop_run_timers(&loop, 10), 1);
    ASSERT_EQ(hf__loop_run_timers(&loop, 11), 1);
    ASSERT_EQ(fired, 2);
}

TEST(loop, a_timer_that_starts_itself_for_the_past_starves_no_other)
{
    struct hf__timer greedy = {.fire = fire_again};
    struct clockwork patient[2] = {{{.fire = on_fire}, 7},
                                   {{.fire = on_fire}, 8}};

    begin();
    hf__timer_start(&loop, &greedy, 1);
    hf__timer_start(&loop, &patient[0].timer, 5);
    hf__timer_start(&loop, &patient[1].timer, 10);
    ASSERT_EQ(hf__loop_run_timers(&loop, 10), 3);
    ASSERT_EQ(fired, 3);
    ASSERT_EQ(order[1], 7);
    ASSERT_EQ(order[2], 8);
    ASSERT_TRUE(hf__timer_running(&greedy));
    ASSERT_EQ(hf__loop_run_timers(&loop, 10), 0); /* time has not passed */
    ASSERT_EQ(hf__loop_run_timers(&loop, 11), 1);
}

static int ready;

static void on_ready(struct hf__io *io, uint32_t events)
{
    ready++;
    ASSERT_TRUE(events & EPOLLIN);
    hf__fd_drain(io->fd);
}

TEST(loop, tells_that_a_descriptor_is_ready)
{
    struct hf__io io = {.fd = eventfd(0, EFD_NONBLOCK), .ready = on_ready};
    struct hf__loop_batch batch;

    begin();
    ready = 0;
    ASSERT_EQ(hf__io_start(&loop, &io, EPOLLIN), 0);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, 0), 0);
    hf__fd_signal(io.fd);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, HF_NEVER), 1);
    hf__loop_handle(&loop, &batch);
    ASSERT_EQ(ready, 1);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, 0), 0);
    hf__io_stop(&loop, &io);
    (void)close(io.fd);
}

TEST(loop, drops_an_event_whose_registration_has_gone)
{
    struct hf__io old = {.fd = eventfd(1, EFD_NONBLOCK), .ready = on_ready};
    struct hf__io new = {.fd = eventfd(0, EFD_NONBLOCK), .ready = on_ready};
    struct hf__loop_batch batch;

    begin();
    ready = 0;
    ASSERT_EQ(hf__io_start(&loop, &old, EPOLLIN), 0);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, HF_NEVER), 1);
    /* Between poll and handling the slot changes hands. */
    hf__io_stop(&loop, &old);
    ASSERT_EQ(hf__io_start(&loop, &new, EPOLLIN), 0);
    ASSERT_EQ(new.slot, 1);
    hf__loop_handle(&loop, &batch);
    ASSERT_EQ(ready, 0);
    hf__io_stop(&loop, &new);
    (void)close(old.fd);
    (void)close(new.fd);
}

TEST(loop, watches_more_descriptors_than_its_first_table)
{
    struct hf__io ios[40];
    struct hf__loop_batch batch;

    begin();
    ready = 0;
    for (int i = 0; i < 40; i++) {
        ios[i] =
            (struct hf__io){.fd = eventfd(1, EFD_NONBLOCK), .ready = on_ready};
        ASSERT_EQ(hf__io_start(&loop, &ios[i], EPOLLOUT), 0);
        ASSERT_EQ(hf__io_change(&loop, &ios[i], EPOLLIN), 0);
    }
    while (hf__loop_poll(&loop, &batch, 0) > 0)
        hf__loop_handle(&loop, &batch);
    ASSERT_EQ(ready, 40);
    for (int i = 0; i < 40; i++) {
        hf__io_stop(&loop, &ios[i]);
        (void)close(ios[i].fd);
    }
}

TEST(loop, a_kick_ends_the_next_poll_once)
{
    struct hf__loop_batch batch;

    begin();
    hf__loop_kick(&loop);
    hf__loop_kick(&loop);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, HF_NEVER), 1);
    hf__loop_handle(&loop, &batch);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, 0), 0);
}

TEST(loop, an_application_sees_a_due_timer_on_the_descriptor)
{
    struct clockwork work = {{.fire = on_fire}, 1};
    struct hf__loop_batch batch;

    begin();
    ASSERT_EQ(hf__loop_timer_fd(&loop), 0);
    hf__timer_start(&loop, &work.timer, hf__now() + HF_MS);
    hf__loop_arm(&loop);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, HF_NEVER), 1);
    hf__loop_handle(&loop, &batch);
    ASSERT_EQ(hf__loop_run_timers(&loop, hf__now()), 1);
}

/* From here on the kernel answers epoll_pwait2 with @error. */
static void refuse_epoll_pwait2(int error)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_epoll_pwait2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = sizeof(filter) / sizeof(filter[0]),
                                 .filter = filter};

    (void)prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void poll_on_an_old_kernel(int error)
{
    struct hf__loop_batch batch;
    int64_t until_ns;

    begin();
    refuse_epoll_pwait2(error);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, 0), 0);
    until_ns = hf__now() + HF_MS / 2;
    ASSERT_EQ(hf__loop_poll(&loop, &batch, until_ns), 0);
    ASSERT_GE(hf__now(), until_ns);
    hf__loop_kick(&loop);
    ASSERT_EQ(hf__loop_poll(&loop, &batch, HF_NEVER), 1);
}

TEST_FORKED(loop, sleeps_and_hears_on_a_kernel_without_epoll_pwait2)
{
    poll_on_an_old_kernel(ENOSYS);
}

TEST_FORKED(loop, sleeps_and_hears_where_a_filter_refuses_epoll_pwait2)
{
    poll_on_an_old_kernel(EPERM);
}

TEST(alarm, rings_before_its_time_and_wakes_at_its_time)
{
    struct hf__alarm alarm;
    int64_t start_ns = hf__now();

    ASSERT_EQ(hf__alarm_init(&alarm), 0);
    hf__world->ring(&alarm);
    hf__world->sleep(&alarm, NULL, HF_NEVER);
    hf__world->sleep(&alarm, NULL, start_ns + 2 * HF_MS);
    ASSERT_GE(hf__now(), start_ns + 2 * HF_MS);
    hf__alarm_release(&alarm);
}
