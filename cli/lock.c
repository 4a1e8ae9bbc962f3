/* SPDX-License-Identifier: MIT */
/*
 * lock.c - the options about a lock, and waiting for one.
 *
 * The wait sits inside the library (hf_request_wait), which is where the engine
 * can wake us soonest. A signal handler cancels the request, so TERM, HUP and
 * Ctrl-C end the wait at once and leave nothing on the engine. On a terminal we
 * come back after 0.3 s, and then every second, to say who holds the lock; off a
 * terminal after 5 s, and then every minute.
 *
 * Failure: the cancel may meet the grant. Then we hold the lock for a moment,
 * and give it back before we leave.
 */
#include "lock.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "signals.h"
#include "talk.h"
#include "text.h"

enum { FIRST_LOOK_MS = 300, NEXT_LOOK_MS = 1000, CONNECT_MS = 5000 };
enum { FIRST_LINE_MS = 5000, NEXT_LINE_MS = 60000 }; /* off a terminal */

struct lock lock = {.wait_ms = LOCK_UNSET,
                    .slots = LOCK_UNSET,
                    .conflict_code = CLI_BUSY};

static int set_require(const char *value)
{
    return cli_set("require", value);
}

const struct option lock_options[] = {
    {'n', "nonblock", OPTION_FLAG, &lock.nonblock, NULL, NULL},
    {0, "nb", OPTION_FLAG, &lock.nonblock, NULL, NULL},
    {'w', "wait", OPTION_DURATION, &lock.wait_ms, NULL, "DUR"},
    {0, "timeout", OPTION_DURATION, &lock.wait_ms, NULL, "DUR"},
    {'E', "conflict-exit-code", OPTION_NUMBER, &lock.conflict_code, NULL, "N"},
    {'s', "shared", OPTION_FLAG, &lock.shared, NULL, NULL},
    {'x', "exclusive", OPTION_FLAG, &lock.exclusive, NULL, NULL},
    {'e', "ex", OPTION_FLAG, &lock.exclusive, NULL, NULL},
    {0, "slots", OPTION_NUMBER, &lock.slots, NULL, "N"},
    {0, "ttl", OPTION_DURATION, &lock.ttl_ms, NULL, "DUR"},
    {0, "max-hold", OPTION_DURATION, &lock.max_hold_ms, NULL, "DUR"},
    {0, "note", OPTION_TEXT, &lock.note, NULL, "TEXT"},
    {0, "metrics-textfile", OPTION_TEXT, &lock.metrics, NULL, "FILE"},
    {0, "require", OPTION_CALL, NULL, set_require, "CAP,…"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};

int64_t lock_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* user@host:pid. The name service is not asked: it may be slow, or down. */
static void name_owner(void)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    char user[32] = "";
    const char *name = secure_getenv("LOGNAME");
    hf_error err;

    if (!name || !*name)
        name = secure_getenv("USER");
    if (name && *name && strlen(name) < sizeof(user))
        snprintf(user, sizeof(user), "%s", name);
    else
        snprintf(user, sizeof(user), "uid%ld", (long)getuid());
    (void)gethostname(host, HOST_NAME_MAX);
    snprintf(lock.owner, sizeof(lock.owner), "%.31s@%.64s:%ld", user, host,
             (long)getpid());

    /* A user name from the environment may be any bytes. */
    if (hf_name_check(lock.owner, strlen(lock.owner), &err) != 0)
        snprintf(lock.owner, sizeof(lock.owner), "uid%ld@%ld", (long)getuid(),
                 (long)getpid());
}

static int check_modes(void)
{
    if (lock.shared + lock.exclusive + (lock.slots > 0) > 1)
        return cli_usage("choose one of -s, -x and --slots");
    if (lock.slots == 0 || lock.slots > HF_SLOTS_MAX)
        return cli_usage("--slots goes from 1 to %d", HF_SLOTS_MAX);
    if (lock.nonblock && lock.wait_ms > 0)
        return cli_usage("-n and -w contradict each other");
    if (lock.conflict_code > 255)
        return cli_usage("-E takes an exit code, 0 to 255");
    if (lock.ttl_ms < 0 || lock.max_hold_ms < 0)
        return cli_usage("a lease and --max-hold are never \"forever\"; leave "
                         "them out");
    return 0;
}

/* -w is for the engine, too: a server that does not answer ends the wait. */
static int limit_connecting(void)
{
    char timeout[32];

    if (lock.wait_ms <= 0 || lock.wait_ms >= CONNECT_MS)
        return 0;
    snprintf(timeout, sizeof(timeout), "%" PRId64 "ms", lock.wait_ms);
    return cli_prefer("connect_timeout", timeout);
}

int lock_mode(void)
{
    if (lock.shared)
        return HF_SHARED;
    return lock.slots > 0 ? HF_SLOT : HF_EXCLUSIVE;
}

int lock_prepare(hf_opts *opts)
{
    hf_error err = {0};
    int rc = check_modes();

    if (rc == 0)
        rc = limit_connecting();

    if (rc == 0)
        rc = cli_load_config();
    if (rc != 0)
        return rc;
    if (hf_name_check(lock.name, strlen(lock.name), &err) != 0)
        return cli_fail(&err);
    name_owner();

    hf_opts_init(opts, sizeof(*opts));
    opts->mode = lock_mode();
    opts->slots = lock.slots > 0 ? (int32_t)lock.slots : 0;
    opts->ttl_ms = lock.ttl_ms;
    opts->max_hold_ms = lock.max_hold_ms;
    opts->owner = lock.owner;
    opts->note = lock.note;
    if (lock.nonblock)
        opts->wait_ms = 0;
    else if (lock.wait_ms != LOCK_UNSET)
        opts->wait_ms = lock.wait_ms;
    else
        opts->wait_ms = HF_CONFIGURED;
    return 0;
}

/* Wait for @request, and talk meanwhile. */
static int wait_for(hf_client *client, hf_request *request, hf_hold **ret_hold,
                    hf_error *err)
{
    int64_t slice = talk_wanted() ? FIRST_LOOK_MS
                    : cli.quiet   ? HF_FOREVER
                                  : FIRST_LINE_MS;

    for (;;) {
        int rc = hf_request_wait(request, slice, ret_hold, err);

        if (rc != HF_ETIMEOUT || !hf_request_pending(request))
            return rc;
        if (talk_wanted())
            talk_waiting(client, lock.name, lock.owner);
        else
            talk_still_waiting(client, lock.name, lock.owner);
        slice = talk_wanted() ? NEXT_LOOK_MS : NEXT_LINE_MS;
    }
}

/* A signal came: say so, give back what we may have got, and leave. */
static int interrupted(int signo, int rc, hf_hold *hold)
{
    if (rc == 0)
        (void)hf_release(hold, NULL); /* never used; its lease ends it too */
    if (talk_wanted())
        fprintf(stderr, "holdfast: gave up waiting for \"%s\"\n",
                text_safe(lock.name));
    return CLI_SIGNAL + signo;
}

static int refused(hf_client *client, int rc, const hf_error *err)
{
    if (rc != HF_EBUSY && rc != HF_ETIMEOUT)
        return cli_fail(err);
    if (!cli.quiet && !lock.silent)
        talk_busy(client, lock.name, rc, err);
    return (int)lock.conflict_code;
}

static int other_count(const hf_lock_info *info, void *ctx)
{
    if (info->mode != HF_SLOT || info->slots <= 0 || info->slots == lock.slots)
        return 0;
    *(int32_t *)ctx = info->slots;
    return 1;
}

/* Two who count differently would admit as many as the larger one says. Where
 * the engine cannot list, nobody can tell. */
static int check_slots(hf_client *client)
{
    int32_t slots = 0;

    if (lock.slots <= 0 || !(hf_capabilities(client) & HF_CAP_LIST) ||
        hf_show(client, lock.name, other_count, &slots, NULL) != 1)
        return 0;
    return cli_usage("\"%s\" has %d slots for those who hold it now, not "
                     "%" PRId64 ": use one number everywhere",
                     lock.name, (int)slots, lock.slots);
}

int lock_acquire(hf_client *client, const hf_opts *opts, hf_hold **ret_hold,
                 int *ret_rc)
{
    hf_request *request = NULL;
    hf_hold *hold = NULL;
    hf_error err = {0};
    int rc = check_slots(client);

    *ret_rc = 0;
    if (rc != 0)
        return rc;
    rc = hf_acquire_start(client, lock.name, opts, /* done= */ NULL,
                          /* ctx= */ NULL, &request, &err);
    *ret_rc = rc;
    if (rc != 0)
        return cli_fail(&err);

    talk_step("asked for \"%s\"", text_safe(lock.name));
    signals_cancel(request);
    rc = wait_for(client, request, &hold, &err);
    signals_cancel(NULL);
    talk_clear();
    hf_request_free(request);

    *ret_rc = rc;
    if (signals_first() != 0) {
        *ret_rc = HF_ECANCELED;
        return interrupted(signals_first(), rc, hold);
    }
    if (rc != 0)
        return refused(client, rc, &err);
    *ret_hold = hold;
    return 0;
}
