/* SPDX-License-Identifier: MIT */
/*
 * bench_try.c - the scenario try.
 *
 * One client holds the lock, another one tries to get it and is refused, again
 * and again: what does a "no" cost? A grant would be an error here.
 */
#include <stdio.h>

#include "bench.h"

static void try_once(hf_client *client, const char *name,
                     struct figures *figures)
{
    hf_opts opts = HF_OPTS_INIT;
    hf_error err;
    hf_hold *hold;

    opts.wait_ms = 0;
    int rc = hf_acquire(client, name, &opts, &hold, &err);
    if (rc == 0) {
        snprintf(err.text, sizeof(err.text), "two holders at once");
        bench_error(figures, &err);
        hf_hold_unref(hold);
    } else if (rc != HF_EBUSY) {
        bench_error(figures, &err);
    }
}

static void try_all_the_time(const struct bench *bench, hf_client *client,
                             const char *name, struct figures *figures)
{
    uint64_t began = bench_now_ns();
    uint64_t until = began + (uint64_t)(bench->seconds * 1e9);
    uint64_t now = began;

    while (now < until) {
        uint64_t before = now;

        try_once(client, name, figures);
        now = bench_now_ns();
        histogram_add(&figures->histogram, now - before);
    }
    figures->seconds = (double)(now - began) / 1e9;
    figures->per_s = (double)figures->histogram.total / figures->seconds;
}

int bench_try(const struct bench *bench, struct figures *figures)
{
    hf_client *holder = NULL;
    hf_client *other = NULL;
    hf_hold *hold;
    hf_error err;
    char name[64];
    int rc = cli_open(&holder);

    if (rc == 0)
        rc = bench_open(figures, &other);
    bench_name(name, sizeof(name), bench->scenario, 0);
    if (rc == 0 && hf_acquire(holder, name, NULL, &hold, &err) != 0)
        rc = cli_fail(&err);
    if (rc == 0) {
        try_all_the_time(bench, other, name, figures);
        if (hf_release(hold, &err) != 0)
            bench_error(figures, &err);
    }
    hf_close(other);
    hf_close(holder);
    return rc;
}
