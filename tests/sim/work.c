/* SPDX-License-Identifier: MIT */
/*
 * work.c - the programs that use locks in the simulation.
 *
 * Three machines run one program each: a client and a few threads that draw
 * from a hat what to do next. Every call of the public interface that has to
 * do with holding is there; what they may answer is checked here and in
 * wish.c, what they mean in check.c.
 *
 * Locks 0 to 2 are exclusive or shared, lock 3 has two slots. Lock 4 guards a
 * store of things: who adds one signals, who finds none waits.
 */
#include "work.h"

#include <stdio.h>

#include "check.h"
#include "core/client.h"
#include "server.h"
#include "wish.h"
#include "world.h"

enum { WORKERS_MAX = 4 };
/* How long somebody waits for a thing, and how long one may lie there, once all
 * faults have ended. */
enum { THING_WAIT_MS = 30000 };
#define THING_LIES_NS (12 * HF_SECOND)
#define QUIET_FROM_NS (12 * HF_SECOND)

static struct program programs[WORK_PROGRAMS];
static bool finishing;
static int things;       /* in the store */
static int64_t lie_ns;   /* since then there was one, always */
static bool only_things; /* most of the work is about them */

/* ---- things to do ------------------------------------------------------- */

static void use(struct wish *wish, hf_hold *hold)
{
    wish_granted(wish, hold);
    wish_hold(wish);
    wish_release(wish);
}

static void do_block(struct program *program)
{
    struct wish wish;
    hf_hold *hold;
    hf_error err;
    int rc;

    wish_init(&wish, program, (int)sim_below(WISH_LOCKS));
    wish_ask(&wish);
    rc = hf_acquire(program->client, wish_names[wish.what.names[0]], &wish.opts,
                    &hold, &err);
    wish_check_in_time(&wish, "acquire");
    if (rc == 0)
        use(&wish, hold);
    else
        wish_check_refusal(&wish, "acquire", rc, &err);
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
    wish_ask(&wish);
    rc = hf_acquire_many(program->client, names, (size_t)wish.what.n,
                         &wish.opts, &hold, &err);
    if (rc == 0)
        use(&wish, hold);
    else
        wish_check_refusal(&wish, "acquire_many", rc, &err);
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
        wish_granted(wish, hold);
        if (!wish->expect_hold)
            wish_release(wish); /* inside the callback */
    } else {
        wish_check_refusal(wish, "acquire_start", rc, err);
    }
    check_teller_busy(wish->program->machine, false);
    sim_wake(wish);
}

static int start(struct wish *wish, hf_done_cb *done, hf_error *err)
{
    hf_request *request;
    int rc;

    wish_ask(wish);
    rc =
        hf_acquire_start(wish->program->client, wish_names[wish->what.names[0]],
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

    wish_init(&wish, program, (int)sim_below(WISH_LOCKS));
    if (cancel && sim_chance(500))
        wish.opts.wait_ms = HF_FOREVER;
    wish.expect_hold = sim_chance(600);
    if (start(&wish, on_done, &err) != 0)
        return;
    sim_sleep((int64_t)sim_below(cancel ? 20 * HF_MS : 2 * HF_MS));
    if (cancel) {
        wish_tell(&wish, "cancels");
        hf_cancel(wish.request);
    }
    while (!early && wish.outcomes == 0)
        sim_wait_for(&wish, HF_NEVER);
    hf_request_free(wish.request);
    wish.freed = true;
    if (wish.hold) {
        wish_hold(&wish);
        wish_release(&wish);
    }
}

static void do_request(struct program *program)
{
    struct wish wish;
    hf_hold *hold;
    hf_error err;
    int rc = HF_ETIMEOUT;

    wish_init(&wish, program, (int)sim_below(WISH_LOCKS));
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
        wish_granted(&wish, hold);
    else
        wish_check_refusal(&wish, "request_wait", rc, &err);
    hf_request_free(wish.request);
    if (wish.hold) {
        wish_hold(&wish);
        wish_release(&wish);
    }
}

/* ---- elections ---------------------------------------------------------- */

static void on_change(hf_hold *hold, int state, void *ctx)
{
    struct wish *wish = ctx;

    check_teller_busy(wish->program->machine, true);
    if (state == HF_HELD && !wish->claim && !wish->freed) {
        wish_granted(wish, hold);
    } else if (state == HF_LOST && wish->claim) {
        check_unclaim(wish->claim);
        wish->claim = NULL;
        wish_ask(wish);
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
    wish_ask(&wish);
    rc = hf_elect_start(program->client, wish_names[2], &wish.opts, on_change,
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
    int name = (int)sim_below(WISH_LOCKS);
    uint64_t token = check_draw_token(name);
    int64_t granted_ns;
    bool first;
    hf_error err;
    int rc;

    if (token == 0)
        return;
    rc = hf_break(program->client, wish_names[name], token, NULL, &err);
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

    wish_init(wish, program, WISH_STORE);
    wish->opts.wait_ms = HF_FOREVER;
    wish->opts.ttl_ms = sim_chance(500) ? 500 : 3000;
    wish->opts.flags = 0;
    wish->opts.max_hold_ms = 0;
    wish->opts.on_event = NULL;
    wish->what.wants_told = false;
    wish_ask(wish);
    rc = hf_acquire(program->client, wish_names[WISH_STORE], &wish->opts, &hold,
                    &err);
    if (rc != 0) {
        wish_check_refusal(wish, "acquire", rc, &err);
        return false;
    }
    wish_granted(wish, hold);
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
    wish_release(&wish);
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
    wish_ask(wish);
    wish_tell(wish, "waits on a condition");
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
    wish_release(&wish);
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
    wish_owners = 0;
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
