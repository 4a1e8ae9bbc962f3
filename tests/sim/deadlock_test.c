/* SPDX-License-Identifier: MIT */
/*
 * deadlock_test.c - deadlocks on a virtual clock: all are broken, and none is
 * told that there was not.
 *
 *   deadlock_sim [--waits N] [--first SEED]
 *
 * Programs hold one lock and wait for another, in any order and mode, some of
 * them with a timeout. Each deadlock that a client reports, or that ends an
 * acquire, is compared with what the workers did: was there an instant at which
 * all members of the cycle waited, and held what it says?
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/client.h"
#include "deadlock_engine.h"
#include "heap.h"
#include "server.h"
#include "world.h"

enum { PROGRAMS = 6, WORKERS = 2, TURNS = 20, SMOKE_WAITS = 5000 };
#define PATIENCE_NS (36000 * HF_SECOND)

/* A worker holds one lock and waits for another. */
struct episode {
    int held;
    int wanted;
    int64_t from_ns;
    int64_t until_ns; /* of the wait; HF_NEVER: it goes on */
};

enum { EPISODES = 4 };

struct program {
    hf_client *client;
    int64_t pid;
    int running;
    struct episode episodes[WORKERS][EPISODES];
    int episodes_n[WORKERS];
};

struct worker {
    struct program *program;
    int number;
};

static struct program programs[PROGRAMS];
static struct worker workers[PROGRAMS][WORKERS];
static uint64_t waits;
static uint64_t long_waits;
static uint64_t reports;
static uint64_t broken;
static uint64_t timeouts;
static char wrong[1024];
static int open_programs;

__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list args;

    if (wrong[0] != '\0')
        return;
    va_start(args, format);
    (void)vsnprintf(wrong, sizeof(wrong), format, args);
    va_end(args);
}

/* ---- was it true? -------------------------------------------------------------- */

/* One member of a cycle: process @pid holds @held and waits for @wanted. */
struct member {
    int64_t pid;
    int held;
    int wanted;
};

/* Did a worker of that process do so at @instant_ns? */
static bool did(const struct member *member, int64_t instant_ns)
{
    const struct program *program = &programs[member->pid - SIM_FIRST_PID];

    for (int i = 0; i < WORKERS * EPISODES; i++) {
        const struct episode *episode =
            &program->episodes[i / EPISODES][i % EPISODES];

        if (episode->until_ns > instant_ns && episode->from_ns <= instant_ns &&
            episode->held == member->held && episode->wanted == member->wanted)
            return true;
    }
    return false;
}

static bool did_all(const struct member *members, int n, int64_t instant_ns)
{
    for (int i = 0; i < n; i++) {
        if (!did(&members[i], instant_ns))
            return false;
    }
    return true;
}

/* Both looks and the way to us take less than this. */
#define LATELY_NS (3 * HF_SECOND)

/* What began last begins an instant at which all of it was there. */
static void check_cycle(const struct member *members, int n, const char *text)
{
    int64_t lately_ns = sim_now() - LATELY_NS;
    bool true_once = did_all(members, n, lately_ns);

    for (int i = 0; i < PROGRAMS * WORKERS * EPISODES; i++) {
        const struct episode *episode =
            &programs[i / EPISODES / WORKERS]
                 .episodes[i / EPISODES % WORKERS][i % EPISODES];

        true_once |= episode->from_ns > lately_ns &&
                     did_all(members, n, episode->from_ns);
    }
    if (!true_once)
        fail("at %.6f s: at no instant lately: %s", (double)sim_now() * 1e-9,
             text);
}

/* "deadlock: n1: vm:1001 waits for n2 held by vm:1002, who waits for n1". */
static void check_text(const char *text)
{
    struct member members[PROGRAMS * WORKERS + 1];
    const char *at = strstr(text, "deadlock: n");
    int n = 0;

    if (!at) {
        fail("not a cycle: %s", text);
        return;
    }
    members[0].held = at[11] - '0';
    members[0].pid = strtoll(strchr(at + 10, ':') + 1 +
                                 strcspn(strchr(at + 10, ':') + 1, ":") + 1,
                             NULL, 10);
    while ((at = strstr(at, " waits for n")) != NULL &&
           n < PROGRAMS * WORKERS) {
        members[n].wanted = at[12] - '0';
        members[n + 1].held = members[n].wanted;
        at += 13;
        n++;
        if (strncmp(at, " held by ", 9) == 0)
            members[n].pid = strtoll(strchr(at, ':') + 1, NULL, 10);
    }
    if (n > 0)
        check_cycle(members, n, text);
}

static void on_log(int level, const char *text, void *ctx)
{
    (void)level;
    (void)ctx;
    if (strncmp(text, "deadlock: ", 10) != 0)
        return;
    reports++;
    check_text(text);
}

/* ---- programs ------------------------------------------------------------------- */

static int64_t some_ns(int64_t most_ns)
{
    return 1 + (int64_t)sim_below((uint64_t)most_ns);
}

static struct episode *begin_episode(struct worker *worker, int held,
                                     int wanted)
{
    struct program *program = worker->program;
    int i = program->episodes_n[worker->number]++ % EPISODES;
    struct episode *episode = &program->episodes[worker->number][i];

    *episode = (struct episode){.held = held,
                                .wanted = wanted,
                                .from_ns = sim_now(),
                                .until_ns = HF_NEVER};
    return episode;
}

static void wait_for_second(struct worker *worker, int held, int wanted)
{
    struct episode *episode = begin_episode(worker, held, wanted);
    char name[] = {'n', (char)('0' + wanted), '\0'};
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    int rc;

    opts.mode = sim_chance(200) ? HF_SHARED : HF_EXCLUSIVE;
    opts.wait_ms =
        sim_chance(500) ? HF_FOREVER : 500 + (int64_t)sim_below(4000);
    rc = hf_acquire(worker->program->client, name, &opts, &hold, &err);
    episode->until_ns = sim_now();
    waits++;
    long_waits += sim_now() - episode->from_ns > HF_SECOND;
    if (rc == 0) {
        sim_sleep(some_ns(600 * HF_MS));
        (void)hf_release(hold, NULL);
    } else if (rc == HF_EDEADLK) {
        broken++;
        check_text(err.text);
    } else if (rc == HF_ETIMEOUT || rc == HF_EUNAVAILABLE) {
        timeouts++;
        sim_sleep(some_ns(2 * HF_SECOND)); /* it goes on, and holds its lock */
    } else {
        fail("acquire: %s", err.text);
    }
}

static void turn(struct worker *worker)
{
    int first = (int)sim_below(SIM_NAMES);
    int second = (first + 1 + (int)sim_below(SIM_NAMES - 1)) % SIM_NAMES;
    char name[] = {'n', (char)('0' + first), '\0'};
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;

    opts.mode = sim_chance(150) ? HF_SHARED : HF_EXCLUSIVE;
    if (hf_acquire(worker->program->client, name, &opts, &hold, &err) != 0) {
        fail("the first lock: %s", err.text);
        return;
    }
    waits++;
    sim_sleep(some_ns(300 * HF_MS));
    wait_for_second(worker, first, second);
    (void)hf_release(hold, NULL);
    sim_sleep(some_ns(200 * HF_MS));
}

static void worker_main(void *arg)
{
    struct worker *worker = arg;
    struct program *program = worker->program;

    for (int i = 0; i < TURNS && wrong[0] == '\0'; i++)
        turn(worker);
    if (--program->running == 0) {
        hf_close(program->client);
        open_programs--;
    }
}

static void program_main(void *arg)
{
    hf_error err;

    (void)arg;
    for (int i = 0; i < PROGRAMS; i++) {
        struct program *program = &programs[i];

        if (hf_open("sim:?io_timeout=20s&deadlock=break", NULL,
                    &program->client, &err) != 0) {
            fail("open: %s", err.text);
            return;
        }
        program->pid = SIM_FIRST_PID + i;
        program->client->host.pid = program->pid;
        program->running = WORKERS;
        open_programs++;
    }
    for (int i = 0; i < PROGRAMS; i++) {
        for (int j = 0; j < WORKERS; j++) {
            workers[i][j] = (struct worker){&programs[i], j};
            sim_spawn(sim_here(), worker_main, &workers[i][j]);
        }
    }
}

static bool goes_on(void)
{
    return wrong[0] == '\0';
}

static void run_seed(uint64_t seed)
{
    sim_reset(seed);
    sim_server_reset();
    memset(programs, 0, sizeof(programs));
    open_programs = 0;
    sim_kind = sim_chance(500) ? SIM_BEATS : SIM_ACCEPT;
    sim_machines[0].offset_ns = 0;
    sim_machines[0].drift_ppm = 0;
    sim_network.latency_ns = some_ns(20 * HF_MS);
    sim_network.slow_per_mille = (uint32_t)sim_below(30);
    sim_network.slow_max_ns = some_ns(400 * HF_MS);
    sim_network.io_timeout_ns = 2 * HF_SECOND;
    deadlock_engine_register();
    sim_spawn(&sim_machines[0], program_main, NULL);
    if (!sim_run(PATIENCE_NS, goes_on) && goes_on())
        fail("after %.0f s somebody still waits", (double)sim_now() * 1e-9);
    if (goes_on() && open_programs != 0)
        fail("%d programs have not closed", open_programs);
    if (goes_on() && heap_in_use() != 0)
        fail("%ld pieces of memory are not given back", heap_in_use());
}

static uint64_t number_after(int argc, char **argv, const char *option,
                             uint64_t standard)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], option) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    }
    return standard;
}

int main(int argc, char **argv)
{
    uint64_t wanted = number_after(argc, argv, "--waits", SMOKE_WAITS);
    uint64_t seed = number_after(argc, argv, "--first", 1);

    hf__world = &sim_world;
    heap_install();
    hf_set_log(on_log, HF_LOG_WARNING, NULL);
    while (waits < wanted && goes_on())
        run_seed(seed++);
    printf("# %llu waits, %llu of more than a second; %llu deadlocks broken, "
           "%llu reports, %llu timeouts\n",
           (unsigned long long)waits, (unsigned long long)long_waits,
           (unsigned long long)broken, (unsigned long long)reports,
           (unsigned long long)timeouts);
    if (!goes_on()) {
        printf("not ok - seed %llu: %s\n", (unsigned long long)seed - 1, wrong);
        return 1;
    }
    if (broken == 0 || reports < broken) {
        printf("not ok - nothing was broken\n");
        return 1;
    }
    sim_end();
    sim_network_release();
    deadlock_engine_release();
    printf("ok - no false alarm\n");
    return 0;
}
