/* SPDX-License-Identifier: MIT */
/*
 * cli.h - what the files of the command share.
 *
 * The command is a user of the library like any other: it includes holdfast.h
 * and nothing else of ours. One process runs one verb, so what the command line
 * said lives in one global, `cli`.
 */
#ifndef CLI_H
#define CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast.h"
#include "options.h"

/* The exit codes of holdfast(1). */
enum {
    CLI_DONE = 0,
    CLI_NO = 1,
    CLI_USAGE = 64,
    CLI_UNAVAILABLE = 69,
    CLI_INTERNAL = 70,
    CLI_BUSY = 75,
    CLI_AUTH = 77,
    CLI_CONFIG = 78,
    CLI_LOST = 79,
    CLI_MAX_HOLD = 124,
    CLI_NOT_EXECUTABLE = 126,
    CLI_NOT_FOUND = 127,
    CLI_SIGNAL = 128 /* plus the number of the signal */
};

/* What the global options said. */
struct cli {
    char *url;               /* -u; NULL: environment, file, local: */
    const char *config_path; /* --config */
    const char *profile;     /* --profile */
    hf_config *config;       /* NULL until a file or an option needs one */
    bool json;
    bool quiet;
    bool no_color;
    int verbose;
    const char *verb;
};
extern struct cli cli;

/* One verb: its main() gets the arguments after the verb itself. */
struct verb {
    const char *name;
    const char *arguments;
    const char *summary;
    const char *help;
    const struct option *const *options; /* tables, NULL at the end */
    int (*main)(const struct verb *verb, int argc, char **argv);
};
/* A verb whose main() is NAME_main(), with that help and those options. */
#define VERB_OF(name_, help_, options_, arguments_, summary_)                  \
    const struct verb verb_##name_ = {#name_, arguments_, summary_,            \
                                      help_,  options_,   name_##_main}
/* The same for the one verb of a file, which calls them help and tables. */
#define VERB(name, arguments, summary)                                         \
    VERB_OF(name, help, tables, arguments, summary)

extern const struct verb *const cli_verbs[]; /* NULL at the end */
extern const struct verb verb_run, verb_acquire, verb_release, verb_hold,
    verb_test, verb_ls, verb_show, verb_break, verb_check, verb_elect,
    verb_version, verb_engines, verb_doctor, verb_bench, verb_metrics,
    verb_config, verb_completion, verb_top;

/* Read the configuration files that apply, once. 0 or an exit code, said. */
int cli_load_config(void);
/* Load the configuration, and refuse what cannot be meant. */
int cli_choose_engine(void);
/* Load the configuration and open the engine. 0 or an exit code, said. */
int cli_open(hf_client **ret_client);
/* What most verbs begin with: parse the command line, let @check (NULL: nothing)
 * refuse it, and cli_open(). 0, OPTIONS_HELP or an exit code, said. */
int cli_begin(const struct verb *verb, int argc, char **argv,
              struct words *words, int (*check)(const struct words *),
              hf_client **ret_client);
/* cli_begin(), then @run with the client, which is closed after it. */
int cli_run(const struct verb *verb, int argc, char **argv, struct words words,
            int (*check)(const struct words *),
            int (*run)(hf_client *client, const struct words *words));
/* A verb of one word at most, @needed of which there has to be, that is this. */
#define VERB_RUN(name, needed_, check, run)                                    \
    static int name##_main(const struct verb *verb, int argc, char **argv)     \
    {                                                                          \
        return cli_run(verb, argc, argv,                                       \
                       (struct words){.wanted = 1, .needed = (needed_)},       \
                       check, run);                                            \
    }
/* Take the URL that a verb has as its argument, as if it came with -u; NULL
 * changes nothing. 0 or an exit code. */
int cli_take_url(char *url);
/* The exit code that stands for an error of the library. */
int cli_exit_code(int rc);
/* Say what @err says, with the next step, and return the exit code. */
int cli_fail(const hf_error *err);
/* "-u URL --config FILE --profile NAME ", as the command line had them, for a
 * hint; "" if it had none. A URL with a secret is "URL". */
const char *cli_same_engine(void);
/* Say that the command line is wrong, and return CLI_USAGE. */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Write out stdout and turn a failure (a full disk) into an exit code. */
int cli_finish(int code);
/* The configuration to set keys in; NULL without memory. */
hf_config *cli_config(void);
/* Set one key as the command line does; 0 or an exit code, said. */
int cli_set(const char *key, const char *value);
/* A value better for this verb than the default; whatever the user says for the
 * key, and wherever, wins. 0 or an exit code. */
int cli_prefer(const char *key, const char *value);
/* True if the command line set @key. */
bool cli_was_set(const char *key);
/* The @i-th key that the command line set, and its value; false: no more. */
bool cli_option(size_t i, const char **ret_key, const char **ret_value);
/* The file of this user, if there is one. */
bool cli_user_config(char *path, size_t size);
#define CLI_MACHINE_CONFIG "/etc/holdfast/holdfast.conf"

#endif
