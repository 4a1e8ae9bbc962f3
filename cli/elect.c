/* SPDX-License-Identifier: MIT */
/*
 * elect.c - holdfast elect: a command that only the leader runs.
 *
 * Stand as a candidate; when elected, run the command; when leadership is lost,
 * stop it as holdfast run would, and stand again. The command's own end is the
 * end of the candidacy. HOLDFAST_TOKEN is the term: it grows with every leader.
 *
 * --observe does not stand: it prints who leads, each time that changes.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ancestor.h"
#include "cli.h"
#include "follow.h"
#include "json.h"
#include "lock.h"
#include "look.h"
#include "notify.h"
#include "signals.h"
#include "talk.h"
#include "task.h"
#include "text.h"
#include "textfile.h"

static const char help[] =
    "Usage: holdfast elect NAME [options] -- CMD [ARG...]\n"
    "       holdfast elect NAME --observe [--json]\n"
    "Campaign for NAME; run CMD while leading; stop it when leadership is "
    "lost,\n"
    "and campaign again. Ends when CMD ends by itself, with CMD's exit "
    "code.\n\n"
    "      --observe         do not stand; print who leads, when it changes\n"
    "      --interval DUR    look at this pace, and not when something "
    "changes\n"
    "      --ttl DUR         the lease; renewed while we lead (30s)\n"
    "      --max-hold DUR    lead no longer than this (exit 124)\n"
    "      --on-lost term|kill|warn   what happens to CMD (term)\n"
    "      --kill-after DUR  from TERM to KILL (5s, at most a third of the "
    "ttl)\n"
    "      --note TEXT       shown to those who ask who leads\n"
    "  -u URL, --config FILE, --profile NAME, -o KEY=VALUE, -q, -v\n\n"
    "Exit: CMD's own; 130/143 interrupted while a candidate; else as run.\n";

static struct {
    bool observe;
    int64_t interval_ms;
} options;

static const struct option elect_options[] = {
    {0, "observe", OPTION_FLAG, &options.observe, NULL, NULL},
    {0, "interval", OPTION_DURATION, &options.interval_ms, NULL, "DUR"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {elect_options, lock_options,
                                              watch_options, NULL};

enum {
    FIRST_LOOK_MS = 300,
    NEXT_LOOK_MS = 1000,
    OBSERVE_MS = 500, /* where nobody tells us */
    OBSERVE_CALM_MS = 30000
};

/* A candidacy. on_change() and we are on the same thread: hf_dispatch(). */
struct candidacy {
    hf_client *client;
    hf_election *election;
    hf_hold *elected; /* a reference of ours; NULL while a candidate */
    int event_fd;
};

static void on_change(hf_hold *hold, int state, void *ctx)
{
    struct candidacy *candidacy = ctx;

    talk_jeopardy(hold, state);
    if (state != HF_HELD || hf_check(hold) == HF_LOST)
        return;
    /* HELD also follows JEOPARDY; a term has one token. */
    if (candidacy->elected && hf_token(candidacy->elected) == hf_token(hold) &&
        hf_token(hold) != 0)
        return;
    hf_hold_unref(candidacy->elected);
    candidacy->elected = hf_hold_ref(hold);
}

/* Wait until elected. False if a signal came first. */
static bool campaign(struct candidacy *candidacy)
{
    int64_t look_ms = talk_wanted() ? FIRST_LOOK_MS : -1;

    notify_say("STATUS=campaigning for \"%s\"", text_safe(lock.name));
    while (!candidacy->elected) {
        int64_t alive_ms = notify_alive();
        int64_t wait_ms = look_ms > 0 && (alive_ms < 0 || look_ms < alive_ms)
                              ? look_ms
                              : alive_ms;

        if (signals_wait(candidacy->event_fd, wait_ms))
            (void)hf_dispatch(candidacy->client); /* tells on_change() */
        else if (look_ms > 0 && signals_first() == 0)
            talk_waiting(candidacy->client, lock.name, lock.owner);
        if (signals_first() != 0)
            break;
        if (look_ms > 0)
            look_ms = NEXT_LOOK_MS;
    }
    talk_clear();
    return candidacy->elected && signals_first() == 0;
}

/* Lead for one term. True if it was lost, and another campaign is due. */
static bool lead(struct candidacy *candidacy, char **argv, int *ret_code)
{
    struct watch watch = {.client = candidacy->client,
                          .hold = candidacy->elected,
                          .event_fd = candidacy->event_fd,
                          .max_hold_ms = lock.max_hold_ms,
                          .held_since = lock_now_ms()};

    candidacy->elected = NULL;
    if (talk_wanted())
        talk_say("leading \"%s\", term %" PRIu64, text_safe(lock.name),
                 hf_token(watch.hold));
    notify_ready(lock.name);
    textfile_save(candidacy->client);
    *ret_code = task_start(&watch, argv);
    if (*ret_code == 0) {
        watch_child(&watch);
        *ret_code = watch_exit_code(&watch);
    }
    hf_hold_unref(watch.hold);
    if (watch.outcome == WATCH_DONE || *ret_code == CLI_MAX_HOLD)
        task_echo_interrupt(&watch);
    return watch.outcome == WATCH_LOST && signals_first() == 0;
}

static int stand(hf_client *client, hf_opts *opts, char **argv)
{
    struct candidacy candidacy = {.client = client,
                                  .event_fd = hf_event_fd(client)};
    hf_error err = {0};
    int code = 0;
    int rc = hf_elect_start(client, lock.name, opts, on_change, &candidacy,
                            &candidacy.election, &err);

    if (rc != 0)
        return cli_fail(&err);
    do {
        code = CLI_SIGNAL + signals_first();
        if (!campaign(&candidacy)) {
            code = CLI_SIGNAL + signals_first();
            break;
        }
    } while (lead(&candidacy, argv, &code));

    notify_say("STOPPING=1");
    signals_leave();
    rc = hf_elect_stop(candidacy.election, &err);
    if (rc != 0 && rc != HF_ELOST)
        talk_say("resigned, but not confirmed: %s", text_safe(err.text));
    hf_hold_unref(candidacy.elected);
    return code;
}

/* Who leads, as far as --observe knows. */
struct leader {
    bool present;
    char owner[HF_OWNER_MAX + 1];
    char host[256];
    int64_t pid;
    uint64_t token;
    char card[160];
};

static int see(const hf_lock_info *info, void *ctx)
{
    struct leader *leader = ctx;

    if (info->role != HF_HOLDER)
        return 0;
    leader->present = true;
    snprintf(leader->owner, sizeof(leader->owner), "%s", info->owner);
    snprintf(leader->host, sizeof(leader->host), "%s", info->host);
    leader->pid = info->pid;
    leader->token = info->token;
    look_holder(info, leader->card, sizeof(leader->card));
    return 1;
}

static void print_leader(const struct leader *leader)
{
    struct json json = {.to = stdout};

    if (!cli.json && leader->present)
        printf("%s: led by %s, term %" PRIu64 "\n", text_safe(lock.name),
               text_safe(leader->card), leader->token);
    else if (!cli.json)
        printf("%s: nobody leads\n", text_safe(lock.name));
    if (!cli.json) {
        fflush(stdout);
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "event", leader->present ? "leader" : "vacant");
    json_text(&json, "name", lock.name);
    json_token(&json, "token", leader->token);
    json_text(&json, "owner", leader->owner);
    json_text(&json, "host", leader->host);
    json_number(&json, "pid", leader->pid);
    json_end(&json);
}

/* How long to wait for the next look, whatever happens. */
static int64_t pace_ms(const struct follow *follow)
{
    if (options.interval_ms > 0)
        return options.interval_ms;
    return follow->watch ? OBSERVE_CALM_MS : OBSERVE_MS;
}

static int observe(hf_client *client)
{
    struct leader last = {0};
    struct follow follow = {0};
    bool first = true;

    if (options.interval_ms <= 0)
        follow_start(&follow, client, lock.name, HF_EXACT);
    while (signals_first() == 0) {
        struct leader leader = {0};
        hf_error err = {0};
        int rc = hf_show(client, lock.name, see, &leader, &err);

        if (rc < 0 && !hf_is_retriable(rc)) {
            follow_stop(&follow);
            return cli_fail(&err);
        }
        if (rc >= 0 && (first || leader.present != last.present ||
                        leader.token != last.token ||
                        strcmp(leader.owner, last.owner) != 0)) {
            print_leader(&leader);
            last = leader;
            first = false;
        }
        (void)follow_wait(&follow, -1, pace_ms(&follow));
    }
    follow_stop(&follow);
    return CLI_SIGNAL + signals_first();
}

static int elect(struct words *words)
{
    hf_client *client = NULL;
    hf_opts opts;
    int rc = lock_prepare(&opts);

    if (rc == 0)
        rc = cli_open(&client);
    if (rc != 0)
        return rc;
    if (options.observe)
        rc = observe(client);
    else if (ancestor_holds(client, lock.name))
        rc = cli_usage("\"%s\" is already held by an ancestor of this "
                       "process, which would wait for itself",
                       lock.name);
    else
        rc = stand(client, &opts, words->argv);
    signals_leave();
    textfile_save(client);
    hf_close(client);
    return rc;
}

static int elect_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1, .command = true};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    lock.name = words.word[0];
    if (!options.observe && !words.argv)
        return cli_usage("no command; write: holdfast elect %s -- CMD",
                         lock.name);
    signals_begin();
    return elect(&words);
}

VERB(elect, "NAME -- CMD [ARG...]",
     "run a command while leader; campaign again when it is lost");
