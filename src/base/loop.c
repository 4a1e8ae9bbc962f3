/* SPDX-License-Identifier: MIT */
/*
 * loop.c - a small event loop: descriptors on epoll, timers in a heap.
 *
 * It is our own because the ones there are count timers from a cached clock
 * that stands still while the machine sleeps, hide a descriptor that one thread
 * adds from another that polls, and reach into the parent after a fork
 * (docs/internals/monitor.md).
 *
 * A registration is known to epoll by slot and generation. An event that was
 * fetched before its registration went away finds another generation, and is
 * dropped.
 */
#include "base/loop.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "base/loop_real.h"

/* epoll_event.data of our own descriptors; slots start at 1. */
enum { EVENT_SLOT = 0, TIMER_SLOT = UINT32_MAX };

static uint64_t tag(uint32_t slot, uint32_t generation)
{
    return ((uint64_t)generation << 32) | slot;
}

static int watch(int epoll_fd, int op, int fd, uint32_t events, uint64_t data)
{
    struct epoll_event event = {.events = events, .data = {.u64 = data}};

    return epoll_ctl(epoll_fd, op, fd, &event) == 0 ? 0 : -errno;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd); /* nothing was written through it */
    *fd = -1;
}

int hf__loop_init(struct hf__loop *loop)
{
    memset(loop, 0, sizeof(*loop));
    loop->timer_fd = -1;
    loop->timer_fd_due_ns = HF_NEVER;
    loop->turn_ns = INT64_MIN;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (loop->epoll_fd < 0 || loop->event_fd < 0 ||
        watch(loop->epoll_fd, EPOLL_CTL_ADD, loop->event_fd, EPOLLIN,
              tag(EVENT_SLOT, 0)) != 0) {
        hf__loop_release(loop);
        return HF_ENOMEM;
    }
    return 0;
}

void hf__loop_abandon(struct hf__loop *loop)
{
    close_fd(&loop->timer_fd);
    close_fd(&loop->event_fd);
    close_fd(&loop->epoll_fd);
}

void hf__loop_release(struct hf__loop *loop)
{
    hf__loop_abandon(loop);
    hf__free(loop->heap);
    hf__free(loop->slots);
    loop->heap = NULL;
    loop->slots = NULL;
    loop->timers = 0;
}

/* ---- timers: a heap from index 1, four children each ------------------- */

enum { CHILDREN = 4 };

static uint32_t parent_of(uint32_t place)
{
    return (place + 2) / CHILDREN;
}

static uint32_t first_child_of(uint32_t place)
{
    return CHILDREN * place - 2;
}

static void heap_put(struct hf__loop *loop, uint32_t place,
                     struct hf__loop_due due)
{
    loop->heap[place] = due;
    due.timer->place = place;
}

static uint32_t sift_up(struct hf__loop *loop, uint32_t place, int64_t due_ns)
{
    while (place > 1 && loop->heap[parent_of(place)].due_ns > due_ns) {
        heap_put(loop, place, loop->heap[parent_of(place)]);
        place = parent_of(place);
    }
    return place;
}

/* The child of @place that is due first; 0: it has none. */
static uint32_t earliest_child(const struct hf__loop *loop, uint32_t place)
{
    uint32_t first = first_child_of(place);
    uint32_t earliest = first;

    if (first > loop->timers)
        return 0;
    for (uint32_t i = first + 1; i < first + CHILDREN && i <= loop->timers; i++)
        if (loop->heap[i].due_ns < loop->heap[earliest].due_ns)
            earliest = i;
    return earliest;
}

static uint32_t sift_down(struct hf__loop *loop, uint32_t place, int64_t due_ns)
{
    for (;;) {
        uint32_t child = earliest_child(loop, place);

        if (child == 0 || loop->heap[child].due_ns >= due_ns)
            return place;
        heap_put(loop, place, loop->heap[child]);
        place = child;
    }
}

/* Put @due, which has no place or @place, where it belongs. */
static void heap_settle(struct hf__loop *loop, uint32_t place,
                        struct hf__loop_due due)
{
    place = sift_up(loop, place, due.due_ns);
    place = sift_down(loop, place, due.due_ns);
    heap_put(loop, place, due);
}

int hf__loop_grow(struct hf__loop *loop, uint32_t timers)
{
    uint32_t size = loop->heap_size ? loop->heap_size : 16;
    struct hf__loop_due *heap;

    while (size <= timers)
        size *= 2;
    heap = hf__realloc(loop->heap, size * sizeof(*heap));
    if (!heap)
        return HF_ENOMEM;
    loop->heap = heap;
    loop->heap_size = size;
    return 0;
}

void hf__timer_start(struct hf__loop *loop, struct hf__timer *timer,
                     int64_t due_ns)
{
    uint32_t place = timer->place;

    if (due_ns <= loop->turn_ns && !HF__PLANTED("timer_starves_timers"))
        due_ns = loop->turn_ns + 1;
    if (place == 0) {
        assert(loop->timers + 1 < loop->heap_size);
        place = ++loop->timers;
    }
    timer->due_ns = due_ns;
    heap_settle(loop, place, (struct hf__loop_due){due_ns, timer});
}

void hf__timer_stop(struct hf__loop *loop, struct hf__timer *timer)
{
    uint32_t place = timer->place;
    struct hf__loop_due last;

    if (place == 0)
        return;
    timer->place = 0;
    last = loop->heap[loop->timers--];
    if (last.timer != timer)
        heap_settle(loop, place, last);
}

int hf__loop_run_timers(struct hf__loop *loop, int64_t now_ns)
{
    int64_t before_ns = loop->turn_ns;
    int fired = 0;

    loop->turn_ns = now_ns;
    while (loop->timers > 0 && loop->heap[1].due_ns <= now_ns) {
        struct hf__timer *timer = loop->heap[1].timer;

        hf__timer_stop(loop, timer);
        timer->fire(timer);
        fired++;
    }
    loop->turn_ns = before_ns;
    return fired;
}

/* ---- descriptors ------------------------------------------------------- */

static int free_slot(struct hf__loop *loop, uint32_t *ret_slot)
{
    struct hf__loop_slot *slots;
    uint32_t size = loop->slots_size ? loop->slots_size * 2 : 8;

    for (uint32_t i = 1; i < loop->slots_size; i++) {
        if (!loop->slots[i].io) {
            *ret_slot = i;
            return 0;
        }
    }
    slots = hf__realloc(loop->slots, size * sizeof(*slots));
    if (!slots)
        return HF_ENOMEM;
    memset(slots + loop->slots_size, 0,
           (size - loop->slots_size) * sizeof(*slots));
    *ret_slot = loop->slots_size ? loop->slots_size : 1;
    loop->slots = slots;
    loop->slots_size = size;
    return 0;
}

int hf__io_start(struct hf__loop *loop, struct hf__io *io, uint32_t events)
{
    uint32_t slot;
    int rc;

    rc = free_slot(loop, &slot);
    if (rc != 0)
        return rc;
    loop->slots[slot].generation++;
    rc = watch(loop->epoll_fd, EPOLL_CTL_ADD, io->fd, events,
               tag(slot, loop->slots[slot].generation));
    if (rc != 0)
        return HF_ENOMEM;
    loop->slots[slot].io = io;
    io->slot = slot;
    return 0;
}

int hf__io_change(struct hf__loop *loop, struct hf__io *io, uint32_t events)
{
    int rc = watch(loop->epoll_fd, EPOLL_CTL_MOD, io->fd, events,
                   tag(io->slot, loop->slots[io->slot].generation));

    return rc == 0 ? 0 : HF_ENOMEM;
}

void hf__io_stop(struct hf__loop *loop, struct hf__io *io)
{
    if (io->slot == 0)
        return;
    (void)epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, io->fd, NULL);
    loop->slots[io->slot].io = NULL;
    io->slot = 0;
}

/* By syscall(), here and in hf__fd_signal(): read() and write() are points at
 * which a thread may be cancelled, and it would take the monitor with it. */
void hf__fd_drain(int fd)
{
    uint64_t count;
    int before = errno;

    /* EAGAIN: another thread was quicker. */
    if (syscall(SYS_read, fd, &count, sizeof(count)) < 0)
        errno = before;
}

void hf__loop_handle(struct hf__loop *loop, const struct hf__loop_batch *batch)
{
    for (int i = 0; i < batch->n; i++) {
        uint32_t slot = (uint32_t)batch->events[i].data.u64;
        uint32_t generation = (uint32_t)(batch->events[i].data.u64 >> 32);

        if (slot == EVENT_SLOT) {
            hf__fd_drain(loop->event_fd);
        } else if (slot == TIMER_SLOT) {
            hf__fd_drain(loop->timer_fd);
        } else if (slot < loop->slots_size && loop->slots[slot].io &&
                   loop->slots[slot].generation == generation) {
            loop->slots[slot].io->ready(loop->slots[slot].io,
                                        batch->events[i].events);
        }
    }
}

/* ---- an application's loop --------------------------------------------- */

int hf__loop_timer_fd(struct hf__loop *loop)
{
    if (loop->timer_fd >= 0)
        return 0;
    loop->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    if (loop->timer_fd < 0 ||
        watch(loop->epoll_fd, EPOLL_CTL_ADD, loop->timer_fd, EPOLLIN,
              tag(TIMER_SLOT, 0)) != 0) {
        close_fd(&loop->timer_fd);
        return HF_ENOMEM;
    }
    return 0;
}

static void set_timer_fd(int fd, int64_t due_ns)
{
    struct itimerspec at = {0};

    if (due_ns != HF_NEVER) {
        if (due_ns < 1)
            due_ns = 1; /* 0 would disarm it */
        at.it_value.tv_sec = due_ns / HF_SECOND;
        at.it_value.tv_nsec = due_ns % HF_SECOND;
    }
    (void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &at, NULL);
}

void hf__loop_arm(struct hf__loop *loop)
{
    int64_t due_ns = hf__loop_next_due(loop);

    if (loop->timer_fd < 0 || due_ns == loop->timer_fd_due_ns)
        return;
    set_timer_fd(loop->timer_fd, due_ns);
    loop->timer_fd_due_ns = due_ns;
}

/* ---- the kernel's side ------------------------------------------------- */

void hf__fd_signal(int event_fd)
{
    static const uint64_t one = 1;
    int before = errno;

    /* Full means that it is readable already. */
    if (syscall(SYS_write, event_fd, &one, sizeof(one)) < 0)
        errno = before;
}

/* Of kernels before 5.11, and where a filter knows no newer call, the wait is
 * counted in milliseconds: rather too long than a loop that does not sleep. */
static int wait_for_events(int epoll_fd, struct epoll_event *events,
                           const struct timespec *timeout)
{
    static _Atomic bool is_coarse;
    int ms = -1;

    if (!is_coarse) {
        int n = (int)syscall(SYS_epoll_pwait2, epoll_fd, events, HF__LOOP_BATCH,
                             timeout, NULL, 0);

        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return n;
        is_coarse = true;
    }
    if (timeout != NULL) {
        int64_t left_ns = timeout->tv_sec * HF_SECOND + timeout->tv_nsec;
        int64_t left_ms = left_ns / HF_MS + (left_ns % HF_MS != 0);

        ms = left_ms < INT_MAX ? (int)left_ms : INT_MAX;
    }
    /* By syscall(): epoll_wait() is a point of cancellation. */
    return (int)syscall(SYS_epoll_pwait, epoll_fd, events, HF__LOOP_BATCH, ms,
                        NULL, 0);
}

int hf__loop_real_poll(struct hf__loop *loop, struct hf__loop_batch *batch,
                       int64_t until_ns)
{
    struct timespec left;
    struct timespec *timeout = NULL;

    if (until_ns != HF_NEVER) {
        int64_t left_ns = until_ns <= 0 ? 0 : until_ns - hf__now();

        if (left_ns < 0)
            left_ns = 0;
        left.tv_sec = left_ns / HF_SECOND;
        left.tv_nsec = left_ns % HF_SECOND;
        timeout = &left;
    }
    batch->n = wait_for_events(loop->epoll_fd, batch->events, timeout);
    if (batch->n < 0)
        batch->n = 0; /* EINTR is no event */
    return batch->n;
}

void hf__loop_real_kick(struct hf__loop *loop)
{
    hf__fd_signal(loop->event_fd);
}

void hf__loop_real_sleep(struct hf__alarm *alarm, struct hf__loop *loop,
                         int64_t until_ns)
{
    struct pollfd fds[3] = {
        {.fd = alarm->event_fd, .events = POLLIN},
        {.fd = alarm->timer_fd, .events = POLLIN},
        {.fd = loop ? loop->epoll_fd : -1, .events = POLLIN},
    };

    set_timer_fd(alarm->timer_fd, until_ns);
    (void)poll(fds, HF_COUNT_OF(fds), -1); /* EINTR: the caller looks */
    if (fds[0].revents)
        hf__fd_drain(alarm->event_fd);
}

void hf__loop_real_ring(struct hf__alarm *alarm)
{
    hf__fd_signal(alarm->event_fd);
}

int hf__alarm_init(struct hf__alarm *alarm)
{
    alarm->timer_fd = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC);
    alarm->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (alarm->timer_fd < 0 || alarm->event_fd < 0) {
        hf__alarm_release(alarm);
        return HF_ENOMEM;
    }
    return 0;
}

void hf__alarm_release(struct hf__alarm *alarm)
{
    close_fd(&alarm->timer_fd);
    close_fd(&alarm->event_fd);
}
