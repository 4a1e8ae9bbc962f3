/* SPDX-License-Identifier: MIT */
/*
 * loop.h - descriptors and timers, on epoll.
 *
 * Everything here is called with the owner's monitor held, but hf__loop_poll()
 * (called without, fills a batch) and hf__loop_kick() (called from anywhere).
 * A batch is fetched outside the monitor and handled inside it; what it names
 * may be gone by then, so it carries slot and generation, never a pointer.
 */
#ifndef HF_BASE_LOOP_H
#define HF_BASE_LOOP_H

#include <sys/epoll.h>

#include "base/world.h"

struct hf__loop;
struct hf__timer;
struct hf__io;

typedef void hf__timer_fn(struct hf__timer *timer);
typedef void hf__io_fn(struct hf__io *io, uint32_t events);

/* Lives in its owner; zeroed is "not running". */
struct hf__timer {
    int64_t due_ns;
    hf__timer_fn *fire;
    uint32_t place; /* in the heap, from 1; 0: not running */
};

/* When a timer is due, beside it: the heap is ordered without a look at the
 * timers, which lie all over the memory. */
struct hf__loop_due {
    int64_t due_ns;
    struct hf__timer *timer;
};

/* One watched descriptor; lives in its owner. */
struct hf__io {
    int fd;
    uint32_t slot; /* from 1; 0: not watched */
    hf__io_fn *ready;
};

struct hf__loop_slot {
    struct hf__io *io;
    uint32_t generation;
};

enum { HF__LOOP_BATCH = 32 };
struct hf__loop_batch {
    int n;
    struct epoll_event events[HF__LOOP_BATCH];
};

struct hf__loop {
    int epoll_fd;
    int event_fd;              /* hf__loop_kick() */
    int timer_fd;              /* -1 unless hf__loop_timer_fd() was called */
    struct hf__loop_due *heap; /* from index 1 */
    uint32_t timers;
    uint32_t heap_size;
    int64_t turn_ns; /* timers run that are due by then; INT64_MIN: none do */
    struct hf__loop_slot *slots;
    uint32_t slots_size;
    int64_t timer_fd_due_ns;
};

/* 0, or HF_ENOMEM when no descriptor is left (errno says). */
int hf__loop_init(struct hf__loop *loop);
void hf__loop_release(struct hf__loop *loop);
/* In a forked child: plain close, nothing that reaches the parent's epoll. */
void hf__loop_abandon(struct hf__loop *loop);

/* Room for one more timer, so that hf__timer_start() cannot fail. Balanced by
 * nothing: the heap only grows. 0 or HF_ENOMEM. */
int hf__loop_grow(struct hf__loop *loop, uint32_t timers);
static inline int hf__loop_reserve(struct hf__loop *loop, uint32_t timers)
{
    return HF_LIKELY(timers < loop->heap_size) ? 0
                                               : hf__loop_grow(loop, timers);
}
/* Start, or move, @timer. Needs room (hf__loop_reserve). */
void hf__timer_start(struct hf__loop *loop, struct hf__timer *timer,
                     int64_t due_ns);
void hf__timer_stop(struct hf__loop *loop, struct hf__timer *timer);
static inline bool hf__timer_running(const struct hf__timer *timer)
{
    return timer->place != 0;
}
/* When the earliest timer is due, or HF_NEVER. */
static inline int64_t hf__loop_next_due(const struct hf__loop *loop)
{
    return loop->timers == 0 ? HF_NEVER : loop->heap[1].due_ns;
}
/* Fire what is due at @now_ns, each timer once; returns how many. A timer that
 * one of them starts for an instant that has passed is due after @now_ns: it
 * fires in a later call, and delays no other. */
int hf__loop_run_timers(struct hf__loop *loop, int64_t now_ns);

/* Watch io->fd for @events (EPOLLIN, EPOLLOUT). */
int hf__io_start(struct hf__loop *loop, struct hf__io *io, uint32_t events);
int hf__io_change(struct hf__loop *loop, struct hf__io *io, uint32_t events);
/* Before every close(): a duplicate in a forked child keeps the registration
 * alive, and the loop would spin. */
void hf__io_stop(struct hf__loop *loop, struct hf__io *io);

/* Without the monitor: wait until something is ready, a kick, or @until_ns. */
static inline int hf__loop_poll(struct hf__loop *loop,
                                struct hf__loop_batch *batch, int64_t until_ns)
{
    return hf__world->poll(loop, batch, until_ns);
}
/* With the monitor: call what is ready. */
void hf__loop_handle(struct hf__loop *loop, const struct hf__loop_batch *batch);
/* End a poll, or the next one. Async-signal-safe. */
static inline void hf__loop_kick(struct hf__loop *loop)
{
    hf__world->kick(loop);
}
/* Make epoll_fd readable when a timer is due, for an application's loop. */
int hf__loop_timer_fd(struct hf__loop *loop);
/* Before leaving the monitor, where there is a timer_fd: set it. */
void hf__loop_arm(struct hf__loop *loop);

/* Make an eventfd readable, and silent again. Async-signal-safe. */
void hf__fd_signal(int event_fd);
void hf__fd_drain(int fd);

/* What a background thread sleeps on: futex and epoll timeouts stand still
 * while the machine is suspended, a timerfd on CLOCK_BOOTTIME does not. */
struct hf__alarm {
    int timer_fd;
    int event_fd;
};

int hf__alarm_init(struct hf__alarm *alarm);
void hf__alarm_release(struct hf__alarm *alarm);

#endif
