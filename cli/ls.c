/* SPDX-License-Identifier: MIT */
/*
 * ls.c - holdfast ls, show and test: who holds what, and who waits.
 *
 * The library hands us rows, those of one name together, holders first and
 * waiters in order. ls folds them into one line per lock, show prints them all,
 * test only counts.
 *
 * Failure: an engine that cannot list says so; test then tries the lock itself,
 * for a moment, which is as good an answer.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"
#include "options.h"
#include "signals.h"
#include "talk.h"
#include "text.h"

static const char ls_help[] =
    "Usage: holdfast ls [PREFIX] [--json] [--names] [--watch]\n"
    "List locks whose names begin with PREFIX: holder, age, lease, waiters.\n\n"
    "      --names    the names only, one per line\n"
    "      --watch    again and again, until Ctrl-C; --interval DUR (1s)\n"
    "      --json     one object per line: name, mode, token, holders, "
    "waiters, slots\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n";
static const char show_help[] =
    "Usage: holdfast show NAME [--json]\n"
    "One lock: every holder, and the queue in order.\n"
    "Exits 0, also when nobody holds it.\n\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n";
static const char test_help[] =
    "Usage: holdfast test NAME\n"
    "Exit 0 if NAME is free, 75 if it is held (or all its slots are).\n"
    "The answer may be old when you read it; to act on it, use: holdfast run "
    "-n\n"
    "\n  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n";

static bool names_only;
static bool watching;
static int64_t interval_ms = 1000;
static const struct option ls_options[] = {
    {0, "names", OPTION_FLAG, &names_only, NULL, NULL},
    {0, "watch", OPTION_FLAG, &watching, NULL, NULL},
    {0, "interval", OPTION_DURATION, &interval_ms, NULL, "DUR"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const ls_tables[] = {ls_options, NULL};
static const struct option *const no_tables[] = {NULL};

/* One row, kept. */
struct row {
    hf_lock_info info;
    struct row *next;
};

/* The rows of one name. */
struct rows {
    struct row *first;
    struct row **last;
};

static int keep(const hf_lock_info *info, struct rows *rows)
{
    struct row *row = calloc(1, sizeof(*row));

    if (!row)
        return HF_ENOMEM;
    row->info = *info;
    row->info.name = strdup(info->name);
    row->info.owner = strdup(info->owner);
    row->info.host = strdup(info->host);
    row->info.note = strdup(info->note);
    *rows->last = row;
    rows->last = &row->next;
    if (!row->info.name || !row->info.owner || !row->info.host ||
        !row->info.note)
        return HF_ENOMEM;
    return 0;
}

static void forget(struct rows *rows)
{
    while (rows->first) {
        struct row *row = rows->first;

        rows->first = row->next;
        free((void *)(uintptr_t)row->info.name);
        free((void *)(uintptr_t)row->info.owner);
        free((void *)(uintptr_t)row->info.host);
        free((void *)(uintptr_t)row->info.note);
        free(row);
    }
    rows->last = &rows->first;
}

static const char *mode_name(int mode)
{
    static const char *const names[] = {"exclusive", "shared", "slot"};

    return mode >= 0 && mode <= HF_SLOT ? names[mode] : "unknown";
}

/* What a lock looks like from outside. */
struct summary {
    const struct row *head; /* the first row */
    int holders;
    int waiters;
    int slots;
};

static struct summary summarise(const struct rows *rows)
{
    struct summary summary = {.head = rows->first};

    for (const struct row *row = rows->first; row; row = row->next) {
        if (row->info.role == HF_HOLDER)
            summary.holders++;
        else
            summary.waiters++;
        if (row->info.slots > summary.slots)
            summary.slots = row->info.slots;
    }
    return summary;
}

static void print_json(const struct rows *rows)
{
    struct json json = {.to = stdout};
    struct summary summary = summarise(rows);
    const hf_lock_info *head = &summary.head->info;

    json_open(&json, NULL, '{');
    json_text(&json, "name", head->name);
    json_text(&json, "mode", mode_name(head->mode));
    json_token(&json, "token", summary.holders ? head->token : 0);
    json_open(&json, "holders", '[');
    for (const struct row *row = rows->first; row; row = row->next) {
        if (row->info.role != HF_HOLDER)
            continue;
        json_open(&json, NULL, '{');
        json_text(&json, "owner", row->info.owner);
        json_text(&json, "host", row->info.host);
        json_number(&json, "pid", row->info.pid);
        json_text(&json, "note", row->info.note);
        json_number(&json, "held_ms", row->info.since_ms);
        json_number(&json, "lease_ms", row->info.lease_ms);
        if (row->info.mode != HF_EXCLUSIVE)
            json_token(&json, "token", row->info.token);
        json_close(&json, '}');
    }
    json_close(&json, ']');
    json_number(&json, "waiters", summary.waiters);
    json_number(&json, "slots", summary.slots);
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
static void add_lock(struct table *table, const struct rows *rows)
{
    struct summary summary = summarise(rows);
    const hf_lock_info *head = &summary.head->info;
    bool one = summary.holders == 1;
    char holder[160];

    table_add(table, head->name);
    table_add(table, mode_name(head->mode));
    if (summary.slots > 0)
        snprintf(holder, sizeof(holder), "%d of %d", summary.holders,
                 summary.slots);
    else if (summary.holders > 1)
        snprintf(holder, sizeof(holder), "%d readers", summary.holders);
    else if (one)
        talk_holder(head, holder, sizeof(holder));
    else
        snprintf(holder, sizeof(holder), "-");
    table_add(table, holder);
    add_age(table, summary.holders ? head->since_ms : -1);
    add_age(table, summary.holders ? head->lease_ms : -1);
    add_number(table, summary.holders ? head->token : 0);
    add_number(table, (uint64_t)summary.waiters);
    table_add(table, summary.holders ? head->note : "");
}

static void add_titles(struct table *table, const char *const *titles)
{
    table->columns = 0;
    for (; titles[table->columns]; table->columns++)
        table_add(table, titles[table->columns]);
}

/* What ls collects: the rows of the name that is being read, and the table. */
struct listing {
    struct rows rows;
    struct table table;
    size_t locks;
};

static void finish_name(struct listing *listing)
{
    if (!listing->rows.first)
        return;
    listing->locks++;
    if (cli.json)
        print_json(&listing->rows);
    else if (names_only)
        printf("%s\n", text_safe(listing->rows.first->info.name));
    else
        add_lock(&listing->table, &listing->rows);
    forget(&listing->rows);
}

static int list_row(const hf_lock_info *info, void *ctx)
{
    struct listing *listing = ctx;

    if (listing->rows.first &&
        strcmp(listing->rows.first->info.name, info->name) != 0)
        finish_name(listing);
    return keep(info, &listing->rows);
}

static void print_listing(struct listing *listing, const hf_client *client,
                          const char *prefix)
{
    finish_name(listing);
    if (listing->locks > 0 && listing->table.n_cells > 0)
        table_print(&listing->table, stdout);
    if (cli.json || !talk_wanted())
        return;
    if (listing->locks == 0)
        talk_say("no locks%s%s on %s", prefix ? " that begin with " : "",
                 prefix ? text_safe(prefix) : "", hf_client_url(client));
    else if (!names_only)
        talk_say("%zu on %s", listing->locks, hf_client_url(client));
}

/* One listing. 0, or an exit code, said; *ret_rc is what the library said. */
static int list_once(hf_client *client, const char *prefix, int *ret_rc)
{
    static const char *const titles[] = {"NAME", "MODE",  "HOLDER",
                                         "HELD", "LEASE", "TOKEN",
                                         "WAIT", "NOTE",  NULL};
    struct listing listing = {.rows.last = &listing.rows.first,
                              .table.right = {[3] = true, true, true, true}};
    hf_error err = {0};

    if (!cli.json && !names_only)
        add_titles(&listing.table, titles);
    *ret_rc = hf_list(client, prefix, list_row, &listing, &err);
    if (*ret_rc == 0)
        print_listing(&listing, client, prefix);
    forget(&listing.rows);
    table_release(&listing.table);
    return *ret_rc == 0 ? CLI_DONE : cli_fail(&err);
}

/* Again and again, from the top of the screen, until a signal comes. */
static int list_for_ever(hf_client *client, const char *prefix)
{
    bool screen = isatty(STDOUT_FILENO) && !cli.json;
    int rc;

    while (signals_first() == 0) {
        int code;

        if (screen)
            fputs("\033[H\033[2J", stdout);
        code = list_once(client, prefix, &rc);
        fflush(stdout);
        if (ferror(stdout) || (rc != 0 && !hf_is_retriable(rc)))
            return code;
        signals_wait(-1, interval_ms);
    }
    return CLI_SIGNAL + signals_first();
}

static int ls_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1};
    hf_client *client = NULL;
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    if (interval_ms < 10)
        return cli_usage("--interval is at least 10ms");
    if (watching)
        signals_begin();
    rc = cli_open(&client);
    if (rc != 0)
        return rc;
    if (watching)
        rc = list_for_ever(client, words.word[0]);
    else
        rc = list_once(client, words.word[0], &(int){0});
    hf_close(client);
    return rc;
}

static int keep_row(const hf_lock_info *info, void *ctx)
{
    return keep(info, ctx);
}

/* Read one name into @rows. */
static int read_name(hf_client *client, const char *name, struct rows *rows,
                     hf_error *err)
{
    rows->first = NULL;
    rows->last = &rows->first;
    return hf_show(client, name, keep_row, rows, err);
}

static const char *alive_name(uint32_t alive)
{
    static const char *const names[] = {"dead", "alive", "-"};

    return names[alive < 2 ? alive : 2];
}

/* ROLE OWNER MODE SINCE LEASE TOKEN LIFE NOTE */
static void add_row(struct table *table, const hf_lock_info *info)
{
    char text[160];

    if (info->role == HF_HOLDER)
        snprintf(text, sizeof(text), "holder");
    else
        snprintf(text, sizeof(text), "%" PRIu32 ". in line", info->place);
    table_add(table, text);
    table_add(table, talk_holder(info, text, sizeof(text)));
    table_add(table, mode_name(info->mode));
    add_age(table, info->since_ms);
    add_age(table, info->role == HF_HOLDER ? info->lease_ms : -1);
    add_number(table, info->token);
    table_add(table, alive_name(info->alive));
    table_add(table, info->note);
}

static void print_card(const char *name, const struct rows *rows)
{
    static const char *const titles[] = {"WHO",   "OWNER", "MODE",
                                         "SINCE", "LEASE", "TOKEN",
                                         "LIFE",  "NOTE",  NULL};
    struct table table = {.right = {[3] = true, true, true}};

    if (!rows->first) {
        printf("%s is free\n", text_safe(name));
        return;
    }
    printf("%s\n", text_safe(name));
    add_titles(&table, titles);
    for (const struct row *row = rows->first; row; row = row->next)
        add_row(&table, &row->info);
    table_print(&table, stdout);
    table_release(&table);
}

static void print_free_json(const char *name)
{
    struct json json = {.to = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "name", name);
    json_text(&json, "mode", "free");
    json_token(&json, "token", 0);
    json_open(&json, "holders", '[');
    json_close(&json, ']');
    json_number(&json, "waiters", 0);
    json_number(&json, "slots", 0);
    json_end(&json);
}

static void print_name(const char *name, const struct rows *rows)
{
    if (cli.json && rows->first)
        print_json(rows);
    else if (cli.json)
        print_free_json(name);
    else
        print_card(name, rows);
}

static int show_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1};
    struct rows rows;
    hf_client *client = NULL;
    hf_error err = {0};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc == 0)
        rc = cli_open(&client);
    if (rc != 0)
        return rc;
    rc = read_name(client, words.word[0], &rows, &err);
    if (rc == 0)
        print_name(words.word[0], &rows);
    rc = rc == 0 ? CLI_DONE : cli_fail(&err);
    forget(&rows);
    hf_close(client);
    return rc;
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

static int test_by_looking(const char *name, const struct rows *rows)
{
    struct summary summary = summarise(rows);
    bool is_free = summary.holders == 0 ||
                   (summary.slots > 0 && summary.holders < summary.slots &&
                    summary.waiters == 0);

    if (cli.json)
        print_name(name, rows);
    else if (talk_wanted())
        talk_say("\"%s\" is %s", text_safe(name), is_free ? "free" : "held");
    return is_free ? CLI_DONE : CLI_BUSY;
}

static int test_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1, .needed = 1};
    struct rows rows;
    hf_client *client = NULL;
    hf_error err = {0};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc == 0)
        rc = cli_open(&client);
    if (rc != 0)
        return rc;
    rc = read_name(client, words.word[0], &rows, &err);
    if (rc == 0)
        rc = test_by_looking(words.word[0], &rows);
    else if (rc == HF_EUNSUPPORTED)
        rc = test_by_trying(client, words.word[0]);
    else
        rc = cli_fail(&err);
    forget(&rows);
    hf_close(client);
    return rc;
}

const struct verb verb_ls = {
    .name = "ls",
    .arguments = "[PREFIX]",
    .summary = "list locks, holders and waiters",
    .help = ls_help,
    .options = ls_tables,
    .main = ls_main,
};
const struct verb verb_show = {
    .name = "show",
    .arguments = "NAME",
    .summary = "one lock: its holders, and the queue in order",
    .help = show_help,
    .options = no_tables,
    .main = show_main,
};
const struct verb verb_test = {
    .name = "test",
    .arguments = "NAME",
    .summary = "exit 0 if a lock is free, 75 if it is held",
    .help = test_help,
    .options = no_tables,
    .main = test_main,
};
