/* SPDX-License-Identifier: MIT */
/*
 * local_soak.c - kill and stop holders and waiters of the embedded engine, at
 * random and at planted points, and see whether a lock remains a lock.
 *
 *     local_soak [--kills 10000] [--workers 8] [--names 3] [--phase NAME]
 *                [--seed N] [--directory DIR]
 *
 * Worker processes acquire and release through the public calls and write
 * down, in a page that they share with the parent, what they hold. The parent
 * kills and stops them, and starts new ones. Checked are
 *
 *   - no two holders that exclude each other, neither by what they believe
 *     (killed ones excepted) nor, with short leases and stopped holders, by
 *     the deadlines that they were given;
 *   - every token larger than the one before;
 *   - progress: no name without a grant for five seconds;
 *   - the store does not grow with the number of kills, and is empty after.
 *
 * The engine is compiled into this program with its points (HF__POINT), and a
 * worker kills itself at one of them now and then.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/world.h"
#include "engines/local/table.h"
#include "holdfast.h"

enum { WORKERS = 64, NAMES = 8, SLOTS = 3, PATIENCE_S = 5 };

/* What one phase does to its workers. */
struct phase {
    const char *name;
    bool points;     /* kill at planted points */
    bool frozen;     /* the wall clock stands still */
    bool namespaces; /* every worker is pid 2, its life thread tid 3 */
    bool stops;      /* SIGSTOP and SIGCONT */
    bool process;    /* lease=process */
    int64_t ttl_ms;  /* short leases, not renewed; 0: as usual */
    unsigned share;  /* of the kills, in percent */
};

static const struct phase phases[] = {
    {.name = "kill", .share = 30},
    {.name = "points", .points = true, .share = 40},
    {.name = "frozen", .points = true, .frozen = true, .share = 10},
    {.name = "namespaces", .points = true, .namespaces = true, .share = 10},
    {.name = "leases", .stops = true, .ttl_ms = 60, .share = 5},
    {.name = "process", .stops = true, .process = true, .share = 5},
};

/* One name, as its holders write it down. */
struct cell {
    _Atomic uint32_t held[WORKERS]; /* mode + 1 */
    _Atomic uint64_t token;
    _Atomic int64_t claim_ns[WORKERS]; /* until when he may think he holds */
    _Atomic uint64_t grants;
    _Atomic int64_t killed_ns; /* its holder was killed then */
};

struct shared {
    struct cell cell[NAMES];
    _Atomic uint32_t killed[WORKERS];
    _Atomic uint32_t stop;
    _Atomic uint64_t doubles;
    _Atomic uint64_t overlaps;
    _Atomic uint64_t regressions;
    _Atomic uint64_t failures;
    _Atomic uint64_t after_kill; /* grants that followed a killed holder */
    _Atomic int64_t slowest_ns;
    _Atomic int64_t total_ns;
};

static struct shared *shared;
static const struct phase *phase;
static unsigned workers = 8;
static unsigned names = 3;
static uint64_t seed = 1;
static char directory[256];
static pid_t pids[WORKERS];
static bool stopped[WORKERS];

static uint64_t chance(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed;
}

static void pause_us(int us)
{
    struct timespec time = {.tv_sec = 0, .tv_nsec = us * 1000L};

    (void)ppoll(NULL, 0, &time, NULL);
}

/* ---- a worker ---------------------------------------------------------- */

static unsigned self;

static void die_here(const char *point)
{
    (void)point;
    if (chance() % 4000 != 0)
        return;
    atomic_store(&shared->killed[self], 1);
    (void)raise(SIGKILL);
}

static int64_t frozen_wall(void)
{
    return INT64_C(1700000000000000);
}

static struct hf__world frozen_world;

static void set_up_world(void)
{
    if (phase->points)
        hf__local_point = die_here;
    if (!phase->frozen)
        return;
    frozen_world = hf__world_real;
    frozen_world.wall_us = frozen_wall;
    hf__world = &frozen_world;
}

static bool exclude_each_other(unsigned a, unsigned b)
{
    return a == HF_EXCLUSIVE || b == HF_EXCLUSIVE || a != b;
}

/* Whoever else has written that he holds it, and was not killed. */
static void look_for_others(struct cell *cell, unsigned mode)
{
    unsigned slots = 0;

    for (unsigned i = 0; i < WORKERS; i++) {
        uint32_t held = atomic_load(&cell->held[i]);

        if (held == 0 || i == self || atomic_load(&shared->killed[i]) ||
            atomic_load(&cell->held[i]) != held)
            continue;
        if (held - 1 == HF_SLOT && ++slots < SLOTS && mode == HF_SLOT)
            continue;
        if (exclude_each_other(held - 1, mode) || mode == HF_SLOT)
            (void)atomic_fetch_add(&shared->doubles, 1);
    }
}

static void note_delay(struct cell *cell)
{
    int64_t killed_ns = atomic_exchange(&cell->killed_ns, 0);
    int64_t delay_ns = hf__now() - killed_ns;
    int64_t slowest_ns = atomic_load(&shared->slowest_ns);

    if (killed_ns == 0)
        return;
    (void)atomic_fetch_add(&shared->after_kill, 1);
    (void)atomic_fetch_add(&shared->total_ns, delay_ns);
    while (delay_ns > slowest_ns &&
           !atomic_compare_exchange_weak(&shared->slowest_ns, &slowest_ns,
                                         delay_ns))
        continue;
}

static void check_token(struct cell *cell, uint64_t token, unsigned mode)
{
    uint64_t before = atomic_load(&cell->token);

    if (token <= before && mode == HF_EXCLUSIVE)
        (void)atomic_fetch_add(&shared->regressions, 1);
    while (token > before &&
           !atomic_compare_exchange_weak(&cell->token, &before, token))
        continue;
}

/* With leases nobody need be dead to have lost it: what counts is until when
 * he could think that he holds it. */
static void claim(struct cell *cell, const hf_hold *hold)
{
    int64_t now_ns = hf__now();
    int64_t left_ms = hf_remaining_ms(hold);

    if (left_ms <= 1)
        return; /* it was over before it began: no claim */
    atomic_store(&cell->claim_ns[self], now_ns + (left_ms - 1) * HF_MS);
    for (unsigned i = 0; i < WORKERS; i++) {
        int64_t claim_ns = atomic_load(&cell->claim_ns[i]);

        if (i != self && claim_ns > hf__now() &&
            atomic_load(&shared->killed[i]) == 0 &&
            atomic_load(&cell->claim_ns[i]) == claim_ns &&
            hf_check(hold) == HF_HELD)
            (void)atomic_fetch_add(&shared->overlaps, 1);
    }
}

static void work_inside(void)
{
    uint64_t dice = chance() % 100;

    if (dice < 3)
        pause_us(1000);
    else if (dice < 30)
        (void)sched_yield();
}

static void hold_it(struct cell *cell, hf_hold *hold, unsigned mode)
{
    hf_error err;
    int rc;

    if (phase->ttl_ms != 0) {
        claim(cell, hold);
    } else {
        atomic_store(&cell->held[self], mode + 1);
        look_for_others(cell, mode);
        note_delay(cell);
        check_token(cell, hf_token(hold), mode);
    }
    (void)atomic_fetch_add(&cell->grants, 1);
    work_inside();
    if (phase->ttl_ms == 0) {
        look_for_others(cell, mode);
        atomic_store(&cell->held[self], 0);
    } else {
        atomic_store(&cell->claim_ns[self], 0);
    }
    rc = hf_release(hold, &err);
    if (rc != 0 && phase->ttl_ms == 0)
        (void)atomic_fetch_add(&shared->failures, 1);
}

static void one_turn(hf_client *client)
{
    static const int64_t waits[] = {HF_FOREVER, HF_FOREVER, 1000, 5, 0};
    unsigned number = (unsigned)(chance() % names);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    char name[16];
    int rc;

    (void)snprintf(name, sizeof(name), "name-%u", number);
    opts.wait_ms = waits[chance() % HF_COUNT_OF(waits)];
    if (atomic_load(&shared->stop))
        opts.wait_ms = 0;
    /* The last name has all modes; with leases claims are exclusive. */
    if (number == names - 1 && names > 1 && phase->ttl_ms == 0)
        opts.mode = (int32_t)(chance() % 3);
    opts.slots = opts.mode == HF_SLOT ? SLOTS : 0;
    if (phase->ttl_ms != 0) {
        opts.ttl_ms = phase->ttl_ms;
        opts.flags = HF_NO_RENEW;
    }
    rc = hf_acquire(client, name, &opts, &hold, &err);
    if (rc == 0) {
        hold_it(&shared->cell[number], hold, (unsigned)opts.mode);
    } else if (rc != HF_EBUSY && rc != HF_ETIMEOUT) {
        (void)fprintf(stderr, "acquire: %s\n", err.text);
        (void)atomic_fetch_add(&shared->failures, 1);
    }
}

static _Noreturn void work(unsigned number)
{
    hf_client *client;
    hf_error err;
    char url[300];

    self = number;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (atomic_load(&shared->stop))
        _exit(0); /* the parent was quicker */
    seed ^=
        (uint64_t)getpid() * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)hf__now();
    set_up_world();
    (void)snprintf(url, sizeof(url), "local://%s%s", directory,
                   phase->process ? "?lease=process" : "");
    if (hf_open(url, NULL, &client, &err) != 0) {
        (void)fprintf(stderr, "open: %s\n", err.text);
        _exit(1);
    }
    while (!atomic_load(&shared->stop))
        one_turn(client);
    hf_close(client);
    _exit(0);
}

/* ---- the parent -------------------------------------------------------- */

static void give_up(const char *what)
{
    (void)fprintf(stderr, "%s: %s\n", what, strerror(errno));
    atomic_store(&shared->stop, 1);
    exit(1);
}

/* The first process of a pid namespace: its only child is the worker. The
 * parent kills it, and the kernel the worker with it. */
static _Noreturn void be_init(unsigned number)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        work(number);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
}

/* fork() into a pid namespace of its own. */
static pid_t fork_apart(unsigned number)
{
    static int home = -1;
    pid_t pid;

    if (home < 0)
        home = open("/proc/self/ns/pid", O_RDONLY | O_CLOEXEC);
    if (home < 0 || unshare(CLONE_NEWPID) != 0)
        give_up("unshare");
    pid = fork();
    if (pid == 0)
        be_init(number);
    if (setns(home, CLONE_NEWPID) != 0)
        give_up("setns");
    return pid;
}

static void start(unsigned number)
{
    for (unsigned i = 0; i < NAMES; i++) {
        atomic_store(&shared->cell[i].held[number], 0);
        atomic_store(&shared->cell[i].claim_ns[number], 0);
    }
    atomic_store(&shared->killed[number], 0);
    stopped[number] = false;
    pids[number] = phase->namespaces ? fork_apart(number) : fork();
    if (pids[number] == 0)
        work(number);
    if (pids[number] < 0)
        give_up("fork");
}

/* Whoever holds something, if there is one; else anybody. */
static unsigned choose_victim(void)
{
    if (chance() % 2 == 0) {
        const struct cell *cell = &shared->cell[chance() % names];

        for (unsigned i = 0; i < workers; i++)
            if (atomic_load(&cell->held[i]) != 0)
                return i;
    }
    return (unsigned)(chance() % workers);
}

static void note_kill(unsigned number)
{
    for (unsigned i = 0; i < names; i++)
        if (atomic_load(&shared->cell[i].held[number]) == HF_EXCLUSIVE + 1)
            atomic_store(&shared->cell[i].killed_ns, hf__now());
}

static unsigned kill_one(unsigned number)
{
    note_kill(number);
    atomic_store(&shared->killed[number], 1);
    (void)kill(pids[number], SIGKILL);
    (void)waitpid(pids[number], NULL, 0);
    start(number);
    return 1;
}

static bool killed(int status)
{
    return (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
           (WIFEXITED(status) && WEXITSTATUS(status) == 128 + SIGKILL);
}

/* Start anew whoever killed himself at a point. */
static unsigned replace_dead(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < workers; i++) {
        int status;

        if (waitpid(pids[i], &status, WNOHANG) != pids[i])
            continue;
        if (!killed(status)) {
            (void)fprintf(stderr, "worker %u ended with status %x\n", i,
                          (unsigned)status);
            (void)atomic_fetch_add(&shared->failures, 1);
        }
        start(i);
        n++;
    }
    return n;
}

static void stop_or_continue(unsigned number)
{
    stopped[number] = !stopped[number];
    (void)kill(pids[number], stopped[number] ? SIGSTOP : SIGCONT);
}

static void continue_all(void)
{
    for (unsigned i = 0; i < workers; i++) {
        if (stopped[i])
            (void)kill(pids[i], SIGCONT);
        stopped[i] = false;
    }
}

static uint64_t grants(void)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < names; i++)
        sum += atomic_load(&shared->cell[i].grants);
    return sum;
}

/* True if every name gets a new grant in time. */
static bool all_get_on(void)
{
    uint64_t before[NAMES];
    int64_t until_ns = hf__now() + PATIENCE_S * HF_SECOND;
    unsigned waiting = names;

    for (unsigned i = 0; i < names; i++)
        before[i] = atomic_load(&shared->cell[i].grants);
    while (waiting > 0 && hf__now() < until_ns) {
        (void)replace_dead();
        waiting = 0;
        for (unsigned i = 0; i < names; i++)
            waiting += atomic_load(&shared->cell[i].grants) == before[i];
        pause_us(1000);
    }
    return waiting == 0;
}

static int64_t store_size(void)
{
    char path[300];
    struct stat st;

    (void)snprintf(path, sizeof(path), "%s/table", directory);
    return stat(path, &st) == 0 ? (int64_t)st.st_blocks * 512 : -1;
}

static int count_row(const hf_lock_info *info, void *ctx)
{
    unsigned *n = ctx;

    (void)info;
    (*n)++;
    return 0;
}

/* Rows that are left when everybody has gone. */
static unsigned leftovers(void)
{
    unsigned n = 0;
    hf_client *client;
    hf_error err;
    char url[300];

    (void)snprintf(url, sizeof(url), "local://%s", directory);
    if (hf_open(url, NULL, &client, &err) != 0 ||
        hf_list(client, NULL, count_row, &n, &err) != 0) {
        (void)fprintf(stderr, "list: %s\n", err.text);
        return 1;
    }
    hf_close(client);
    return n;
}

static bool end_all(void)
{
    bool good = true;

    continue_all();
    atomic_store(&shared->stop, 1);
    for (unsigned i = 0; i < workers; i++) {
        int64_t until_ns = hf__now() + 2 * PATIENCE_S * HF_SECOND;
        pid_t ended = 0;

        while (ended == 0 && hf__now() < until_ns) {
            ended = waitpid(pids[i], NULL, WNOHANG);
            pause_us(1000);
        }
        if (ended != pids[i]) {
            (void)fprintf(stderr, "worker %u does not end\n", i);
            (void)kill(pids[i], SIGKILL);
            (void)waitpid(pids[i], NULL, 0);
            good = false;
        }
    }
    return good;
}

static void disturb(unsigned kills, int64_t *ret_early, int64_t *ret_late,
                    bool *ret_stuck)
{
    unsigned done = 0;

    while (done < kills) {
        if (phase->stops && chance() % 4 != 0)
            stop_or_continue(choose_victim());
        else if (!phase->points || chance() % 4 == 0)
            done += kill_one(choose_victim());
        done += replace_dead();
        pause_us((int)(chance() % 1500));
        if (done >= kills / 4 && *ret_early == 0)
            *ret_early = store_size();
        if (done % 500 == 499) {
            continue_all();
            *ret_stuck |= !all_get_on();
        }
    }
    continue_all();
    *ret_stuck |= !all_get_on();
    *ret_late = store_size();
}

static bool run(unsigned kills)
{
    int64_t early = 0;
    int64_t late = 0;
    bool stuck = false;
    bool good;
    unsigned left;
    uint64_t followed;

    memset(shared, 0, sizeof(*shared));
    for (unsigned i = 0; i < workers; i++)
        start(i);
    good = all_get_on();
    disturb(kills, &early, &late, &stuck);
    good = end_all() && good && !stuck;
    left = leftovers();
    followed = atomic_load(&shared->after_kill);
    (void)printf(
        "%-10s kills %u, grants %llu, doubles %llu, overlaps %llu, "
        "regressions %llu, failures %llu, stuck %s, left %u, "
        "store %lld -> %lld KiB; after a holder's death %.2f ms, worst %.1f\n",
        phase->name, kills, (unsigned long long)grants(),
        (unsigned long long)shared->doubles,
        (unsigned long long)shared->overlaps,
        (unsigned long long)shared->regressions,
        (unsigned long long)shared->failures, stuck ? "YES" : "no", left,
        (long long)early / 1024, (long long)late / 1024,
        followed ? (double)shared->total_ns / 1e6 / (double)followed : 0.0,
        (double)shared->slowest_ns / 1e6);
    (void)fflush(stdout);
    return good &&
           shared->doubles + shared->overlaps + shared->regressions +
                   shared->failures + left ==
               0 &&
           (early == 0 || late <= early + 1024 * 1024);
}

static void remove_store(void)
{
    char command[400];

    (void)snprintf(command, sizeof(command), "rm -rf '%s'", directory);
    if (system(command) != 0)
        (void)fprintf(stderr, "%s is left\n", directory);
}

int main(int argc, char **argv)
{
    unsigned kills = 10000;
    const char *only = NULL;
    bool good = true;

    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--kills") == 0)
            kills = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--workers") == 0)
            workers = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--names") == 0)
            names = (unsigned)strtoul(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--phase") == 0)
            only = argv[i + 1];
        else if (strcmp(argv[i], "--seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (strcmp(argv[i], "--directory") == 0)
            (void)snprintf(directory, sizeof(directory), "%s", argv[i + 1]);
    }
    if (workers == 0 || workers > WORKERS || names == 0 || names > NAMES ||
        seed == 0) {
        (void)fprintf(stderr, "1 to %d workers, 1 to %d names, a seed\n",
                      (int)WORKERS, (int)NAMES);
        return 2;
    }
    if (directory[0] == '\0')
        (void)snprintf(directory, sizeof(directory), "%s/holdfast-soak-%d",
                       access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp",
                       (int)getpid());
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    (void)printf("seed %llu, %u workers, %u names, %s\n",
                 (unsigned long long)seed, workers, names, directory);
    for (size_t i = 0; i < HF_COUNT_OF(phases); i++) {
        phase = &phases[i];
        if (only && strcmp(only, phase->name) != 0)
            continue;
        if (phase->namespaces && geteuid() != 0) {
            (void)printf("%-10s not run: needs root\n", phase->name);
            continue;
        }
        good = run(only ? kills : kills * phase->share / 100) && good;
    }
    remove_store();
    (void)printf("%s\n", good ? "passed" : "FAILED");
    return good ? 0 : 1;
}
