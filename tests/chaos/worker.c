/* SPDX-License-Identifier: MIT */
/*
 * worker.c - one process of a chaos run: threads that lock, and a journal.
 *
 *     chaos_worker URL JOURNAL STATE INDEX SEED TTL_MS RESOURCE
 *
 * It uses the public API alone. One of HOLDFAST_TEST_LONG_HOLDS holds (40) lasts
 * up to a lease and a half. SIGTERM: come to an end. SIGUSR1: leave without
 * releasing. SIGUSR2: a holder forks, and its child tries to use the hold.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "holdfast.h"
#include "journal.h"

enum {
    COLD_NAMES = 40,
    POOL_SLOTS = 3,
    MANY = 3,
    THREADS = 11,
    TICK_MS = 10,
    GAP_MS = 60,
    DRAIN_MS = 4000,
    CLOSE_MS = 15000
};

struct thread {
    pthread_t id;
    int number;
    uint64_t dice;
    int resource; /* a socket, or -1 */
};

static hf_client *client;
static int64_t ttl_ms;
static unsigned long_holds; /* one of so many */
static const char *resource_path;
static atomic_bool stopping;
static volatile sig_atomic_t asked_to_leave;
static atomic_int asked_to_fork;
static atomic_int threads_left;

static unsigned draw(struct thread *thread, unsigned n)
{
    thread->dice = thread->dice * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(thread->dice >> 33) % n;
}

static void nap(int64_t ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&time, &time) != 0 && errno == EINTR)
        continue;
}

/* ---- the guarded counter ------------------------------------------------ */

/* The resource's answer to @line, or NULL: then the next one is a new try. */
static const char *ask_resource(struct thread *thread, char *line, size_t size)
{
    ssize_t n;

    if (thread->resource < 0) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        struct timeval patience = {5, 0};

        (void)snprintf(address.sun_path, sizeof(address.sun_path), "%s",
                       resource_path);
        thread->resource = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)setsockopt(thread->resource, SOL_SOCKET, SO_RCVTIMEO, &patience,
                         sizeof(patience));
        if (connect(thread->resource, (struct sockaddr *)&address,
                    sizeof(address)) != 0)
            goto broken;
    }
    if (send(thread->resource, line, strlen(line), MSG_NOSIGNAL) < 0)
        goto broken;
    n = recv(thread->resource, line, size - 1, 0);
    if (n <= 0)
        goto broken;
    line[n] = '\0';
    return line;
broken:
    (void)close(thread->resource);
    thread->resource = -1;
    return NULL;
}

/* Read the counter that @name guards, and write what it will be: with the token
 * at both. */
static void count(struct thread *thread, const char *name, uint64_t token)
{
    char line[512];
    const char *answer;
    unsigned long long value;

    if (token == 0)
        return;
    (void)snprintf(line, sizeof(line), "R %s %llu\n", name,
                   (unsigned long long)token);
    answer = ask_resource(thread, line, sizeof(line));
    if (!answer || sscanf(answer, "V %llu", &value) != 1)
        return;
    if (draw(thread, 4) == 0)
        nap(draw(thread, 4));
    (void)snprintf(line, sizeof(line), "W %s %llu %llu\n", name,
                   (unsigned long long)token, value + 1);
    (void)ask_resource(thread, line, sizeof(line));
}

/* ---- holds -------------------------------------------------------------- */

/* The context of a callback: the first of @n ids. */
static void *id_context(uint64_t id, unsigned n)
{
    return (void *)(uintptr_t)(id << 3 | n);
}

static void on_event(hf_hold *hold, int state, void *ctx)
{
    uint64_t word = (uint64_t)(uintptr_t)ctx;
    int64_t at = journal_now();

    (void)hold;
    for (uint64_t i = 0; state == HF_LOST && i < (word & 7); i++)
        journal_write(at, "lost id=%llu", (unsigned long long)(word >> 3) + i);
}

/* Is it held? Tells the journal. */
static bool look(hf_hold *hold, uint64_t id, unsigned n)
{
    int64_t at = journal_now();
    int state = hf_check(hold);
    int64_t left = hf_remaining_ms(hold);

    for (unsigned i = 0; i < n; i++) {
        if (state == HF_HELD || state == HF_JEOPARDY)
            journal_write(at, "seen id=%llu until=%lld",
                          (unsigned long long)id + i,
                          (long long)at + (left > 0 ? left : 0) * 1000000LL);
        else if (state == HF_LOST)
            journal_write(journal_now(), "lost id=%llu",
                          (unsigned long long)id + i);
    }
    return state == HF_HELD || state == HF_JEOPARDY;
}

/* In the child of a holder nothing of the parent's may work. */
static void fork_with(hf_hold *hold)
{
    int status = 0;
    pid_t pid = fork();

    if (pid == 0)
        _exit(hf_check(hold) == HF_EFORK && hf_release(hold, NULL) == HF_EFORK
                  ? 0
                  : 1);
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status != 0)
        journal_write(journal_now(), "wrong what=forked_child_may_use_a_hold");
}

static unsigned long_holds_asked(void)
{
    const char *text = getenv("HOLDFAST_TEST_LONG_HOLDS");
    int n = text ? atoi(text) : 0;

    return n > 0 ? (unsigned)n : 40;
}

static int64_t hold_time(struct thread *thread)
{
    if (draw(thread, long_holds) == 0)
        return draw(thread, (unsigned)(ttl_ms + ttl_ms / 2));
    switch (draw(thread, 40)) {
    case 1:
    case 2:
    case 3:
        return draw(thread, 20);
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
    case 9:
        return 1 + draw(thread, 3);
    default:
        return 0;
    }
}

/* Use what was got, looking at it again and again. */
static void use(struct thread *thread, hf_hold *hold, uint64_t id, unsigned n)
{
    int64_t end = journal_now() + hold_time(thread) * 1000000;

    if (atomic_exchange(&asked_to_fork, 0))
        fork_with(hold);
    if (n == 1 && draw(thread, 3) == 0)
        count(thread, hf_hold_name(hold), hf_token(hold));
    while (look(hold, id, n) && journal_now() < end && !stopping)
        nap(2 + draw(thread, 20));
}

static void release(hf_hold *hold, uint64_t id, unsigned n)
{
    int64_t at = journal_now();
    int rc;

    for (unsigned i = 0; i < n; i++)
        journal_write(at, "rel id=%llu", (unsigned long long)id + i);
    rc = hf_release(hold, NULL);
    at = journal_now();
    for (unsigned i = 0; i < n; i++)
        journal_write(at, "reld id=%llu rc=%d", (unsigned long long)id + i, rc);
    if (rc != 0 && rc != HF_ELOST && rc != HF_EUNKNOWN && rc != HF_ECLOSED)
        journal_write(at, "wrong what=release_answers_%d", rc);
    journal_holding(-1);
}

static void journal_ask(uint64_t id, const char *name, const hf_opts *opts,
                        const char *kind)
{
    journal_write(journal_now(),
                  "ask id=%llu name=%s mode=%c slots=%d wait=%lld kind=%s",
                  (unsigned long long)id, name, "xsn"[opts->mode],
                  opts -> mode == HF_SLOT ? opts -> slots : 1,
                  (long long)opts -> wait_ms, kind);
}

static void journal_got(uint64_t id, uint64_t token)
{
    journal_write(journal_now(), "got id=%llu token=%llu",
                  (unsigned long long)id, (unsigned long long)token);
}

static void journal_fail(uint64_t id, int rc)
{
    journal_write(journal_now(), "fail id=%llu rc=%d", (unsigned long long)id,
                  rc);
}

/* An answer after which a thread asks again. */
static bool may_fail(int rc)
{
    return rc == HF_EBUSY || rc == HF_ETIMEOUT || rc == HF_ECANCELED ||
           rc == HF_EUNKNOWN || rc == HF_EUNAVAILABLE || rc == HF_ECLOSED ||
           rc == HF_EAUTH || rc == HF_ENOSPACE;
}

static void failed(uint64_t id, unsigned n, int rc, const hf_error *err)
{
    for (unsigned i = 0; i < n; i++)
        journal_fail(id + i, rc);
    if (!may_fail(rc)) {
        journal_write(journal_now(), "wrong what=acquire_answers_%d", rc);
        (void)fprintf(stderr, "%s: %s\n", hf_errname(rc), err->text);
    }
    nap(5);
}

/* ---- threads ------------------------------------------------------------ */

static void pick_name(struct thread *thread, char *name, size_t size)
{
    unsigned dice = draw(thread, 5);

    if (dice < 3)
        (void)snprintf(name, size, "hot-%u", dice % 2);
    else
        (void)snprintf(name, size, "cold-%u", draw(thread, COLD_NAMES));
}

static int64_t pick_wait(struct thread *thread)
{
    switch (draw(thread, 8)) {
    case 0:
        return 0;
    case 1:
    case 2:
        return 20 + draw(thread, 500);
    default:
        return HF_FOREVER;
    }
}

/* Write down what came of asking. */
static bool is_granted(const hf_hold *hold, uint64_t id, int rc,
                       const hf_error *err)
{
    if (rc != 0) {
        failed(id, 1, rc, err);
        return false;
    }
    journal_holding(1);
    journal_got(id, hf_token(hold));
    return true;
}

/* Wait for @name; NULL: refused, and told to the journal. */
static hf_hold *obtain(const char *name, hf_opts *opts, const char *kind,
                       uint64_t id)
{
    hf_hold *hold;
    hf_error err;
    int rc;

    opts->on_event = on_event;
    opts->ctx = id_context(id, 1);
    journal_ask(id, name, opts, kind);
    journal_waiting(1);
    rc = hf_acquire(client, name, opts, &hold, &err);
    journal_waiting(-1);
    return is_granted(hold, id, rc, &err) ? hold : NULL;
}

static void lock_once(struct thread *thread, const char *name, hf_opts *opts,
                      const char *kind)
{
    uint64_t id = journal_ids(1);
    hf_hold *hold = obtain(name, opts, kind, id);

    if (!hold)
        return;
    use(thread, hold, id, 1);
    if (opts->mode == HF_EXCLUSIVE && draw(thread, 16) == 0 &&
        hf_capabilities(client) & HF_CAP_DOWNGRADE) {
        journal_write(journal_now(), "down id=%llu", (unsigned long long)id);
        (void)hf_downgrade(hold, NULL);
        use(thread, hold, id, 1);
    }
    release(hold, id, 1);
    nap(draw(thread, 6));
}

static void lock_exclusively(struct thread *thread)
{
    hf_opts opts = HF_OPTS_INIT;
    char name[64];

    pick_name(thread, name, sizeof(name));
    opts.wait_ms = pick_wait(thread);
    lock_once(thread, name, &opts, "sync");
}

static void lock_shared(struct thread *thread)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.mode = draw(thread, 3) ? HF_SHARED : HF_EXCLUSIVE;
    opts.wait_ms = pick_wait(thread);
    lock_once(thread, "rw", &opts, "sync");
}

static void lock_slot(struct thread *thread)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.mode = HF_SLOT;
    opts.slots = POOL_SLOTS;
    opts.wait_ms = pick_wait(thread);
    lock_once(thread, "pool", &opts, "sync");
}

/* One thread of each process: the order of this line is the engine's. */
static void stand_in_line(struct thread *thread)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.wait_ms = HF_FOREVER;
    lock_once(thread, "line", &opts, "line");
    nap(20);
}

/* Threads of one process that let nobody else in, if they are let. */
static void be_greedy(struct thread *thread)
{
    uint64_t id = journal_ids(1);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold = obtain("busy", &opts, "sync", id);

    (void)thread;
    if (!hold)
        return;
    nap(1);
    (void)look(hold, id, 1);
    release(hold, id, 1);
}

static void lock_many(struct thread *thread)
{
    char names[MANY][64];
    const char *list[MANY];
    uint64_t id = journal_ids(MANY);
    hf_opts opts = HF_OPTS_INIT;
    hf_hold *hold;
    hf_error err;
    int rc;

    opts.wait_ms = draw(thread, 8) ? HF_FOREVER : 1000;
    opts.on_event = on_event;
    opts.ctx = id_context(id, MANY);
    for (unsigned i = 0; i < MANY; i++) {
        unsigned which = (i + (unsigned)id) % MANY;

        (void)snprintf(names[i], sizeof(names[i]),
                       which == 0 ? "hot-1" : "many-%u", which);
        list[i] = names[i];
        journal_ask(id + i, names[i], &opts, "many");
    }
    journal_waiting(1);
    rc = hf_acquire_many(client, list, MANY, &opts, &hold, &err);
    journal_waiting(-1);
    if (rc != 0) {
        failed(id, MANY, rc, &err);
        return;
    }
    journal_holding(1);
    for (unsigned i = 0; i < MANY; i++)
        journal_got(id + i, hf_token_at(hold, i));
    use(thread, hold, id, MANY);
    release(hold, id, MANY);
    nap(draw(thread, 20));
}

/* ---- asynchronous requests ---------------------------------------------- */

struct asked {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint64_t id;
    bool done;
};

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct asked *asked = ctx;

    (void)err;
    if (rc == 0) {
        journal_holding(1);
        journal_got(asked->id, hf_token(hold));
        (void)look(hold, asked->id, 1);
        release(hold, asked->id, 1);
    } else {
        journal_fail(asked->id, rc);
        if (!may_fail(rc))
            journal_write(journal_now(), "wrong what=request_answers_%d", rc);
    }
    (void)pthread_mutex_lock(&asked->mutex);
    asked->done = true;
    (void)pthread_cond_signal(&asked->changed);
    (void)pthread_mutex_unlock(&asked->mutex);
}

static void await_done(struct asked *asked)
{
    (void)pthread_mutex_lock(&asked->mutex);
    while (!asked->done)
        (void)pthread_cond_wait(&asked->changed, &asked->mutex);
    (void)pthread_mutex_unlock(&asked->mutex);
}

static void take_outcome(struct thread *thread, hf_request *request,
                         uint64_t id)
{
    hf_hold *hold;
    hf_error err;
    int rc = hf_request_wait(request, HF_FOREVER, &hold, &err);

    if (!is_granted(hold, id, rc, &err))
        return;
    use(thread, hold, id, 1);
    release(hold, id, 1);
}

static void ask_once(struct thread *thread)
{
    struct asked asked = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER,
                          journal_ids(1), false};
    bool by_callback = draw(thread, 2) == 0;
    hf_opts opts = HF_OPTS_INIT;
    hf_request *request;
    hf_error err;
    char name[64];
    int rc;

    pick_name(thread, name, sizeof(name));
    opts.wait_ms = 3000;
    opts.on_event = on_event;
    opts.ctx = id_context(asked.id, 1);
    journal_ask(asked.id, name, &opts, "async");
    rc = hf_acquire_start(client, name, &opts, by_callback ? on_done : NULL,
                          &asked, &request, &err);
    if (rc != 0) {
        failed(asked.id, 1, rc, &err);
        return;
    }
    journal_waiting(1);
    if (draw(thread, 4) == 0) {
        nap(draw(thread, 10));
        hf_cancel(request);
    }
    if (by_callback)
        await_done(&asked);
    else
        take_outcome(thread, request, asked.id);
    journal_waiting(-1);
    hf_request_free(request);
    nap(draw(thread, 6));
}

/* ---- elections ---------------------------------------------------------- */

struct candidate {
    pthread_mutex_t mutex;
    hf_hold *hold; /* while leading; a reference of ours */
    uint64_t id;   /* of the term, or of the candidacy */
    uint64_t token;
};

static void journal_candidacy(struct candidate *candidate)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.wait_ms = 0; /* who is not elected does not starve */
    candidate->id = journal_ids(1);
    journal_ask(candidate->id, "leader", &opts, "elect");
}

static void on_change(hf_hold *hold, int state, void *ctx)
{
    struct candidate *candidate = ctx;

    (void)pthread_mutex_lock(&candidate->mutex);
    if (state == HF_HELD && !candidate->hold) {
        candidate->hold = hf_hold_ref(hold);
        journal_holding(1);
        journal_got(candidate->id, hf_token(hold));
    } else if (state == HF_LOST && candidate->hold) {
        journal_write(journal_now(), "lost id=%llu",
                      (unsigned long long)candidate->id);
        hf_hold_unref(candidate->hold);
        candidate->hold = NULL;
        journal_holding(-1);
        journal_candidacy(candidate);
    }
    (void)pthread_mutex_unlock(&candidate->mutex);
}

/* Lead for a while, or stand for a while. */
static void stand(struct thread *thread, struct candidate *candidate)
{
    int64_t end = journal_now() + (100 + draw(thread, 1500)) * 1000000LL;

    while (journal_now() < end && !stopping) {
        (void)pthread_mutex_lock(&candidate->mutex);
        if (candidate->hold)
            (void)look(candidate->hold, candidate->id, 1);
        (void)pthread_mutex_unlock(&candidate->mutex);
        nap(10 + draw(thread, 30));
    }
}

static void resign(struct candidate *candidate, hf_election *election)
{
    hf_hold *hold;
    uint64_t id;
    int rc;

    (void)pthread_mutex_lock(&candidate->mutex);
    id = candidate->id;
    hold = candidate->hold;
    if (hold)
        journal_write(journal_now(), "rel id=%llu", (unsigned long long)id);
    (void)pthread_mutex_unlock(&candidate->mutex);
    rc = hf_elect_stop(election, NULL);
    /* A term that began in between was never looked at. */
    if (hold)
        journal_write(journal_now(), "reld id=%llu rc=%d",
                      (unsigned long long)id, rc);
    if (candidate->hold) {
        hf_hold_unref(candidate->hold);
        candidate->hold = NULL;
        journal_holding(-1);
    }
}

static void elect_once(struct thread *thread)
{
    struct candidate candidate = {PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0};
    hf_election *election;
    hf_error err;
    int rc;

    journal_candidacy(&candidate);
    rc = hf_elect_start(client, "leader", NULL, on_change, &candidate,
                        &election, &err);
    if (rc != 0) {
        failed(candidate.id, 1, rc, &err);
        return;
    }
    stand(thread, &candidate);
    resign(&candidate, election);
    nap(draw(thread, 50));
}

/* ---- the process -------------------------------------------------------- */

static void on_signal(int number)
{
    if (number == SIGTERM)
        stopping = true;
    else if (number == SIGUSR1)
        asked_to_leave = 1;
    else
        asked_to_fork = 1;
}

static void listen_to_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGUSR1, &action, NULL);
    (void)sigaction(SIGUSR2, &action, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
}

/* When did this process not run? */
static void *watch(void *arg)
{
    int64_t last = journal_now();

    (void)arg;
    for (;;) {
        int64_t now;

        nap(TICK_MS);
        now = journal_now();
        if (now - last > GAP_MS * 1000000LL)
            journal_write(now, "gap from=%lld", (long long)last);
        last = now;
        if (asked_to_leave) {
            journal_write(now, "exit");
            _exit(0);
        }
    }
    return NULL;
}

typedef void work_fn(struct thread *thread);

static work_fn *work_of(int i)
{
    static work_fn *const works[] = {
        lock_exclusively, lock_exclusively, lock_shared, lock_slot,
        stand_in_line,    lock_many,        ask_once,    elect_once,
        be_greedy,        be_greedy,        be_greedy};
    uint64_t caps = hf_capabilities(client);
    work_fn *work = works[i];

    if (work == lock_shared && !(caps & HF_CAP_SHARED))
        return lock_exclusively;
    if (work == lock_slot && !(caps & HF_CAP_SLOTS))
        return lock_exclusively;
    return work;
}

static void *run(void *arg)
{
    struct thread *thread = arg;
    work_fn *work = work_of(thread->number);

    journal_thread(thread->number);
    while (!stopping)
        work(thread);
    threads_left--;
    return NULL;
}

static void journal_capabilities(void)
{
    uint64_t caps = hf_capabilities(client);
    char names[256] = "engine";

    for (int bit = 0; bit < 64; bit++) {
        uint64_t one = caps & UINT64_C(1) << bit;
        size_t used = strlen(names);

        if (one && hf_capability_name(one))
            (void)snprintf(names + used, sizeof(names) - used, ",%s",
                           hf_capability_name(one));
    }
    journal_write(journal_now(), "caps names=%s ttl=%lld", names,
                  (long long)ttl_ms);
}

static bool open_client(const char *url)
{
    hf_error err = {0, 0, ""};

    journal_asks(1);
    while (!stopping) {
        int rc = hf_open(url, NULL, &client, &err);

        if (rc == 0) {
            journal_asks(0);
            return true;
        }
        if (rc != HF_EUNAVAILABLE && rc != HF_EAUTH && rc != HF_EUNKNOWN) {
            (void)fprintf(stderr, "%s: %s\n", hf_errname(rc), err.text);
            journal_write(journal_now(), "wrong what=open_answers_%d", rc);
            return false;
        }
        nap(20);
    }
    return false;
}

/* What is held is released by its thread; those who wait are told by the
 * shutdown. */
static void drain(void)
{
    int64_t end = journal_now() + DRAIN_MS * 1000000LL;

    while (threads_left > 0 && journal_now() < end)
        nap(5);
    end += CLOSE_MS * 1000000LL;
    while (threads_left > 0 && journal_is_holding() && journal_now() < end)
        nap(5);
    (void)hf_shutdown(client, CLOSE_MS, NULL);
}

int main(int argc, char **argv)
{
    static struct thread threads[THREADS];
    pthread_t watcher;

    if (argc != 8 || journal_open(argv[2], argv[3], atoi(argv[4])) != 0)
        return 64;
    ttl_ms = atoll(argv[6]);
    resource_path = argv[7];
    long_holds = long_holds_asked();
    listen_to_signals();
    if (pthread_create(&watcher, NULL, watch, NULL) != 0)
        return 1;
    if (!open_client(argv[1]))
        return stopping ? 0 : 1;
    journal_capabilities();
    for (int i = 0; i < THREADS; i++) {
        threads[i].number = i;
        threads[i].resource = -1;
        threads[i].dice = strtoull(argv[5], NULL, 10) * 64 + (unsigned)i;
        threads_left++;
        if (pthread_create(&threads[i].id, NULL, run, &threads[i]) != 0)
            return 1;
    }
    while (!stopping)
        nap(TICK_MS);
    drain();
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i].id, NULL);
    hf_close(client);
    journal_write(journal_now(), "end");
    return 0;
}
