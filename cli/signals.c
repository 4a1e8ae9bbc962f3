/* SPDX-License-Identifier: MIT */
/*
 * signals.c - signals as something to look at, not something that happens.
 *
 * All signals of interest stay blocked, except inside ppoll() and while we wait
 * for a lock. So a signal can neither be missed between a look and a wait nor
 * interrupt anything else, and no descriptor or thread is needed. The handlers
 * note the signal in one word, and cancel the request if there is one:
 * hf_cancel() may be called from a handler.
 *
 * What was ignored when we started (nohup) stays ignored, for the child too.
 */
#include "signals.h"

#include <stdatomic.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

static const int forwarded[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM,
                                SIGUSR1, SIGUSR2, SIGTSTP};
enum { N_FORWARDED = sizeof(forwarded) / sizeof(forwarded[0]) };

static _Atomic uint64_t came;
static _Atomic int first;
static _Atomic(hf_request *) waiting_for;
static volatile sig_atomic_t leaving;
static void (*volatile restoring)(void);
static sigset_t before;  /* the mask that we were started with */
static sigset_t outside; /* ours, as long as we do not wait */
static sigset_t inside;  /* ours while we wait */
static uint64_t caught;  /* bits of the signals that have our handler */

static bool asks_us_to_end(int signo)
{
    return signo != SIGTSTP && signo != SIGCHLD && signo != SIGCONT &&
           signo != SIGWINCH;
}

static void handle(int signo)
{
    if (restoring && asks_us_to_end(signo))
        restoring();
    if ((leaving || restoring) && asks_us_to_end(signo))
        _exit(128 + signo);
    atomic_fetch_or(&came, UINT64_C(1) << signo);
    if (!asks_us_to_end(signo))
        return;

    int none = 0;
    bool was_first = atomic_compare_exchange_strong(&first, &none, signo);
    hf_request *request = atomic_load(&waiting_for);

    /* The second one does not wait for the engine to confirm the first. */
    if (request && !was_first)
        _exit(128 + signo);
    if (request)
        hf_cancel(request);
}

static void catch_signal(int signo)
{
    struct sigaction action = {.sa_handler = handle};
    struct sigaction old;

    if (sigaction(signo, NULL, &old) != 0 || old.sa_handler == SIG_IGN)
        return;
    sigfillset(&action.sa_mask);
    if (sigaction(signo, &action, NULL) == 0)
        caught |= UINT64_C(1) << signo;
}

/* The masks: nothing of ours outside a wait, all of it inside. SIGTTOU stays
 * blocked, so that we may take the terminal back from the background. */
static void make_masks(void)
{
    sigprocmask(SIG_BLOCK, NULL, &before);
    inside = outside = before;
    for (size_t i = 0; i < N_FORWARDED; i++) {
        sigaddset(&outside, forwarded[i]);
        sigdelset(&inside, forwarded[i]);
    }
    sigaddset(&outside, SIGCHLD);
    sigdelset(&inside, SIGCHLD);
    sigaddset(&outside, SIGTTOU);
    sigaddset(&inside, SIGTTOU);
}

void signals_begin(void)
{
    make_masks();
    sigprocmask(SIG_SETMASK, &outside, NULL);
    for (size_t i = 0; i < N_FORWARDED; i++)
        if (forwarded[i] != SIGTSTP)
            catch_signal(forwarded[i]);
}

void signals_begin_child(void)
{
    struct sigaction action = {.sa_handler = handle};

    /* Also where it was ignored: we could not see how the child ends. */
    sigfillset(&action.sa_mask);
    sigaction(SIGCHLD, &action, NULL);
    catch_signal(SIGTSTP);
}

void signals_begin_screen(void)
{
    static const int more[] = {SIGTSTP, SIGCONT, SIGWINCH};

    for (size_t i = 0; i < sizeof(more) / sizeof(more[0]); i++) {
        sigaddset(&outside, more[i]);
        sigdelset(&inside, more[i]);
        catch_signal(more[i]);
    }
    sigprocmask(SIG_SETMASK, &outside, NULL);
}

void signals_at_once(void (*restore)(void))
{
    restoring = restore;
    sigprocmask(SIG_SETMASK, restore ? &inside : &outside, NULL);
}

void signals_cancel(hf_request *request)
{
    atomic_store(&waiting_for, request);
    sigprocmask(SIG_SETMASK, request ? &inside : &outside, NULL);
}

void signals_leave(void)
{
    leaving = 1;
    sigprocmask(SIG_SETMASK, &inside, NULL);
}

bool signals_poll(struct pollfd *polled, size_t n, int64_t timeout_ms)
{
    struct timespec timeout = {.tv_sec = timeout_ms / 1000,
                               .tv_nsec = timeout_ms % 1000 * 1000000};

    return ppoll(polled, n, timeout_ms < 0 ? NULL : &timeout, &inside) > 0;
}

int signals_wait_two(int fd, int other, int64_t timeout_ms)
{
    struct pollfd polled[2] = {{.fd = fd, .events = POLLIN},
                               {.fd = other, .events = POLLIN}};

    if (!signals_poll(polled, 2, timeout_ms))
        return 0;
    return (polled[0].revents != 0) | (polled[1].revents != 0) << 1;
}

bool signals_wait_room(int fd, int64_t timeout_ms)
{
    struct pollfd polled = {.fd = fd, .events = POLLOUT};

    return signals_poll(&polled, 1, timeout_ms);
}

bool signals_wait(int fd, int64_t timeout_ms)
{
    return signals_wait_two(fd, -1, timeout_ms) != 0;
}

int signals_take(void)
{
    uint64_t bits = atomic_load(&came);

    if (bits == 0)
        return 0;

    int signo = __builtin_ctzll(bits);
    atomic_fetch_and(&came, ~(UINT64_C(1) << signo));
    return signo;
}

int signals_first(void)
{
    return atomic_load(&first);
}

void signals_restore(void)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};

    for (size_t i = 0; i < N_FORWARDED; i++)
        if (caught >> forwarded[i] & 1)
            sigaction(forwarded[i], &standard, NULL);
    sigaction(SIGCHLD, &standard, NULL);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

void signals_stop(bool whole_group)
{
    struct sigaction standard = {.sa_handler = SIG_DFL};
    struct sigaction ours;
    sigset_t stop;

    sigemptyset(&stop);
    sigaddset(&stop, SIGTSTP);
    sigaction(SIGTSTP, &standard, &ours);
    /* SIGTSTP and not SIGSTOP: where no shell could continue us, the kernel
     * drops it, and we go on. */
    kill(whole_group ? 0 : getpid(), SIGTSTP);
    sigprocmask(SIG_UNBLOCK, &stop, NULL);
    sigprocmask(SIG_BLOCK, &stop, NULL);
    sigaction(SIGTSTP, &ours, NULL);
}
