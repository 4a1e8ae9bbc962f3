/* SPDX-License-Identifier: MIT */
/*
 * bench_async.c - the scenario async.
 *
 * One thread keeps N requests under way, each for a name of its own. The
 * callback of a granted request releases the lock and asks again. With
 * drive=app and release=post, which are preferred here, there is no other
 * thread, and this one waits only in the poll between two dispatches.
 *
 * The measurement begins when each name had time to be acquired twice, because
 * the first acquire of a name is slower on most engines.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "bench.h"

struct flights;

/* One request after the other, for one name. */
struct flight {
    struct flights *all;
    hf_request *request; /* the last one */
    uint64_t began_ns;
    char name[64];
};

struct flights {
    hf_client *client;
    struct figures *figures;
    int64_t under_way;
    int64_t before; /* pairs still to go before it counts */
    uint64_t pairs;
    bool stop;
    struct flight flight[];
};

static hf_done_cb landed;

static void take_off(struct flight *flight)
{
    struct flights *all = flight->all;
    hf_error err;

    flight->began_ns = bench_now_ns();
    if (hf_acquire_start(all->client, flight->name, NULL, landed, flight,
                         &flight->request, &err) == 0)
        all->under_way++;
    else
        bench_error(all->figures, &err);
}

static void landed(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct flight *flight = ctx;
    struct flights *all = flight->all;
    hf_error why;

    if (rc == 0 && all->before > 0) {
        all->before--;
    } else if (rc == 0) {
        histogram_add(&all->figures->histogram,
                      bench_now_ns() - flight->began_ns);
        all->pairs++;
    }
    if (rc == 0) {
        rc = hf_release(hold, &why);
        err = &why;
    }
    if (rc != 0)
        bench_error(all->figures, err);
    hf_request_free(flight->request);
    flight->request = NULL;
    all->under_way--;
    if (!all->stop)
        take_off(flight);
}

static void fly(const struct bench *bench, struct flights *all)
{
    struct pollfd event = {.fd = hf_event_fd(all->client), .events = POLLIN};
    uint64_t began = bench_now_ns();

    all->before = 2 * bench->locks;
    for (int64_t i = 0; i < bench->locks; i++)
        take_off(&all->flight[i]);
    while (all->under_way > 0) {
        if (poll(&event, 1, -1) < 0 && errno != EINTR)
            break;
        hf_dispatch(all->client);
        if (all->before > 0)
            began = bench_now_ns();
        else if (bench_now_ns() - began >= (uint64_t)(bench->seconds * 1e9))
            all->stop = true;
    }
    all->figures->seconds = (double)(bench_now_ns() - began) / 1e9;
    all->figures->per_s = (double)all->pairs / all->figures->seconds;
}

int bench_async(const struct bench *bench, struct figures *figures)
{
    size_t n = (size_t)bench->locks;
    struct flights *all = calloc(1, sizeof(*all) + n * sizeof(all->flight[0]));
    int rc = all ? cli_prefer("drive", "app") : CLI_INTERNAL;

    if (rc == 0)
        rc = cli_prefer("release", "post");
    if (rc == 0)
        rc = bench_open(figures, &all->client);
    if (rc == 0) {
        all->figures = figures;
        for (size_t i = 0; i < n; i++) {
            all->flight[i].all = all;
            bench_name(all->flight[i].name, sizeof(all->flight[i].name),
                       bench->scenario, (int64_t)i);
        }
        fly(bench, all);
        hf_close(all->client);
    }
    free(all);
    return rc;
}
