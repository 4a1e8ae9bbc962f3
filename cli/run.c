/* SPDX-License-Identifier: MIT */
/*
 * run.c - holdfast run: a command under a lock.
 *
 * Open, acquire, start, watch, release: each step has its own file, and this
 * one says what the exit code is. The child's own code is passed through
 * untouched; ours are those of holdfast(1), and --report tells them apart where
 * a program happens to use the same number.
 *
 * Failure: if the lock turns out lost only when it is released, the exit code
 * is CLI_LOST all the same: somebody else may have worked at the same time.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ancestor.h"
#include "cli.h"
#include "json.h"
#include "lock.h"
#include "only_if.h"
#include "reentry.h"
#include "signals.h"
#include "stores.h"
#include "talk.h"
#include "task.h"
#include "text.h"
#include "textfile.h"

static const char help[] =
    "Usage: holdfast run NAME [options] -- CMD [ARG...]\n"
    "       holdfast run NAME [options] -c 'line of shell'\n"
    "Run CMD while holding the lock NAME. Waits for the lock.\n\n"
    "  -n, --nonblock        do not wait        -w, --wait DUR   wait so long\n"
    "  -s, --shared          a reader's lock    --slots N        one of N\n"
    "  -E, --conflict-exit-code N   instead of 75     --skip-ok  busy is 0\n"
    "      --ttl DUR         the lease; renewed while CMD runs (30s)\n"
    "      --max-hold DUR    stop CMD after so long (exit 124)\n"
    "      --hold-at-least DUR   keep the lock so long, even if CMD is quick\n"
    "      --on-lost term|kill|warn   what happens to CMD when the lock is "
    "lost\n"
    "      --kill-after DUR  from TERM to KILL (5s, at most a third of the "
    "ttl)\n"
    "      --only-if LINE    take the lock only if this line of shell exits "
    "with 0\n"
    "      --reentrant       go on if NAME is held around this command "
    "already\n"
    "      --note TEXT       shown to those who ask who holds it\n"
    "      --require CAP,... refuse an engine without: fenced, distributed, "
    "...\n"
    "      --report FILE     how it went, as JSON; - for stdout\n"
    "  -u URL, --config FILE, --profile NAME, -o KEY=VALUE, -q, -v\n\n"
    "Exit: CMD's own, 128+n if signal n ended it; 75 busy; 79 lock lost;\n"
    "  69 engine unreachable; 77 refused; 64 usage; 78 configuration;\n"
    "  124 max-hold; 126/127 CMD not executable/found; 130/143 interrupted\n"
    "A DUR is 250ms, 30s, 5m, 2h, or seconds. CMD gets HOLDFAST_TOKEN.\n";

static struct {
    bool skip_ok;
    int64_t hold_at_least_ms;
    bool no_fork; /* flock's: we stay all the same, to renew the lease */
    bool reentrant;
    const char *shell;
    const char *report;
    const char *only_if;
} options;

enum { LONG_WAIT_MS = 1000 }; /* health may have changed meanwhile */

static const struct option run_options[] = {
    {'c', "command", OPTION_TEXT, &options.shell, NULL, "STRING"},
    {'F', "no-fork", OPTION_FLAG, &options.no_fork, NULL, NULL},
    {0, "skip-ok", OPTION_FLAG, &options.skip_ok, NULL, NULL},
    {0, "hold-at-least", OPTION_DURATION, &options.hold_at_least_ms, NULL,
     "DUR"},
    {0, "only-if", OPTION_TEXT, &options.only_if, NULL, "LINE"},
    {0, "reentrant", OPTION_FLAG, &options.reentrant, NULL, NULL},
    {0, "report", OPTION_TEXT, &options.report, NULL, "FILE"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {run_options, lock_options,
                                              watch_options, NULL};

/* What --report tells. */
struct report {
    FILE *file;
    const char *outcome;
    int64_t asked;   /* lock_now_ms() */
    int64_t granted; /* 0: never */
    int64_t ended;
    uint64_t token;
    int signo;
};

static int open_report(struct report *report)
{
    report->asked = lock_now_ms();
    if (!options.report)
        return 0;
    if (strcmp(options.report, "-") == 0)
        report->file = stdout;
    else
        report->file = fopen(options.report, "we");
    if (report->file)
        return 0;
    fprintf(stderr, "holdfast: cannot write the report to %s: %s\n",
            text_safe(options.report), strerror(errno));
    return CLI_USAGE;
}

/* What an exit code before the start of the command stands for. */
static const char *outcome_of(int rc, int code)
{
    if (rc == HF_EBUSY || rc == HF_ETIMEOUT)
        return "busy";
    if (rc == HF_ECANCELED)
        return "interrupted";
    switch (code) {
    case CLI_UNAVAILABLE:
        return "unavailable";
    case CLI_AUTH:
        return "auth";
    case CLI_CONFIG:
        return "config";
    case CLI_USAGE:
        return "usage";
    case CLI_NOT_FOUND:
    case CLI_NOT_EXECUTABLE:
        return "not_started";
    default:
        return "internal";
    }
}

static int write_report(struct report *report, int code)
{
    struct json json = {.to = report->file};
    int64_t now = lock_now_ms();
    int64_t granted = report->granted;

    if (!report->file)
        return code;
    json_open(&json, NULL, '{');
    json_text(&json, "outcome", report->outcome);
    json_number(&json, "waited_ms", (granted ? granted : now) - report->asked);
    json_number(&json, "held_ms", granted ? now - granted : 0);
    json_token(&json, "token", report->token);
    json_number(&json, "exit_code", code);
    json_number(&json, "signal", report->signo);
    json_end(&json);
    if (report->file != stdout && fclose(report->file) != 0)
        fprintf(stderr, "holdfast: cannot write the report to %s: %s\n",
                text_safe(options.report), strerror(errno));
    return code;
}

/* Keep what a quick command leaves of --hold-at-least. */
static void hold_on(struct watch *watch)
{
    for (;;) {
        int64_t left_ms =
            watch->held_since + options.hold_at_least_ms - lock_now_ms();

        if (left_ms <= 0 || hf_check(watch->hold) == HF_LOST)
            return;
        if (signals_wait(watch->event_fd, left_ms))
            (void)hf_dispatch(watch->client); /* we look for ourselves */

        int signo = signals_take();
        if (signo != 0 && signo != SIGCHLD)
            return;
    }
}

/* Let go. The exit code is @code, unless it turns out that we lost it. */
static int let_go(struct watch *watch, int code)
{
    hf_error err = {0};
    int rc;

    signals_leave();
    talk_step("releasing \"%s\"", text_safe(lock.name));
    rc = hf_release(watch->hold, &err);
    if (rc == HF_ELOST && watch->outcome == WATCH_DONE) {
        talk_say("lost the lock \"%s\" while the command ran",
                 text_safe(lock.name));
        watch->outcome = WATCH_LOST;
        return CLI_LOST;
    }
    if (rc != 0 && rc != HF_ELOST)
        talk_say("released, but not confirmed: %s", text_safe(err.text));
    else if (rc == 0 && cli.verbose > 0)
        talk_say("released \"%s\"", text_safe(lock.name));
    return code;
}

/* The important line comes last: what to do about it. */
static void advise(const hf_client *client, enum watch_outcome outcome)
{
    if (cli.quiet || outcome == WATCH_DONE)
        return;
    if (outcome == WATCH_LOST && hf_capabilities(client) & HF_CAP_LIST)
        fprintf(stderr,
                "  look at what the command left half done, then: "
                "holdfast %sshow %s\n",
                cli_same_engine(), text_shell(lock.name));
    else if (outcome == WATCH_LOST)
        fprintf(stderr, "  look at what the command left half done\n");
    else
        fprintf(stderr, "  raise --max-hold, or find out why the command "
                        "takes so long\n");
}

static const char *outcome_name(enum watch_outcome outcome)
{
    static const char *const names[] = {
        [WATCH_DONE] = "done",
        [WATCH_LOST] = "lost",
        [WATCH_MAX_HOLD] = "max_hold",
    };

    return names[outcome];
}

/* The lock is ours: run the command, and release. */
static int run_under(struct watch *watch, char **argv, struct report *report)
{
    int code;

    watch->held_since = report->granted;
    watch->max_hold_ms =
        lock.max_hold_ms ? lock.max_hold_ms : hf_max_hold_ms(watch->hold);
    code = task_start(watch, argv);
    if (code != 0) {
        report->outcome = outcome_of(0, code);
        return let_go(watch, code);
    }
    talk_step("started process %ld", (long)watch->child.pid);
    watch_child(watch);
    talk_step("the command ended: %d", watch_exit_code(watch));
    if (watch->outcome == WATCH_DONE)
        hold_on(watch);
    code = let_go(watch, watch_exit_code(watch));
    advise(watch->client, watch->outcome);
    task_echo_interrupt(watch);
    report->outcome = outcome_name(watch->outcome);
    report->signo =
        WIFSIGNALED(watch->child.status) ? WTERMSIG(watch->child.status) : 0;
    return code;
}

/* hf_event_fd() wakes us, and then we look at the hold; people want to know
 * sooner. */
static void on_event(hf_hold *hold, int state, void *ctx)
{
    (void)ctx;
    talk_jeopardy(hold, state);
}

static void say_granted(const struct report *report)
{
    char age[TEXT_AGE];

    if (cli.verbose == 0)
        return;
    (void)text_age(report->granted - report->asked, age);
    if (report->token == 0)
        talk_say("got \"%s\" after %s, without a token", text_safe(lock.name),
                 age);
    else
        talk_say("got \"%s\" after %s, token %" PRIu64, text_safe(lock.name),
                 age, report->token);
}

static int acquire(struct watch *watch, hf_opts *opts, struct report *report)
{
    int rc = 0;
    int code;

    if (ancestor_holds(watch->client, lock.name)) {
        report->outcome = "usage";
        return cli_usage("\"%s\" is already held by an ancestor of this "
                         "process, which would wait for itself; use another "
                         "name, no second lock, or --reentrant",
                         lock.name);
    }
    opts->on_event = on_event;
    if (opts->max_hold_ms > 0) /* ours comes first; the library's is a fence */
        opts->max_hold_ms += watch_settings.kill_after_ms;
    watch->event_fd = hf_event_fd(watch->client);
    code = lock_acquire(watch->client, opts, &watch->hold, &rc);
    if (code == 0 && rc == 0) {
        report->granted = lock_now_ms();
        report->token = hf_token(watch->hold);
        say_granted(report);
        return 0;
    }
    report->outcome = outcome_of(rc, code);
    return code;
}

/* We sit in a loop of our own until the command ends, so no second thread has
 * to be started, woken and ended to renew the lease. And if we are killed, the
 * kernel kills the command too, but nobody says which of that and the death
 * notice of the lock comes first: the name stays closed for a moment. */
static int settle_in(void)
{
    int code = cli_prefer("drive", "app");

    return code == 0 ? cli_prefer("lock_delay", "50ms") : code;
}

/* This machine must not take the lock now. */
static int unfit(struct report *report)
{
    if (signals_first() != 0) {
        report->outcome = "interrupted";
        return CLI_SIGNAL + signals_first();
    }
    report->outcome = "unfit";
    if (!lock.silent)
        talk_say("\"%s\" is not for this machine now: --only-if failed",
                 text_safe(lock.name));
    return (int)lock.conflict_code;
}

static bool is_fit(hf_client *client)
{
    return !options.only_if || only_if(options.only_if, client);
}

/* The lock is ours, perhaps after a wait. */
static int run_granted(struct watch *watch, char **argv, struct report *report)
{
    if (report->granted - report->asked > LONG_WAIT_MS &&
        !is_fit(watch->client))
        return let_go(watch, unfit(report));
    return run_under(watch, argv, report);
}

/* Open the engine, get the lock, run. */
static int run(hf_opts *opts, char **argv, struct report *report)
{
    struct watch watch = {.event_fd = -1};
    bool is_held = false;
    int code = settle_in();

    if (code == 0 && !is_fit(/* client= */ NULL))
        return unfit(report);
    if (code == 0)
        code = cli_open(&watch.client);
    if (code != 0) {
        report->outcome = outcome_of(0, code);
        return code;
    }
    stores_warn(watch.client);
    if (options.reentrant)
        code = reentry_look(watch.client, &is_held);
    if (is_held) {
        hf_close(watch.client);
        return reentry_become(argv);
    }
    if (code == 0)
        code = acquire(&watch, opts, report);
    if (watch.hold)
        code = run_granted(&watch, argv, report);
    signals_leave();
    textfile_save(watch.client);
    hf_close(watch.client);
    return code;
}

static int run_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1, .command = true};
    struct report report = {.outcome = "usage"};
    char *shell_argv[4];
    hf_opts opts;
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    lock.name = words.word[0];
    if (options.shell && words.argv)
        return cli_usage("give a command or -c, not both");
    if (options.shell) {
        task_shell(options.shell, shell_argv);
        words.argv = shell_argv;
    }
    if (options.reentrant && (options.report || options.hold_at_least_ms > 0 ||
                              lock.max_hold_ms > 0))
        return cli_usage("--reentrant does not go with --report, --max-hold "
                         "and --hold-at-least: the outer run has those");
    if (options.reentrant)
        reentry_prepare();
    if (!words.argv)
        return cli_usage("no command; write: holdfast run %s -- CMD",
                         lock.name);
    if (options.skip_ok && lock.conflict_code == CLI_BUSY)
        lock.conflict_code = CLI_DONE;
    lock.silent = options.skip_ok;

    signals_begin();
    rc = open_report(&report);
    if (rc != 0)
        return rc;
    rc = lock_prepare(&opts);
    if (rc == 0)
        rc = run(&opts, words.argv, &report);
    else
        report.outcome = outcome_of(0, rc);
    return write_report(&report, rc);
}

VERB(run, "NAME [options] -- CMD [ARG...]",
     "run a command while holding a lock");
