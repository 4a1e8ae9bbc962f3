/* SPDX-License-Identifier: MIT */
/*
 * main.c - the command holdfast: which verb, which engine, which exit code.
 *
 * Data goes to stdout, talk to stderr. Every failure is one exit code of
 * holdfast(1) and one message that ends with what to do next. Busy, unreachable
 * and refused are three different things here, always.
 *
 * A configuration file is looked for in two fixed places and opened only if it
 * is there: never in the current directory, where somebody else could have put
 * one under root's cron job.
 */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "inherit.h"
#include "options.h"
#include "secret.h"
#include "text.h"

struct cli cli;

const struct verb *const cli_verbs[] = {
    &verb_run,     &verb_acquire, &verb_release,    &verb_hold,   &verb_test,
    &verb_ls,      &verb_show,    &verb_top,        &verb_break,  &verb_check,
    &verb_elect,   &verb_version, &verb_engines,    &verb_doctor, &verb_bench,
    &verb_metrics, &verb_config,  &verb_completion, NULL};

int cli_exit_code(int rc)
{
    switch (rc) {
    case HF_OK:
        return CLI_DONE;
    case HF_EBUSY:
    case HF_ETIMEOUT:
        return CLI_BUSY;
    case HF_ELOST:
        return CLI_LOST;
    case HF_EUNAVAILABLE:
    case HF_EUNKNOWN:
    case HF_ENOSPACE:
        return CLI_UNAVAILABLE;
    case HF_EAUTH:
        return CLI_AUTH;
    case HF_ECONFIG:
    case HF_EUNSUPPORTED:
        return CLI_CONFIG;
    case HF_EINVAL:
    case HF_EDEADLK:
        return CLI_USAGE;
    case HF_ECONFLICT:
    case HF_ENOTFOUND:
        return CLI_NO;
    default:
        return CLI_INTERNAL;
    }
}

const char *cli_same_engine(void)
{
    static char text[2048];
    size_t used = 0;

    text[0] = '\0';
    if (cli.url)
        used =
            (size_t)snprintf(text, sizeof(text), "-u %s ",
                             secret_has(cli.url) ? "URL" : text_shell(cli.url));
    if (cli.config_path && used < sizeof(text))
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "--config %s ", text_shell(cli.config_path));
    if (cli.profile && used < sizeof(text))
        snprintf(text + used, sizeof(text) - used, "--profile %s ",
                 text_shell(cli.profile));
    return text;
}

/* What to do next, where the library's own text does not say it; and the verb
 * that helps. */
static const char *next_step(int code, const char **ret_verb)
{
    *ret_verb = NULL;
    switch (code) {
    case HF_EUNAVAILABLE:
        *ret_verb = "doctor";
        return "check the URL and the server, then:";
    case HF_EAUTH:
        if (inherit_is_local())
            return NULL; /* no password: the text says what to do */
        *ret_verb = "doctor";
        return "check user and password_file, then:";
    case HF_ECONFIG:
        *ret_verb = "config show";
        return "see:";
    case HF_EUNSUPPORTED:
        *ret_verb = "engines";
        return "see what this engine can do:";
    case HF_EUNKNOWN:
        return "try again; what was asked is being taken back";
    case HF_ENOSPACE:
        *ret_verb = "doctor";
        return "release locks, or give the engine more room:";
    case HF_EINVAL:
        return "see: man holdfast";
    case HF_EINTERNAL:
        return "please report this, with the output of -vv";
    default:
        return NULL;
    }
}

int cli_fail(const hf_error *err)
{
    const char *verb;
    const char *next = next_step(err->code, &verb);

    fprintf(stderr, "holdfast: %s\n", text_safe(err->text));
    if (next && !cli.quiet && verb)
        fprintf(stderr, "  %s holdfast %s%s\n", next, cli_same_engine(), verb);
    else if (next && !cli.quiet)
        fprintf(stderr, "  %s\n", next);
    return cli_exit_code(err->code);
}

int cli_usage(const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "holdfast: %s\n", text_safe(text));
    if (cli.verb)
        fprintf(stderr, "  see: holdfast %s --help\n", cli.verb);
    else
        fprintf(stderr, "  see: holdfast --help\n");
    return CLI_USAGE;
}

int cli_finish(int code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    fprintf(stderr, "holdfast: cannot write the output: %s\n", strerror(errno));
    return code == CLI_DONE ? CLI_INTERNAL : code;
}

hf_config *cli_config(void)
{
    if (!cli.config)
        cli.config = hf_config_new();
    return cli.config;
}

/* The keys that the command line set, for config show. */
enum { SET_MAX = 64 };
static char *set_keys[SET_MAX];
static char *set_values[SET_MAX];

int cli_set(const char *key, const char *value)
{
    hf_error err = {0};
    size_t i = 0;

    if (!cli_config())
        return CLI_INTERNAL;
    if (hf_config_set(cli.config, key, value, &err) != 0)
        return cli_fail(&err);
    while (i < SET_MAX && set_keys[i])
        i++;
    if (i == SET_MAX)
        return cli_usage("at most %d options", SET_MAX);
    set_keys[i] = strdup(key);
    set_values[i] = strdup(value);
    return set_keys[i] && set_values[i] ? 0 : CLI_INTERNAL;
}

bool cli_option(size_t i, const char **ret_key, const char **ret_value)
{
    if (i >= SET_MAX || !set_keys[i])
        return false;
    *ret_key = set_keys[i];
    *ret_value = set_values[i];
    return true;
}

static void forget_options(void)
{
    for (size_t i = 0; i < SET_MAX && set_keys[i]; i++) {
        if (set_values[i])
            explicit_bzero(set_values[i], strlen(set_values[i]));
        free(set_values[i]);
        free(set_keys[i]);
    }
}

int cli_prefer(const char *key, const char *value)
{
    hf_error err = {0};

    if (!cli_config())
        return CLI_INTERNAL;
    return hf_config_prefer(cli.config, key, value, &err) == 0 ? 0
                                                               : cli_fail(&err);
}

bool cli_was_set(const char *key)
{
    for (size_t i = 0; i < SET_MAX && set_keys[i]; i++)
        if (strcmp(set_keys[i], key) == 0)
            return true;
    return false;
}

/* Read @path; a file or a profile that is not there is no error here. */
static int load_file(const char *path, bool *found)
{
    hf_error err = {0};

    if (!cli_config())
        return CLI_INTERNAL;

    int rc = hf_config_load(cli.config, path, cli.profile, &err);
    if (rc == 0)
        *found = true;
    return rc == 0 || rc == HF_ENOTFOUND ? 0 : cli_fail(&err);
}

bool cli_user_config(char *path, size_t size)
{
    const char *base = secure_getenv("XDG_CONFIG_HOME");
    const char *tail = "/holdfast/holdfast.conf";

    if (!base || base[0] != '/') {
        base = secure_getenv("HOME");
        tail = "/.config/holdfast/holdfast.conf";
    }
    if (!base || base[0] != '/')
        return false;

    int len = snprintf(path, size, "%s%s", base, tail);
    return len > 0 && (size_t)len < size && access(path, F_OK) == 0;
}

/* The machine's file, then the user's over it. */
static int load_standard_files(bool *found)
{
    char path[PATH_MAX];
    int rc = 0;

    if (access(CLI_MACHINE_CONFIG, F_OK) == 0)
        rc = load_file(CLI_MACHINE_CONFIG, found);
    if (rc == 0 && cli_user_config(path, sizeof(path)))
        rc = load_file(path, found);
    return rc;
}

/* An empty variable is none. */
static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value && *value ? value : NULL;
}

int cli_load_config(void)
{
    static bool loaded;
    bool found = false;
    int rc;

    if (loaded)
        return 0;
    loaded = true;
    rc = inherit_take();
    if (rc != 0)
        return rc;
    if (!cli.config_path)
        cli.config_path = variable("HOLDFAST_CONFIG");
    if (!cli.profile)
        cli.profile = variable("HOLDFAST_PROFILE");
    if (cli.config_path)
        rc = load_file(cli.config_path, &found);
    else
        rc = load_standard_files(&found);
    if (rc != 0 || found)
        return rc;

    if (cli.profile) {
        fprintf(stderr, "holdfast: no profile [%s] in %s\n",
                text_safe(secret_shown(cli.profile)),
                cli.config_path ? text_safe(secret_shown(cli.config_path))
                                : "~/.config/holdfast/holdfast.conf or "
                                  "/etc/holdfast/holdfast.conf");
        return CLI_CONFIG;
    }
    if (cli.config_path) {
        fprintf(stderr, "holdfast: cannot read %s: %s\n",
                text_safe(secret_shown(cli.config_path)), strerror(ENOENT));
        return CLI_CONFIG;
    }
    return 0;
}

static void log_line(int level, const char *text, void *ctx)
{
    (void)level;
    (void)ctx;
    fprintf(stderr, "holdfast: %s\n", text_safe(text));
}

int cli_take_url(char *url)
{
    if (!url)
        return 0;
    free(cli.url);
    cli.url = strdup(url);
    secret_wipe(url);
    return cli.url ? 0 : CLI_INTERNAL;
}

/* What a Java program has. */
static int refuse_jdbc(void)
{
    const char *url = cli.url ? cli.url : variable("HOLDFAST_URL");

    if (!url || strncmp(url, "jdbc:", 5) != 0)
        return 0;
    fprintf(stderr, "holdfast: %s is a URL of Java; drop \"jdbc:\"\n",
            text_safe(secret_shown(url + 5)));
    return CLI_CONFIG;
}

int cli_choose_engine(void)
{
    int rc = cli_load_config();

    if (rc == 0)
        rc = inherit_check();
    return rc == 0 ? refuse_jdbc() : rc;
}

int cli_open(hf_client **ret_client)
{
    hf_error err = {0};
    int rc = cli_choose_engine();

    if (rc != 0)
        return rc;
    if (!cli.quiet)
        hf_set_log(log_line,
                   cli.verbose > 1   ? HF_LOG_DEBUG
                   : cli.verbose > 0 ? HF_LOG_INFO
                                     : HF_LOG_WARNING,
                   NULL);
    if (cli.verbose > 1 && !cli.quiet)
        fprintf(stderr, "holdfast: opening the engine\n");
    rc = hf_open(cli.url, cli.config, ret_client, &err);
    if (cli.verbose == 0) /* what comes later, the verbs tell */
        hf_set_log(NULL, HF_LOG_WARNING, NULL);
    if (rc != 0)
        return cli_fail(&err);
    if (cli.verbose > 0 && !cli.quiet)
        fprintf(stderr, "holdfast: using %s\n",
                text_safe(hf_client_url(*ret_client)));
    return 0;
}

int cli_begin(const struct verb *verb, int argc, char **argv,
              struct words *words, int (*check)(const struct words *),
              hf_client **ret_client)
{
    int rc = options_parse(verb, argc, argv, words);

    if (rc == 0 && check)
        rc = check(words);
    return rc == 0 ? cli_open(ret_client) : rc;
}

int cli_run(const struct verb *verb, int argc, char **argv, struct words words,
            int (*check)(const struct words *),
            int (*run)(hf_client *client, const struct words *words))
{
    hf_client *client = NULL;
    int rc = cli_begin(verb, argc, argv, &words, check, &client);

    if (rc != 0)
        return rc;
    rc = run(client, &words);
    hf_close(client);
    return rc;
}

static void print_help(FILE *to)
{
    fputs("holdfast - run a command, or hold a lock, on the engine that you "
          "have\nUsage: holdfast VERB [options]\n",
          to);
    for (size_t i = 0; cli_verbs[i]; i++)
        fprintf(to, "  %-11s %s\n", cli_verbs[i]->name, cli_verbs[i]->summary);
    fputs("With every verb: -u URL  -c FILE  --profile NAME  -o KEY=VALUE  "
          "--json  -q  -v\n"
          "Without -u: $HOLDFAST_URL, the configuration's url, or local:\n"
          "Try:  holdfast run hello -- echo \"I hold the lock\"\n"
          "More: holdfast VERB --help, man holdfast\n",
          to);
}

static const struct verb *find_verb(const char *name)
{
    for (size_t i = 0; cli_verbs[i]; i++)
        if (strcmp(cli_verbs[i]->name, name) == 0)
            return cli_verbs[i];
    return NULL;
}

/* What other tools call it. */
static const char *hint_for(const char *name)
{
    static const char *const hints[][2] = {
        {"list", "holdfast ls"},
        {"status", "holdfast show NAME"},
        {"info", "holdfast show NAME"},
        {"lock", "holdfast run NAME -- CMD, holdfast hold NAME, or in a "
                 "script: eval \"$(holdfast acquire NAME)\""},
        {"unlock", "a lock ends with its run or hold; after acquire: holdfast "
                   "release; from outside: holdfast break NAME"}};

    for (size_t i = 0; i < sizeof(hints) / sizeof(hints[0]); i++)
        if (strcmp(hints[i][0], name) == 0)
            return hints[i][1];
    return NULL;
}

static int unknown_verb(const char *name)
{
    const char *names[32];
    size_t n = 0;

    for (; cli_verbs[n]; n++)
        names[n] = cli_verbs[n]->name;

    const char *hint = hint_for(name);
    const char *near = options_nearest(name, names, n);
    if (hint)
        return cli_usage("no verb \"%s\"; %s", name, hint);
    if (near)
        return cli_usage("no verb \"%s\"; did you mean: holdfast %s?",
                         secret_shown(name), near);
    if (strstr(name, "://"))
        return cli_usage("no verb \"%s\"; a URL goes with a verb: holdfast ls "
                         "-u URL",
                         secret_shown(name));
    return cli_usage("no verb \"%s\"; to run a command: holdfast run NAME -- "
                     "%s",
                     secret_shown(name), secret_shown(name));
}

static int print_verb_help(const char *name)
{
    const struct verb *verb = name ? find_verb(name) : NULL;

    if (name && !verb)
        return unknown_verb(name);
    if (verb)
        fputs(verb->help, stdout);
    else
        print_help(stdout);
    return cli_finish(CLI_DONE);
}

int main(int argc, char **argv)
{
    int used = 0;
    int rc = options_parse_globals(argc - 1, argv + 1, &used);

    if (rc == OPTIONS_HELP)
        print_help(stdout);
    if (rc != 0)
        return rc < 0 ? cli_finish(CLI_DONE) : rc;
    argc -= used + 1;
    argv += used + 1;
    if (argc <= 0) {
        print_help(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[0], "help") == 0)
        return print_verb_help(argv[1]);

    const struct verb *verb = find_verb(argv[0]);
    if (!verb)
        return unknown_verb(argv[0]);
    cli.verb = verb->name;
    rc = verb->main(verb, argc - 1, argv + 1);
    hf_config_free(cli.config);
    forget_options();
    free(cli.url);
    return cli_finish(rc < 0 ? CLI_DONE : rc);
}
