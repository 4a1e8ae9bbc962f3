/* SPDX-License-Identifier: MIT */
/*
 * ls.c - holdfast ls, show and test: who holds what, and who waits.
 *
 * ls prints one line for each lock, show every row of one, test only counts.
 * With --watch a terminal shows what fits on it, again and again; elsewhere
 * the first look prints every lock and the later ones print what has changed.
 *
 * Failure: an engine that cannot list says so; test then tries the lock itself,
 * for a moment, which is as good an answer.
 */
#include "ls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "follow.h"
#include "json.h"
#include "look.h"
#include "options.h"
#include "signals.h"
#include "talk.h"
#include "text.h"

static const char ls_help[] =
    "Usage: holdfast ls [PREFIX] [--json] [--names] [--watch]\n"
    "List locks whose names begin with PREFIX: holder, age, lease, waiters.\n\n"
    "      --names    the names only, one per line\n"
    "      --watch    go on until Ctrl-C: a terminal shows what is, a pipe "
    "gets a\n"
    "                 line for each change; --interval DUR looks at that pace, "
    "and\n"
    "                 not when something changes\n"
    "      --json     one object per line: name, mode, token, holders, "
    "waiters, slots\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n";
static const char show_help[] =
    "Usage: holdfast show NAME [--json]\n"
    "One lock: every holder, and the queue in order. LIFE is alive or dead "
    "where\n"
    "the engine knows, and leased where only a lease says that it is held.\n"
    "Exits 0, also when nobody holds it.\n\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n";
static const char test_help[] =
    "Usage: holdfast test NAME\n"
    "Exit 0 if NAME is free, 75 if it is held (or all its slots are).\n"
    "The answer may be old when you read it; to act on it, use: holdfast run "
    "-n\n"
    "\n  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n";

/* Ages and leases on a terminal change by themselves; a line is for a change. */
enum { CALM_MS = 30000 };

static bool names_only;
static bool watching;
static struct follow_pace pace = {.ms = -1, .least_ms = 10};
static const struct option ls_options[] = {
    {0, "names", OPTION_FLAG, &names_only, NULL, NULL},
    {0, "watch", OPTION_FLAG, &watching, NULL, NULL},
    {0, "interval", OPTION_DURATION, &pace.ms, NULL, "DUR"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const ls_tables[] = {ls_options, NULL};
static const struct option *const no_tables[] = {NULL};

static void add_json_row(struct json *json, const hf_lock_info *info, bool more)
{
    bool holds = info->role == HF_HOLDER;
    char command[LOOK_COMMAND];

    json_open(json, NULL, '{');
    json_text(json, "owner", info->owner);
    json_text(json, "host", info->host);
    json_number(json, "pid", info->pid);
    json_text(json, "note", info->note);
    json_number(json, holds ? "held_ms" : "waited_ms", info->since_ms);
    if (holds)
        json_number(json, "lease_ms", info->lease_ms);
    if (holds && info->mode != HF_EXCLUSIVE)
        json_token(json, "token", info->token);
    if (!holds) {
        json_number(json, "place", info->place);
        json_text(json, "mode", look_mode(info->mode));
    }
    if (info->role == HF_PARKED)
        json_text(json, "condition", info->cond);
    json_text(json, "life", look_life(info));
    if (look_renewed_ms(info) >= 0)
        json_number(json, "renewed_ms", look_renewed_ms(info));
    if (more && *look_command(info, command))
        json_text(json, "command", command);
    json_close(json, '}');
}

static void add_json_rows(struct json *json, const char *key,
                          const struct look_lock *lock, int role, bool more)
{
    json_open(json, key, '[');
    for (size_t i = 0; i < lock->n; i++)
        if (lock->rows[i].role == role)
            add_json_row(json, &lock->rows[i], more);
    json_close(json, ']');
}

/* @more: the queue and the commands too, as show has them. */
static void print_json(const struct look_lock *lock, bool more)
{
    struct json json = {.to = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "name", lock->name);
    json_text(&json, "mode", lock->n ? look_mode(lock->rows->mode) : "free");
    json_token(&json, "token", lock->holders ? lock->rows->token : 0);
    add_json_rows(&json, "holders", lock, HF_HOLDER, more);
    json_number(&json, "waiters", lock->waiters);
    if (more)
        add_json_rows(&json, "queue", lock, HF_WAITER, more);
    if (lock->parked > 0)
        json_number(&json, "parked", lock->parked);
    if (more && lock->parked > 0)
        add_json_rows(&json, "conditions", lock, HF_PARKED, more);
    json_number(&json, "slots", lock->slots);
    json_end(&json);
}

static void add_age(struct table *table, int64_t ms)
{
    char age[TEXT_AGE];

    table_add(table, text_age(ms, age));
}

static void add_number(struct table *table, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    table_add(table, number ? text : "-");
}

/* NAME MODE HOLDER HELD LEASE TOKEN WAIT NOTE */
static void add_lock(struct table *table, const struct look_lock *lock)
{
    const hf_lock_info *head = lock->rows;
    bool held = lock->holders > 0;
    char holder[160];

    table_add(table, lock->name);
    table_add(table, look_mode(head->mode));
    table_add(table, look_holders(lock, holder, sizeof(holder)));
    add_age(table, held ? head->since_ms : -1);
    add_age(table, held ? head->lease_ms : -1);
    add_number(table, held ? head->token : 0);
    add_number(table, (uint64_t)lock->waiters);
    table_add(table, held ? head->note : "");
}

static void add_titles(struct table *table, const char *const *titles)
{
    table->columns = 0;
    for (; titles[table->columns]; table->columns++)
        table_add(table, titles[table->columns]);
}

/* At most @most of @n locks. */
static void print_table(const struct look *look, size_t most)
{
    static const char *const titles[] = {"NAME", "MODE",  "HOLDER",
                                         "HELD", "LEASE", "TOKEN",
                                         "WAIT", "NOTE",  NULL};
    struct table table = {.right = {[3] = true, true, true, true}};

    add_titles(&table, titles);
    for (size_t i = 0; i < look->n && i < most; i++)
        add_lock(&table, &look->locks[i]);
    table_print(&table, stdout);
    table_release(&table);
}

static void print_locks(const struct look *look, size_t most)
{
    if (!cli.json && !names_only && look->n > 0)
        print_table(look, most);
    for (size_t i = 0; i < look->n && (cli.json || names_only); i++) {
        if (cli.json)
            print_json(&look->locks[i], /* more= */ false);
        else if (i < most)
            printf("%s\n", text_safe(look->locks[i].name));
    }
}

static void say_how_many(const struct look *look, const hf_client *client,
                         const char *prefix)
{
    if (cli.json || !talk_wanted())
        return;
    if (look->n == 0)
        talk_say("no locks%s%s on %s", prefix ? " that begin with " : "",
                 prefix ? text_safe(prefix) : "", hf_client_url(client));
    else if (!names_only)
        talk_say("%zu on %s", look->n, hf_client_url(client));
}

static int list_once(hf_client *client, const char *prefix)
{
    struct look look = {0};
    hf_error err = {0};

    if (look_list(&look, client, prefix, &err) != 0)
        return cli_fail(&err);
    print_locks(&look, SIZE_MAX);
    say_how_many(&look, client, prefix);
    look_forget(&look);
    return CLI_DONE;
}

/* ---- --watch --------------------------------------------------------------- */

static bool same_row(const hf_lock_info *a, const hf_lock_info *b)
{
    return a->role == b->role && a->mode == b->mode && a->slots == b->slots &&
           a->token == b->token && strcmp(a->owner, b->owner) == 0 &&
           strcmp(a->note, b->note) == 0 && strcmp(a->cond, b->cond) == 0;
}

/* Ages and leases always differ. */
static bool same_lock(const struct look_lock *a, const struct look_lock *b)
{
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (!same_row(&a->rows[i], &b->rows[i]))
            return false;
    return true;
}

/* One line: the time, what happened, and who has it now. */
static void print_change(const struct look_lock *lock)
{
    char when[32] = "";
    char holder[160];
    time_t now = time(NULL);
    struct tm parts;

    if (cli.json) {
        print_json(lock, /* more= */ false);
        return;
    }
    if (names_only) {
        printf("%s\n", text_safe(lock->name));
        return;
    }
    if (gmtime_r(&now, &parts))
        strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &parts);
    printf("%s  %s  ", when, text_safe(lock->name));
    if (lock->holders == 0)
        printf("free");
    else
        printf("held by %s",
               text_safe(look_holders(lock, holder, sizeof(holder))));
    if (lock->holders > 0 && lock->rows->token > 0)
        printf(", token %" PRIu64, lock->rows->token);
    if (lock->waiters > 0)
        printf(", %d waiting", lock->waiters);
    if (lock->parked > 0)
        printf(", %d on conditions", lock->parked);
    putchar('\n');
}

/* Both are in the order of names. */
static void print_changes(const struct look *before, const struct look *after)
{
    size_t i = 0;
    size_t j = 0;

    while (i < before->n || j < after->n) {
        int order = i == before->n ? 1
                    : j == after->n
                        ? -1
                        : strcmp(before->locks[i].name, after->locks[j].name);

        if (order < 0)
            print_change(&(struct look_lock){.name = before->locks[i].name});
        else if (order > 0 || !same_lock(&before->locks[i], &after->locks[j]))
            print_change(&after->locks[j]);
        i += order <= 0;
        j += order >= 0;
    }
}

/* What fits below the titles and above the line that counts. */
static void redraw(const struct look *look, const hf_client *client,
                   const char *prefix)
{
    size_t lines = text_lines(stdout);

    fputs("\033[H\033[2J", stdout);
    print_locks(look, lines > 4 ? lines - 3 : 1);
    fflush(stdout);
    say_how_many(look, client, prefix);
}

static bool is_pipe(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* A terminal always shows what is; a log gets what changes. A pipe tells when
 * nobody reads it any more, long before the next change. */
static int list_for_ever(hf_client *client, const char *prefix)
{
    bool screen = isatty(STDOUT_FILENO) && !cli.json;
    int reader = is_pipe(STDOUT_FILENO) ? STDOUT_FILENO : -1;
    struct follow follow = {0};
    struct look before = {0};
    struct look after = {0};
    int code = CLI_DONE;

    if (!pace.given)
        follow_start(&follow, client, prefix, /* flags= */ 0);
    while (signals_first() == 0 && !ferror(stdout)) {
        hf_error err = {0};
        int rc = look_list(&after, client, prefix, &err);

        if (rc != 0) {
            code = cli_fail(&err);
            if (!hf_is_retriable(rc))
                break;
        } else if (screen) {
            redraw(&after, client, prefix);
        } else {
            struct look spare = before;

            print_changes(&before, &after);
            before = after;
            after = spare;
        }
        fflush(stdout);
        if (follow_wait(&follow, reader,
                        follow.watch && !screen ? CALM_MS : pace.ms)) {
            code = CLI_SIGNAL + SIGPIPE;
            break;
        }
    }
    follow_stop(&follow);
    look_forget(&before);
    look_forget(&after);
    return signals_first() ? CLI_SIGNAL + signals_first() : code;
}

static int check_watching(const struct words *words)
{
    int rc = follow_pace_check(&pace);

    (void)words;
    if (rc == 0 && watching)
        signals_begin();
    return rc;
}

static int list(hf_client *client, const struct words *words)
{
    return watching ? list_for_ever(client, words->word[0])
                    : list_once(client, words->word[0]);
}

VERB_RUN(ls, 0, check_watching, list)

/* ---- show, test ------------------------------------------------------------ */

/* ROLE OWNER MODE SINCE LEASE TOKEN LIFE NOTE */
static void add_row(struct table *table, const hf_lock_info *info)
{
    char text[160];

    if (info->role == HF_HOLDER)
        snprintf(text, sizeof(text), "holder");
    else if (info->role == HF_PARKED)
        snprintf(text, sizeof(text), "%" PRIu32 ". on %s", info->place,
                 info->cond);
    else
        snprintf(text, sizeof(text), "%" PRIu32 ". in line", info->place);
    table_add(table, text);
    table_add(table, look_holder(info, text, sizeof(text)));
    table_add(table, look_mode(info->mode));
    add_age(table, info->since_ms);
    add_age(table, info->role == HF_HOLDER ? info->lease_ms : -1);
    add_number(table, info->token);
    table_add(table, look_life(info));
    table_add(table, info->note);
}

void ls_print_card(const struct look_lock *lock, FILE *to)
{
    static const char *const titles[] = {"WHO",   "OWNER", "MODE",
                                         "SINCE", "LEASE", "TOKEN",
                                         "LIFE",  "NOTE",  NULL};
    struct table table = {.right = {[3] = true, true, true}};

    if (lock->n == 0) {
        fprintf(to, "%s is free\n", text_safe(lock->name));
        return;
    }
    fprintf(to, "%s\n", text_safe(lock->name));
    add_titles(&table, titles);
    for (size_t i = 0; i < lock->n; i++)
        add_row(&table, &lock->rows[i]);
    table_print(&table, to);
    table_release(&table);
    for (size_t i = 0; i < lock->n; i++) {
        char command[LOOK_COMMAND];

        if (lock->rows[i].role == HF_HOLDER &&
            *look_command(&lock->rows[i], command))
            fprintf(to, "%" PRId64 " is: %s\n", lock->rows[i].pid,
                    text_safe(command));
    }
}

static void print_deadlock(const char *text, void *ctx)
{
    (void)ctx;
    printf("deadlock: %s\n", text_safe(text));
}

static int show_lock(hf_client *client, const struct look_lock *lock)
{
    if (cli.json) {
        print_json(lock, /* more= */ true);
        return CLI_DONE;
    }
    ls_print_card(lock, stdout);
    if (look_has_long_wait(lock))
        look_deadlocks(client, lock->name, print_deadlock, NULL);
    return CLI_DONE;
}

static int test_lock(hf_client *client, const struct look_lock *lock)
{
    bool is_free =
        lock->holders == 0 ||
        (lock->slots > 0 && lock->holders < lock->slots && lock->waiters == 0);

    if (cli.json)
        (void)show_lock(client, lock);
    else if (talk_wanted())
        talk_say("\"%s\" is %s", text_safe(lock->name),
                 is_free ? "free" : "held");
    return is_free ? CLI_DONE : CLI_BUSY;
}

/* Where nobody can list: is it free? Take it, and give it back. */
static int test_by_trying(hf_client *client, const char *name)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err = {0};

    opts.wait_ms = 0;
    int rc = hf_acquire(client, name, &opts, &hold, &err);
    if (rc == 0)
        rc = hf_release(hold, &err);
    if (rc == 0 || rc == HF_EBUSY)
        return cli_exit_code(rc);
    return cli_fail(&err);
}

/* Look at the name that the command line says, and hand it on. */
static int look_at_one(hf_client *client, const char *name,
                       int (*tell)(hf_client *, const struct look_lock *),
                       int (*otherwise)(hf_client *, const char *))
{
    struct look look = {0};
    hf_error err = {0};
    int rc = look_show(&look, client, name, &err);

    if (rc == 0)
        rc = tell(client,
                  look.n ? look.locks : &(struct look_lock){.name = name});
    else if (rc == HF_EUNSUPPORTED && otherwise)
        rc = otherwise(client, name);
    else
        rc = cli_fail(&err);
    look_forget(&look);
    return rc;
}

static int show(hf_client *client, const struct words *words)
{
    return look_at_one(client, words->word[0], show_lock,
                       /* otherwise= */ NULL);
}

static int test(hf_client *client, const struct words *words)
{
    return look_at_one(client, words->word[0], test_lock, test_by_trying);
}

VERB_RUN(show, 1, /* check= */ NULL, show)

VERB_RUN(test, 1, /* check= */ NULL, test)

VERB_OF(ls, ls_help, ls_tables, "[PREFIX]", "list locks, holders and waiters");
VERB_OF(show, show_help, no_tables, "NAME",
        "one lock: its holders, and the queue in order");
VERB_OF(test, test_help, no_tables, "NAME",
        "exit 0 if a lock is free, 75 if it is held");
