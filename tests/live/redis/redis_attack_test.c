/* SPDX-License-Identifier: MIT */
/*
 * redis_attack_test.c - many processes, few locks, and no mercy.
 *
 * Processes take locks in all modes with short leases and write down, in a page
 * that all share, what they claim: from when hf_acquire() returned until they
 * called release, or until their claim ended by itself. Meanwhile they are
 * killed, stopped and continued, their connections are cut, scripts are
 * flushed. Afterwards the claims are compared: no two that exclude each other
 * overlap, and who was granted later has the larger token.
 *
 * ATTACK_SECONDS sets how long (4), ATTACK_SEED what happens.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event.h"
#include "proc.h"
#include "redis.h"

enum { WORKERS = 12, CLAIMS = 1 << 19, NAMES = 2, SLOTS = 3 };

struct claim {
    _Atomic int state; /* 1: begun, 2: ended */
    int name;
    int mode;
    uint64_t token;
    int64_t asked_ns;
    int64_t from_ns;
    _Atomic int64_t to_ns;
};

struct page {
    int port;
    _Atomic int stop;
    _Atomic uint32_t n;
    _Atomic uint32_t losses;
    struct claim claims[CLAIMS];
};

static struct page *page;

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_BOOTTIME, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Hold for a moment, saying for how long the claim is good. */
static void hold_it(hf_hold *hold, struct claim *claim, unsigned *seed)
{
    int64_t until_ns = now_ns() + (int64_t)(rand_r(seed) % 3000) * 1000;

    do {
        int64_t before_ns = now_ns();

        if (hf_check(hold) > HF_JEOPARDY)
            return;
        atomic_store(&claim->to_ns, before_ns);
    } while (now_ns() < until_ns);
}

static void one_turn(hf_client *client, unsigned *seed)
{
    struct claim made = {.name = rand_r(seed) % NAMES};
    struct claim *claim;
    uint32_t at;
    hf_hold *hold;
    char name[8];

    made.mode = rand_r(seed) % 4 == 0 ? HF_SHARED : HF_EXCLUSIVE;
    if (made.name == 1 && rand_r(seed) % 4 == 0)
        made.mode = HF_SLOT;
    (void)snprintf(name, sizeof(name), "n%d", made.name);
    made.asked_ns = now_ns();
    if (hf_acquire(client, name,
                   OPTS(rand_r(seed) % 3 == 0 ? rand_r(seed) % 20 : 3000,
                        .mode = made.mode, .slots = SLOTS,
                        .ttl_ms = 150 + rand_r(seed) % 200),
                   &hold, NULL) != 0)
        return;
    made.from_ns = now_ns();
    if (hf_check(hold) > HF_JEOPARDY) {
        (void)hf_release(hold, NULL);
        return;
    }
    at = atomic_fetch_add(&page->n, 1);
    if (at >= CLAIMS)
        _exit(0);
    claim = &page->claims[at];
    claim->name = made.name;
    claim->mode = made.mode;
    claim->asked_ns = made.asked_ns;
    claim->from_ns = made.from_ns;
    claim->token = hf_token(hold);
    atomic_store(&claim->to_ns, made.from_ns);
    atomic_store(&claim->state, 1);
    hold_it(hold, claim, seed);
    if (hf_release(hold, NULL) == HF_ELOST)
        atomic_fetch_add(&page->losses, 1);
    atomic_store(&claim->state, 2);
}

static void work(struct proc *self, void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    hf_client *client = NULL;

    (void)self;
    while (!atomic_load(&page->stop)) {
        if (!client &&
            hf_open(
                redis_url(page->port, "retry.base=1ms&retry.max_interval=20ms"),
                NULL, &client, NULL) != 0)
            continue;
        one_turn(client, &seed);
        if (rand_r(&seed) % 500 == 0) {
            hf_close(client);
            client = NULL;
        }
    }
    hf_close(client);
}

/* ---- the checker ----------------------------------------------------------- */

static bool exclude(const struct claim *a, const struct claim *b)
{
    return a->mode != b->mode || a->mode == HF_EXCLUSIVE;
}

static int by_start(const void *a, const void *b)
{
    const struct claim *left = *(const struct claim *const *)a;
    const struct claim *right = *(const struct claim *const *)b;

    return (left->from_ns > right->from_ns) - (left->from_ns < right->from_ns);
}

static void complain(const char *what, const struct claim *a,
                     const struct claim *b)
{
    FAIL("%s on n%d: mode %d token %llu [%lld, %lld] and mode %d token %llu "
         "asked %lld [%lld, %lld]",
         what, a->name, a->mode, (unsigned long long)a->token,
         (long long)a->from_ns, (long long)atomic_load(&a->to_ns), b->mode,
         (unsigned long long)b->token, (long long)b->asked_ns,
         (long long)b->from_ns, (long long)atomic_load(&b->to_ns));
}

/* Sorted by their start: look back as far as the longest claim may reach. */
static void check(struct claim **sorted, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct claim *claim = sorted[i];
        int inside = claim->mode == HF_SLOT;

        for (size_t j = i; j-- > 0 && i - j < 4 * WORKERS;) {
            struct claim *other = sorted[j];
            bool overlaps = atomic_load(&other->to_ns) > claim->from_ns;

            if (overlaps && exclude(other, claim))
                complain("two holders", other, claim);
            inside += overlaps && claim->mode == HF_SLOT;
            if (other->from_ns < claim->asked_ns &&
                other->token >= claim->token)
                complain("token order", other, claim);
        }
        if (inside > SLOTS)
            complain("too many holders", claim, claim);
    }
}

static size_t gather(int name, struct claim **to)
{
    uint32_t all = atomic_load(&page->n);
    size_t n = 0;

    for (uint32_t i = 0; i < all && i < CLAIMS; i++) {
        struct claim *claim = &page->claims[i];

        if (claim->name == name && atomic_load(&claim->state) > 0)
            to[n++] = claim;
    }
    qsort(to, n, sizeof(struct claim *), by_start);
    return n;
}

/* ---- the attacker ------------------------------------------------------------ */

struct worker {
    struct proc *proc;
    bool stopped;
};

static void attack(struct worker *workers, struct server *server,
                   struct proxy *proxy, unsigned *seed, int *counts)
{
    struct worker *worker = &workers[rand_r(seed) % WORKERS];
    int kind = rand_r(seed) % 16;

    if (worker->stopped) {
        proc_continue(worker->proc);
        worker->stopped = false;
        return;
    }
    if (kind < 5) {
        proc_kill(worker->proc);
        worker->proc = proc_start(work, (void *)(uintptr_t)rand_r(seed));
        counts[0]++;
    } else if (kind < 11) {
        proc_stop(worker->proc);
        worker->stopped = true;
        counts[1]++;
    } else if (kind < 13) {
        (void)redis_do(server, "CLIENT KILL TYPE normal SKIPME yes");
        counts[2]++;
    } else if (kind < 15) {
        proxy_cut_after(proxy, kind == 13 ? PROXY_TO_SERVER : PROXY_TO_CLIENT,
                        (size_t)(rand_r(seed) % 2000));
        counts[2]++;
    } else {
        (void)redis_do(server, "SCRIPT FLUSH");
        counts[3]++;
    }
}

static void unmap(void *arg)
{
    (void)munmap(arg, sizeof(*page));
}

TEST(attack, many_processes_never_hold_what_excludes_each_other)
{
    const char *given = getenv("ATTACK_SECONDS");
    const char *given_seed = getenv("ATTACK_SEED");
    unsigned seed = given_seed ? (unsigned)strtoul(given_seed, NULL, 10)
                               : (unsigned)getpid();
    struct server *server = redis_start();
    struct proxy *proxy = proxy_start(server_port(server));
    struct worker workers[WORKERS] = {{0}};
    struct claim **sorted = calloc(CLAIMS, sizeof(struct claim *));
    int64_t until_ms =
        clock_ms() + (given ? strtoll(given, NULL, 10) : 4) * 1000;
    int counts[4] = {0};

    test_note("seed %u", seed);
    ASSERT_NOT_NULL(sorted);
    test_defer(free, sorted);
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_TRUE(page != MAP_FAILED);
    test_defer(unmap, page);
    page->port = proxy_port(proxy);
    for (int i = 0; i < WORKERS; i++)
        workers[i].proc = proc_start(work, (void *)(uintptr_t)rand_r(&seed));
    while (clock_ms() < until_ms) {
        uint32_t before = atomic_load(&page->n);
        int64_t patience_ms = clock_ms() + 40;

        attack(workers, server, proxy, &seed, counts);
        /* The next blow falls when a few claims were made, or none come. */
        while (atomic_load(&page->n) < before + 20 && clock_ms() < patience_ms)
            (void)sched_yield();
    }
    proxy_pass(proxy);
    for (int i = 0; i < WORKERS; i++) {
        if (workers[i].stopped)
            proc_continue(workers[i].proc);
    }
    /* Everybody is still served. */
    for (uint32_t before = atomic_load(&page->n);;) {
        EVENTUALLY(atomic_load(&page->n) >= before + WORKERS);
        break;
    }
    atomic_store(&page->stop, 1);
    for (int i = 0; i < WORKERS; i++)
        proc_join(workers[i].proc);
    for (int name = 0; name < NAMES; name++)
        check(sorted, gather(name, sorted));
    test_note("%u claims, %u lost; %d kills, %d stops, %d cuts, %d flushes",
              atomic_load(&page->n), atomic_load(&page->losses), counts[0],
              counts[1], counts[2], counts[3]);
    EVENTUALLY(redis_leftovers(server) == 0);
}
