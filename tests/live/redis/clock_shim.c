/* SPDX-License-Identifier: MIT */
/*
 * clock_shim.c - clocks that a test can set: preloaded into a server or client.
 *
 * The file named by CLOCK_SHIM holds three numbers, by how many nanoseconds
 * CLOCK_REALTIME, CLOCK_BOOTTIME and CLOCK_MONOTONIC are ahead; it is made here,
 * with zeros. The last two may only be moved forward: CLOCK_BOOTTIME as over a
 * suspend, where timers that are set afterwards go off when the moved clock says
 * so, and CLOCK_MONOTONIC as for a process that got no processor. System calls
 * only: the first call comes before malloc works.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

enum { REALTIME, BOOTTIME, MONOTONIC };

static volatile int64_t *ahead_ns;

static int64_t read_ahead(int which)
{
    static int tried;
    const char *path;
    long fd;
    void *memory;

    if (ahead_ns)
        return ahead_ns[which];
    if (tried)
        return 0;
    tried = 1;
    path = getenv("CLOCK_SHIM");
    if (!path)
        return 0;
    fd =
        syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return 0;
    (void)syscall(SYS_ftruncate, fd, 4096L);
    memory = mmap(NULL, 4096, PROT_READ, MAP_SHARED, (int)fd, 0);
    (void)syscall(SYS_close, fd);
    if (memory == MAP_FAILED)
        return 0;
    ahead_ns = memory;
    return ahead_ns[which];
}

static void move(struct timespec *time, int64_t by_ns)
{
    int64_t ns = (int64_t)time->tv_sec * 1000000000 + time->tv_nsec + by_ns;

    time->tv_sec = ns / 1000000000;
    time->tv_nsec = ns % 1000000000;
}

int clock_gettime(clockid_t which, struct timespec *now)
{
    long rc = syscall(SYS_clock_gettime, which, now);

    if (rc != 0)
        return (int)rc;
    if (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)
        move(now, read_ahead(REALTIME));
    else if (which == CLOCK_BOOTTIME)
        move(now, read_ahead(BOOTTIME));
    else if (which == CLOCK_MONOTONIC || which == CLOCK_MONOTONIC_COARSE)
        move(now, read_ahead(MONOTONIC));
    return 0;
}

/* Timers on an absolute time are those of CLOCK_BOOTTIME. */
int timerfd_settime(int fd, int flags, const struct itimerspec *at,
                    struct itimerspec *old)
{
    struct itimerspec moved = *at;

    if (flags & TFD_TIMER_ABSTIME &&
        (at->it_value.tv_sec != 0 || at->it_value.tv_nsec != 0)) {
        move(&moved.it_value, -read_ahead(BOOTTIME));
        if (moved.it_value.tv_sec < 0 || moved.it_value.tv_nsec < 0)
            moved.it_value = (struct timespec){0, 1}; /* long ago */
    }
    return (int)syscall(SYS_timerfd_settime, fd, flags, &moved, old);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec spec;

    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &spec) != 0)
        return -1;
    now->tv_sec = spec.tv_sec;
    now->tv_usec = spec.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *to)
{
    struct timespec spec = {0};

    (void)clock_gettime(CLOCK_REALTIME, &spec);
    if (to)
        *to = spec.tv_sec;
    return spec.tv_sec;
}
