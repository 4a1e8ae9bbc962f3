/* SPDX-License-Identifier: MIT */
/*
 * bench.c - holdfast bench: measure this engine from here.
 *
 * Each scenario is a file of its own and fills in the same figures; here they
 * are chosen, run and printed: as one JSON object per scenario, or as a table
 * and, on a terminal, the shape of the latencies.
 *
 * Failure: an error inside a scenario is counted and the run goes on; then the
 * exit code is 1. What keeps a scenario from starting has its own exit code.
 */
#include "bench.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "json.h"
#include "options.h"
#include "talk.h"
#include "text.h"

static const char help[] =
    "Usage: holdfast bench [--scenario S] [options] [URL]\n"
    "Measure the engine from here. Without --scenario: all of them.\n\n"
    "  pair         each thread acquires and releases a name of its own\n"
    "  shared-name  all threads of one process contend for one name\n"
    "  handover     N processes contend for one name; from release to the "
    "next\n"
    "  try          one client holds, another one is refused\n"
    "  async        one thread keeps N requests under way, each its own name\n"
    "  held         hold N names and do nothing but keep them\n\n"
    "      --seconds N      how long each takes (3; held 10)\n"
    "      --threads N      pair 1, shared-name 8\n"
    "      --processes N    handover 2\n"
    "      --locks N        held 10000, async 100\n"
    "      --pin CPU        everything on this processor\n"
    "      --json           one object per scenario\n"
    "  -u URL, -c FILE, --profile NAME, -o KEY=VALUE, -q\n\n"
    "Exit: 0; 1 if there were errors.\n";

static struct {
    const char *scenario;
    const char *seconds;
    int64_t threads;
    int64_t processes;
    int64_t locks;
    int64_t pin;
} options = {.pin = -1};

static const struct option bench_options[] = {
    {0, "scenario", OPTION_TEXT, &options.scenario, NULL, "S"},
    {0, "seconds", OPTION_TEXT, &options.seconds, NULL, "N"},
    {0, "threads", OPTION_NUMBER, &options.threads, NULL, "N"},
    {0, "processes", OPTION_NUMBER, &options.processes, NULL, "N"},
    {0, "locks", OPTION_NUMBER, &options.locks, NULL, "N"},
    {0, "pin", OPTION_NUMBER, &options.pin, NULL, "CPU"},
    {0, NULL, OPTION_FLAG, NULL, NULL, NULL},
};
static const struct option *const tables[] = {bench_options, NULL};

/* A scenario, its standards, and what its figures are called. */
struct scenario {
    const char *name;
    bench_fn *run;
    const char *rate; /* NULL: it has none */
    int threads;
    int processes;
    int64_t locks;
    double seconds;
};

static const struct scenario scenarios[] = {
    {"pair", bench_pair, "pairs_per_s", 1, 1, 0, 3},
    {"shared-name", bench_shared_name, "pairs_per_s", 8, 1, 0, 3},
    {"handover", bench_handover, "handovers_per_s", 1, 2, 0, 3},
    {"try", bench_try, "tries_per_s", 1, 1, 0, 3},
    {"async", bench_async, "pairs_per_s", 1, 1, 100, 3},
    {"held", bench_held, NULL, 1, 1, 10000, 10},
};
enum { SCENARIOS = sizeof(scenarios) / sizeof(scenarios[0]) };

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_name(char *to, size_t size, const char *what, int64_t i)
{
    snprintf(to, size, "bench-%ld-%s-%" PRId64, (long)getpid(), what, i);
}

int bench_open(struct figures *figures, hf_client **ret_client)
{
    int rc = cli_open(ret_client);

    if (rc != 0)
        return rc;
    snprintf(figures->engine, sizeof(figures->engine), "%s",
             hf_engine_name(*ret_client));
    snprintf(figures->url, sizeof(figures->url), "%s",
             hf_client_url(*ret_client));
    return 0;
}

void bench_error(struct figures *figures, const hf_error *err)
{
    if (figures->errors++ == 0)
        snprintf(figures->error, sizeof(figures->error), "%s", err->text);
}

void bench_progress(const struct bench *bench, double elapsed)
{
    if (cli.json || !talk_wanted())
        return;
    if (!bench) {
        fputs("\r\033[K", stderr);
        return;
    }
    fprintf(stderr, "\r%s: %.0f of %.0f s\033[K", bench->scenario, elapsed,
            bench->seconds);
}

void bench_wait(const struct bench *bench, uint64_t start_ns, uint64_t until_ns)
{
    for (;;) {
        uint64_t now = bench_now_ns();

        if (now >= until_ns)
            break;
        bench_progress(bench, (double)(now - start_ns) / 1e9);

        uint64_t left = until_ns - now;
        if (left > 500000000u)
            left = 500000000u;
        struct timespec nap = {0, (long)left};
        clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    }
    bench_progress(NULL, 0);
}

static void print_json(const struct scenario *scenario,
                       const struct bench *bench, const struct figures *figures)
{
    struct json json = {.to = stdout};

    json_open(&json, NULL, '{');
    json_text(&json, "scenario", bench->scenario);
    json_text(&json, "engine", figures->engine);
    json_text(&json, "url", figures->url);
    json_number(&json, "threads", bench->threads);
    json_number(&json, "processes", bench->processes);
    json_fraction(&json, "seconds", figures->seconds);
    if (scenario->rate) {
        json_fraction(&json, scenario->rate, figures->per_s);
        json_fraction(&json, "p50_us", histogram_us(&figures->histogram, 0.5));
        json_fraction(&json, "p99_us", histogram_us(&figures->histogram, 0.99));
        if (figures->fairness >= 0)
            json_fraction(&json, "fairness", figures->fairness);
    } else {
        json_number(&json, "locks", bench->locks);
        json_fraction(&json, "bytes_per_lock", figures->bytes_per_lock);
        json_fraction(&json, "cpu_percent", figures->cpu_percent);
        json_fraction(&json, "renewals_per_s", figures->renewals_per_s);
    }
    json_number(&json, "errors", (int64_t)figures->errors);
    json_end(&json);
}

static void print_figure(const char *name, double value, const char *format)
{
    char text[48];

    if (value < 0)
        return;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(text, sizeof(text), format, value);
#pragma GCC diagnostic pop
    printf("  %-16s %14s\n", name, text);
}

static void print_text(const struct scenario *scenario,
                       const struct bench *bench, const struct figures *figures)
{
    printf("%s on %s, %d thread%s, %d process%s, %.1f s\n", bench->scenario,
           text_safe(figures->url), bench->threads,
           bench->threads == 1 ? "" : "s", bench->processes,
           bench->processes == 1 ? "" : "es", figures->seconds);
    if (scenario->rate) {
        print_figure(scenario->rate, figures->per_s, "%.0f");
        print_figure("p50_us", histogram_us(&figures->histogram, 0.5), "%.2f");
        print_figure("p99_us", histogram_us(&figures->histogram, 0.99), "%.2f");
        print_figure("fairness", figures->fairness, "%.3f");
    } else {
        print_figure("locks", (double)bench->locks, "%.0f");
        print_figure("bytes_per_lock", figures->bytes_per_lock, "%.0f");
        print_figure("cpu_percent", figures->cpu_percent, "%.2f");
        print_figure("renewals_per_s", figures->renewals_per_s, "%.0f");
    }
    print_figure("errors", (double)figures->errors, "%.0f");
    if (scenario->rate && isatty(STDOUT_FILENO))
        histogram_print(&figures->histogram, stdout);
    fflush(stdout);
}

static int run_scenario(const struct scenario *scenario, double seconds)
{
    static struct figures figures;
    struct bench bench = {
        .scenario = scenario->name,
        .seconds = seconds > 0 ? seconds : scenario->seconds,
        .threads = options.threads ? (int)options.threads : scenario->threads,
        .processes =
            options.processes ? (int)options.processes : scenario->processes,
        .locks = options.locks ? options.locks : scenario->locks,
    };

    memset(&figures, 0, sizeof(figures));
    figures.fairness = -1;
    int rc = scenario->run(&bench, &figures);
    if (rc != 0)
        return rc;
    if (cli.json)
        print_json(scenario, &bench, &figures);
    else
        print_text(scenario, &bench, &figures);
    if (figures.errors > 0)
        fprintf(stderr, "holdfast: %" PRIu64 " errors; the first: %s\n",
                figures.errors, text_safe(figures.error));
    return figures.errors > 0 ? CLI_NO : CLI_DONE;
}

static int pin(void)
{
    cpu_set_t set;

    if (options.pin < 0)
        return 0;
    CPU_ZERO(&set);
    if (options.pin < CPU_SETSIZE)
        CPU_SET((size_t)options.pin, &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0)
        return 0;
    return cli_usage("there is no processor %" PRId64 " for --pin",
                     options.pin);
}

static int check_options(double *ret_seconds)
{
    int64_t ms = 0;

    if (options.seconds && !options_duration(options.seconds, &ms))
        return cli_usage("--seconds takes a number, not \"%s\"",
                         options.seconds);
    if (options.threads > 1024 || options.processes > 1024)
        return cli_usage("at most 1024 threads and processes");
    if (options.locks > 10000000)
        return cli_usage("at most 10 million locks");
    *ret_seconds = (double)ms / 1e3;
    return pin();
}

static int run_all(double seconds)
{
    int worst = CLI_DONE;

    for (size_t i = 0; i < SCENARIOS; i++) {
        int rc;

        if (options.scenario &&
            strcmp(scenarios[i].name, options.scenario) != 0)
            continue;
        rc = run_scenario(&scenarios[i], seconds);
        if (rc > CLI_NO)
            return rc;
        worst = rc > worst ? rc : worst;
        if (options.scenario)
            return rc;
    }
    if (options.scenario)
        return cli_usage("no scenario \"%s\": pair, shared-name, handover, "
                         "try, async or held",
                         options.scenario);
    return worst;
}

static int bench_main(const struct verb *verb, int argc, char **argv)
{
    struct words words = {.wanted = 1};
    double seconds = 0;
    int rc = options_parse(verb, argc, argv, &words);

    if (rc == 0)
        rc = cli_take_url(words.word[0]);
    if (rc == 0)
        rc = check_options(&seconds);
    return rc == 0 ? run_all(seconds) : rc;
}

VERB(bench, "[URL]", "measure this engine from here");
