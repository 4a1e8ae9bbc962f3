/* SPDX-License-Identifier: MIT */
/*
 * check.c - holdfast check: is this token still the current grant?
 *
 * For a script that was given HOLDFAST_TOKEN and wants to know, before a step
 * that cannot be undone, whether it is still the one. The answer can be old as
 * soon as it is printed; a resource that compares tokens itself is safer.
 */
#include <stdio.h>

#include "cli.h"
#include "json.h"
#include "options.h"
#include "talk.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast check NAME TOKEN\n"
    "Exit 0 if TOKEN is still the current grant of NAME, 1 if it is not.\n\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n\n"
    "Inside a command of holdfast run:\n"
    "  holdfast check \"$HOLDFAST_NAME\" \"$HOLDFAST_TOKEN\" && step\n";

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

static int check_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 2, .needed = 2};
    uint64_t token;
    hf_client *client = NULL;
    hf_error err = {0};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    if (!options_number(words.word[1], INT64_MAX, &token))
        return cli_usage("a token is a number, not \"%s\"", words.word[1]);
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

const struct verb verb_check = {
    .name = "check",
    .arguments = "NAME TOKEN",
    .summary = "exit 0 if a token is still the current grant, 1 if not",
    .help = help,
    .options = tables,
    .main = check_main,
};
