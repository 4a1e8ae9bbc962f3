/* SPDX-License-Identifier: MIT */
/*
 * break.c - holdfast break: take a lock away from its holder.
 *
 * The one dangerous verb, so it names what it breaks: the token (or, where an
 * engine has none, the owner) that somebody saw. The engine compares and
 * deletes in one step; a new holder is never broken by accident. On a terminal
 * the name has to be typed; a script says --confirm=NAME.
 *
 * Failure: an old token is refused with exit 1, and nothing has changed.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "json.h"
#include "look.h"
#include "options.h"
#include "talk.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast break NAME --token N [--confirm=NAME]\n"
    "Take NAME away from the holder whose token is N. The holder is told that\n"
    "it lost the lock; what it is doing cannot be undone.\n\n"
    "      --token N         of: holdfast show NAME\n"
    "      --owner OWNER     instead, where the engine has no tokens\n"
    "      --confirm=NAME    do not ask\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE, -q\n\n"
    "Exit: 0 broken; 1 the token is old, or nobody holds it: nothing "
    "changed.\n";

static struct {
    const char *token;
    const char *owner;
    const char *confirm;
    uint64_t number; /* of the token */
} options;

static const struct option break_options[] = {
    {0, "token", OPTION_TEXT, &options.token, NULL, "N"},
    {0, "owner", OPTION_TEXT, &options.owner, NULL, "OWNER"},
    {0, "confirm", OPTION_TEXT, &options.confirm, NULL, "NAME"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {break_options, NULL};

/* The holder that the token or the owner names, for the question. */
struct target {
    uint64_t token;
    bool found;
    int holders;
};

static void describe(const hf_lock_info *info, const char *verdict)
{
    char holder[160];
    char age[TEXT_AGE];

    if (cli.quiet)
        return;
    fprintf(stderr, "holdfast: \"%s\" is held by %s", text_safe(info->name),
            text_safe(look_holder(info, holder, sizeof(holder))));
    if (info->since_ms >= 0)
        fprintf(stderr, " for %s", text_age(info->since_ms, age));
    if (info->token > 0)
        fprintf(stderr, ", token %" PRIu64, info->token);
    if (info->lease_ms >= 0)
        fprintf(stderr, ", lease good for %s more",
                text_age(info->lease_ms, age));
    fprintf(stderr, "\n");
    if (*info->note)
        fprintf(stderr, "  note: %s\n", text_safe(info->note));
    fprintf(stderr, "  %s\n", verdict);
}

static const char *verdict(uint32_t alive)
{
    switch (alive) {
    case 0:
        return "this holder is dead";
    case 1:
        return "this holder is ALIVE: it may be working right now";
    default:
        return "whether this holder is alive is not known";
    }
}

static int look(const hf_lock_info *info, void *ctx)
{
    struct target *target = ctx;

    if (info->role != HF_HOLDER)
        return 0;
    target->holders++;
    if (options.token ? info->token != target->token
                      : strcmp(info->owner, options.owner) != 0)
        return 0;
    target->found = true;
    describe(info, verdict(info->alive));
    return 0;
}

static int ask(const char *name)
{
    char line[HF_NAME_MAX + 3];

    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        fprintf(stderr,
                "holdfast: not confirmed; in a script, say: "
                "--confirm=%s\n",
                text_shell(name));
        return CLI_USAGE;
    }
    fprintf(stderr, "Type the name of the lock to break it: ");
    if (!fgets(line, sizeof(line), stdin))
        line[0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strcmp(line, name) == 0)
        return 0;
    fprintf(stderr, "holdfast: that is not the name; nothing was changed\n");
    return CLI_USAGE;
}

static int confirm(const char *name)
{
    if (!options.confirm)
        return ask(name);
    if (strcmp(options.confirm, name) == 0)
        return 0;
    return cli_usage("--confirm=%s is not the name \"%s\"; nothing was changed",
                     options.confirm, name);
}

static int refuse(const char *name, const struct target *target)
{
    if (target->holders == 0)
        fprintf(stderr, "holdfast: nobody holds \"%s\"; nothing was changed\n",
                text_safe(name));
    else
        fprintf(stderr,
                "holdfast: \"%s\" is held under another %s by now; nothing "
                "was changed\n  look: holdfast show %s\n",
                text_safe(name), options.token ? "token" : "owner",
                text_shell(name));
    return CLI_NO;
}

static void tell(const char *name, uint64_t token)
{
    struct json json = {.to = stdout};

    if (!cli.json) {
        if (talk_wanted())
            talk_say("broke \"%s\"", text_safe(name));
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "event", "broken");
    json_text(&json, "name", name);
    json_token(&json, "token", token);
    json_end(&json);
}

static int break_lock(hf_client *client, const struct words *words)
{
    struct target target = {.token = options.number};
    const char *name = words->word[0];
    hf_error err = {0};
    int rc = hf_show(client, name, look, &target, &err);
    bool listed = rc == 0;

    if (rc != 0 && rc != HF_EUNSUPPORTED)
        return cli_fail(&err);
    if (listed && !target.found)
        return refuse(name, &target);
    rc = confirm(name);
    if (rc != 0)
        return rc;

    rc = hf_break(client, name, target.token, options.owner, &err);
    if (rc == HF_ECONFLICT || rc == HF_ENOTFOUND) {
        target.holders = rc == HF_ECONFLICT;
        return refuse(name, &target);
    }
    if (rc != 0)
        return cli_fail(&err);
    tell(name, target.token);
    return CLI_DONE;
}

static int check_options(const struct words *words)
{
    if (!options.token == !options.owner)
        return cli_usage("say which holder: --token N, as shown by: holdfast "
                         "show %s",
                         words->word[0]);
    if (options.token &&
        (!options_number(options.token, INT64_MAX, &options.number) ||
         options.number == 0))
        return cli_usage("a token is a number, not \"%s\"", options.token);
    return 0;
}

VERB_RUN(break, 1, check_options, break_lock)

VERB(break, "NAME --token N",
     "take a lock away from the holder with this token");
