/* SPDX-License-Identifier: MIT */
/*
 * engines.c - holdfast engines: what is built in, and what it promises.
 *
 * Nothing is loaded for the whole list: the library's registry knows names, schemes and
 * capabilities without the engines' own libraries.
 */
#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "json.h"
#include "options.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast engines [--json] [-u URL]\n"
    "The engines of this build: URL schemes, dialects, and what each "
    "promises.\n"
    "A promise can be demanded: holdfast run NAME --require fenced,fifo -- "
    "CMD\n"
    "\n  -u URL    what this one promises, in its dialect and mode\n"
    "  --json    one object per line: engine, schemes, dialects, capabilities"
    "\n";

static const struct option *const tables[] = {NULL};

static void name_capabilities(uint64_t bits, char *to, size_t size)
{
    size_t used = 0;

    to[0] = '\0';
    for (int i = 0; i < 64; i++) {
        const char *name = hf_capability_name(bits & UINT64_C(1) << i);

        if (name && used < size)
            used += (size_t)snprintf(to + used, size - used, "%s%s",
                                     used ? " " : "", name);
    }
}

static int print_json(const hf_engine_info *engine, void *ctx)
{
    struct json json = {.to = stdout};
    char capabilities[512];

    (void)ctx;
    name_capabilities(engine->capabilities, capabilities, sizeof(capabilities));
    json_open(&json, NULL, '{');
    json_text(&json, "engine", engine->name);
    json_words(&json, "schemes", engine->schemes);
    json_words(&json, "dialects", engine->dialects);
    json_words(&json, "capabilities", capabilities);
    if (!engine->available)
        json_text(&json, "install", engine->hint);
    json_end(&json);
    return 0;
}

static int add_row(const hf_engine_info *engine, void *ctx)
{
    struct table *table = ctx;
    char capabilities[512];

    name_capabilities(engine->capabilities, capabilities, sizeof(capabilities));
    table_add(table, engine->name);
    table_add(table, engine->schemes);
    table_add(table, *engine->dialects ? engine->dialects : "-");
    table_add(table, engine->available ? capabilities : engine->hint);
    return 0;
}

/* What the engine of @client promises, in its dialect and mode. */
static int print_one(hf_client *client)
{
    struct json json = {.to = stdout};
    char capabilities[512];

    name_capabilities(hf_capabilities(client), capabilities,
                      sizeof(capabilities));
    if (!cli.json) {
        printf("%s promises: %s\n", text_safe(hf_client_url(client)),
               capabilities);
        return CLI_DONE;
    }
    json_open(&json, NULL, '{');
    json_text(&json, "engine", hf_engine_name(client));
    json_text(&json, "url", hf_client_url(client));
    json_words(&json, "capabilities", capabilities);
    json_end(&json);
    return CLI_DONE;
}

static int engines_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 0};
    struct table table = {.columns = 4};
    int rc = options_parse(verb, argc, argv, &words);

    if (rc != 0)
        return rc;
    if (cli.url || cli.config_path || cli.profile) {
        hf_client *client = NULL;

        rc = cli_open(&client);
        if (rc == 0)
            rc = print_one(client);
        hf_close(client);
        return rc;
    }
    if (cli.json)
        return hf_engines(print_json, NULL) == 0 ? CLI_DONE : CLI_INTERNAL;
    table_add(&table, "ENGINE");
    table_add(&table, "SCHEMES");
    table_add(&table, "DIALECTS");
    table_add(&table, "PROMISES");
    rc = hf_engines(add_row, &table);
    table_print(&table, stdout);
    table_release(&table);
    return rc == 0 ? CLI_DONE : CLI_INTERNAL;
}

VERB(engines, "", "engines built in, with what each promises");
