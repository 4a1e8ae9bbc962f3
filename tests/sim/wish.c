/* SPDX-License-Identifier: MIT */
/*
 * wish.c - locks that the programs of the simulation ask for, and what they do
 * with them. What the calls may answer is checked here.
 */
#include "wish.h"

#include <stdio.h>

#include "core/client.h"
#include "server.h"

enum { SLOT_LOCK = 3, SLOTS = 2 };
/* A call may be late by so much, beyond what it was told to wait. */
#define LATE_NS (100 * HF_MS)
#define IO_TIMEOUT_MS 2000

const char *const wish_names[WISH_LOCKS + 1] = {"lock-0", "lock-1", "lock-2",
                                                "lock-3", "lock-4"};
uint64_t wish_owners;

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

void wish_init(struct wish *wish, struct program *program, int name)
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
    wish->what.owner = ++wish_owners;
    wish->what.mode = wish->opts.mode;
    wish->what.slots = wish->opts.slots;
    wish->what.n = 1;
    wish->what.names[0] = name;
    (void)snprintf(wish->owner, sizeof(wish->owner), "o%llu",
                   (unsigned long long)wish_owners);
    wish->opts.owner = wish->owner;
}

void wish_tell(const struct wish *wish, const char *what)
{
    if (sim_verbose)
        printf("# %.6f s machine %d %s: %s lock %d mode %d wait %lld ms\n",
               (double)sim_now() * 1e-9, wish->program->number, wish->owner,
               what, wish->what.names[0], wish->what.mode,
               (long long)wish->opts.wait_ms);
}

void wish_ask(struct wish *wish)
{
    wish_tell(wish, wish->what.n > 1 ? "asks for many" : "asks");
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

void wish_granted(struct wish *wish, hf_hold *hold)
{
    /* A callback may come late, behind one that takes its time. */
    if (hf_check(hold) == HF_LOST && !wish->request &&
        !all_at_service(wish, hold) && ran_since(wish->program, wish->asked_ns))
        check_fail("machine %d was granted a lock that it had lost",
                   wish->program->number);
    wish->hold = hold;
    wish_tell(wish, "has");
    wish->claim = check_claim(hold, &wish->what, wish->seen, wish->asked_ns);
}

void wish_check_in_time(const struct wish *wish, const char *what)
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

void wish_check_refusal(const struct wish *wish, const char *what, int rc,
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

void wish_release(struct wish *wish)
{
    bool lost = hf_check(wish->hold) == HF_LOST;
    bool released = hf_check(wish->hold) == HF_RELEASED;
    hf_error err;
    int rc;

    check_unclaim(wish->claim);
    wish->claim = NULL;
    wish_tell(wish, "releases");
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
    wish_ask(&again);
    rc = hf_acquire(wish->program->client, wish_names[wish->what.names[0]],
                    &again.opts, &hold, &err);
    if (rc == 0) {
        wish_granted(&again, hold);
        sim_sleep((int64_t)sim_below(5 * HF_MS));
        wish_release(&again);
    } else if (rc != HF_EDEADLK) {
        /* It may have been lost meanwhile, and be somebody else's now. */
        wish_check_refusal(&again, "re-entry", rc, &err);
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

void wish_hold(struct wish *wish)
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
