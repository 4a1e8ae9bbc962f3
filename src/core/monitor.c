/* SPDX-License-Identifier: MIT */
/*
 * monitor.c - which thread is inside a client, and which thread does the work.
 *
 * One mutex guards everything in a client. A caller that has to wait becomes
 * the driver if there is none: it leaves the monitor, waits for the engine,
 * comes back, handles what came, and checks whether its own request is done.
 * Other callers linger for a moment, where answers are near, and are parked
 * then. One system call wakes all parked callers that one answer serves, before
 * the first of them runs; otherwise the first would send its next request alone.
 * So an uncontended call costs its own system calls and no thread switch, and a
 * contended one its share of a few.
 *
 *   role:    nobody ──a caller waits──▶ a caller ──leaves──▶ the next waiter
 *              ▲                           └──nobody waits──┐
 *              └────────────────────────────────────────────┘
 *            nobody, but something is owed ──▶ the background thread, or the
 *                                              application (drive=app)
 *
 * The background thread is the driver of last resort, and the clock. The rule
 * that keeps leases: whenever the monitor is free, background_until_ns is no
 * later than the first thing owed. What comes earlier lowers it and rings;
 * what comes later, or is called off, changes nothing, so that a program that
 * acquires and releases all day never wakes it.
 *
 * Requests are gathered. While a driver has its role but does not poll yet,
 * other callers leave their bytes to it; without a driver they leave them to a
 * caller that was served and is about to leave. A driver yields before it
 * polls as long as served callers have not asked again. Eight commands then
 * travel in one send. A lone caller never yields.
 *
 * Wakes are collected inside and delivered after unlocking. The word may be
 * gone by then, with its client or its stack: unpark never reads it.
 *
 * Failure: nothing here can fail. A wake that comes twice, a poll that ends
 * early, a sleep that ends for no reason are all just another look.
 */
#include <stdarg.h>
#include <stdio.h>

#include "core/client.h"
#include "core/keeper.h"
#include "core/leaving.h"
#include "core/log.h"
#include "core/monitor.h"

/* An answer that nobody waits for (a posted release, a renewal) is read by the
 * background thread after this long, if no caller has come by. */
#define OWED_NS (50 * HF_MS)

/* Beside a busy process a yield gives away a time slice: longer than this, and
 * it was not worth it. */
#define YIELD_NS (300 * HF_MS / 1000)

/* To sleep and be woken takes longer than many servers need for an answer, so a
 * driver polls without sleeping first: this long, and this often at most. */
#define SPIN_NS (100 * HF_MS / 1000)
#define SPIN_LOOKS 256

/* An optimisation that did not pay is suspended. The pause doubles with each
 * failure in a row, so that a rare disturbance costs little. */
#define PAUSE_MIN_NS (2 * HF_MS)
#define PAUSE_MAX_NS (100 * HF_MS)
#define DRIVER_EASE 2
#define LINGER_EASE 8 /* several threads succeed at a time */

/* Woken threads may preempt the waker, so it yields once for them and once for
 * itself. */
#define YIELDS_MAX 3

/* A thread that waits beside a driver lets others run for this long before it
 * parks: to be woken takes longer than most answers. So many at a time: where
 * there are more processors, each keeps one busy. */
#define LINGER_NS (300 * HF_MS / 1000)
#define LINGERERS_MAX 16

/* A thread counts as alone, and yields to nobody, when no other has waited
 * beside it for this long: the other may be off the processor between two
 * calls, and would stay there for a time slice. */
#define CROWD_NS (10 * HF_MS)

#define LOCK_LOOKS 100
#define LOCK_YIELDS 20

/* For the other thread of this processor's core. */
static inline void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

struct hf__log_line {
    struct hf__log_line *next;
    struct hf__log_hook hook; /* the client may be gone when it is told */
    int level;
    char text[];
};

/* ---- entering and leaving ---------------------------------------------- */

static bool yields_are_cheap(const hf_client *client)
{
    return !atomic_load_explicit(&client->dear, memory_order_relaxed);
}

/* The monitor is held for moments: who finds it taken looks again, then lets
 * its owner run, and sleeps last. */
static void lock(hf_client *client)
{
    for (int i = 0; i < LOCK_LOOKS + LOCK_YIELDS; i++) {
        if (HF_LIKELY(pthread_mutex_trylock(&client->monitor) == 0))
            return;
        if (i < LOCK_LOOKS)
            relax();
        else if (yields_are_cheap(client))
            hf__world->yield();
        else
            break;
    }
    (void)pthread_mutex_lock(&client->monitor);
}

static void drain_cancels(hf_client *client)
{
    struct hf_request *request =
        atomic_exchange_explicit(&client->cancels, NULL, memory_order_acquire);

    while (request) {
        struct hf_request *next = request->cancel_next;

        if (!request->finished)
            request->kind->forget(request, HF_ECANCELED);
        request = next;
    }
}

/* With the monitor: read the clock, and do what is due. LOST comes before any
 * I/O, also when the process was stopped for an hour. */
void hf__monitor_turn(hf_client *client)
{
    client->now_ns = hf__now();
    if (HF_UNLIKELY(hf__loop_next_due(&client->loop) <= client->now_ns)) {
        (void)hf__loop_run_timers(&client->loop, client->now_ns);
        hf__keeper_send(client);
    }
    if (HF_UNLIKELY(atomic_load_explicit(&client->cancels,
                                         memory_order_relaxed) != NULL))
        drain_cancels(client);
}

int hf__monitor_enter_any(hf_client *client, hf_error *err)
{
    if (HF_UNLIKELY(hf__forked(client->fork_generation)))
        return hf__fail(err, HF_EFORK,
                        "the client belongs to the parent process: open one "
                        "in the child");
    lock(client);
    client->users++;
    if (HF_LIKELY(!client->closed))
        hf__monitor_turn(client);
    return 0;
}

int hf__monitor_closed(const hf_client *client, hf_error *err)
{
    return client->unfit.code != 0
               ? hf__fail_pass(err, &client->unfit)
               : hf__fail(err, HF_ECLOSED, "the client is closed");
}

int hf__monitor_enter(hf_client *client, hf_error *err)
{
    int rc = hf__monitor_enter_any(client, err);

    if (rc == 0 && HF_UNLIKELY(client->closing)) {
        rc = hf__monitor_closed(client, err);
        hf__monitor_leave(client);
    }
    return rc;
}

/* How much has the engine asked its server that is not answered? */
static uint32_t under_way(const hf_client *client)
{
    const struct hf__engine *engine = client->engine;

    while (engine && engine->under_way == 0)
        engine = engine->inner;
    return engine ? engine->under_way : 0;
}

/* Does an answer or an event have to be read by somebody? */
static bool expects(const hf_client *client)
{
    return client->asked + client->owed + client->awaited > 0 ||
           client->connection == HF__CONNECTION_CONNECTING ||
           under_way(client) > 0;
}

/* Something was sent, or is in line, and no caller will come back for it. */
static void settle(hf_client *client)
{
    bool app = client->settings.drive == HF__DRIVE_APP;

    if (client->asked > 0 && !client->sentry && client->engine->ops->sentry) {
        client->sentry = true;
        client->engine->ops->sentry(client->engine, true);
    }
    if (app || client->background_drives || !client->background)
        return;
    if (client->asked + client->awaited > 0 ||
        client->connection == HF__CONNECTION_CONNECTING) {
        client->background_drives = true;
        hf__world->ring(&client->alarm);
    } else if (client->background_until_ns > client->now_ns + OWED_NS) {
        client->background_until_ns = client->now_ns + OWED_NS;
        hf__world->ring(&client->alarm);
    }
}

static void tell_log(struct hf__log_line *line)
{
    while (line) {
        struct hf__log_line *next = line->next;

        hf__log_line(&line->hook, line->level, line->text);
        hf__free(line);
        line = next;
    }
}

/* Another thread is about to poll or to leave, and sends what it finds. */
static bool gathers(const hf_client *client)
{
    if (client->now_ns < client->gather.from_ns)
        return false;
    return client->driver ? !client->polling : client->served > 0;
}

/* The driver spins: bytes were left to it, or its own request is done. */
static void beckon(hf_client *client)
{
    atomic_store_explicit(&client->beckoned, true, memory_order_relaxed);
}

/* What callbacks ask for inside hf_dispatch() is sent when that ends. */
static bool in_dispatch(const hf_client *client)
{
    return client->callbacks.dispatcher != 0 &&
           client->callbacks.dispatcher == hf__world->self();
}

/* Unlock. Afterwards the client may be gone. */
static void depart(hf_client *client, bool send)
{
    uint32_t n = client->wakes_n;
    uint32_t called = client->called;
    _Atomic uint32_t *bell = &client->bell;
    _Atomic uint32_t *wakes[HF__CLIENT_WAKES];
    struct hf__log_line *lines = client->log_first;
    bool last;

    if (HF_LIKELY(!client->closed)) {
        if (HF_UNLIKELY(!client->driver && expects(client)))
            settle(client);
        if (send && client->engine->ops->flush && !gathers(client))
            client->engine->ops->flush(client->engine);
        if (send && HF_UNLIKELY(client->loop.timer_fd >= 0))
            hf__loop_arm(&client->loop);
    }
    if (n > 0)
        memcpy(wakes, client->wakes, n * sizeof(wakes[0]));
    client->wakes_n = 0;
    client->called = 0;
    client->log_first = NULL;
    client->log_last = &client->log_first;
    last = client->closed && client->users == 0 && client->handles == 0;
    (void)pthread_mutex_unlock(&client->monitor);

    if (last)
        hf__client_free(client);
    if (called != 0)
        hf__world->unpark(bell, called);
    for (uint32_t i = 0; i < n; i++)
        hf__world->unpark(wakes[i], HF_ANYBODY);
    if (HF_UNLIKELY(lines != NULL))
        tell_log(lines);
}

void hf__monitor_leave(hf_client *client)
{
    client->users--;
    if (HF_UNLIKELY(client->closer != NULL) && client->users == 1)
        hf__waiter_done(client, client->closer, 0);
    depart(client, !in_dispatch(client));
}

void hf__monitor_handle_gone(hf_client *client)
{
    client->handles--;
}

void hf__monitor_log(hf_client *client, int level, const char *format, ...)
{
    struct hf__log_line *line;
    va_list args;
    int len;

    if (!hf__log_wanted(&client->log, level))
        return;
    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    line = len < 0 ? NULL : hf__malloc(sizeof(*line) + (size_t)len + 1);
    if (!line)
        return; /* without memory there is one line less in the log */
    va_start(args, format);
    (void)vsnprintf(line->text, (size_t)len + 1, format, args);
    va_end(args);
    line->hook = client->log;
    line->level = level;
    line->next = NULL;
    *client->log_last = line;
    client->log_last = &line->next;
}

/* ---- waiting and driving ----------------------------------------------- */

void hf__waiter_init(struct hf__waiter *waiter)
{
    hf__list_init(&waiter->link);
    hf__list_init(&waiter->watch);
    atomic_init(&waiter->word, 0);
    waiter->call = 0;
    waiter->done = false;
    waiter->served = false;
    waiter->for_shared = false;
    waiter->rc = 0;
    waiter->request = NULL;
}

void hf__monitor_wake_word(hf_client *client, _Atomic uint32_t *word)
{
    if (client->wakes_n == HF__CLIENT_WAKES)
        hf__world->unpark(word, HF_ANYBODY);
    else
        client->wakes[client->wakes_n++] = word;
}

static void wake(hf_client *client, struct hf__waiter *waiter)
{
    if (hf__list_empty(&waiter->link))
        return; /* it never slept: its thread is the one that runs */
    if (waiter->done && !waiter->served) {
        waiter->served = true;
        client->served++;
        client->expected++;
        client->yields = YIELDS_MAX;
    }
    if (atomic_exchange_explicit(&waiter->word, HF__WAITER_WOKEN,
                                 memory_order_acq_rel) == HF__WAITER_LINGERS)
        return;
    if (waiter->call != 0) {
        client->called |= waiter->call;
        atomic_fetch_add_explicit(&client->bell, 1, memory_order_release);
    } else {
        hf__monitor_wake_word(client, &waiter->word);
    }
}

static void kick_driver(hf_client *client)
{
    if (client->engine->ops->kick)
        client->engine->ops->kick(client->engine);
    else
        hf__loop_kick(&client->loop);
}

void hf__waiter_done(hf_client *client, struct hf__waiter *waiter, int rc)
{
    if (!waiter || waiter->done)
        return;
    waiter->done = true;
    waiter->rc = rc;
    hf__list_remove(&waiter->watch);
    if (HF_UNLIKELY(waiter->request != NULL))
        hf__request_answered(waiter->request, rc);
    else if (client->driver != waiter)
        wake(client, waiter);
    else if (client->polling)
        kick_driver(client);
    else
        beckon(client);
}

static void look(hf_client *client, const struct hf__loop_batch *batch)
{
    hf__monitor_turn(client);
    hf__loop_handle(&client->loop, batch);
    if (client->engine->ops->attend)
        client->engine->ops->attend(client->engine);
    hf__keeper_send(client);
}

/* With the monitor, without waiting: what is there? */
void hf__monitor_look(hf_client *client)
{
    struct hf__loop_batch batch = {.n = 0};

    (void)hf__loop_poll(&client->loop, &batch, 0);
    look(client, &batch);
    /* The kick may have been drained here that was for the driver. */
    if (client->polling && client->driver && client->driver->done)
        kick_driver(client);
}

/* @ease: a success shortens the pause by one part of so many. */
static void judge(struct hf__trial *trial, int64_t now_ns, bool worth, int ease)
{
    int64_t pause_ns =
        trial->pause_ns < PAUSE_MIN_NS ? PAUSE_MIN_NS : trial->pause_ns;

    if (worth) {
        trial->pause_ns = pause_ns - pause_ns / ease;
        return;
    }
    if (now_ns < trial->from_ns)
        return; /* several threads tried at the same time */
    trial->from_ns = now_ns + pause_ns;
    trial->pause_ns = 2 * pause_ns < PAUSE_MAX_NS ? 2 * pause_ns : PAUSE_MAX_NS;
}

/* Yield once after callers were served, and again while one of them has not
 * asked for its next lock. */
static bool may_yield(const hf_client *client)
{
    return client->yields == YIELDS_MAX ||
           (client->yields > 0 && client->expected > 0);
}

/* Let the callers that were just served send their next request. */
static void gather(hf_client *client)
{
    int64_t before_ns = client->now_ns;

    client->yields--;
    if (!client->engine->ops->flush || before_ns < client->gather.from_ns) {
        client->yields = 0;
        return;
    }
    depart(client, /* send= */ true);
    hf__world->yield();
    lock(client);
    hf__monitor_turn(client);
    judge(&client->gather, client->now_ns,
          client->now_ns - before_ns <= YIELD_NS, DRIVER_EASE);
}

/* Not while most callers wait for locks, and few answers are under way: those
 * who pass a lock on among themselves need the processors. */
static bool may_spin(const hf_client *client)
{
    return client->now_ns >= client->spin.from_ns &&
           2 * under_way(client) >= client->waiters_n;
}

/* Without the monitor. False: nothing came, and nobody wants us inside. Other
 * threads of ours run between two looks, and leave to us what they ask for. */
static bool spin_outside(hf_client *client, struct hf__loop_batch *batch,
                         int64_t until_ns, bool alone)
{
    batch->n = 0;
    for (int i = 0; i < SPIN_LOOKS && hf__now() < until_ns; i++) {
        if (!alone)
            hf__world->yield();
        if (atomic_load_explicit(&client->beckoned, memory_order_relaxed) ||
            hf__loop_poll(&client->loop, batch, 0) > 0)
            return true;
    }
    return false;
}

/* Look for answers without sleeping; false if there is none. */
static bool spin(hf_client *client)
{
    const struct hf__waiter *driver = client->driver;
    int64_t until_ns = client->now_ns + SPIN_NS;
    struct hf__loop_batch batch;
    bool again = true;

    batch.n = 0;
    while (again && batch.n == 0 && !driver->done) {
        bool alone = client->users == 1 &&
                     client->now_ns - client->crowded_ns > CROWD_NS;

        if (client->engine->ops->flush)
            client->engine->ops->flush(client->engine);
        atomic_store_explicit(&client->beckoned, false, memory_order_relaxed);
        depart(client, /* send= */ false);
        again = spin_outside(client, &batch, until_ns, alone);
        lock(client);
        if (batch.n > 0)
            look(client, &batch);
        else
            hf__monitor_turn(client);
    }
    return again;
}

static bool spins(hf_client *client)
{
    int64_t before_ns = client->now_ns;
    bool found;

    if (!may_spin(client))
        return false;
    client->expected = 0;
    client->yields = 0;
    found = spin(client);
    judge(&client->spin, client->now_ns,
          found && client->now_ns - before_ns <= YIELD_NS, DRIVER_EASE);
    client->listened_ns = client->now_ns;
    return found;
}

static void drive(hf_client *client, int64_t until_ns)
{
    struct hf__engine *engine = client->engine;
    struct hf__loop_batch batch;

    batch.n = 0;
    client->expected = 0;
    client->yields = 0;
    if (client->settings.drive == HF__DRIVE_APP &&
        until_ns > hf__loop_next_due(&client->loop))
        until_ns = hf__loop_next_due(&client->loop); /* no other clock here */
    client->polling = true;
    depart(client, /* send= */ true);
    if (engine->ops->wait)
        engine->ops->wait(engine, until_ns);
    else
        (void)hf__loop_poll(&client->loop, &batch, until_ns);
    lock(client);
    client->polling = false;
    look(client, &batch);
    client->listened_ns = client->now_ns;
}

/* Where a driver's spin does not pay, answers take long: to linger for them
 * would keep processors busy, one for each thread. */
static bool may_linger(const hf_client *client)
{
    return client->now_ns >= client->linger.from_ns &&
           client->now_ns >= client->spin.from_ns &&
           atomic_load_explicit(&client->lingers, memory_order_relaxed) <
               LINGERERS_MAX;
}

static void judge_linger(hf_client *client, bool worth)
{
    judge(&client->linger, client->now_ns, worth, LINGER_EASE);
    atomic_store_explicit(&client->dear, !worth, memory_order_relaxed);
}

/* Without the monitor: let others run until one of them has woken @waiter, who
 * needs no system call for that. False: it has to park, unless the bell is no
 * longer at *@heard. */
static bool linger(hf_client *client, struct hf__waiter *waiter,
                   int64_t until_ns, uint32_t *heard)
{
    uint32_t word;

    (void)atomic_fetch_add_explicit(&client->lingers, 1, memory_order_relaxed);
    do {
        hf__world->yield();
        word = atomic_load_explicit(&waiter->word, memory_order_acquire);
    } while (word != HF__WAITER_WOKEN && hf__now() < until_ns);
    (void)atomic_fetch_sub_explicit(&client->lingers, 1, memory_order_relaxed);
    if (word == HF__WAITER_WOKEN)
        return true;
    *heard = atomic_load_explicit(&client->bell, memory_order_acquire);
    return !atomic_compare_exchange_strong_explicit(
        &waiter->word, &word, HF__WAITER_PARKED, memory_order_acq_rel,
        memory_order_acquire);
}

static void park(hf_client *client, struct hf__waiter *waiter, uint32_t heard,
                 int64_t until_ns)
{
    if (waiter->call != 0)
        hf__world->park(&client->bell, heard, waiter->call, until_ns);
    else
        hf__world->park(&waiter->word, HF__WAITER_PARKED, HF_ANYBODY, until_ns);
}

static void rest(hf_client *client, struct hf__waiter *waiter, int64_t until_ns)
{
    uint32_t heard = atomic_load_explicit(&client->bell, memory_order_relaxed);
    bool lingers = may_linger(client);
    int64_t linger_ns = client->now_ns + LINGER_NS;
    bool woken = false;

    atomic_store_explicit(&waiter->word,
                          lingers ? HF__WAITER_LINGERS : HF__WAITER_PARKED,
                          memory_order_relaxed);
    client->crowded_ns = client->now_ns;
    beckon(client);
    depart(client, /* send= */ true);
    if (lingers)
        woken = linger(client, waiter,
                       linger_ns < until_ns ? linger_ns : until_ns, &heard);
    if (!woken)
        park(client, waiter, heard, until_ns);
    lock(client);
    hf__monitor_turn(client);
    if (lingers)
        judge_linger(client, woken && client->now_ns <= linger_ns);
}

static void take_role(hf_client *client, struct hf__waiter *waiter)
{
    client->driver = waiter;
    if (client->sentry) {
        client->sentry = false;
        client->engine->ops->sentry(client->engine, false);
    }
}

/* The role is assigned here, under the monitor, and then its owner is woken:
 * there are never waiters without a driver. The youngest gets it: of threads
 * that wait for one name the oldest is served next, and would be woken twice. */
static void hand_on(hf_client *client)
{
    client->driver = NULL;
    for (struct hf__list *link = client->waiters.prev; link != &client->waiters;
         link = link->prev) {
        struct hf__waiter *next =
            HF_CONTAINER_OF(link, struct hf__waiter, link);

        if (!next->done) {
            take_role(client, next);
            wake(client, next);
            return;
        }
    }
}

static void come_in(hf_client *client, struct hf__waiter *waiter)
{
    hf__list_append(&client->waiters, &waiter->link);
    client->waiters_n++;
    /* The lowest call that nobody has; 0 if 32 wait already. */
    waiter->call = ~client->calls & (client->calls + 1);
    client->calls |= waiter->call;
    if (client->expected > 0)
        client->expected--;
}

/* A served caller sends what others left to it with its next depart(). Inside
 * hf_dispatch() depart() does not send, so it is sent here. */
static void served_goes(hf_client *client, const struct hf__waiter *waiter)
{
    if (!waiter->served)
        return;
    client->served--;
    if (in_dispatch(client) && client->engine->ops->flush && !gathers(client))
        client->engine->ops->flush(client->engine);
}

static void go_out(hf_client *client, struct hf__waiter *waiter)
{
    client->calls &= ~waiter->call;
    hf__list_remove(&waiter->link);
    client->waiters_n--;
    hf__list_remove(&waiter->watch);
    served_goes(client, waiter);
    if (client->driver != waiter)
        return;
    if (client->expected > 0)
        client->expected++; /* it served them and itself */
    hand_on(client);
}

bool hf__monitor_wait(hf_client *client, struct hf__waiter *waiter,
                      int64_t until_ns)
{
    int cancel_state;

    if (waiter->done)
        return true;
    /* A cancelled thread would take the driver's role with it. */
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    come_in(client, waiter);
    while (!waiter->done) {
        if (client->now_ns >= until_ns) {
            hf__monitor_look(client); /* an answer in the socket wins */
            break;
        }
        if (!client->driver)
            take_role(client, waiter);
        if (client->driver != waiter)
            rest(client, waiter, until_ns);
        else if (spins(client))
            continue;
        else if (may_yield(client))
            gather(client);
        else
            drive(client, until_ns);
    }
    go_out(client, waiter);
    (void)pthread_setcancelstate(cancel_state, NULL);
    return waiter->done;
}

/* Sleep until done, without driving: another thread of ours does the work. */
void hf__monitor_sleep(hf_client *client, struct hf__waiter *waiter)
{
    int cancel_state;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    /* In a list of its own, so that wake() knows that it sleeps, and the
     * driver's role cannot be handed to it. */
    struct hf__list alone;

    hf__list_init(&alone);
    hf__list_append(&alone, &waiter->link);
    while (!waiter->done)
        rest(client, waiter, HF_NEVER);
    hf__list_remove(&waiter->link);
    served_goes(client, waiter);
    (void)pthread_setcancelstate(cancel_state, NULL);
}

void hf__monitor_unlock(hf_client *client)
{
    depart(client, !in_dispatch(client));
}

void hf__monitor_lock(hf_client *client)
{
    lock(client);
    if (!client->closed)
        hf__monitor_turn(client);
}

/* ---- timers and the background thread ----------------------------------- */

int hf__monitor_timer_user(hf_client *client)
{
    if (hf__loop_reserve(&client->loop, client->timer_users + 2) != 0)
        return HF_ENOMEM;
    client->timer_users++;
    return 0;
}

void hf__monitor_timer_user_gone(hf_client *client)
{
    client->timer_users--;
}

void hf__monitor_timer(hf_client *client, struct hf__timer *timer,
                       int64_t due_ns)
{
    hf__timer_start(&client->loop, timer, due_ns);
    if (due_ns >= client->background_until_ns)
        return;
    client->background_until_ns = due_ns;
    if (client->background && !client->background_awake)
        hf__world->ring(&client->alarm);
}

/* A thread that calls often reads answers often enough: the background thread
 * would wake for each of them in vain. A driver that began a moment ago may be
 * such a thread; when it leaves, settle() would have to ring for each call. */
static int64_t background_listens_from(const hf_client *client)
{
    int64_t quiet_ns = client->listened_ns + OWED_NS;

    if (!expects(client) || (client->driver && quiet_ns <= client->now_ns))
        return HF_NEVER;
    if (!client->driver && (client->asked + client->awaited > 0 ||
                            client->connection == HF__CONNECTION_CONNECTING))
        return client->now_ns;
    return quiet_ns;
}

/* Does the background thread poll the loop? Where drivers sleep inside the
 * engine, nobody else ever does. */
static bool background_listens(const hf_client *client)
{
    return client->background_drives || client->engine->ops->wait != NULL;
}

static void background_main(void *arg)
{
    hf_client *client = arg;

    (void)pthread_mutex_lock(&client->monitor);
    while (!client->background_stop) {
        struct hf__loop *loop = NULL;
        int64_t until_ns;

        client->background_awake = true;
        hf__monitor_turn(client);
        if (client->driver)
            client->background_drives = false;
        if (background_listens(client))
            hf__monitor_look(client);
        until_ns = background_listens_from(client);
        client->background_drives = until_ns <= client->now_ns;
        if (background_listens(client))
            loop = &client->loop;
        if (client->background_drives ||
            until_ns > hf__loop_next_due(&client->loop))
            until_ns = hf__loop_next_due(&client->loop);
        client->background_until_ns = until_ns;
        client->background_awake = false;
        depart(client, /* send= */ true);
        hf__world->sleep(&client->alarm, loop, until_ns);
        (void)pthread_mutex_lock(&client->monitor);
    }
    depart(client, /* send= */ true);
}

int hf__monitor_need_background(hf_client *client, hf_error *err)
{
    int rc;

    if (HF_LIKELY(client->background != NULL) ||
        client->settings.drive == HF__DRIVE_APP)
        return 0;
    rc = hf__alarm_init(&client->alarm);
    if (rc != 0)
        return hf__fail(err, rc,
                        "no descriptors left for a timer: raise the "
                        "limit (ulimit -n)");
    rc = hf__world->thread_start(&client->background, "holdfast",
                                 background_main, client);
    if (rc != 0) {
        hf__alarm_release(&client->alarm);
        return hf__fail(err, rc, "cannot start the thread that renews leases");
    }
    return 0;
}

void hf__monitor_stop_background(hf_client *client)
{
    if (!client->background)
        return;
    (void)pthread_mutex_lock(&client->monitor);
    client->background_stop = true;
    (void)pthread_mutex_unlock(&client->monitor);
    hf__world->ring(&client->alarm);
    hf__world->thread_join(client->background);
    /* The callback thread may still run, and would ring the alarm. */
    (void)pthread_mutex_lock(&client->monitor);
    client->background = NULL;
    hf__alarm_release(&client->alarm);
    (void)pthread_mutex_unlock(&client->monitor);
}
