/* SPDX-License-Identifier: MIT */
/*
 * version.c - holdfast version: optimistic versions from a shell.
 *
 * Read the version of a name, do the work, and commit: the commit fails with
 * exit 1 if anybody else committed in between. No lock is held meanwhile.
 */
#include <inttypes.h>
#include <stdio.h>

#include "cli.h"
#include "json.h"
#include "options.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast version NAME [--commit EXPECTED]\n"
    "Print the version of NAME (0 if it was never committed). With --commit,\n"
    "replace it if it still is EXPECTED, and print the new one.\n\n"
    "      --commit EXPECTED   exit 1 if it is another one by now\n"
    "  --json, -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n\n"
    "  v=$(holdfast version doc) && edit && holdfast version doc --commit $v\n";

static const char *expected_text;
static const struct option version_options[] = {
    {0, "commit", OPTION_TEXT, &expected_text, NULL, "EXPECTED"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {version_options, NULL};

static void print_version(const char *name, uint64_t version)
{
    struct json json = {.to = stdout};

    if (!cli.json) {
        printf("%" PRIu64 "\n", version);
        return;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "name", name);
    json_token(&json, "version", version);
    json_end(&json);
}

static uint64_t expected;

static int ask(hf_client *client, const struct words *words)
{
    const char *name = words->word[0];
    uint64_t version = 0;
    hf_error err = {0};
    int rc;

    if (expected_text)
        rc = hf_version_commit(client, name, expected, &version, &err);
    else
        rc = hf_version_read(client, name, &version, &err);
    if (rc == HF_ECONFLICT) {
        fprintf(stderr,
                "holdfast: \"%s\" is not at version %" PRIu64
                " any more; read it again\n",
                text_safe(name), expected);
        return CLI_NO;
    }
    if (rc != 0)
        return cli_fail(&err);
    print_version(name, version);
    return CLI_DONE;
}

static int read_expected(const struct words *words)
{
    (void)words;
    if (expected_text && !options_number(expected_text, INT64_MAX, &expected))
        return cli_usage("a version is a number, not \"%s\"", expected_text);
    return 0;
}

VERB_RUN(version, 1, read_expected, ask)

VERB(version, "NAME [--commit EXPECTED]",
     "read an optimistic version, or compare and bump it");
