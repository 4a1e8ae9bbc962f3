/* SPDX-License-Identifier: MIT */
/*
 * options.c - take the command line apart.
 *
 * Every verb has tables of options; the global table belongs to all of them.
 * An option is written -w5, -w 5, --wait=5 or --wait 5; letters without a value
 * may share a dash; names are never abbreviated, because a later option would
 * change what the abbreviation means. Options stand before, between and behind
 * the words, up to "--" or to the command.
 *
 * Failure: what we do not know is CLI_USAGE, with the nearest name that we do.
 * Secrets given as values are overwritten in argv once they are read, so that
 * ps(1) shows them no longer than it must.
 */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "secret.h"

enum { FOREVER_MS = HF_FOREVER, NAMES_MAX = 64 };

static int set_pair(const char *value)
{
    const char *equals = strchr(value, '=');

    if (!equals || equals == value)
        return cli_usage("-o takes key=value");

    char *key = strndup(value, (size_t)(equals - value));
    if (!key)
        return CLI_INTERNAL;

    int rc = cli_set(key, equals + 1);

    free(key);
    return rc;
}

static int set_url(const char *value)
{
    free(cli.url);
    cli.url = strdup(value);
    return cli.url ? 0 : CLI_INTERNAL;
}

const struct option options_global[] = {
    {'u', "url", OPTION_CALL, NULL, set_url, "URL"},
    {'c', "config", OPTION_TEXT, &cli.config_path, NULL, "FILE"},
    {0, "profile", OPTION_TEXT, &cli.profile, NULL, "NAME"},
    {'o', "option", OPTION_CALL, NULL, set_pair, "KEY=VALUE"},
    {0, "json", OPTION_FLAG, &cli.json, NULL, NULL},
    {'q', "quiet", OPTION_FLAG, &cli.quiet, NULL, NULL},
    {'v', "verbose", OPTION_COUNT, &cli.verbose, NULL, NULL},
    {0, "no-color", OPTION_FLAG, &cli.no_color, NULL, NULL},
    {'h', "help", OPTION_HELP, NULL, NULL, NULL},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};

static const struct option *const only_global[] = {NULL};

bool options_number(const char *text, uint64_t max, uint64_t *ret_number)
{
    char *end;

    if (!isdigit((unsigned char)*text))
        return false;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || *end != '\0' || number > max)
        return false;
    *ret_number = number;
    return true;
}

static double unit_ms(const char *unit)
{
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"", 1e3},   {"ms", 1},     {"s", 1e3},
                 {"m", 60e3}, {"h", 3600e3}, {"d", 86400e3}};

    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].ms;
    return 0;
}

bool options_duration(const char *text, int64_t *ret_ms)
{
    char *end;

    if (strcmp(text, "forever") == 0) {
        *ret_ms = FOREVER_MS;
        return true;
    }
    if (!isdigit((unsigned char)*text) && *text != '.')
        return false;
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return false;

    double number = strtod(text, &end);
    double ms = number * unit_ms(end);
    if (end == text || unit_ms(end) <= 0 || !(ms <= (double)HF_DURATION_MAX))
        return false;

    /* Whatever is not nothing is at least a millisecond. */
    *ret_ms = ms > 0 && ms < 1 ? 1 : (int64_t)(ms + 0.5);
    return true;
}

static size_t distance(const char *a, const char *b)
{
    size_t row[NAMES_MAX + 1];
    size_t n = strlen(b);

    if (n > NAMES_MAX || strlen(a) > NAMES_MAX)
        return NAMES_MAX;
    for (size_t j = 0; j <= n; j++)
        row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t corner = row[0];

        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = corner + (a[i] != b[j]);

            corner = row[j + 1];
            if (corner + 1 < best)
                best = corner + 1;
            if (row[j] + 1 < best)
                best = row[j] + 1;
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *options_nearest(const char *word, const char *const *names,
                            size_t n)
{
    const char *best = NULL;
    size_t least = strlen(word) < 4 ? 2 : 3;

    for (size_t i = 0; i < n; i++) {
        size_t far = distance(word, names[i]);

        if (far < least) {
            least = far;
            best = names[i];
        }
    }
    return best;
}

static const struct option *find(const struct option *const *tables,
                                 char letter, const char *name, size_t len)
{
    for (size_t t = 0;; t++) {
        const struct option *row = tables[t] ? tables[t] : options_global;

        for (; row->name; row++) {
            if (name && strlen(row->name) == len &&
                memcmp(row->name, name, len) == 0)
                return row;
            if (!name && row->letter == letter)
                return row;
        }
        if (!tables[t])
            return NULL;
    }
}

static int unknown(const struct option *const *tables, const char *text)
{
    const char *names[NAMES_MAX];
    size_t n = 0;

    for (size_t t = 0;; t++) {
        const struct option *row = tables[t] ? tables[t] : options_global;

        for (; row->name && n < NAMES_MAX; row++)
            names[n++] = row->name;
        if (!tables[t])
            break;
    }

    const char *near = options_nearest(text, names, n);
    if (near)
        return cli_usage("unknown option --%s; did you mean --%s?",
                         secret_shown(text), near);
    return cli_usage("unknown option --%s", secret_shown(text));
}

static int set_number(const struct option *option, const char *value)
{
    uint64_t number;

    if (!options_number(value, INT64_MAX, &number))
        return cli_usage("--%s takes a number, not \"%s\"", option->name,
                         secret_shown(value));
    *(int64_t *)option->to = (int64_t)number;
    return 0;
}

static int set_duration(const struct option *option, const char *value)
{
    if (!options_duration(value, option->to))
        return cli_usage("--%s takes a duration (250ms, 30s, 5m, 2h, or "
                         "seconds), not \"%s\"",
                         option->name, secret_shown(value));
    return 0;
}

static int apply(const struct verb *verb, const struct option *option,
                 const char *value)
{
    switch (option->kind) {
    case OPTION_FLAG:
        *(bool *)option->to = true;
        return 0;
    case OPTION_COUNT:
        ++*(int *)option->to;
        return 0;
    case OPTION_TEXT:
        *(const char **)option->to = value;
        return 0;
    case OPTION_NUMBER:
        return set_number(option, value);
    case OPTION_DURATION:
        return set_duration(option, value);
    case OPTION_CALL:
        return option->call(value);
    case OPTION_HELP:
        if (verb)
            fputs(verb->help, stdout);
        return OPTIONS_HELP;
    }
    return CLI_INTERNAL;
}

/* Apply @option, whose value is @inside the argument or the next one. */
static int take(const struct verb *verb, const struct option *option,
                char *inside, int argc, char **argv, int *at)
{
    char *value = inside;

    if (!option->value)
        return inside ? cli_usage("--%s takes no value", option->name)
                      : apply(verb, option, NULL);
    if (!value) {
        if (*at + 1 >= argc)
            return cli_usage("--%s needs a %s", option->name, option->value);
        value = argv[++*at];
    }

    int rc = apply(verb, option, value);

    /* Only what was copied may be wiped. */
    if (option->kind == OPTION_CALL)
        secret_wipe(value);
    return rc;
}

static int take_long(const struct verb *verb,
                     const struct option *const *tables, int argc, char **argv,
                     int *at)
{
    char *name = argv[*at] + 2;
    char *equals = strchr(name, '=');
    size_t len = equals ? (size_t)(equals - name) : strlen(name);
    const struct option *option = find(tables, 0, name, len);

    if (!option) {
        if (equals)
            *equals = '\0';
        return unknown(tables, name);
    }
    return take(verb, option, equals ? equals + 1 : NULL, argc, argv, at);
}

static int take_letters(const struct verb *verb,
                        const struct option *const *tables, int argc,
                        char **argv, int *at)
{
    for (char *letter = argv[*at] + 1; *letter; letter++) {
        const struct option *option = find(tables, *letter, NULL, 0);
        int rc;

        if (!option)
            return cli_usage("unknown option -%c", *letter);
        if (option->value)
            return take(verb, option, letter[1] ? letter + 1 : NULL, argc, argv,
                        at);
        rc = apply(verb, option, NULL);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static int take_option(const struct verb *verb,
                       const struct option *const *tables, int argc,
                       char **argv, int *at)
{
    if (argv[*at][1] == '-')
        return take_long(verb, tables, argc, argv, at);
    return take_letters(verb, tables, argc, argv, at);
}

static bool is_option(const char *argument)
{
    return argument[0] == '-' && argument[1] != '\0';
}

static int take_word(const struct verb *verb, struct words *words, char *word)
{
    if (words->n == words->wanted)
        return cli_usage("one argument too many: \"%s\"; see holdfast %s "
                         "--help",
                         secret_shown(word), verb->name);
    words->word[words->n++] = word;
    return 0;
}

static int check_words(const struct verb *verb, const struct words *words)
{
    if (words->n < words->needed)
        return cli_usage("something is missing: holdfast %s %s", verb->name,
                         verb->arguments);
    return 0;
}

int options_parse(const struct verb *verb, int argc, char **argv,
                  struct words *words)
{
    bool only_words = false;

    for (int i = 0; i < argc; i++) {
        int rc;

        if (strcmp(argv[i], "--") == 0 && words->command) {
            words->argv = argv[i + 1] ? argv + i + 1 : NULL;
            break;
        }
        if (strcmp(argv[i], "--") == 0 && !only_words) {
            only_words = true;
            continue;
        }
        if (is_option(argv[i]) && !only_words) {
            rc = take_option(verb, verb->options, argc, argv, &i);
        } else if (words->command && words->n == words->wanted) {
            words->argv = argv + i;
            break;
        } else {
            rc = take_word(verb, words, argv[i]);
        }
        if (rc != 0)
            return rc;
    }
    return check_words(verb, words);
}

int options_parse_globals(int argc, char **argv, int *ret_used)
{
    int i = 0;

    for (; i < argc && is_option(argv[i]); i++) {
        int rc;

        if (strcmp(argv[i], "--version") == 0 || strcmp(argv[i], "-V") == 0) {
            printf("holdfast %s\n", hf_library_version());
            return OPTIONS_VERSION;
        }
        rc = take_option(NULL, only_global, argc, argv, &i);
        if (rc != 0)
            return rc;
    }
    *ret_used = i;
    return 0;
}
