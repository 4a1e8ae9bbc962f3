/* SPDX-License-Identifier: MIT */
/*
 * work.c - the programs that use locks in the simulation.
 *
 * Three machines run one program each: a client and a few threads that draw
 * from a hat what to do next. Every call of the public interface that has to
 * do with holding is there; what they may answer is checked here, what they
 * mean in check.c.
 *
 * Locks 0 to 2 are exclusive or shared, lock 3 has two slots. Lock 4 guards a
 * store of things: who adds one signals, who finds none waits.
 */
#include "work.h"

#include <stdio.h>

#include "check.h"
#include "core/client.h"
#include "server.h"
#include "world.h"

enum { WORKERS_MAX = 4, SLOT_LOCK = 3, SLOTS = 2, LOCKS = 4, STORE_LOCK = 4 };
/* A call may be late by so much, beyond what it was told to wait. */
#define LATE_NS (100 * HF_MS)
#define IO_TIMEOUT_MS 2000
/* How long somebody waits for a thing, and how long one may lie there, once all
 * faults have ended. */
enum { THING_WAIT_MS = 30000 };
#define THING_LIES_NS (12 * HF_SECOND)
#define QUIET_FROM_NS (12 * HF_SECOND)

struct program {
    int number;
    struct sim_machine *machine;
    hf_client *client;
    int workers;
    bool beats;       /* renew=beat: holders give signs of life, or not */
    bool dispatches;  /* drive=app: a thread calls hf_dispatch() */
    bool closing;     /* nobody may begin a call any more */
    bool unconfirmed; /* shutdown left something behind */
    bool done;
};

static struct program programs[WORK_PROGRAMS];
static bool finishing;
static uint64_t next_owner;
static const char *const lock_names[LOCKS + 1] = {"lock-0", "lock-1", "lock-2",
                                                  "lock-3", "lock-4"};
static int things;       /* in the store */
static int64_t lie_ns;   /* since then there was one, always */
static bool only_things; /* most of the work is about them */

/* One thing that is asked for, and all that is to be known about it. */
struct wish {
    struct program *program;
    hf_opts opts;
    char owner[16];
    struct claim what; /* what will be claimed */
    uint64_t seen[CLAIM_NAMES];
    int64_t asked_ns;
    struct claim *claim; /* NULL: not held */
    hf_hold *hold;
    hf_request *request;
    bool expect_hold; /* the callback keeps the hold for the worker */
    int outcomes;
    bool freed;
};

/* ---- wishes ------------------------------------------------------------- */

static void on_event(hf_hold *hold, int state, void *ctx)
{
    struct wish *wish = ctx;

    (void)hold;
    check_teller_busy(wish->program->machine, true);
    if (state == HF_LOST && wish->claim)
        wish->claim->told = true;
    else if (state == HF_LOST)
        wish->what.told = true; /* before the acquire could return */
    check_teller_busy(wish->program->machine, false);
}

static int64_t draw_wait(void)
{
    static const int64_t waits[] = {0,   0,    1,          20,
                                    500, 5000, HF_FOREVER, HF_FOREVER};

    return waits[sim_below(HF_COUNT_OF(waits))];
}

static int64_t draw_ttl(void)
{
    static const int64_t ttls[] = {300, 300, 1000, 3000, 60000};

    return ttls[sim_below(HF_COUNT_OF(ttls))];
}

static int draw_mode(int name)
{
    if (name == SLOT_LOCK)
        return HF_SLOT;
    return name < 2 && sim_chance(300) ? HF_SHARED : HF_EXCLUSIVE;
}

static void wish_init(struct wish *wish, struct program *program, int name)
{
    memset(wish, 0, sizeof(*wish));
    wish->program = program;
    hf_opts_init(&wish->opts, sizeof(wish->opts));
    wish->opts.mode = draw_mode(name);
    wish->opts.slots = wish->opts.mode == HF_SLOT ? SLOTS : 0;
    wish->opts.wait_ms = draw_wait();
    wish->opts.ttl_ms = draw_ttl();
    if (sim_chance(50))
        wish->opts.flags |= HF_NO_RENEW;
    if (sim_chance(50))
        wish->opts.max_hold_ms = 1 + (int64_t)sim_below(2000);
    if (sim_chance(500)) {
        wish->opts.on_event = on_event;
        wish->opts.ctx = wish;
        wish->what.wants_told = true;
    }
    wish->what.machine = program->machine;
    wish->what.owner = ++next_owner;
    wish->what.mode = wish->opts.mode;
    wish->what.slots = wish->opts.slots;
    wish->what.n = 1;
    wish->what.names[0] = name;
    (void)snprintf(wish->owner, sizeof(wish->owner), "o%llu",
                   (unsigned long long)next_owner);
    wish->opts.owner = wish->owner;
}

static void tell(const struct wish *wish, const char *what)
{
    if (sim_verbose)
        printf("# %.6f s machine %d %s: %s lock %d mode %d wait %lld ms\n",
               (double)sim_now() * 1e-9, wish->program->number, wish->owner,
               what, wish->what.names[0], wish->what.mode,
               (long long)wish->opts.wait_ms);
}

static void ask(struct wish *wish)
{
    tell(wish, wish->what.n > 1 ? "asks for many" : "asks");
    wish->asked_ns = sim_now();
    for (int i = 0; i < wish->what.n; i++)
        wish->seen[i] = check_token_seen(wish->what.names[i], wish->what.mode);
}

/* True if the machine ran all the time since @since_ns. */
static bool ran_since(const struct program *program, int64_t since_ns)
{
    return !program->machine->frozen && program->machine->thawed_ns < since_ns;
}

/* Is the lease at the service still running, for all of them? Then the claim
 * has ended only just now. */
static bool all_at_service(const struct wish *wish, const hf_hold *hold)
{
    int64_t granted_ns;
    bool first;

    for (int i = 0; i < wish->what.n; i++)
        if (!sim_server_holds(wish->what.names[i], hf_token_at(hold, (size_t)i),
                              &granted_ns, &first))
            return false;
    return true;
}

static void got(struct wish *wish, hf_hold *hold)
{
    /* A callback may come late, behind one that takes its time. */
    if (hf_check(hold) == HF_LOST && !wish->request &&
        !all_at_service(wish, hold) && ran_since(wish->program, wish->asked_ns))
        check_fail("machine %d was granted a lock that it had lost",
                   wish->program->number);
    wish->hold = hold;
    tell(wish, "has");
    wish->claim = check_claim(hold, &wish->what, wish->seen, wish->asked_ns);
}

static void check_in_time(const struct wish *wish, const char *what)
{
    int64_t wait_ms = wish->opts.wait_ms;
    int64_t allowed_ns;

    if (wait_ms == HF_FOREVER || !ran_since(wish->program, wish->asked_ns))
        return;
    allowed_ns = (wait_ms == 0 ? IO_TIMEOUT_MS : wait_ms) * HF_MS;
    allowed_ns += allowed_ns / 50 + LATE_NS;
    if (sim_now() - wish->asked_ns > allowed_ns)
        check_fail("%s with a wait of %lld ms returned after %lld ms", what,
                   (long long)wait_ms,
                   (long long)((sim_now() - wish->asked_ns) / HF_MS));
}

static void check_refusal(const struct wish *wish, const char *what, int rc,
                          const hf_error *err)
{
    bool allowed = false;

    switch (rc) {
    case HF_EBUSY:
        allowed = wish->opts.wait_ms == 0;
        break;
    case HF_ETIMEOUT:
        allowed = wish->opts.wait_ms > 0;
        break;
    case HF_EUNAVAILABLE:
    case HF_EUNKNOWN:
        allowed = wish->opts.wait_ms != HF_FOREVER;
        break;
    case HF_ECLOSED:
        allowed = wish->program->closing;
        break;
    case HF_ECANCELED:
        allowed = wish->request != NULL;
        break;
    default:
        break;
    }
    if (!allowed)
        check_fail("%s with a wait of %lld ms says %s: %s", what,
                   (long long)wish->opts.wait_ms, hf_errname(rc), err->text);
}

/* ---- holding ------------------------------------------------------------ */

static void let_go(struct wish *wish)
{
    bool lost = hf_check(wish->hold) == HF_LOST;
    bool released = hf_check(wish->hold) == HF_RELEASED;
    hf_error err;
    int rc;

    check_unclaim(wish->claim);
    wish->claim = NULL;
    tell(wish, "releases");
    rc = hf_release(wish->hold, &err);
    wish->hold = NULL;
    if (lost && rc != HF_ELOST)
        check_fail("a hold was LOST, and its release says %s", hf_errname(rc));
    if (rc != 0 && rc != HF_ELOST && rc != HF_EUNKNOWN && !released)
        check_fail("release says %s: %s", hf_errname(rc), err.text);
}

static void reenter(struct wish *wish)
{
    struct wish again = *wish;
    hf_error err;
    hf_hold *hold;
    int rc;

    again.opts.on_event = NULL;
    again.what.wants_told = false;
    ask(&again);
    rc = hf_acquire(wish->program->client, lock_names[wish->what.names[0]],
                    &again.opts, &hold, &err);
    if (rc == 0) {
        got(&again, hold);
        sim_sleep((int64_t)sim_below(5 * HF_MS));
        let_go(&again);
    } else if (rc != HF_EDEADLK) {
        /* It may have been lost meanwhile, and be somebody else's now. */
        check_refusal(&again, "re-entry", rc, &err);
    }
}

/* Without a sign of life nothing is renewed; with one often enough, nothing is
 * lost while the network is well. */
static void give_signs(struct wish *wish)
{
    int64_t ttl_ns = wish->opts.ttl_ms * HF_MS;
    bool neglect = sim_chance(500);
    bool kept = check_promptness && wish->opts.max_hold_ms == 0 &&
                !(wish->opts.flags & HF_NO_RENEW) && !neglect;

    if (wish->opts.ttl_ms > 1000)
        return;
    for (int i = 0; i < 10 && !wish->program->closing; i++) {
        sim_sleep(ttl_ns / 4);
        if (!neglect)
            (void)hf_beat(wish->hold);
    }
    if (wish->program->closing || check_is_broken(wish->claim))
        return;
    if (neglect && hf_check(wish->hold) <= HF_JEOPARDY)
        check_fail("machine %d holds lock %d without a sign of life",
                   wish->program->number, wish->what.names[0]);
    if (kept && hf_check(wish->hold) > HF_JEOPARDY)
        check_fail("machine %d lost lock %d in spite of signs of life",
                   wish->program->number, wish->what.names[0]);
}

static void hold_for_a_while(struct wish *wish)
{
    int64_t most_ns = wish->opts.ttl_ms * HF_MS * 3 / 2;
    int turns = (int)sim_below(3);
    hf_error err;

    if (most_ns > HF_SECOND)
        most_ns = HF_SECOND;
    if (wish->program->beats && sim_chance(500))
        give_signs(wish);
    for (int i = 0; i < turns && !wish->program->closing; i++) {
        uint64_t dice = sim_below(10);

        if (dice == 0) {
            (void)hf_verify(wish->hold, &err);
        } else if (dice == 1 && wish->what.n == 1) {
            reenter(wish);
        } else if (dice == 2 && wish->what.mode == HF_EXCLUSIVE &&
                   wish->what.n == 1) {
            wish->claim->mode = HF_SHARED; /* before: others may be quick */
            (void)hf_downgrade(wish->hold, &err);
        } else if (dice < 6) {
            sim_sleep((int64_t)sim_below((uint64_t)most_ns));
        } else {
            sim_sleep((int64_t)sim_below(2 * HF_MS));
        }
    }
}

/* ---- things to do ------------------------------------------------------- */

static void do_block(struct program *program)
{
    struct wish wish;
    hf_hold *hold;
    hf_error err;
    int rc;

    wish_init(&wish, program, (int)sim_below(LOCKS));
    ask(&wish);
    rc = hf_acquire(program->client, lock_names[wish.what.names[0]], &wish.opts,
                    &hold, &err);
    check_in_time(&wish, "acquire");
    if (rc != 0) {
        check_refusal(&wish, "acquire", rc, &err);
        return;
    }
    got(&wish, hold);
    hold_for_a_while(&wish);
    let_go(&wish);
}

static void do_many(struct program *program)
{
    static const char *const names[CLAIM_NAMES] = {"lock-2", "lock-0",
                                                   "lock-1"};
    static const int numbers[CLAIM_NAMES] = {2, 0, 1};
    struct wish wish;
    hf_hold *hold;
    hf_error err;
    int rc;

    wish_init(&wish, program, 2);
    wish.what.n = 2 + (int)sim_below(2);
    for (int i = 0; i < wish.what.n && i < CLAIM_NAMES; i++)
        wish.what.names[i] = numbers[i];
    ask(&wish);
    rc = hf_acquire_many(program->client, names, (size_t)wish.what.n,
                         &wish.opts, &hold, &err);
    if (rc != 0) {
        check_refusal(&wish, "acquire_many", rc, &err);
        return;
    }
    got(&wish, hold);
    hold_for_a_while(&wish);
    let_go(&wish);
}

static void on_done(int rc, hf_hold *hold, const hf_error *err, void *ctx)
{
    struct wish *wish = ctx;

    check_teller_busy(wish->program->machine, true);
    if (wish->freed)
        check_fail("a callback came after hf_request_free()");
    if (++wish->outcomes > 1)
        check_fail("a request had %d outcomes", wish->outcomes);
    if (rc == 0) {
        got(wish, hold);
        if (!wish->expect_hold)
            let_go(wish); /* inside the callback */
    } else {
        check_refusal(wish, "acquire_start", rc, err);
    }
    check_teller_busy(wish->program->machine, false);
    sim_wake(wish);
}

static int start(struct wish *wish, hf_done_cb *done, hf_error *err)
{
    hf_request *request;
    int rc;

    ask(wish);
    rc =
        hf_acquire_start(wish->program->client, lock_names[wish->what.names[0]],
                         &wish->opts, done, wish, &request, err);
    if (rc == 0)
        wish->request = request;
    else if (rc != HF_ECLOSED || !wish->program->closing)
        check_fail("acquire_start says %s: %s", hf_errname(rc), err->text);
    return rc;
}

static void do_callback(struct program *program)
{
    struct wish wish;
    bool cancel = sim_chance(400);
    bool early = sim_chance(200);
    hf_error err;

    wish_init(&wish, program, (int)sim_below(LOCKS));
    if (cancel && sim_chance(500))
        wish.opts.wait_ms = HF_FOREVER;
    wish.expect_hold = sim_chance(600);
    if (start(&wish, on_done, &err) != 0)
        return;
    sim_sleep((int64_t)sim_below(cancel ? 20 * HF_MS : 2 * HF_MS));
    if (cancel) {
        tell(&wish, "cancels");
        hf_cancel(wish.request);
    }
    while (!early && wish.outcomes == 0)
        sim_wait_for(&wish, HF_NEVER);
    hf_request_free(wish.request);
    wish.freed = true;
    if (wish.hold) {
        hold_for_a_while(&wish);
        let_go(&wish);
    }
}

static void do_request(struct program *program)
{
    struct wish wish;
    hf_hold *hold;
    hf_error err;
    int rc = HF_ETIMEOUT;

    wish_init(&wish, program, (int)sim_below(LOCKS));
    if (start(&wish, NULL, &err) != 0)
        return;
    while (hf_request_pending(wish.request)) {
        rc = hf_request_wait(wish.request, (int64_t)sim_below(50), &hold, &err);
        if (rc != HF_ETIMEOUT)
            break;
        if (sim_chance(200))
            hf_cancel(wish.request);
    }
    if (rc == HF_ETIMEOUT) /* of the wait, or of the request? */
        rc = hf_request_wait(wish.request, 0, &hold, &err);
    if (rc == 0)
        got(&wish, hold);
    else
        check_refusal(&wish, "request_wait", rc, &err);
    hf_request_free(wish.request);
    if (wish.hold) {
        hold_for_a_while(&wish);
        let_go(&wish);
    }
}

/* ---- elections ---------------------------------------------------------- */

static void on_change(hf_hold *hold, int state, void *ctx)
{
    struct wish *wish = ctx;

    check_teller_busy(wish->program->machine, true);
    if (state == HF_HELD && !wish->claim && !wish->freed) {
        got(wish, hold);
    } else if (state == HF_LOST && wish->claim) {
        check_unclaim(wish->claim);
        wish->claim = NULL;
        ask(wish);
    }
    check_teller_busy(wish->program->machine, false);
}

static void do_elect(struct program *program)
{
    struct wish wish;
    hf_election *election;
    hf_error err;
    int rc;

    wish_init(&wish, program, 2);
    wish.opts.on_event = NULL;
    wish.opts.max_hold_ms = 0;
    wish.opts.flags = 0;
    wish.what.wants_told = false;
    ask(&wish);
    rc = hf_elect_start(program->client, lock_names[2], &wish.opts, on_change,
                        &wish, &election, &err);
    if (rc != 0) {
        if (rc != HF_ECLOSED || !program->closing)
            check_fail("elect_start says %s: %s", hf_errname(rc), err.text);
        return;
    }
    sim_sleep((int64_t)sim_below(300 * HF_MS));
    if (wish.claim)
        check_unclaim(wish.claim);
    wish.claim = NULL;
    wish.freed = true; /* no new claim from now on */
    rc = hf_elect_stop(election, &err);
    if (rc != 0 && rc != HF_ELOST && rc != HF_EUNKNOWN && !program->closing)
        check_fail("elect_stop says %s: %s", hf_errname(rc), err.text);
}

/* ---- breaking ----------------------------------------------------------- */

/* Take a lock away from whoever holds it. */
static void do_break(struct program *program)
{
    int name = (int)sim_below(LOCKS);
    uint64_t token = check_draw_token(name);
    int64_t granted_ns;
    bool first;
    hf_error err;
    int rc;

    if (token == 0)
        return;
    rc = hf_break(program->client, lock_names[name], token, NULL, &err);
    if (rc == 0 && sim_server_holds(name, token, &granted_ns, &first))
        check_fail("token %llu of lock %d was broken, and is held",
                   (unsigned long long)token, name);
    if (rc != 0 && rc != HF_ENOTFOUND && rc != HF_ECONFLICT &&
        rc != HF_EUNKNOWN && rc != HF_EUNAVAILABLE && rc != HF_ETIMEOUT &&
        !program->closing)
        check_fail("break says %s: %s", hf_errname(rc), err.text);
}

/* ---- conditions --------------------------------------------------------- */

static bool wish_for_store(struct wish *wish, struct program *program)
{
    hf_hold *hold;
    hf_error err;
    int rc;

    wish_init(wish, program, STORE_LOCK);
    wish->opts.wait_ms = HF_FOREVER;
    wish->opts.ttl_ms = sim_chance(500) ? 500 : 3000;
    wish->opts.flags = 0;
    wish->opts.max_hold_ms = 0;
    wish->opts.on_event = NULL;
    wish->what.wants_told = false;
    ask(wish);
    rc = hf_acquire(program->client, lock_names[STORE_LOCK], &wish->opts, &hold,
                    &err);
    if (rc != 0) {
        check_refusal(wish, "acquire", rc, &err);
        return false;
    }
    got(wish, hold);
    return true;
}

static bool believes(const struct wish *wish)
{
    return hf_check(wish->hold) <= HF_JEOPARDY;
}

static void add_thing(void)
{
    if (things++ == 0)
        lie_ns = sim_now();
}

static void do_produce(struct program *program)
{
    struct wish wish;
    hf_error err;
    int rc;

    if (!wish_for_store(&wish, program))
        return;
    if (believes(&wish)) {
        add_thing();
        rc = sim_chance(800) ? hf_cond_signal(wish.hold, "cond-0", &err)
                             : hf_cond_broadcast(wish.hold, "cond-0", &err);
        if (rc < 0 && rc != HF_ELOST && rc != HF_EUNKNOWN && !program->closing)
            check_fail("signal says %s: %s", hf_errname(rc), err.text);
        if (rc < 0 && things > 0)
            things--; /* who has lost the lock takes it back */
    }
    let_go(&wish);
}

/* Nobody signalled. Was there a thing all the time? */
static void check_forgotten(const struct program *program)
{
    int64_t since_ns = lie_ns > QUIET_FROM_NS ? lie_ns : QUIET_FROM_NS;

    if (things > 0 && sim_now() - since_ns > THING_LIES_NS)
        check_fail("machine %d waits for a thing, and for %lld ms there has "
                   "been one: a wake-up is lost",
                   program->number, (long long)((sim_now() - lie_ns) / HF_MS));
}

static int wait_for_thing(struct wish *wish, hf_error *err)
{
    hf_request *request;
    int rc;

    if (sim_chance(500))
        return hf_cond_wait(wish->hold, "cond-0", THING_WAIT_MS, err);
    rc = hf_cond_wait_start(wish->hold, "cond-0", THING_WAIT_MS, NULL, NULL,
                            &request, err);
    if (rc != 0)
        return rc;
    if (sim_chance(500)) {
        sim_sleep((int64_t)sim_below(sim_chance(500) ? 20 * HF_MS : HF_SECOND));
        hf_cancel(request);
    }
    rc = hf_request_wait(request, HF_FOREVER, NULL, err);
    hf_request_free(request);
    wish->asked_ns = sim_now(); /* nobody listened before */
    return rc;
}

/* Give the lock up and wait; false: it is not had again. */
static bool wait_once(struct wish *wish)
{
    int state;
    hf_error err;
    int rc;

    check_unclaim(wish->claim);
    wish->claim = NULL;
    ask(wish);
    tell(wish, "waits on a condition");
    rc = wait_for_thing(wish, &err);
    state = hf_check(wish->hold);
    if (rc != 0 && rc != HF_ETIMEOUT) {
        if (rc != HF_ELOST && rc != HF_ECANCELED && rc != HF_EUNAVAILABLE &&
            !wish->program->closing)
            check_fail("a wait says %s: %s", hf_errname(rc), err.text);
        if (state == HF_WAITING || state == HF_HELD)
            check_fail("a wait that says %s leaves the hold in state %d",
                       hf_errname(rc), state);
        (void)hf_release(wish->hold, NULL);
        return false;
    }
    if (state == HF_WAITING)
        check_fail("a wait that has ended waits");
    if (rc == HF_ETIMEOUT)
        check_forgotten(wish->program);
    wish->claim =
        check_claim(wish->hold, &wish->what, wish->seen, wish->asked_ns);
    return true;
}

static void do_consume(struct program *program)
{
    struct wish wish;

    if (!wish_for_store(&wish, program))
        return;
    for (int i = 0; i < 3 && things == 0 && believes(&wish); i++)
        if (!wait_once(&wish))
            return;
    if (things > 0 && believes(&wish))
        things--;
    let_go(&wish);
}

/* ---- programs ----------------------------------------------------------- */

static void do_something(struct program *program)
{
    uint64_t dice = sim_below(26);

    if (only_things && sim_chance(900))
        dice = sim_chance(600) ? 21 : 24;
    if (dice >= 20 && sim_kind == SIM_BUSY)
        dice = 0; /* it has no conditions */
    if (dice < 10)
        do_block(program);
    else if (dice < 13)
        do_callback(program);
    else if (dice < 16)
        do_request(program);
    else if (dice < 18)
        do_many(program);
    else if (dice < 20)
        do_elect(program);
    else if (dice == 25)
        do_break(program);
    else if (dice < 22)
        do_consume(program);
    else
        do_produce(program);
}

static void worker(void *arg)
{
    struct program *program = arg;
    int turns = 3 + (int)sim_below(10);

    for (int i = 0; i < turns && !program->closing; i++) {
        do_something(program);
        if (sim_chance(500))
            sim_sleep((int64_t)sim_below(20 * HF_MS));
    }
    program->workers--;
    sim_wake(program);
}

/* Shut down in the middle of it all. */
static void closer(void *arg)
{
    struct program *program = arg;
    hf_error err;
    int rc;

    sim_sleep((int64_t)sim_below(500 * HF_MS));
    program->closing = true;
    rc = hf_shutdown(program->client, 3000, &err);
    if (rc == HF_ETIMEOUT)
        program->unconfirmed = true;
    else if (rc != 0)
        check_fail("shutdown says %s: %s", hf_errname(rc), err.text);
    program->workers--;
    sim_wake(program);
}

/* The application's own loop, where there is no background thread. */
static void dispatcher(void *arg)
{
    struct program *program = arg;

    while (program->dispatches) {
        sim_wait_app(&program->client->loop,
                     program->client->callbacks.announce_fd);
        (void)hf_dispatch(program->client);
    }
    program->workers--;
    sim_wake(program);
}

static void stop_dispatcher(struct program *program)
{
    program->workers = 1;
    program->dispatches = false;
    sim_wake(&program->client->loop);
    while (program->workers > 0)
        sim_wait_for(program, HF_NEVER);
}

static void draw_url(struct program *program, char *url, size_t size)
{
    static const char *const handovers[] = {"", "&release=post",
                                            "&local_handover=0",
                                            "&local_handover=2&release=post"};

    program->beats = sim_chance(150);
    program->dispatches = sim_chance(200);
    (void)snprintf(url, size, "sim:?io_timeout=2s%s%s%s",
                   handovers[sim_below(HF_COUNT_OF(handovers))],
                   program->beats ? "&renew=beat" : "",
                   program->dispatches ? "&drive=app" : "");
}

static void open_client(struct program *program)
{
    char url[128];
    hf_error err;
    int rc;

    draw_url(program, url, sizeof(url));
    do {
        rc = hf_open(url, NULL, &program->client, &err);
        if (rc != 0 && rc != HF_EUNAVAILABLE)
            check_fail("open says %s: %s", hf_errname(rc), err.text);
    } while (rc != 0 && check_is_good());
    if (rc != 0 || !program->dispatches)
        return;
    if (hf_event_fd(program->client) < 0)
        check_fail("no descriptor for the application");
    sim_spawn(program->machine, dispatcher, program);
}

static void program_main(void *arg)
{
    struct program *program = arg;

    open_client(program);
    program->workers = 1 + (int)sim_below(WORKERS_MAX);
    for (int i = program->workers; i > 0; i--)
        sim_spawn(program->machine, worker, program);
    if (sim_chance(150)) {
        program->workers++;
        sim_spawn(program->machine, closer, program);
    }
    while (program->workers > 0)
        sim_wait_for(program, HF_NEVER);
    program->done = true;
    while (!finishing)
        sim_wait_for(&finishing, HF_NEVER);
    program->closing = true;
    if (program->dispatches)
        stop_dispatcher(program);
    hf_close(program->client);
}

void work_start(void)
{
    finishing = false;
    next_owner = 0;
    things = 0;
    lie_ns = 0;
    only_things = sim_chance(sim_bug == SIM_BUG_MARK_DIES ? 1000 : 250);
    for (int i = 0; i < WORK_PROGRAMS; i++) {
        memset(&programs[i], 0, sizeof(programs[i]));
        programs[i].number = i;
        programs[i].machine = &sim_machines[i];
        sim_spawn(programs[i].machine, program_main, &programs[i]);
    }
}

bool work_is_done(void)
{
    for (int i = 0; i < WORK_PROGRAMS; i++)
        if (!programs[i].done)
            return false;
    return true;
}

bool work_left_unconfirmed(int program)
{
    return programs[program].unconfirmed;
}

void work_finish(void)
{
    finishing = true;
    sim_wake(&finishing);
}
