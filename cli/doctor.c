/* SPDX-License-Identifier: MIT */
/*
 * doctor.c - holdfast doctor: probe the engine's real configuration.
 *
 * Three checks are the same everywhere: can it be opened, does a lock work
 * from here, and is the lease long enough for the way there. The engine brings
 * the rest. Every finding that is not good comes with what to do.
 *
 * Exit 0 all well, 1 warnings, 2 failures.
 */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli.h"
#include "inherit.h"
#include "json.h"
#include "lock.h"
#include "options.h"
#include "stores.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast doctor [URL] [--json]\n"
    "Probe the engine: can it be reached, does a lock work from here, and is\n"
    "the server set up so that locks are safe? Every finding has a fix.\n\n"
    "      --json   one object per line: check, status, detail, fix\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE\n\n"
    "Exit: 0 all well; 1 warnings; 2 failures.\n";

static const struct option *const tables[] = {NULL};

static int print_finding(const hf_finding *finding, void *ctx)
{
    static const char *const marks[] = {"✔", "⚠", "✖"};
    static const char *const words[] = {"ok", "warn", "fail"};
    static const char *const colours[] = {"\033[32m", "\033[33m", "\033[31m"};
    bool colour = text_colours(stdout);
    int status =
        finding->status < 0 || finding->status > 2 ? 2 : finding->status;
    int *worst = ctx;

    if (status > *worst)
        *worst = status;
    if (cli.json) {
        struct json json = {.to = stdout};

        json_open(&json, NULL, '{');
        json_text(&json, "check", finding->check);
        json_text(&json, "status", words[status]);
        json_text(&json, "detail", finding->detail);
        json_text(&json, "fix", finding->fix);
        json_end(&json);
        return 0;
    }
    printf("%s%s%s %-14s %s\n", colour ? colours[status] : "", marks[status],
           colour ? "\033[0m" : "", text_safe(finding->check),
           text_safe(finding->detail));
    if (*finding->fix)
        printf("  fix: %s\n", text_safe(finding->fix));
    return 0;
}

static void report(int *worst, int status, const char *check,
                   const char *detail, const char *fix)
{
    hf_finding finding = {(uint32_t)sizeof(finding), status, check, detail,
                          fix};

    print_finding(&finding, worst);
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A lease has to survive a few lost trips to the engine. */
static void judge_lease(int64_t ttl_ms, double trip_ms, int *worst)
{
    char detail[160];

    if (ttl_ms == 0) {
        report(worst, HF_FINDING_OK, "lease",
               "none: the lock lives as long as its holder", "");
        return;
    }
    snprintf(detail, sizeof(detail),
             "%" PRId64 " ms, %.0f times as long as one acquire takes", ttl_ms,
             (double)ttl_ms / (trip_ms > 0.001 ? trip_ms : 0.001));
    if ((double)ttl_ms < 30 * trip_ms)
        report(worst, HF_FINDING_WARN, "lease", detail,
               "raise ttl: one slow renewal would lose the lock");
    else
        report(worst, HF_FINDING_OK, "lease", detail, "");
}

/* What to do about an acquire that failed with @rc. */
static const char *fix_of(int rc)
{
    switch (rc) {
    case HF_EAUTH:
        return "check the rights of this user on the engine";
    case HF_EUNAVAILABLE:
    case HF_ETIMEOUT:
    case HF_EUNKNOWN:
        return "the findings below say which server does not take part, and "
               "why; then try again";
    case HF_ENOSPACE:
        return "release locks, or give the engine more room";
    default:
        return "correct what the text says";
    }
}

/* A real acquire and release, of a name that nobody else uses. */
static void try_lock(hf_client *client, int *worst)
{
    char name[64];
    char detail[160];
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err = {0};
    double start = seconds();

    snprintf(name, sizeof(name), "holdfast-doctor-%ld", (long)getpid());
    opts.wait_ms = 5000;
    int rc = hf_acquire(client, name, &opts, &hold, &err);
    if (rc != 0) {
        report(worst, HF_FINDING_FAIL, "lock", err.text, fix_of(rc));
        return;
    }

    double trip_ms = (seconds() - start) * 1e3;
    int64_t ttl_ms = hf_ttl_ms(hold);
    rc = hf_verify(hold, &err);
    int released = hf_release(hold, &err);
    if (rc != 0 || released != 0) {
        report(worst, HF_FINDING_FAIL, "lock", err.text,
               "run again with -vv to see each step");
        return;
    }
    snprintf(detail, sizeof(detail),
             "acquired in %.3f ms, renewed and released", trip_ms);
    report(worst, HF_FINDING_OK, "lock", detail, "");
    judge_lease(ttl_ms, trip_ms, worst);
}

static void report_store(const char *url, int holders, void *ctx)
{
    char detail[PATH_MAX + 64];

    snprintf(detail, sizeof(detail), "%s has %d of its own", url, holders);
    report(ctx, HF_FINDING_WARN, "other holders", detail,
           "name the store that you mean: -u local:///dir");
}

static int examine(hf_client *client)
{
    hf_error err = {0};
    int worst = HF_FINDING_OK;

    report(&worst, HF_FINDING_OK, "reachable", hf_client_url(client), "");
    try_lock(client, &worst);

    int rc = hf_doctor(client, print_finding, &worst, &err);
    if (rc != 0 && rc != HF_EUNSUPPORTED)
        report(&worst, HF_FINDING_FAIL, "engine", err.text,
               "run again with -vv to see each step");
    stores_others(client, report_store, &worst);
    return worst;
}

static int doctor_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1};
    hf_client *client = NULL;
    hf_error err = {0};
    int worst = HF_FINDING_OK;
    int rc = options_parse(verb, argc, argv, &words);

    if (rc == 0)
        rc = cli_take_url(words.word[0]);
    if (rc == 0)
        rc = cli_choose_engine();
    if (rc != 0)
        return rc;
    rc = hf_open(cli.url, cli.config, &client, &err);
    if (rc != 0) {
        report(&worst, HF_FINDING_FAIL, "reachable", err.text,
               rc == HF_EUNAVAILABLE ? "is the server up, and the URL right?"
               : rc == HF_EAUTH && !inherit_is_local()
                   ? "check user and password_file"
                   : "correct the URL or the configuration");
        return worst;
    }
    worst = examine(client);
    hf_close(client);
    return worst;
}

VERB(doctor, "[URL]", "probe the engine's real configuration");
