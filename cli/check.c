/* SPDX-License-Identifier: MIT */
/*
 * check.c - holdfast check: is this token still the current grant?
 *
 * For a script that was given HOLDFAST_TOKEN and wants to know, before a step
 * that cannot be undone, whether it is still the one. The answer can be old as
 * soon as it is printed; a resource that compares tokens itself is safer.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ancestor.h"
#include "cli.h"
#include "json.h"
#include "keeper.h"
#include "options.h"
#include "talk.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast check [NAME TOKEN]\n"
    "Exit 0 if TOKEN is still the current grant of NAME, 1 if it is not.\n"
    "Without both: those of HOLDFAST_NAME and HOLDFAST_TOKEN; after holdfast\n"
    "acquire the keeper is asked, otherwise the engine.\n\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n\n"
    "Inside a command of holdfast run, or after holdfast acquire:\n"
    "  holdfast check && step\n";

static const struct option *const tables[] = {NULL};

static void answer(const char *name, uint64_t token, bool current)
{
    struct json json = {.to = stdout};

    if (!cli.json) {
        if (talk_wanted())
            talk_say("\"%s\": this token is %s", text_safe(name),
                     current ? "current" : "not current any more");
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "name", name);
    json_token(&json, "token", token);
    json_bool(&json, "current", current);
    json_end(&json);
}

/* The words that the command line does not have, from the environment. */
static int fill(struct words *words)
{
    static const char *const names[] = {"HOLDFAST_NAME", "HOLDFAST_TOKEN"};

    if (words->n == 2)
        return 0;
    if (words->n == 1)
        return cli_usage("a name without a token; see holdfast check --help");
    for (size_t i = 0; i < 2; i++) {
        words->word[i] = secure_getenv(names[i]);
        if (!words->word[i])
            return cli_usage("%s is not set: this is no command of holdfast "
                             "run, and no shell after holdfast acquire",
                             names[i]);
    }
    return 0;
}

/* The key of the keeper that holds this grant for us; "": none. */
static const char *find_keeper(const char *name, uint64_t token)
{
    static struct ancestor one;
    const char *held = secure_getenv(ANCESTOR_VARIABLE);

    while (held && ancestor_next(&held, &one))
        if (one.token == token && strcmp(one.name, name) == 0)
            return one.key;
    return "";
}

static int ask_keeper(const char *key, const char *name, uint64_t token)
{
    char text[256];
    int code = keeper_ask(key, KEEPER_CHECK, text, sizeof(text));

    if (code != CLI_DONE && code != CLI_LOST) {
        fprintf(stderr, "holdfast: \"%s\": %s\n", text_safe(name),
                text_safe(text));
        return code;
    }
    answer(name, token, code == CLI_DONE);
    return code == CLI_DONE ? CLI_DONE : CLI_NO;
}

static int check_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 2, .needed = 0};
    const char *key = "";
    bool is_ours;
    uint64_t token;
    hf_client *client = NULL;
    hf_error err = {0};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    is_ours = words.n == 0;
    rc = fill(&words);
    if (rc != 0)
        return rc;
    if (!options_number(words.word[1], INT64_MAX, &token))
        return cli_usage("a token is a number, not \"%s\"", words.word[1]);
    if (is_ours)
        key = find_keeper(words.word[0], token);
    if (*key)
        return ask_keeper(key, words.word[0], token);
    if (token == 0)
        return cli_usage("0 is no token: the engine that gave it has none");
    rc = cli_open(&client);
    if (rc != 0)
        return rc;
    rc = hf_check_token(client, words.word[0], token, &err);
    hf_close(client);
    if (rc != 0 && rc != HF_ECONFLICT && rc != HF_ENOTFOUND)
        return cli_fail(&err);
    answer(words.word[0], token, rc == 0);
    return rc == 0 ? CLI_DONE : CLI_NO;
}

VERB(check, "[NAME TOKEN]",
     "exit 0 if a token is still the current grant, 1 if not");
