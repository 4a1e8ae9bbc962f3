/* SPDX-License-Identifier: MIT */
/*
 * config.c - holdfast config: lint a configuration file, show what is in force.
 *
 * The library stops at the first mistake in a file, as a program should. A
 * person wants all of them, so check reads the file itself, line by line, and
 * asks the library about each key and value; what the whole file must be is
 * asked at the end. A wrong key that resembles a known one has its value
 * checked against that one too, so that one run shows both mistakes.
 *
 * Everything that is printed is redacted by the library. Exit 78 if there was
 * an error.
 */
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "import.h"
#include "json.h"
#include "options.h"
#include "secret.h"
#include "talk.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast config check [FILE]\n"
    "       holdfast config show [--profile NAME]\n"
    "       holdfast config import FILE\n"
    "check: read FILE and report every mistake: unknown keys with the nearest\n"
    "       known one, values without a unit or out of range, secrets.\n"
    "show:  every key, the value in force, and where it comes from.\n"
    "import: read the application.yml or .properties of a Spring program, or "
    "a\n"
    "       file of Redisson's, and print ours. A password is printed, too.\n\n"
    "Without FILE: ~/.config/holdfast/holdfast.conf and\n"
    "/etc/holdfast/holdfast.conf; the current directory is never looked at.\n\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n\n"
    "A file:   ttl = 30s              for all\n"
    "          [prod]                 with --profile prod\n"
    "          url = redis://lock.example/0\n"
    "          password_file = /etc/holdfast/password\n"
    "          [lock nightly-*]       for these names\n"
    "          max_hold = 2h\n\n"
    "Exit: 0 no mistake; 78 mistakes.\n";

static const struct option *const tables[] = {NULL};

/* A file that is being checked. */
struct lint {
    const char *path;
    int line;
    int errors;
    bool in_lock; /* inside [lock …] */
};

static void finding(struct lint *lint, const char *severity, const char *text)
{
    struct json json = {.to = stdout};

    if (strcmp(severity, "error") == 0)
        lint->errors++;
    if (!cli.json) {
        printf("%s:%d: %s: %s\n", text_safe(lint->path), lint->line, severity,
               text_safe(text));
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "file", lint->path);
    json_number(&json, "line", lint->line);
    json_text(&json, "severity", severity);
    json_text(&json, "text", text);
    json_end(&json);
}

static char *trim(char *text)
{
    text += strspn(text, " \t");

    size_t len = strlen(text);
    while (len > 0 && isspace((unsigned char)text[len - 1]))
        text[--len] = '\0';
    return text;
}

/* "… did you mean KEY?": the KEY, if it is one. */
static bool suggested_key(const char *text, char *key, size_t size)
{
    const char *at = strstr(text, "did you mean ");

    if (!at)
        return false;
    at += strlen("did you mean ");

    size_t len = strcspn(at, "? ");
    if (at[len] != '?' || len == 0 || len >= size)
        return false;
    memcpy(key, at, len);
    key[len] = '\0';
    return true;
}

static void check_value(struct lint *lint, hf_config *scratch, const char *key,
                        const char *value)
{
    hf_error err = {0};
    char other[64];

    if (hf_config_set(scratch, key, value, &err) == 0)
        return;
    finding(lint, "error", err.text);
    if (suggested_key(err.text, other, sizeof(other)) &&
        hf_config_set(scratch, other, value, &err) != 0)
        finding(lint, "error", err.text);
}

static void check_secret(struct lint *lint, const char *key, const char *value)
{
    if (strcmp(key, "password") == 0 || strcmp(key, "acl") == 0)
        finding(lint, "warning",
                "a secret in a file that is copied around; a password goes "
                "to password_file");
    if (strcmp(key, "url") == 0 && secret_has(value))
        finding(lint, "warning",
                "a password inside the URL; use password_file");
}

static void check_section(struct lint *lint, char *text)
{
    size_t len = strlen(text);

    if (text[len - 1] != ']') {
        finding(lint, "error", "a section ends with ]");
        return;
    }
    text[len - 1] = '\0';
    text = trim(text + 1);
    lint->in_lock = strncmp(text, "lock", 4) == 0 &&
                    (text[4] == '\0' || isspace((unsigned char)text[4]));
    if (*text == '\0')
        finding(lint, "error", "a section needs a name");
    else if (lint->in_lock && *trim(text + 4) == '\0')
        finding(lint, "error", "[lock] needs a pattern, as in [lock jobs-*]");
}

static void check_lock_key(struct lint *lint, const char *key)
{
    static const char *const known[] = {"ttl", "wait", "max_hold", "note"};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(key, known[i]) == 0)
            return;
    finding(lint, "error",
            "in [lock ...] there may be ttl, wait, max_hold and note");
}

static void check_line(struct lint *lint, hf_config *scratch, char *text)
{
    text = trim(text);
    if (*text == '\0' || *text == '#' || *text == ';')
        return;
    if (*text == '[') {
        check_section(lint, text);
        return;
    }

    char *split = text + strcspn(text, "=:");
    char sign = *split;
    if (sign == '\0') {
        finding(lint, "error", "a line is: key = value");
        return;
    }
    *split = '\0';

    char *key = trim(text);
    char *value = trim(split + 1);
    size_t len = strlen(value);
    if (sign == ':')
        finding(lint, "error", "between key and value stands =, not :");
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        value[len - 1] = '\0';
        value++;
    }
    if (lint->in_lock)
        check_lock_key(lint, key);
    check_secret(lint, key, value);
    check_value(lint, scratch, key, value);
}

/* What only the whole file can tell. */
static void check_whole(struct lint *lint)
{
    hf_config *config = hf_config_new();
    hf_error err = {0};

    lint->line = 0;
    if (lint->errors == 0 && config &&
        hf_config_load(config, lint->path, NULL, &err) != 0)
        finding(lint, "error", err.text);
    hf_config_free(config);
}

static int check_file(const char *path)
{
    struct lint lint = {.path = path};
    FILE *file = fopen(path, "re");
    hf_config *scratch = hf_config_new();
    char *text = NULL;
    size_t room = 0;

    if (!file || !scratch) {
        fprintf(stderr, "holdfast: cannot read %s: %s\n",
                text_safe(secret_shown(path)), strerror(errno));
        hf_config_free(scratch);
        return CLI_CONFIG;
    }
    while (getline(&text, &room, file) >= 0) {
        lint.line++;
        check_line(&lint, scratch, text);
    }
    free(text);
    fclose(file);
    hf_config_free(scratch);
    check_whole(&lint);
    if (lint.errors == 0 && !cli.json && talk_wanted())
        talk_say("%s is good", text_safe(path));
    return lint.errors == 0 ? CLI_DONE : CLI_CONFIG;
}

static int check(const char *path)
{
    char user[PATH_MAX];
    int rc = CLI_DONE;
    bool any = false;

    if (!path)
        path = cli.config_path;
    if (path)
        return check_file(path);
    if (access(CLI_MACHINE_CONFIG, F_OK) == 0) {
        rc = check_file(CLI_MACHINE_CONFIG);
        any = true;
    }
    if (cli_user_config(user, sizeof(user))) {
        int other = check_file(user);

        rc = rc == CLI_DONE ? other : rc;
        any = true;
    }
    if (!any)
        talk_say("there is no configuration file to check, neither "
                 "~/.config/holdfast/holdfast.conf nor " CLI_MACHINE_CONFIG);
    return rc;
}

/* The value of HOLDFAST_KEY, or NULL. */
static const char *from_environment(const char *key)
{
    char name[96] = "HOLDFAST_";
    size_t used = strlen(name);

    for (; *key && used < sizeof(name) - 1; key++)
        name[used++] = *key == '.' ? '_' : (char)toupper((unsigned char)*key);
    name[used] = '\0';

    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* @value, of which nothing secret may be seen; static. */
static const char *hidden(const char *key, const char *value)
{
    static char *shown;
    char *pair = NULL;

    free(shown);
    shown = NULL;
    if (asprintf(&pair, "%s=%s", key, value) >= 0)
        shown = secret_hidden(pair, "***");
    free(pair);
    return shown ? strchr(shown, '=') + 1 : "***";
}

/* The value in force and its origin; the same order as the library's. */
static const char *in_force(const hf_key_info *key, const char **ret_from)
{
    const char *set = cli.config ? hf_config_get(cli.config, key->name) : NULL;
    const char *variable = from_environment(key->name);

    *ret_from = "option";
    if (strcmp(key->name, "url") == 0 && cli.url)
        return hidden("url", cli.url);
    if (cli_was_set(key->name))
        return set;
    *ret_from = "environment";
    if (variable)
        return hidden(key->name, variable);
    *ret_from = set && strcmp(set, key->standard) != 0 ? "file" : "default";
    if (strcmp(key->name, "url") == 0 && (!set || !*set))
        return "local:";
    return set ? set : key->standard;
}

static int show_key(const hf_key_info *key, void *ctx)
{
    struct table *table = ctx;
    struct json json = {.to = stdout};
    const char *from;
    const char *value = in_force(key, &from);

    if (!cli.json) {
        table_add(table, key->name);
        table_add(table, *value ? value : "-");
        table_add(table, from);
        table_add(table, key->help);
        return 0;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "key", key->name);
    json_text(&json, "value", value);
    json_text(&json, "from", from);
    json_text(&json, "type", key->type);
    json_text(&json, "default", key->standard);
    json_text(&json, "help", key->help);
    json_end(&json);
    return 0;
}

static int show(void)
{
    struct table table = {.columns = 4};
    int rc = cli_load_config();

    if (rc != 0)
        return rc;
    if (!cli.json) {
        table_add(&table, "KEY");
        table_add(&table, "VALUE");
        table_add(&table, "FROM");
        table_add(&table, "MEANING");
    }
    hf_config_keys(show_key, &table);
    if (!cli.json)
        table_print(&table, stdout);
    table_release(&table);
    return CLI_DONE;
}

static int config_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 2, .needed = 1};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    if (strcmp(words.word[0], "check") == 0)
        return check(words.word[1]);
    if (strcmp(words.word[0], "show") == 0) {
        if (words.word[1])
            cli.config_path = words.word[1];
        return show();
    }
    if (strcmp(words.word[0], "import") == 0 && words.word[1])
        return import_file(words.word[1]);
    if (strcmp(words.word[0], "import") == 0)
        return cli_usage("config import needs a FILE: an application.yml, "
                         ".properties or a file of Redisson's");
    return cli_usage("config check, show or import, not \"%s\"",
                     secret_shown(words.word[0]));
}

VERB(config, "check|show|import [FILE]",
     "lint, show or translate a configuration");
