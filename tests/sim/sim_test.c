/* SPDX-License-Identifier: MIT */
/*
 * sim_test.c - the real core on a virtual clock, ten thousand times.
 *
 *     sim_test [--seeds N] [--first N] [--steps N] [--jobs N]
 *                                          run seeds, on all processors, and no
 *                                          more of them after so many steps
 *     sim_test --seed N [-v]               run one again, and tell
 *     sim_test --mutations                 the checks find planted bugs
 *
 * A seed draws everything: the kind of service, the faults, what the programs
 * do, who runs next. A seed that fails is printed, and fails again alone.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "coroutine.h"
#include "heap.h"
#include "script_engine.h"
#include "server.h"
#include "work.h"
#include "world.h"

enum {
    SEEDS = SIM_TSAN ? 1000 : 10000, /* it is twenty times slower */
    JOBS_MAX = 8,
    MUTATION_SEEDS = 20000
};

#define PATIENCE_NS (900 * HF_SECOND)
#define QUIET_NS (15 * HF_SECOND)

enum { EXIT_FOUND = 3 };

static bool verbose;
static struct {
    _Atomic uint64_t steps, seed; /* taken; the next one */
} * common;                       /* to all processes */

/* ---- one seed ----------------------------------------------------------- */

static void draw_clocks(void)
{
    for (int i = 0; i < SIM_MACHINES; i++) {
        int64_t most = sim_bug == SIM_BUG_CLOCK ? 60000 : 9000;

        sim_machines[i].offset_ns = (int64_t)sim_below(1000) * HF_SECOND;
        sim_machines[i].drift_ppm =
            (int64_t)sim_below((uint64_t)(2 * most)) - most;
    }
}

static void draw_faults(void)
{
    sim_network.latency_ns = 10000 + (int64_t)sim_below(2 * HF_MS);
    sim_network.io_timeout_ns = 2 * HF_SECOND;
    sim_faults.spurious_per_mille = (uint32_t)sim_below(50);
    sim_faults.wall_jumps_per_mille = (uint32_t)sim_below(100);
    sim_impatient = sim_chance(50);
    if (sim_chance(250)) {
        check_promptness = sim_bug != SIM_BUG_STALE_PUSH; /* which is slow */
        return;
    }
    sim_network.slow_per_mille = (uint32_t)sim_below(60);
    sim_network.slow_max_ns = 1 + (int64_t)sim_below(2 * HF_SECOND);
    sim_network.lost_per_mille = (uint32_t)sim_below(30);
    sim_network.break_per_mille = (uint32_t)sim_below(30);
    sim_network.unsure_per_mille = (uint32_t)sim_below(20);
    sim_network.pause_per_mille = (uint32_t)sim_below(5);
    sim_network.pause_max_ns = 1 + (int64_t)sim_below(2 * HF_SECOND);
    sim_faults.freeze_per_million = (uint32_t)sim_below(3000);
    sim_faults.freeze_max_ns = 1 + (int64_t)sim_below(2 * HF_SECOND);
}

static void end_faults(void *arg)
{
    int64_t latency_ns = sim_network.latency_ns;
    int64_t io_timeout_ns = sim_network.io_timeout_ns;
    uint32_t lost_wakes = sim_faults.lost_wakes_per_mille;

    (void)arg;
    memset(&sim_network, 0, sizeof(sim_network));
    memset(&sim_faults, 0, sizeof(sim_faults));
    sim_network.latency_ns = latency_ns;
    sim_network.io_timeout_ns = io_timeout_ns;
    sim_faults.lost_wakes_per_mille = lost_wakes;
}

static bool until_done(void)
{
    return check_step() && !work_is_done();
}

static void check_nothing_left(void)
{
    for (int i = 0; i < WORK_PROGRAMS; i++)
        if (sim_server_count(i) > 0 && !work_left_unconfirmed(i))
            check_fail("%d tickets of machine %d are left at the service",
                       sim_server_count(i), i);
}

/* False: something is wrong, see check_why(). */
static bool run_seed(uint64_t seed)
{
    sim_reset(seed);
    sim_server_reset();
    check_reset();
    sim_kind = (enum sim_kind)sim_below(SIM_KINDS);
    draw_clocks();
    draw_faults();
    if (sim_bug == SIM_BUG_LOST_WAKE)
        sim_faults.lost_wakes_per_mille = 100;
    sim_engine_register();
    sim_at(sim_now() + 5 * HF_SECOND, end_faults, NULL);
    work_start();

    (void)sim_run(PATIENCE_NS, until_done);
    if (check_is_good() && !work_is_done())
        check_fail("somebody waits for ever");
    if (check_is_good())
        (void)sim_run(sim_now() + QUIET_NS, check_step);
    if (check_is_good())
        check_nothing_left();
    if (!check_is_good())
        return false;
    work_finish();
    if (!sim_run(HF_NEVER, check_step))
        check_fail("a client does not close");
    if (check_is_good() && heap_in_use() != 0)
        check_fail("%ld pieces of memory are not given back", heap_in_use());
    return check_is_good();
}

static void explain(uint64_t seed)
{
    printf("# seed %llu, at %.6f s: %s\n", (unsigned long long)seed,
           (double)sim_now() * 1e-9, check_why());
    printf("# run it again: sim_test --seed %llu -v\n",
           (unsigned long long)seed);
    if (verbose) {
        sim_print_threads();
        sim_server_print();
    }
    (void)fflush(stdout);
}

/* ---- many --------------------------------------------------------------- */

struct share {
    uint64_t end;   /* no seed from here on … */
    uint64_t steps; /* … and none after so many */
    bool quiet;
};

/* The next seed that nobody runs; false: there is none. */
static bool take_seed(const struct share *share, uint64_t *ret_seed)
{
    if (common->steps >= share->steps || common->seed >= share->end)
        return false;
    *ret_seed = atomic_fetch_add(&common->seed, 1);
    return *ret_seed < share->end;
}

/* In a process of its own: a failed seed leaves everything as it was. One that
 * does not come to a step any more is ended by the processor time it takes. */
static int run_share(const struct share *share)
{
    static const struct itimerval enough = {.it_value = {20, 0}};
    uint64_t seed;

    while (take_seed(share, &seed)) {
        uint64_t before = check_steps();
        bool good;

        (void)setitimer(ITIMER_VIRTUAL, &enough, NULL);
        good = run_seed(seed);
        atomic_fetch_add(&common->steps, check_steps() - before);
        if (good)
            continue;
        if (!share->quiet)
            explain(seed);
        return EXIT_FOUND;
    }
    sim_end();
    sim_network_release();
    return 0;
}

static int await(pid_t pid)
{
    int status;

    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return 1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static pid_t start_share(const struct share *share)
{
    pid_t pid;
    int status;

    (void)fflush(stdout);
    pid = fork();
    if (pid != 0)
        return pid;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    status = run_share(share);
    (void)fflush(stdout);
    if (status != 0)
        _exit(status); /* nobody cleans up after a failure */
    exit(0);
}

static int run_many(uint64_t first, const struct share *share, long jobs)
{
    pid_t pids[JOBS_MAX];
    uint64_t end;
    int worst = 0;

    common->seed = first;
    jobs = jobs < 1 ? 1 : jobs > JOBS_MAX ? JOBS_MAX : jobs;
    for (long i = 0; i < jobs; i++)
        pids[i] = start_share(share);
    for (long i = 0; i < jobs; i++) {
        int status = await(pids[i]);

        if (status > 128)
            printf("# a process died of signal %d; find the seed with "
                   "--seed\n",
                   status - 128);
        worst = status > worst ? status : worst;
    }
    end = common->seed < share->end ? common->seed : share->end;
    printf("%s - %llu seeds from %llu, %llu steps\n", worst ? "not ok" : "ok",
           (unsigned long long)(end - first), (unsigned long long)first,
           (unsigned long long)common->steps);
    return worst ? 1 : 0;
}

static int run_mutations(void)
{
    static const char *const names[SIM_BUGS] = {
        [SIM_BUG_GRANTS_TWICE] = "the service grants twice",
        [SIM_BUG_ARRIVAL_IS_START] = "leases count from the answer's arrival",
        [SIM_BUG_WITHDRAW_FORGETS] = "a withdrawal does nothing",
        [SIM_BUG_PUSH_LOST] = "grants are not pushed",
        [SIM_BUG_TOKEN_RESTARTS] = "tokens start again",
        [SIM_BUG_RELEASE_FREES_ALL] = "a release frees whoever holds",
        [SIM_BUG_RENEW_LIES] = "an expired lease is said to be renewed",
        [SIM_BUG_STALE_PUSH] = "a push of an earlier attempt is believed",
        [SIM_BUG_LOST_WAKE] = "wake-ups get lost",
        [SIM_BUG_CLOCK] = "clocks differ too much",
        [SIM_BUG_TOKEN_OF_CLOCK] = "tokens go back with the wall clock",
        [SIM_BUG_BREAK_FREES_ALL] = "a break frees whoever holds",
        [SIM_BUG_MARK_DIES] = "a wake-up ends with its bearer",
        [SIM_BUG_PARKS_LATE] = "the lock is free before the ticket parks",
    };
    const struct share share = {MUTATION_SEEDS, UINT64_MAX, !verbose};
    int missed = 0;

    for (int bug = 1; bug < SIM_BUGS; bug++) {
        int status;

        sim_bug = (enum sim_bug)bug;
        common->seed = 1;
        status = await(start_share(&share));
        printf("%s - found: %s\n", status == EXIT_FOUND ? "ok" : "not ok",
               names[bug]);
        missed += status != EXIT_FOUND;
    }
    return missed > 0 ? 1 : 0;
}

static uint64_t number_after(int argc, char **argv, const char *option,
                             uint64_t standard)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return strtoull(argv[i + 1], NULL, 10);
    return standard;
}

static bool has(int argc, char **argv, const char *option)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], option) == 0)
            return true;
    return false;
}

static void print_log(int level, const char *text, void *ctx)
{
    (void)level;
    (void)ctx;
    printf("# %.6f s machine %d: %s\n", (double)sim_now() * 1e-9,
           sim_here() ? (int)(sim_here() - sim_machines) : -1, text);
}

static int run_asked(int argc, char **argv)
{
    uint64_t first = number_after(argc, argv, "--first", 1);
    uint64_t most = has(argc, argv, "--steps") ? UINT64_MAX - first : SEEDS;
    const struct share share = {
        .end = first + number_after(argc, argv, "--seeds", most),
        .steps = number_after(argc, argv, "--steps", UINT64_MAX)};
    long jobs = sysconf(_SC_NPROCESSORS_ONLN);

    return run_many(first, &share,
                    (long)number_after(argc, argv, "--jobs", (uint64_t)jobs));
}

static int run_again(uint64_t seed)
{
    const struct share share = {.end = seed + 1, .steps = UINT64_MAX};

    common->seed = seed;
    return run_share(&share);
}

int main(int argc, char **argv)
{
    hf__world = &sim_world;
    heap_install();
    common = mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED)
        return 1;
    verbose = has(argc, argv, "-v");
    if (has(argc, argv, "--mutations"))
        return run_mutations();
    if (!has(argc, argv, "--seed"))
        return run_asked(argc, argv);
    if (verbose) {
        sim_verbose = true;
        hf_set_log(print_log, HF_LOG_DEBUG, NULL);
    }
    sim_bug = (enum sim_bug)number_after(argc, argv, "--bug", 0);
    return run_again(number_after(argc, argv, "--seed", 1));
}
