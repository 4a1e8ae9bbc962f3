/* SPDX-License-Identifier: MIT */
/*
 * guard.c - end the child's group when we cannot.
 *
 * Two things can keep us from stopping a child that has lost its lock: we are
 * killed (then the kernel kills the child, but not its children), or we are
 * stopped while the child runs on. So a child that lives longer than a moment
 * gets a guard: a second process, in a session of its own, that shares one page
 * with us. We write into it until when the lock is surely ours. When that time
 * passes, or when we die, the guard kills the group.
 *
 * It is forked and does nothing but system calls: no lock, no memory of the
 * library is touched. Failure: without a guard everything works as long as we
 * do.
 */
#include "guard.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The page that we share. */
struct guard {
    _Atomic int64_t deadline_ms;
    _Atomic bool fired;
};

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Sleep for @ms, or until the kernel says that our parent died. */
static void sleep_for(int64_t ms)
{
    struct timespec timeout = {.tv_sec = ms / 1000,
                               .tv_nsec = ms % 1000 * 1000000};
    sigset_t all;

    sigfillset(&all);
    (void)sigtimedwait(&all, NULL,
                       &timeout); /* for whatever reason we woke, we check */
}

__attribute__((noreturn)) static void watch(struct guard *guard, pid_t group,
                                            pid_t parent)
{
    static const int64_t nap_ms = 3600 * 1000;

    while (getppid() == parent) {
        int64_t deadline_ms = atomic_load(&guard->deadline_ms);
        int64_t left_ms = deadline_ms < 0 ? nap_ms : deadline_ms - now_ms();

        if (left_ms <= 0)
            break;
        sleep_for(left_ms < nap_ms ? left_ms : nap_ms);
    }
    atomic_store(&guard->fired, true);
    kill(-group, SIGKILL);
    _exit(0);
}

pid_t guard_start(pid_t group, struct guard **ret_guard)
{
    pid_t parent = getpid();
    sigset_t all;
    sigset_t before;
    struct guard *guard = mmap(NULL, sizeof(*guard), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (guard == MAP_FAILED)
        return 0;
    atomic_init(&guard->deadline_ms, -1);

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);

    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        setsid();
        (void)close_range(0, ~0U, 0); /* pipes must see their end without us */
        watch(guard, group, parent);
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (pid < 0) {
        munmap(guard, sizeof(*guard));
        return 0;
    }
    *ret_guard = guard;
    return pid;
}

void guard_until(struct guard *guard, int64_t deadline_ms)
{
    atomic_store(&guard->deadline_ms, deadline_ms);
}

bool guard_fired(const struct guard *guard)
{
    return atomic_load(&guard->fired);
}

void guard_stop(struct guard *guard, pid_t pid)
{
    if (pid > 0 && kill(pid, SIGKILL) == 0)
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    if (guard)
        munmap(guard, sizeof(*guard));
}
