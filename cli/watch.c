/* SPDX-License-Identifier: MIT */
/*
 * watch.c - a child and the hold that it runs under.
 *
 * The promise: when the lock is lost, the child is gone before anybody else can
 * be granted it. hf_remaining_ms() is the time for which the lock is surely
 * ours without another renewal, and every renewal pushes it out. So:
 *
 *     … renewed … renewed … silence ──────┬──────────────────┬─────────
 *                                   left = kill-after     left = 0
 *                                        TERM               KILL
 *
 * both to the whole group, where what is left is that time less a reserve: on a
 * busy machine we may be woken late, and a killed process takes a moment to go.
 * A renewal that comes in time cancels nothing but the plan; one that comes
 * after TERM comes too late. kill-after is at most a third of the lease,
 * because a healthy hold may have only two thirds left.
 *
 * Where the lock is gone at once (broken by somebody, session ended), there is
 * no time left for TERM, and the child is killed.
 *
 * Stages: RUNNING, ASKED (TERM was sent, KILL has a time), KILLED. A child that
 * ends by itself ends the watch; one that was ended by a signal takes what is
 * left of its group with it.
 */
#include "watch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "cli.h"
#include "lock.h"
#include "notify.h"
#include "signals.h"
#include "talk.h"
#include "text.h"

enum { RUNNING, ASKED, KILLED };

/* A child that lives longer than this gets a guard. */
enum { GUARD_AFTER_MS = 20 };
enum { RESERVE_MS = 100 };
/* How often to look for what is left of a family that was killed. */
enum { LOOK_AGAIN_MS = 20, GIVE_UP_MS = 2000 };

struct watch_options watch_settings = {.on_lost = WATCH_TERM,
                                       .kill_after_ms = 5000};

static int set_on_lost(const char *value)
{
    if (strcmp(value, "term") == 0)
        watch_settings.on_lost = WATCH_TERM;
    else if (strcmp(value, "kill") == 0)
        watch_settings.on_lost = WATCH_KILL;
    else if (strcmp(value, "warn") == 0)
        watch_settings.on_lost = WATCH_WARN;
    else
        return cli_usage("--on-lost takes term, kill or warn, not \"%s\"",
                         value);
    return 0;
}

static int set_kill_after(const char *value)
{
    if (!options_duration(value, &watch_settings.kill_after_ms) ||
        watch_settings.kill_after_ms < 0)
        return cli_usage("--kill-after takes a duration (250ms, 30s, 5m, or "
                         "seconds), not \"%s\"",
                         value);
    return 0;
}

const struct option watch_options[] = {
    {0, "on-lost", OPTION_CALL, NULL, set_on_lost, "term|kill|warn"},
    {0, "kill-after", OPTION_CALL, NULL, set_kill_after, "DUR"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};

static void kill_all(struct watch *watch)
{
    child_signal(&watch->child, SIGKILL,
                 /* everybody= */ watch->outcome != WATCH_DONE);
    if (watch->stage != KILLED)
        watch->kill_at = lock_now_ms();
    watch->stage = KILLED;
}

/* TERM now, KILL after @grace_ms. */
static void ask(struct watch *watch, int64_t grace_ms)
{
    child_signal(&watch->child, SIGTERM,
                 /* everybody= */ watch->outcome != WATCH_DONE);
    watch->kill_at = lock_now_ms() + grace_ms;
    watch->stage = ASKED;
}

static void say_lost(const struct watch *watch, const char *what)
{
    talk_say("%s the lock \"%s\"%s", what, text_safe(hf_hold_name(watch->hold)),
             watch_settings.on_lost == WATCH_WARN
                 ? "; the command runs on, as --on-lost=warn says"
                 : "; stopping the command");
}

/* How long the child may go on without another renewal; -1: for ever. */
static int64_t left_ms(const struct watch *watch)
{
    int64_t remaining_ms = hf_remaining_ms(watch->hold);
    int state = hf_check(watch->hold);

    if (state == HF_LOST || state == HF_RELEASED)
        return 0;
    if (remaining_ms < 0)
        return -1;
    return remaining_ms > watch->reserve_ms ? remaining_ms - watch->reserve_ms
                                            : 0;
}

/* With how much left the child is asked to end. */
static int64_t grace_ms(const struct watch *watch)
{
    return watch_settings.on_lost == WATCH_TERM ? watch->kill_after_ms : 0;
}

static void lose(struct watch *watch, int64_t left)
{
    watch->outcome = WATCH_LOST;
    say_lost(watch,
             hf_remaining_ms(watch->hold) > 0 ? "about to lose" : "lost");
    if (watch_settings.on_lost == WATCH_WARN)
        return;
    if (left <= 0)
        kill_all(watch);
    else
        ask(watch, left);
}

static void check_hold(struct watch *watch)
{
    int64_t left = left_ms(watch);

    if (watch_settings.on_lost != WATCH_WARN)
        child_guard_until(&watch->child, left < 0 ? -1 : lock_now_ms() + left);
    if (watch->outcome != WATCH_DONE) {
        if (left == 0 && watch->stage == ASKED)
            kill_all(watch);
        return;
    }
    if (left >= 0 && left <= grace_ms(watch))
        lose(watch, left);
}

static void check_max_hold(struct watch *watch)
{
    char age[TEXT_AGE];
    int64_t held = lock_now_ms() - watch->held_since;

    if (watch->max_hold_ms <= 0 || watch->outcome != WATCH_DONE ||
        held < watch->max_hold_ms)
        return;
    watch->outcome = WATCH_MAX_HOLD;
    talk_say("\"%s\" is held for %s, as long as --max-hold allows; stopping "
             "the command",
             text_safe(hf_hold_name(watch->hold)),
             text_age(watch->max_hold_ms, age));
    ask(watch, watch_settings.kill_after_ms);
}

static void check_clock(struct watch *watch)
{
    int64_t now = lock_now_ms();

    if (now - watch->started >= GUARD_AFTER_MS && !watch->child.ended)
        child_guard(&watch->child);
    check_max_hold(watch);
    check_hold(watch);
    /* Again and again, because of what was born in the meantime. */
    if (watch->stage == KILLED ||
        (watch->stage == ASKED && now >= watch->kill_at))
        kill_all(watch);
}

static int64_t least(int64_t a, int64_t b)
{
    if (a < 0)
        return b;
    return b < 0 || a < b ? a : b;
}

static int64_t until(int64_t instant)
{
    int64_t left_ms = instant - lock_now_ms();

    return left_ms > 0 ? left_ms : 0;
}

/* When the hold has to be looked at again. No event tells of a renewal, so the
 * guard has to hear of it from here, well before the deadline that it knows. */
static int64_t next_look_at_hold(const struct watch *watch)
{
    int64_t left = left_ms(watch);
    int64_t wait_ms = left - grace_ms(watch);

    if (left < 0)
        return -1;
    if (wait_ms > left / 2 && hf_check(watch->hold) == HF_HELD)
        wait_ms = left / 2;
    return wait_ms > 0 ? wait_ms : 0;
}

/* How long until check_clock() has something to do; -1: no end. */
static int64_t next_look(const struct watch *watch)
{
    int64_t wait_ms = notify_alive();

    if (watch->stage == KILLED)
        return LOOK_AGAIN_MS;
    if (watch->stage == ASKED)
        wait_ms = least(wait_ms, until(watch->kill_at));
    if (watch->outcome == WATCH_DONE)
        wait_ms = least(wait_ms, next_look_at_hold(watch));
    if (watch->outcome == WATCH_DONE && watch->max_hold_ms > 0)
        wait_ms = least(wait_ms, until(watch->held_since + watch->max_hold_ms));
    if (!watch->child.guard && !watch->child.ended)
        wait_ms = least(wait_ms, until(watch->started + GUARD_AFTER_MS));
    return wait_ms;
}

static void forward_signals(struct watch *watch)
{
    for (int signo = signals_take(); signo != 0; signo = signals_take()) {
        if (signo == SIGCHLD)
            continue;
        child_signal(&watch->child, signo, /* everybody= */ false);
        if (signo != SIGTSTP && signo != SIGUSR1 && signo != SIGUSR2)
            watch->told = true;
    }
}

/* True if what is left of the child's group must not outlive it. */
static bool takes_the_rest_along(const struct watch *watch)
{
    if (watch->outcome == WATCH_LOST && watch_settings.on_lost == WATCH_WARN)
        return false;
    return watch->outcome != WATCH_DONE || watch->told ||
           WIFSIGNALED(watch->child.status);
}

/* The child has ended. True if nothing is left that we have to end. */
static bool rest_is_gone(struct watch *watch)
{
    if (!takes_the_rest_along(watch))
        return true;
    if (!child_group_lives(&watch->child) &&
        (watch->outcome == WATCH_DONE || !child_family_lives(&watch->child)))
        return true;
    if (watch->stage == RUNNING)
        ask(watch, watch->kill_after_ms);

    /* What not even KILL ends is stuck in the kernel. */
    return watch->stage == KILLED &&
           lock_now_ms() - watch->kill_at > GIVE_UP_MS;
}

/* kill-after is what the option says, or a third of the lease; the reserve a
 * twentieth, or a tenth of a second. */
static void plan(struct watch *watch)
{
    int64_t ttl_ms = hf_ttl_ms(watch->hold);

    watch->kill_after_ms = watch_settings.kill_after_ms;
    watch->reserve_ms = ttl_ms / 20 < RESERVE_MS ? ttl_ms / 20 : RESERVE_MS;
    if (ttl_ms > 0 && ttl_ms / 3 - watch->reserve_ms < watch->kill_after_ms)
        watch->kill_after_ms = ttl_ms / 3 - watch->reserve_ms;
}

/* While we are stopped nobody renews. */
static void say_stopped(void *ctx)
{
    const struct watch *watch = ctx;
    int64_t left = left_ms(watch);
    char age[TEXT_AGE];

    if (left >= 0)
        talk_say("stopped: the lock \"%s\" is lost in %s unless the command "
                 "goes on",
                 text_safe(hf_hold_name(watch->hold)), text_age(left, age));
}

void watch_child(struct watch *watch)
{
    watch->child.on_stop = say_stopped;
    watch->child.ctx = watch;
    watch->outcome = WATCH_DONE;
    watch->stage = RUNNING;
    watch->told = false;
    watch->started = lock_now_ms();
    plan(watch);

    for (;;) {
        if (signals_wait(watch->event_fd, next_look(watch)))
            (void)hf_dispatch(watch->client); /* we look for ourselves */
        forward_signals(watch);
        child_reap(&watch->child);
        if (watch->outcome == WATCH_DONE && child_guard_fired(&watch->child))
            lose(watch, /* left= */ 0);
        if (watch->child.ended && rest_is_gone(watch))
            break;
        check_clock(watch);
        child_continue(&watch->child);
    }
    child_finish(&watch->child);
}

static int status_code(int status)
{
    return WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status)
                               : WEXITSTATUS(status);
}

int watch_exit_code(const struct watch *watch)
{
    switch (watch->outcome) {
    case WATCH_LOST:
        return CLI_LOST;
    case WATCH_MAX_HOLD:
        return CLI_MAX_HOLD;
    case WATCH_DONE:
        break;
    }
    return status_code(watch->child.status);
}
