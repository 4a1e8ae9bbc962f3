/* SPDX-License-Identifier: MIT */
/*
 * hold.c - holdfast hold: a lock for languages without a binding.
 *
 * A program starts us with a pipe as our stdin and reads our stdout: one JSON
 * object per line, "held" first. It has the lock until it reads "lost", closes
 * the pipe, or dies, which closes the pipe too. TERM releases as well.
 *
 *     {"event":"held","name":"jobs","token":"8841","remaining_ms":29398}
 *
 * Failure: without the lock nothing is written to stdout; the exit codes are
 * those of holdfast run.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "ancestor.h"
#include "cli.h"
#include "json.h"
#include "lock.h"
#include "notify.h"
#include "signals.h"
#include "talk.h"
#include "text.h"
#include "textfile.h"

static const char help[] =
    "Usage: holdfast hold NAME [options]\n"
    "Hold NAME until stdin is closed, or TERM. Writes one JSON object per "
    "line:\n"
    "  {\"event\":\"held|jeopardy|lost|released\",\"name\",\"token\","
    "\"remaining_ms\"}\n\n"
    "  -n, --nonblock       do not wait       -w, --wait DUR    wait so long\n"
    "  -s, --shared         a reader's lock   --slots N         one of N\n"
    "  -E, --conflict-exit-code N             instead of 75\n"
    "      --ttl DUR        the lease; renewed while we hold it (30s)\n"
    "      --max-hold DUR   no longer than this; then it is lost\n"
    "      --until-signal   do not read stdin; hold until TERM, for systemd\n"
    "      --note TEXT      shown to those who ask who holds it\n"
    "      --require CAP,.. refuse an engine without\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE, -q, -v\n\n"
    "Exit: 0 released; 75 busy; 79 lost; 69 engine unreachable; 77 refused;\n"
    "  64 usage; 78 configuration; 130/143 interrupted while waiting\n";

static bool until_signal;
static const struct option hold_options[] = {
    {0, "until-signal", OPTION_FLAG, &until_signal, NULL, NULL},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {hold_options, lock_options, NULL};

static void tell(const hf_hold *hold, const char *event)
{
    struct json json = {.to = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "event", event);
    json_text(&json, "name", hf_hold_name(hold));
    json_token(&json, "token", hf_token(hold));
    json_number(&json, "remaining_ms", hf_remaining_ms(hold));
    json_end(&json);
}

static void on_event(hf_hold *hold, int state, void *ctx)
{
    bool *lost = ctx;

    if (state == HF_HELD)
        tell(hold, "held");
    else if (state == HF_JEOPARDY)
        tell(hold, "jeopardy");
    else if (state == HF_LOST && !*lost) {
        *lost = true;
        tell(hold, "lost");
    }
}

static bool input_ended(void)
{
    char bytes[4096];
    ssize_t n = read(STDIN_FILENO, bytes, sizeof(bytes));

    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

/* When the hold, or a watchdog, wants to be looked after; -1: never. */
static int64_t next_look(const hf_hold *hold)
{
    int64_t remaining_ms = hf_remaining_ms(hold);
    int64_t alive_ms = notify_alive();

    if (alive_ms < 0)
        return remaining_ms;
    return remaining_ms < 0 || alive_ms < remaining_ms ? alive_ms
                                                       : remaining_ms;
}

/* Until stdin ends, a signal comes, or the lock is lost. */
static void keep(hf_client *client, hf_hold *hold, bool *lost)
{
    int fd = hf_event_fd(client);

    while (!*lost) {
        int ready = signals_wait_two(fd, until_signal ? -1 : STDIN_FILENO,
                                     next_look(hold));

        if (ready & 1)
            (void)hf_dispatch(client); /* tells through on_event() */
        if (hf_check(hold) == HF_LOST)
            on_event(hold, HF_LOST, lost);
        /* An input that never pauses keeps a wait from letting signals in. */
        if (ready & 2)
            (void)signals_wait(/* fd= */ -1, /* timeout_ms= */ 0);
        if (signals_first() != 0 || (ready & 2 && input_ended()))
            return;
    }
}

static int let_go(hf_hold *hold, bool *lost)
{
    hf_error err = {0};
    hf_hold *seen = hf_hold_ref(hold);
    int rc;

    signals_leave();
    rc = hf_release(hold, &err);
    if (rc == HF_ELOST)
        on_event(seen, HF_LOST, lost);
    else if (rc == 0)
        tell(seen, "released");
    else
        cli_fail(&err);
    hf_hold_unref(seen);
    return cli_exit_code(rc);
}

static int hold_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1};
    hf_client *client = NULL;
    hf_hold *hold = NULL;
    hf_opts opts;
    bool lost = false;
    int why;
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    lock.name = words.word[0];
    signals_begin();
    rc = lock_prepare(&opts);
    if (rc == 0)
        rc = cli_open(&client);
    if (rc != 0)
        return rc;
    if (ancestor_holds(client, lock.name)) {
        hf_close(client);
        return cli_usage("\"%s\" is already held by an ancestor of this "
                         "process, which would wait for itself",
                         lock.name);
    }

    opts.on_event = on_event;
    opts.ctx = &lost;
    (void)hf_event_fd(client); /* so that events come to hf_dispatch() */
    notify_say("STATUS=waiting for \"%s\"", text_safe(lock.name));
    rc = lock_acquire(client, &opts, &hold, &why);
    if (hold) {
        tell(hold, "held");
        notify_ready(lock.name);
        textfile_save(client);
        keep(client, hold, &lost);
        notify_say("STOPPING=1\nSTATUS=%s",
                   lost ? "lost the lock" : "releasing");
        rc = let_go(hold, &lost);
    }
    signals_leave();
    textfile_save(client);
    hf_close(client);
    return rc;
}

VERB(hold, "NAME [options]",
     "hold a lock until stdin closes; JSON events on stdout");
