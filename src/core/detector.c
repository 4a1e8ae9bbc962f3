/* SPDX-License-Identifier: MIT */
/*
 * detector.c - deadlocks that a client's requests are part of.
 *
 * Nobody pays for a wait of less than a second. The first request that has to
 * wait starts one timer of the client; when that fires and somebody waits for a
 * second, a thread begins to work, and sleeps again when nobody does. The
 * thread is a caller like any other: it asks the stores and blocks.
 *
 *   1.0 s   of a wait by an owner that holds something: post a notice on the
 *           board of each store where it waits or holds. Every member of a
 *           cycle does so
 *   1.1 s   look for a cycle through the wait; again after 0.4 s, in case that
 *           a member was slow to post, then after 0.8 s, … 30 s
 *   +0.25 s look again; the same cycle is a deadlock: it is reported, and with
 *           deadlock=break its youngest member gives way
 *
 * While a notice is posted the thread compares it with the requests ten times
 * a second, without I/O, so that it is corrected soon after a wait has ended,
 * and before a second look of somebody else.
 *
 * With drive=app there is no thread, and no detection.
 */
#include "core/detector.h"

#include "core/board.h"
#include "core/fork.h"
#include "core/gate.h"
#include "core/waits.h"

#define TICK_NS (100 * HF_MS)
#define FIRST_LOOK_NS (1100 * HF_MS)
#define FIRST_PAUSE_NS (400 * HF_MS)
#define LAST_PAUSE_NS (30 * HF_SECOND)
#define CONFIRM_NS (250 * HF_MS)
#define REPOST_NS (HF__BOARD_MS / 3 * HF_MS)
/* How soon a request is noticed that comes to a line where others wait. */
#define IDLE_TICK_NS (10 * HF_SECOND)

/* What is remembered of one long wait. */
struct known {
    uint64_t owner;
    uint64_t serial;
    int64_t look_ns;   /* when to look next */
    int64_t pause_ns;  /* and how long after that again */
    uint64_t reported; /* the cycle that was; 0: none */
    bool still_there;
};

struct hf__detector {
    hf_client *client;
    struct hf__timer timer;
    struct hf__thread *thread;
    _Atomic uint32_t bell; /* rings when a wait has become long */
    _Atomic bool stop;
    _Atomic bool unsupported; /* the store has no board */
};

/* The thread's own. */
struct work {
    struct hf__detector *detector;
    hf_client *client;
    struct hf__fork_client self;
    struct hf__waits waits;
    struct known known[HF__NOTICE_WAITS];
    uint32_t known_n;
    struct hf__buf notice; /* as posted; empty: none is */
    int64_t posted_ns;
    struct hf__board_place places[HF__WAITS_CLIENTS];
    uint32_t places_n;
    bool confirming;
    int64_t confirm_ns;
    struct hf__board_cycle cycles[HF__NOTICE_WAITS]; /* to be confirmed */
};

/* ---- what is known of each wait -------------------------------------------------- */

static struct known *find_known(struct work *work,
                                const struct hf__notice_wait *wait)
{
    for (uint32_t i = 0; i < work->known_n; i++) {
        if (work->known[i].owner == wait->owner &&
            work->known[i].serial == wait->serial)
            return &work->known[i];
    }
    return NULL;
}

static void learn(struct work *work, const struct hf__notice_wait *wait)
{
    struct known *known = find_known(work, wait);

    if (!known) {
        known = &work->known[work->known_n++];
        *known = (struct known){
            .owner = wait->owner,
            .serial = wait->serial,
            .look_ns = hf__instant_add((int64_t)wait->serial, FIRST_LOOK_NS),
            .pause_ns = FIRST_PAUSE_NS};
    }
    known->still_there = true;
}

/* Forget the waits that have ended, and learn the new ones. Returns whether
 * there are other ones than before. */
static bool update_known(struct work *work)
{
    uint32_t n = 0;
    uint32_t before = work->known_n;
    bool new_ones;

    for (uint32_t i = 0; i < before; i++) {
        work->known[i].still_there = false;
        for (uint32_t j = 0; j < work->waits.n; j++)
            work->known[i].still_there |=
                work->known[i].owner == work->waits.at[j].owner &&
                work->known[i].serial == work->waits.at[j].serial;
        if (work->known[i].still_there)
            work->known[n++] = work->known[i];
    }
    work->known_n = n;
    for (uint32_t j = 0; j < work->waits.n; j++)
        learn(work, &work->waits.at[j]);
    new_ones = work->known_n > n;
    return new_ones || n < before;
}

static bool is_look_due(const struct work *work, int64_t now_ns)
{
    for (uint32_t i = 0; i < work->known_n; i++) {
        if (work->known[i].look_ns <= now_ns)
            return true;
    }
    return false;
}

static void plan_next_look(struct known *known, int64_t now_ns)
{
    int64_t jitter_ns =
        (int64_t)hf__random_below((uint64_t)known->pause_ns / 10);

    known->look_ns = now_ns + known->pause_ns + jitter_ns;
    known->pause_ns = 2 * known->pause_ns < LAST_PAUSE_NS ? 2 * known->pause_ns
                                                          : LAST_PAUSE_NS;
}

/* ---- the notice ------------------------------------------------------------------- */

static void add_place(struct work *work, const struct hf__fork_client *of,
                      uint64_t store)
{
    for (uint32_t i = 0; i < work->places_n; i++) {
        if (work->places[i].store == store)
            return;
    }
    work->places[work->places_n++] =
        (struct hf__board_place){.of = *of, .store = store};
}

/* The number of our own store. */
static uint64_t own_store(struct work *work)
{
    uint64_t store = 0;
    int rc = 0;

    if (hf__monitor_enter(work->client, /* err= */ NULL) == 0) {
        store = work->client->store;
        hf__monitor_leave(work->client);
    }
    if (store == 0)
        store = hf__board_post(&work->self, work->client->identity_hex,
                               /* text= */ NULL, &rc);
    if (rc == HF_EUNSUPPORTED)
        atomic_store(&work->detector->unsupported, true);
    return store;
}

/* Find out what the owners of the long waits hold, and where. */
static void gather(struct work *work)
{
    struct hf__waits *waits = &work->waits;
    uint64_t store = own_store(work);
    int rc;

    work->places_n = 0;
    if (store == 0) {
        waits->n = 0;
        return;
    }
    add_place(work, &work->self, store);
    hf__waits_gather(waits);
    for (uint32_t i = 0; i < waits->clients_n; i++) {
        if (!waits->used[i])
            continue;
        if (waits->stores[i] == 0)
            waits->stores[i] =
                hf__board_post(&waits->clients[i], work->client->identity_hex,
                               /* text= */ NULL, &rc);
        if (waits->stores[i] != 0)
            add_place(work, &waits->clients[i], waits->stores[i]);
    }
    for (uint32_t i = 0; i < waits->n; i++)
        waits->at[i].store = store;
    hf__waits_settle(waits);
}

static void post_everywhere(struct work *work, const char *text)
{
    int rc; /* what could not be posted is not seen: it is posted again */

    for (uint32_t i = 0; i < work->places_n; i++)
        (void)hf__board_post(&work->places[i].of, work->client->identity_hex,
                             text, &rc);
}

static void take_down(struct work *work)
{
    if (work->notice.len > 0)
        post_everywhere(work, /* text= */ NULL);
    hf__buf_release(&work->notice);
}

/* Post what waits->at is now, if that is news or has to be said again. */
static void post(struct work *work, int64_t now_ns)
{
    const struct hf__waits *waits = &work->waits;
    struct hf__buf notice = {0};

    hf__notice_write(waits->at, waits->n, &notice);
    while (notice.len > HF__NOTICE_MAX && waits->n > 1) {
        work->waits.n--; /* the rest of them waits without */
        notice.len = 0;
        hf__notice_write(waits->at, waits->n, &notice);
    }
    if (hf__buf_failed(&notice) || notice.len == 0 ||
        notice.len > HF__NOTICE_MAX) {
        hf__buf_release(&notice);
        take_down(work);
        return;
    }
    if (strcmp(hf__buf_text(&notice), hf__buf_text(&work->notice)) != 0 ||
        now_ns - work->posted_ns >= REPOST_NS) {
        post_everywhere(work, notice.text);
        work->posted_ns = now_ns;
    }
    hf__buf_release(&work->notice);
    work->notice = notice;
}

/* ---- looking ---------------------------------------------------------------------- */

static uint64_t name_of(const struct hf__board_cycle *cycle)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < cycle->cycle_n; i++)
        sum += cycle->at[i].serial ^ cycle->at[i].owner * 0x9e3779b97f4a7c15;
    return sum | 1;
}

/* The request that is the victim gets its error, if it still waits. */
static void give_way(hf_client *client, const struct hf__notice_wait *wait,
                     const char *text)
{
    struct hf_request *request = hf__waits_find(client, wait);
    hf_error err;

    if (!request)
        return;
    (void)hf__fail(&err, HF_EDEADLK, "deadlock: %s", text);
    hf__gate_refuse(request, &err);
}

/* A deadlock through our member @number is certain. */
static void conclude(struct work *work, const struct hf__board_look *look,
                     uint32_t number, const struct hf__board_cycle *cycle)
{
    const struct hf__notice_wait *wait = &look->members[number].wait;
    struct known *known = find_known(work, wait);
    hf_client *client = work->client;
    bool victim = hf__board_look_victim(look, cycle) == (int)number;
    struct hf__buf text = {0};

    hf__board_look_tell(look, cycle, &text);
    if (hf__monitor_enter(client, /* err= */ NULL) == 0) {
        if (known && known->reported != name_of(cycle)) {
            known->reported = name_of(cycle);
            client->metrics.deadlocks++;
            hf__monitor_log(client, HF_LOG_WARNING, "deadlock: %s%s",
                            hf__buf_text(&text),
                            victim ? "; this client gives way" : "");
        }
        if (victim)
            give_way(client, wait, hf__buf_text(&text));
        hf__monitor_leave(client);
    }
    hf__buf_release(&text);
}

/* Our own members come first in @look. */
static void note_cycles(struct work *work, const struct hf__board_look *look,
                        uint32_t n, int64_t now_ns)
{
    work->confirming = false;
    for (uint32_t i = 0; i < n; i++) {
        work->cycles[i].cycle_n = 0;
        if (hf__board_look_cycle(look, i, &work->cycles[i]))
            work->confirming = true;
    }
    work->confirm_ns = now_ns + CONFIRM_NS;
}

static const struct hf__board_cycle *cycle_of(
    const struct work *work, const struct hf__notice_wait *wait)
{
    for (uint32_t i = 0; i < HF__NOTICE_WAITS; i++) {
        const struct hf__board_cycle *cycle = &work->cycles[i];

        if (cycle->cycle_n > 0 && cycle->at[0].owner == wait->owner &&
            cycle->at[0].serial == wait->serial)
            return cycle;
    }
    return NULL;
}

static void confirm_cycles(struct work *work, const struct hf__board_look *look,
                           uint32_t n)
{
    work->confirming = false;
    for (uint32_t i = 0; i < n; i++) {
        const struct hf__board_cycle *cycle =
            cycle_of(work, &look->members[i].wait);

        if (cycle && hf__board_look_confirms(look, cycle))
            conclude(work, look, i, cycle);
    }
}

static void look(struct work *work, int64_t now_ns)
{
    struct hf__board_look *look =
        hf__board_look_new(work->places, work->places_n);
    uint32_t n = work->waits.n;
    int rc;

    if (!look) {
        work->confirming = false;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        hf__board_look_add(look, &work->waits.at[i]);
    rc = hf__board_look_read(look, n, /* err= */ NULL);
    if (rc != 0)
        work->confirming = false;
    else if (work->confirming)
        confirm_cycles(work, look, n);
    else
        note_cycles(work, look, n, now_ns);
    hf__board_look_free(look);
}

/* ---- the thread ------------------------------------------------------------------- */

/* The waits as they are now. False: the client is being closed. */
static bool collect(struct work *work)
{
    hf_client *client = work->client;

    if (hf__monitor_enter(client, /* err= */ NULL) != 0)
        return false;
    hf__waits_collect(client, &work->waits);
    hf__monitor_leave(client);
    return true;
}

static int64_t next_turn(const struct work *work, int64_t now_ns)
{
    int64_t next_ns = HF_NEVER;

    for (uint32_t i = 0; i < work->known_n; i++) {
        if (work->known[i].look_ns < next_ns)
            next_ns = work->known[i].look_ns;
    }
    if (work->notice.len > 0 && next_ns > now_ns + TICK_NS)
        next_ns = now_ns + TICK_NS;
    if (work->confirming && next_ns > work->confirm_ns)
        next_ns = work->confirm_ns;
    return next_ns;
}

static void plan(struct work *work, int64_t now_ns)
{
    for (uint32_t i = 0; i < work->known_n; i++) {
        if (work->known[i].look_ns <= now_ns)
            plan_next_look(&work->known[i], now_ns);
    }
}

/* Do what is due. Returns when the next thing is. */
static int64_t turn(struct work *work)
{
    int64_t now_ns = hf__now();
    bool changed;
    bool looks;

    if (!collect(work))
        return HF_NEVER;
    changed = update_known(work);
    if (work->known_n == 0) {
        work->confirming = false;
        take_down(work);
        return HF_NEVER;
    }
    looks = work->confirming ? now_ns >= work->confirm_ns
                             : is_look_due(work, now_ns);
    if (changed || looks ||
        (work->notice.len > 0 && now_ns - work->posted_ns >= REPOST_NS)) {
        gather(work);
        post(work, now_ns);
    }
    if (looks && work->waits.n > 0)
        look(work, now_ns);
    else if (looks)
        work->confirming = false;
    plan(work, now_ns);
    return next_turn(work, now_ns);
}

static struct work *work_new(struct hf__detector *detector)
{
    struct work *work = hf__calloc(1, sizeof(*work));
    const struct hf__engine_host *host = &detector->client->host;

    if (!work)
        return NULL;
    work->detector = detector;
    work->client = detector->client;
    work->self.client = detector->client;
    memcpy(&work->self.identity, host->identity, sizeof(work->self.identity));
    return work;
}

static void detector_main(void *arg)
{
    struct hf__detector *detector = arg;
    struct work *work = work_new(detector);

    while (work && !atomic_load(&detector->stop)) {
        uint32_t heard = atomic_load(&detector->bell);
        int64_t until_ns = turn(work);

        if (!atomic_load(&detector->stop))
            hf__world->park(&detector->bell, heard, HF_ANYBODY, until_ns);
    }
    if (work)
        take_down(work);
    hf__free(work);
}

static void ring(struct hf__detector *detector)
{
    atomic_fetch_add(&detector->bell, 1);
    hf__world->unpark(&detector->bell, HF_ANYBODY);
}

/* ---- the timer -------------------------------------------------------------------- */

static void start_or_ring(struct hf__detector *detector)
{
    if (detector->thread)
        ring(detector);
    else
        (void)hf__world->thread_start(&detector->thread, "holdfast-waits",
                                      detector_main, detector);
}

/* Is there anything that the owner of a request might hold? */
static bool may_hold(const hf_client *client)
{
    struct hf__fork_client found[2];

    return client->metrics.held > 0 || hf__fork_clients(found, 2) > 1;
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__detector *detector =
        HF_CONTAINER_OF(timer, struct hf__detector, timer);
    hf_client *client = detector->client;
    bool is_long;
    int64_t next_ns = hf__waits_next(client, &is_long);
    bool holds = may_hold(client);

    if (atomic_load(&detector->unsupported) || atomic_load(&detector->stop) ||
        client->closing)
        return;
    if (is_long && holds)
        start_or_ring(detector);
    if (next_ns == HF_NEVER && !is_long)
        return;
    /* Requests that come to a line where others wait do not start it. */
    if (next_ns > client->now_ns + IDLE_TICK_NS)
        next_ns = client->now_ns + (holds ? HF_SECOND : IDLE_TICK_NS);
    if (next_ns < client->now_ns + TICK_NS)
        next_ns = client->now_ns + TICK_NS;
    hf__monitor_timer(client, timer, next_ns);
}

static struct hf__detector *detector_new(hf_client *client)
{
    struct hf__detector *detector = hf__calloc(1, sizeof(*detector));

    if (!detector)
        return NULL;
    if (hf__monitor_timer_user(client) != 0) {
        hf__free(detector);
        return NULL;
    }
    detector->client = client;
    detector->timer.fire = timer_fire;
    return detector;
}

void hf__detector_expect(hf_client *client)
{
    struct hf__detector *detector = client->detector;

    if (detector &&
        (hf__timer_running(&detector->timer) ||
         atomic_load(&detector->unsupported) || atomic_load(&detector->stop)))
        return;
    if (client->settings.deadlock == HF__DEADLOCK_OFF ||
        client->settings.drive == HF__DRIVE_APP || client->closing ||
        !client->engine->ops->board_post)
        return;
    if (!detector)
        detector = client->detector = detector_new(client);
    if (detector)
        hf__monitor_timer(client, &detector->timer,
                          client->now_ns + HF__WAITS_LONG_NS);
}

/* ---- the end ---------------------------------------------------------------------- */

void hf__detector_stop(hf_client *client)
{
    struct hf__detector *detector;
    struct hf__thread *thread = NULL;

    if (hf__monitor_enter_any(client, /* err= */ NULL) != 0)
        return;
    detector = client->detector;
    if (detector) {
        atomic_store(&detector->stop, true);
        hf__timer_stop(&client->loop, &detector->timer);
        thread = HF_STEAL(detector->thread);
    }
    hf__monitor_leave(client);
    if (!thread)
        return;
    ring(detector);
    hf__world->thread_join(thread);
}

void hf__detector_free(hf_client *client)
{
    struct hf__detector *detector = HF_STEAL(client->detector);

    if (!detector)
        return;
    hf__timer_stop(&client->loop, &detector->timer);
    hf__monitor_timer_user_gone(client);
    hf__free(detector);
}
