/* SPDX-License-Identifier: MIT */
/*
 * bench_held.c - the scenario held.
 *
 * Hold many names and do nothing but keep them: what does a lock cost while it
 * is held? Memory is the growth of this process's share of all pages
 * (smaps_rollup), which includes the engine's shared table where there is one.
 * Processor time is that of the whole process while it only renews.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench.h"

/* This process's share of its pages, in bytes; 0 if nobody tells. */
static double memory_bytes(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    long kib = 0;

    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file))
        if (sscanf(line, "Pss: %ld kB", &kib) == 1)
            break;
    fclose(file);
    return (double)kib * 1024;
}

static double cpu_seconds(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* The metrics, as text. */
struct text {
    char *bytes;
    size_t len;
};

static void gather(const char *text, size_t len, void *ctx)
{
    struct text *all = ctx;
    char *bytes = realloc(all->bytes, all->len + len + 1);

    if (!bytes)
        return;
    memcpy(bytes + all->len, text, len);
    all->bytes = bytes;
    all->len += len;
    all->bytes[all->len] = '\0';
}

/* How often a lease was renewed so far. */
static double renewals(hf_client *client)
{
    static const char metric[] = "holdfast_renewals_total{";
    struct text text = {0};
    double sum = 0;

    hf_metrics_write(client, gather, &text);
    for (char *line = text.bytes ? strtok(text.bytes, "\n") : NULL; line;
         line = strtok(NULL, "\n")) {
        const char *value = strrchr(line, ' ');

        if (strncmp(line, metric, strlen(metric)) == 0 && value &&
            strstr(line, "\"ok\""))
            sum += strtod(value, NULL);
    }
    free(text.bytes);
    return sum;
}

static int64_t acquire_all(const struct bench *bench, hf_client *client,
                           hf_hold **holds, struct figures *figures)
{
    int64_t n = 0;
    char name[64];
    hf_error err;

    for (int64_t i = 0; i < bench->locks; i++) {
        bench_name(name, sizeof(name), bench->scenario, i);
        if (hf_acquire(client, name, NULL, &holds[n], &err) == 0)
            n++;
        else
            bench_error(figures, &err);
    }
    return n;
}

static void release_all(hf_hold **holds, int64_t n, struct figures *figures)
{
    hf_error err;

    for (int64_t i = 0; i < n; i++)
        if (hf_release(holds[i], &err) != 0)
            bench_error(figures, &err);
}

static void keep(const struct bench *bench, hf_client *client,
                 struct figures *figures)
{
    uint64_t began = bench_now_ns();
    double cpu = cpu_seconds();
    double renewed = renewals(client);

    bench_wait(bench, began, began + (uint64_t)(bench->seconds * 1e9));
    figures->seconds = (double)(bench_now_ns() - began) / 1e9;
    figures->cpu_percent = 100 * (cpu_seconds() - cpu) / figures->seconds;
    figures->renewals_per_s = (renewals(client) - renewed) / figures->seconds;
}

static void hold_all(const struct bench *bench, hf_client *client,
                     hf_hold **holds, struct figures *figures)
{
    double before = memory_bytes();
    int64_t n = acquire_all(bench, client, holds, figures);

    if (n > 0)
        figures->bytes_per_lock = (memory_bytes() - before) / (double)n;
    keep(bench, client, figures);
    release_all(holds, n, figures);
}

int bench_held(const struct bench *bench, struct figures *figures)
{
    hf_hold **holds = calloc((size_t)bench->locks + 1, sizeof(hf_hold *));
    hf_client *client = NULL;
    int rc = holds ? bench_open(figures, &client) : CLI_INTERNAL;

    if (rc == 0)
        hold_all(bench, client, holds, figures);
    free(holds);
    hf_close(client);
    return rc;
}
