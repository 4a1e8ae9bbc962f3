/* SPDX-License-Identifier: MIT */
/*
 * world.c - coroutines (coroutine.c) for threads, a heap of events for time.
 *
 * A coroutine gives up control only inside a call of the world: where the
 * library sleeps, polls or yields, all of it without the monitor. There are
 * also stops: at any call of the world, the monitor held or not, the whole
 * machine may freeze; when it thaws, the thread that was stopped goes first,
 * so nobody finds its monitor locked.
 */
#include "world.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "coroutine.h"

enum {
    THREADS_MAX = 64,
    FLAGS_MAX = 64,
    STEP_NS = 300, /* a call of the world takes so long */
    SLICE_NS = 4000
};

enum thread_state { THREAD_FREE, THREAD_READY, THREAD_ASLEEP, THREAD_DONE };

struct sim_thread {
    struct coroutine coroutine;
    enum thread_state state;
    const char *name;
    struct sim_machine *machine;
    uint64_t serial;
    hf__thread_fn *run;
    void *arg;
    int64_t until_ns;      /* true time; HF_NEVER */
    const void *thing;     /* parked word, alarm or thread waited for */
    uint32_t who;          /* on a parked word: whom its bits mean */
    struct hf__loop *loop; /* also woken by this one */
    struct hf__loop *app;  /* polls this one as an application does, */
    int app_fd;            /* and this descriptor, */
    uint64_t app_seen;     /* last at this turn of its machine */
    bool app_readable;
    bool detached; /* nobody joins it */
};

/* The library's handle is the coroutine itself. */
struct hf__thread {
    struct sim_thread thread;
};

/* "Rung", or "readable", of an alarm or a loop. */
struct flag {
    const void *thing;
    bool kicked;
    struct hf__io *io; /* a loop's readable one */
};

struct event {
    int64_t at_ns;
    uint64_t order;
    sim_fn *fn;
    void *arg;
};

struct sim_faults sim_faults;
struct sim_machine sim_machines[SIM_MACHINES];

static struct hf__thread threads[THREADS_MAX];
static int n_threads; /* slots ever used since the reset */
static struct flag flags[FLAGS_MAX];
static int n_flags;
static struct event *events;
static size_t n_events;
static size_t events_size;
static uint64_t next_order;
static uint64_t random_state;
static int64_t now_ns;
static struct sim_thread *current; /* NULL: the scheduler */
static struct sim_machine *viewpoint;
static uint32_t turn_calls; /* of the clock, since a thread was chosen */
static uint32_t longest_turn;

/* ---- chance ------------------------------------------------------------- */

static uint64_t draw(void)
{
    uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t sim_below(uint64_t bound)
{
    return bound == 0 ? 0 : draw() % bound;
}

bool sim_chance(uint32_t per_mille)
{
    return per_mille > 0 && sim_below(1000) < per_mille;
}

static int sim_random_bytes(void *bytes, size_t len)
{
    unsigned char *to = bytes;

    for (size_t i = 0; i < len; i++)
        to[i] = (unsigned char)draw();
    return 0;
}

/* ---- threads ------------------------------------------------------------ */

/* From a thread to the scheduler; returns when it runs again. */
static void give_up(void)
{
    coroutine_leave(&current->coroutine);
}

static void thread_entry(void)
{
    current->run(current->arg);
    current->state = THREAD_DONE;
    sim_wake(current);
}

static void run_thread(struct sim_thread *thread)
{
    current = thread;
    thread->machine->turns++;
    coroutine_enter(&thread->coroutine);
    current = NULL;
}

static struct sim_thread *free_thread(void)
{
    for (int i = 0; i < n_threads; i++)
        if (threads[i].thread.state == THREAD_FREE)
            return &threads[i].thread;
    if (n_threads == THREADS_MAX)
        return NULL;
    return &threads[n_threads++].thread;
}

static struct sim_thread *new_thread(struct sim_machine *machine,
                                     const char *name, hf__thread_fn *run,
                                     void *arg)
{
    struct sim_thread *thread = free_thread();

    if (!thread)
        return NULL;
    *thread = (struct sim_thread){.coroutine = thread->coroutine};
    if (!coroutine_init(&thread->coroutine, thread_entry))
        return NULL;
    thread->name = name;
    thread->machine = machine;
    thread->serial = hf__world_serial();
    thread->run = run;
    thread->arg = arg;
    thread->until_ns = HF_NEVER;
    thread->state = THREAD_READY;
    return thread;
}

void sim_spawn(struct sim_machine *machine, sim_fn *run, void *arg)
{
    struct sim_thread *thread = new_thread(machine, "worker", run, arg);

    if (!thread)
        abort();
    thread->detached = true;
}

struct sim_machine *sim_here(void)
{
    return current ? current->machine : viewpoint;
}

void sim_look_as(struct sim_machine *machine)
{
    viewpoint = machine;
}

int sim_threads_alive(void)
{
    int alive = 0;

    for (int i = 0; i < n_threads; i++)
        alive += threads[i].thread.state == THREAD_READY ||
                 threads[i].thread.state == THREAD_ASLEEP;
    return alive;
}

void sim_print_threads(void)
{
    for (int i = 0; i < n_threads; i++) {
        const struct sim_thread *thread = &threads[i].thread;

        if (thread->state != THREAD_READY && thread->state != THREAD_ASLEEP)
            continue;
        printf("# thread %d (%s) of machine %d: %s, until %.6f s%s%s\n", i,
               thread->name, (int)(thread->machine - sim_machines),
               thread->state == THREAD_READY ? "ready" : "asleep",
               thread->until_ns == HF_NEVER ? -1.0
                                            : (double)thread->until_ns * 1e-9,
               thread->loop ? ", on its loop" : "",
               thread->machine->frozen ? ", frozen" : "");
    }
}

/* ---- time --------------------------------------------------------------- */

int64_t sim_now(void)
{
    return now_ns;
}

int64_t sim_local(const struct sim_machine *machine, int64_t true_ns)
{
    return machine->offset_ns + true_ns +
           true_ns / 1000 * machine->drift_ppm / 1000;
}

/* The first true instant at which @machine's clock shows @local_ns. */
static int64_t true_of(const struct sim_machine *machine, int64_t local_ns)
{
    double since;
    int64_t guess;

    if (local_ns == HF_NEVER)
        return HF_NEVER;
    since = (double)(local_ns - machine->offset_ns);
    guess = (int64_t)(since / (1.0 + (double)machine->drift_ppm * 1e-6));
    return guess + 2000;
}

static int64_t world_now(void)
{
    const struct sim_machine *machine = sim_here();

    return machine ? sim_local(machine, now_ns) : now_ns;
}

int64_t sim_wall_us(struct sim_machine *machine)
{
    static const int64_t hour_us = INT64_C(3600000000);

    if (sim_chance(sim_faults.wall_jumps_per_mille))
        machine->wall_ahead_us =
            (int64_t)sim_below(2 * (uint64_t)hour_us) - hour_us;
    return INT64_C(1700000000000000) + machine->wall_ahead_us +
           sim_local(machine, now_ns) / 1000;
}

static int64_t world_wall(void)
{
    return sim_wall_us(sim_here() ? sim_here() : &sim_machines[0]);
}

/* ---- stops -------------------------------------------------------------- */

/* The machine of the running thread stops here, perhaps. */
static void maybe_stop(void)
{
    struct sim_machine *machine;

    if (!current || sim_faults.freeze_per_million == 0 ||
        sim_below(1000000) >= sim_faults.freeze_per_million)
        return;
    machine = current->machine;
    machine->frozen = true;
    machine->frozen_until_ns =
        now_ns + (int64_t)sim_below((uint64_t)sim_faults.freeze_max_ns);
    machine->stopped = current;
    give_up();
}

static int64_t stopping_now(void)
{
    int64_t now;

    if (!current)
        return world_now();
    now_ns += STEP_NS;
    turn_calls++;
    now = world_now();
    maybe_stop();
    return now;
}

/* ---- sleeping and waking ------------------------------------------------ */

static void sleep_on(const void *thing, struct hf__loop *loop,
                     int64_t until_true_ns)
{
    current->thing = thing;
    current->loop = loop;
    current->until_ns = until_true_ns;
    current->state = THREAD_ASLEEP;
    give_up();
    current->thing = NULL;
    current->loop = NULL;
    current->until_ns = HF_NEVER;
}

static void make_ready(struct sim_thread *thread)
{
    thread->state = THREAD_READY;
}

static bool is_asleep_on(const struct sim_thread *thread, const void *thing)
{
    return thread->state == THREAD_ASLEEP && thread->thing == thing;
}

void sim_wake(const void *thing)
{
    for (int i = 0; i < n_threads; i++)
        if (is_asleep_on(&threads[i].thread, thing))
            make_ready(&threads[i].thread);
}

static void world_yield(void)
{
    now_ns += STEP_NS;
    if (current)
        give_up(); /* it stays ready */
}

static void maybe_yield(void)
{
    if (sim_below(4) == 0)
        world_yield();
    maybe_stop();
}

void sim_sleep(int64_t ns)
{
    sleep_on(NULL, NULL, now_ns + ns);
}

uint32_t sim_longest_turn(void)
{
    return longest_turn;
}

void sim_wait_for(const void *thing, int64_t until_ns)
{
    sleep_on(thing, NULL, true_of(current->machine, until_ns));
}

static void world_park(_Atomic uint32_t *word, uint32_t value, uint32_t who,
                       int64_t until_ns)
{
    maybe_yield();
    if (atomic_load(word) != value || world_now() >= until_ns ||
        sim_chance(sim_faults.spurious_per_mille))
        return;
    current->who = who;
    sleep_on(word, NULL, true_of(current->machine, until_ns));
}

static void world_unpark(_Atomic uint32_t *word, uint32_t who)
{
    if (sim_chance(sim_faults.lost_wakes_per_mille))
        return;
    for (int i = 0; i < n_threads; i++)
        if (is_asleep_on(&threads[i].thread, word) &&
            (threads[i].thread.who & who) != 0)
            make_ready(&threads[i].thread);
}

/* ---- loops and alarms --------------------------------------------------- */

static struct flag *flag_of(const void *thing)
{
    for (int i = 0; i < n_flags; i++)
        if (flags[i].thing == thing)
            return &flags[i];
    if (n_flags == FLAGS_MAX)
        abort();
    flags[n_flags].thing = thing;
    flags[n_flags].kicked = false;
    flags[n_flags].io = NULL;
    return &flags[n_flags++];
}

static void wake_loop(const struct hf__loop *loop)
{
    for (int i = 0; i < n_threads; i++)
        if (threads[i].thread.state == THREAD_ASLEEP &&
            threads[i].thread.loop == loop)
            make_ready(&threads[i].thread);
}

void sim_loop_ready(struct hf__loop *loop, struct hf__io *io)
{
    struct flag *flag = flag_of(loop);

    if (io)
        flag->io = io;
    else
        flag->kicked = true;
    wake_loop(loop);
}

void sim_loop_drained(struct hf__loop *loop)
{
    flag_of(loop)->io = NULL;
}

static void add_event(struct hf__loop_batch *batch, uint32_t slot,
                      uint32_t generation)
{
    batch->events[batch->n].events = EPOLLIN;
    batch->events[batch->n].data.u64 = ((uint64_t)generation << 32) | slot;
    batch->n++;
}

static int fill_batch(struct hf__loop *loop, struct hf__loop_batch *batch)
{
    struct flag *flag = flag_of(loop);

    batch->n = 0;
    if (flag->kicked)
        add_event(batch, 0, 0);
    flag->kicked = false;
    if (flag->io && flag->io->slot != 0)
        add_event(batch, flag->io->slot,
                  loop->slots[flag->io->slot].generation);
    return batch->n;
}

static bool loop_is_ready(const struct hf__loop *loop)
{
    const struct flag *flag = flag_of(loop);

    return flag->kicked || flag->io;
}

/* What an application polls changes while it sleeps, when its machine runs. */
static bool is_readable(struct sim_thread *thread)
{
    struct pollfd one = {.fd = thread->app_fd, .events = POLLIN};

    if (thread->app_seen != thread->machine->turns) {
        thread->app_seen = thread->machine->turns;
        thread->app_readable = poll(&one, 1, 0) == 1;
    }
    return thread->app_readable;
}

static int64_t due_of(struct sim_thread *thread)
{
    if (!thread->app)
        return thread->until_ns;
    if (is_readable(thread))
        return now_ns;
    return true_of(thread->machine, thread->app->timer_fd_due_ns);
}

/* Instead of libc's: due_of() knows the virtual time of a loop's timer. The
 * real one would ring by the clock of this machine. */
int timerfd_settime(int fd, int how, const struct itimerspec *at,
                    struct itimerspec *ret_old)
{
    (void)fd;
    (void)how;
    (void)at;
    (void)ret_old;
    return 0;
}

void sim_wait_app(struct hf__loop *loop, int fd)
{
    maybe_yield();
    current->app = loop;
    current->app_fd = fd;
    current->app_seen = 0;
    if (!loop_is_ready(loop) && due_of(current) > now_ns)
        sleep_on(loop, loop, HF_NEVER);
    current->app = NULL;
}

static int world_poll(struct hf__loop *loop, struct hf__loop_batch *batch,
                      int64_t until_ns)
{
    now_ns += STEP_NS;
    if (until_ns <= 0 || !current)
        return fill_batch(loop, batch); /* perhaps with the monitor held */
    maybe_yield();
    if (!loop_is_ready(loop) && world_now() < until_ns)
        sleep_on(NULL, loop, true_of(current->machine, until_ns));
    return fill_batch(loop, batch);
}

static void world_kick(struct hf__loop *loop)
{
    sim_loop_ready(loop, NULL);
}

static void world_sleep(struct hf__alarm *alarm, struct hf__loop *loop,
                        int64_t until_ns)
{
    maybe_yield();
    if (!flag_of(alarm)->kicked && !(loop && loop_is_ready(loop)) &&
        world_now() < until_ns)
        sleep_on(alarm, loop, true_of(current->machine, until_ns));
    flag_of(alarm)->kicked = false;
}

static void world_ring(struct hf__alarm *alarm)
{
    flag_of(alarm)->kicked = true;
    sim_wake(alarm);
}

/* ---- threads of the library --------------------------------------------- */

static uint64_t world_self(void)
{
    return current ? current->serial : 0;
}

static int world_thread_start(struct hf__thread **ret_thread, const char *name,
                              hf__thread_fn *run, void *arg)
{
    struct sim_thread *thread = new_thread(sim_here(), name, run, arg);

    if (!thread)
        return HF_ENOMEM;
    *ret_thread = HF_CONTAINER_OF(thread, struct hf__thread, thread);
    return 0;
}

static void world_thread_join(struct hf__thread *joined)
{
    struct sim_thread *thread = &joined->thread;

    while (thread->state != THREAD_DONE)
        sleep_on(thread, NULL, HF_NEVER);
    thread->state = THREAD_FREE;
}

/* Each client its own: with several, its threads spin and linger. */
static int world_processors(void)
{
    return 1 + (int)sim_below(2);
}

const struct hf__world sim_world = {
    .now_ns = stopping_now,
    .wall_us = world_wall,
    .random = sim_random_bytes,
    .park = world_park,
    .unpark = world_unpark,
    .poll = world_poll,
    .kick = world_kick,
    .sleep = world_sleep,
    .ring = world_ring,
    .yield = world_yield,
    .self = world_self,
    .thread_start = world_thread_start,
    .thread_join = world_thread_join,
    .processors = world_processors,
};

/* ---- events: a heap ----------------------------------------------------- */

static bool earlier(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void swap_events(size_t a, size_t b)
{
    struct event event = events[a];

    events[a] = events[b];
    events[b] = event;
}

void sim_at(int64_t true_ns, sim_fn *fn, void *arg)
{
    size_t i = n_events++;

    if (n_events > events_size) {
        events_size = events_size ? events_size * 2 : 256;
        events = realloc(events, events_size * sizeof(*events));
        if (!events)
            abort();
    }
    events[i] = (struct event){true_ns, next_order++, fn, arg};
    for (; i > 0 && earlier(&events[i], &events[(i - 1) / 2]); i = (i - 1) / 2)
        swap_events(i, (i - 1) / 2);
}

static struct event pop_event(void)
{
    struct event top = events[0];
    size_t i = 0;

    events[0] = events[--n_events];
    for (;;) {
        size_t child = 2 * i + 1;

        if (child >= n_events)
            break;
        if (child + 1 < n_events && earlier(&events[child + 1], &events[child]))
            child++;
        if (!earlier(&events[child], &events[i]))
            break;
        swap_events(child, i);
        i = child;
    }
    return top;
}

/* ---- the scheduler ------------------------------------------------------ */

static bool may_run(const struct sim_thread *thread)
{
    const struct sim_machine *machine = thread->machine;

    return thread->state == THREAD_READY && !machine->frozen &&
           (!machine->stopped || machine->stopped == thread);
}

static void wake_due(void)
{
    for (int i = 0; i < SIM_MACHINES; i++) {
        struct sim_machine *machine = &sim_machines[i];

        if (machine->frozen && machine->frozen_until_ns <= now_ns) {
            machine->frozen = false;
            machine->thawed_ns = now_ns;
        }
    }
    for (int i = 0; i < n_threads; i++)
        if (threads[i].thread.state == THREAD_ASLEEP &&
            due_of(&threads[i].thread) <= now_ns)
            make_ready(&threads[i].thread);
}

static struct sim_thread *choose(void)
{
    struct sim_thread *ready[THREADS_MAX];
    uint64_t n = 0;

    for (int i = 0; i < n_threads; i++)
        if (may_run(&threads[i].thread))
            ready[n++] = &threads[i].thread;
    return n == 0 ? NULL : ready[sim_below(n)];
}

/* When something happens next by itself; HF_NEVER: nothing ever will. */
static int64_t next_instant(void)
{
    int64_t next = n_events > 0 ? events[0].at_ns : HF_NEVER;

    for (int i = 0; i < SIM_MACHINES; i++)
        if (sim_machines[i].frozen && sim_machines[i].frozen_until_ns < next)
            next = sim_machines[i].frozen_until_ns;
    for (int i = 0; i < n_threads; i++)
        if (threads[i].thread.state == THREAD_ASLEEP &&
            due_of(&threads[i].thread) < next)
            next = due_of(&threads[i].thread);
    return next;
}

static void step(struct sim_thread *thread)
{
    if (thread->machine->stopped == thread)
        thread->machine->stopped = NULL;
    now_ns += (int64_t)sim_below(SLICE_NS);
    turn_calls = 0;
    run_thread(thread);
    if (turn_calls > longest_turn)
        longest_turn = turn_calls;
    if (thread->state == THREAD_DONE && thread->detached)
        thread->state = THREAD_FREE;
}

bool sim_run(int64_t until_ns, bool (*each)(void))
{
    while (now_ns < until_ns) {
        struct sim_thread *thread;

        while (n_events > 0 && events[0].at_ns <= now_ns) {
            struct event event = pop_event();

            event.fn(event.arg);
        }
        wake_due();
        thread = choose();
        if (thread) {
            step(thread);
        } else {
            int64_t next = next_instant();

            if (next == HF_NEVER)
                return sim_threads_alive() == 0;
            if (next > until_ns)
                next = until_ns;
            now_ns = next > now_ns ? next : now_ns;
        }
        if (each && !each())
            return false;
    }
    return sim_threads_alive() == 0;
}

void sim_reset(uint64_t seed)
{
    for (int i = 0; i < n_threads; i++)
        threads[i].thread.state = THREAD_FREE;
    n_threads = 0;
    n_flags = 0;
    n_events = 0;
    next_order = 0;
    now_ns = HF_SECOND;
    random_state = seed * UINT64_C(0xd1342543de82ef95) + 1;
    current = NULL;
    viewpoint = NULL;
    longest_turn = 0;
    memset(&sim_faults, 0, sizeof(sim_faults));
    memset(sim_machines, 0, sizeof(sim_machines));
}

void sim_end(void)
{
    for (int i = 0; i < THREADS_MAX; i++)
        coroutine_release(&threads[i].thread.coroutine);
    free(events);
    events = NULL;
    events_size = 0;
}
