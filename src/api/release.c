/* SPDX-License-Identifier: MIT */
/*
 * release.c - the public calls on a hold: check, release, renew, downgrade.
 *
 * Each enters the monitor, does or starts its work, waits if it must, and
 * leaves. hf_check() and the like do not even enter.
 *
 * hf_release() consumes a reference in every case. What it returns is what is
 * known at that moment: 0 only if the lock was ours until the engine freed it
 * (or it was passed on inside this process), HF_ELOST if our claim had ended,
 * HF_EUNKNOWN if the engine has not answered within io_timeout; then the
 * ticket goes on leaving.
 */
#include "api/release.h"

#include "api/multi.h"
#include "api/request.h"
#include "core/client.h"
#include "core/keeper.h"
#include "core/monitor.h"
#include "core/parked.h"

/* ---- without the monitor -------------------------------------------------- */

int hf_check(const hf_hold *hold)
{
    if (!hold)
        return HF_EINVAL;
    if (HF_UNLIKELY(hf__forked(hold->fork_generation)) &&
        !HF__PLANTED("child_may_use_the_hold"))
        return HF_EFORK;
    return hf__hold_check(hold, hf__now());
}

uint64_t hf_token(const hf_hold *hold)
{
    return hold ? atomic_load_explicit(&hold->token, memory_order_relaxed) : 0;
}

uint64_t hf_token_at(const hf_hold *hold, size_t i)
{
    if (!hold)
        return 0;
    if (hold->members_n == 0)
        return i == 0 ? hf_token(hold) : 0;
    return i < hold->members_n ? hf_token(hold->members[i]) : 0;
}

int64_t hf_remaining_ms(const hf_hold *hold)
{
    int64_t now_ns = hf__now();
    int64_t deadline_ns;

    if (!hold || hf_check(hold) < 0 ||
        hf__hold_check(hold, now_ns) > HF_JEOPARDY)
        return 0;
    deadline_ns = hf__hold_deadline(hold);
    if (deadline_ns == HF_NEVER)
        return HF_FOREVER;
    return deadline_ns > now_ns ? (deadline_ns - now_ns) / HF_MS : 0;
}

int hf_beat(hf_hold *hold)
{
    int state = hf_check(hold);

    if (state < 0)
        return state;
    if (state == HF_WAITING)
        return 0; /* there is nothing to renew */
    if (state > HF_JEOPARDY)
        return HF_ELOST;
    if (hold->members_n == 0)
        atomic_store_explicit(&hold->beat, 1, memory_order_release);
    for (uint32_t i = 0; i < hold->members_n; i++)
        atomic_store_explicit(&hold->members[i]->beat, 1, memory_order_release);
    return 0;
}

const char *hf_hold_name(const hf_hold *hold)
{
    return hold ? hold->name : "";
}

/* What @get says of the ticket of @hold; 0 if it has none any more. */
static int64_t ask_ticket(const hf_hold *hold,
                          int64_t (*get)(const struct hf__ticket *ticket))
{
    int64_t answer;

    if (hold && hold->members_n > 0)
        hold = hold->members[0];
    if (!hold || hf__forked(hold->fork_generation) ||
        hf__monitor_enter_any(hold->client, /* err= */ NULL) != 0)
        return 0;
    answer = hold->ticket ? get(hold->ticket) : 0;
    hf__monitor_leave(hold->client);
    return answer;
}

static int64_t lease_ms(const struct hf__ticket *ticket)
{
    return ticket->lease_ms;
}

int64_t hf_ttl_ms(const hf_hold *hold)
{
    return ask_ticket(hold, lease_ms);
}

int64_t hf_max_hold_ms(const hf_hold *hold)
{
    return ask_ticket(hold, hf__keeper_max_hold);
}

/* ---- references ------------------------------------------------------------ */

hf_hold *hf_hold_ref(hf_hold *hold)
{
    if (hold)
        atomic_fetch_add_explicit(&hold->refs, 1, memory_order_relaxed);
    return hold;
}

void hf__release_unref(hf_hold *hold)
{
    if (atomic_fetch_sub_explicit(&hold->refs, 1, memory_order_acq_rel) != 1)
        return;
    hf__callbacks_cancel(hold->client, &hold->callback);
    if (hold->members_n > 0)
        hf__multi_let_go(hold);
    hf__request_let_go(hold);
    hf__hold_free(hold);
}

/* The copy of a handle is memory and nothing else. */
int hf__release_forked(hf_hold *hold, hf_error *err)
{
    if (atomic_fetch_sub(&hold->refs, 1) == 1) {
        for (uint32_t i = 0; i < hold->members_n; i++)
            (void)hf__release_forked(hold->members[i], /* err= */ NULL);
        hf__free(hold->members);
        hf__free(hold->lost);
        if (hold->name != hold->small_name)
            hf__free((char *)(uintptr_t)hold->name);
        hf__free(hold);
    }
    return hf__fail(err, HF_EFORK, "the hold belongs to the parent process");
}

void hf_hold_unref(hf_hold *hold)
{
    hf_client *client;

    if (!hold)
        return;
    if (hf__forked(hold->fork_generation)) {
        (void)hf__release_forked(hold, /* err= */ NULL);
        return;
    }
    client = hold->client;
    if (hf__monitor_enter_any(client, /* err= */ NULL) != 0)
        return;
    hf__release_unref(hold);
    hf__monitor_leave(client);
}

/* ---- release ---------------------------------------------------------------- */

int64_t hf__release_deadline(const hf_client *client)
{
    return hf__instant_add(client->now_ns,
                           hf__ms_to_ns(client->settings.io_timeout_ms));
}

static int give_back(hf_client *client, struct hf__ticket *ticket,
                     struct hf__waiter *waiter)
{
    hf__metrics_released(&client->metrics, client->now_ns - ticket->granted_ns);
    if (client->settings.release == HF__RELEASE_POST) {
        (void)hf__gate_release(ticket, /* waiter= */ NULL);
        return 0;
    }
    if (hf__gate_release(ticket, waiter))
        return 0;
    return waiter->done ? waiter->rc : HF__RELEASE_PENDING;
}

int hf__release_begin(hf_hold *hold, struct hf__waiter *waiter)
{
    hf_client *client = hold->client;
    struct hf__ticket *ticket = hold->ticket;

    if (!ticket) {
        int state;

        if (hold->wait)
            hf__parked_forget(hold->wait, HF_ECANCELED);
        state = atomic_load_explicit(&hold->state, memory_order_relaxed);
        return state == HF_LOST ? HF_ELOST : 0;
    }
    if (HF_UNLIKELY(client->now_ns >= ticket->deadline_ns ||
                    hf__hold_seen_lost(hold))) {
        hf__ticket_lose(ticket, ticket->lost_reason, /* certain= */ false);
        hf__callbacks_unlist(&hold->callback); /* we tell the caller */
        return HF_ELOST;
    }
    hf__hold_part(hold, HF_RELEASED);
    if (!hf__list_empty(&ticket->holds))
        return 0;
    return give_back(client, ticket, waiter);
}

/* Wait for what @waiter is told, if @rc says that it will be. */
static int await(hf_client *client, struct hf__waiter *waiter, int rc)
{
    if (rc != HF__RELEASE_PENDING)
        return rc;
    return hf__monitor_wait(client, waiter, hf__release_deadline(client))
               ? waiter->rc
               : HF_EUNKNOWN;
}

int hf__release_hold(hf_hold *hold)
{
    struct hf__waiter waiter;

    hf__callbacks_cancel(hold->client, &hold->callback);
    hf__waiter_init(&waiter);
    return await(hold->client, &waiter, hf__release_begin(hold, &waiter));
}

int hf__release_explain(const char *name, int rc, hf_error *err)
{
    if (rc == 0)
        return 0;
    return hf__fail(err, rc, "release '%s': %s", name,
                    rc == HF_ELOST
                        ? "it was lost before; what it protected may have "
                          "been changed by another"
                        : hf_strerror(rc));
}

int hf_release(hf_hold *hold, hf_error *err)
{
    hf_client *client;
    int rc;

    if (!hold)
        return hf__fail(err, HF_EINVAL, "hold is NULL");
    if (HF_UNLIKELY(hf__forked(hold->fork_generation)))
        return hf__release_forked(hold, err);
    client = hold->client;
    rc = hf__monitor_enter_any(client, err);
    if (rc != 0)
        return rc;
    if (HF_UNLIKELY(hold->members_n > 0))
        rc = hf__multi_release(hold);
    else
        rc = hf__release_hold(hold);
    if (HF_UNLIKELY(rc != 0))
        (void)hf__release_explain(hold->name, rc, err);
    hf__release_unref(hold);
    hf__monitor_leave(client);
    return rc;
}

/* ---- verify and downgrade ----------------------------------------------------- */

static int send(hf_client *client, struct hf__ticket *ticket, bool downgrade,
                hf_error *err)
{
    struct hf__engine *engine = client->engine;

    if (!hf__client_is_up(client))
        return hf__fail_pass(err, &client->down_err);
    ticket->sent_ns = client->now_ns;
    ticket->downgrading |= downgrade;
    if (downgrade)
        return engine->ops->downgrade(engine, ticket, err);
    return engine->ops->renew(engine, &ticket, 1, err);
}

/* Ask the engine about the ticket. */
static int ask_about(hf_client *client, struct hf__ticket *ticket,
                     struct hf__waiter *waiter, hf_error *err)
{
    int rc;

    hf__list_append(&ticket->waiters, &waiter->watch);
    rc = send(client, ticket, waiter->for_shared, err);
    if (rc != 0) {
        hf__list_remove(&waiter->watch);
        return rc;
    }
    return waiter->done ? waiter->rc : HF__RELEASE_PENDING;
}

/* With the monitor: the ticket of a hold that is still ours, or NULL. */
static struct hf__ticket *live_ticket(const hf_hold *hold)
{
    struct hf__ticket *ticket = hold->ticket;

    return ticket && hold->client->now_ns < ticket->deadline_ns ? ticket : NULL;
}

int hf__release_verify(hf_hold *hold, struct hf__waiter *waiter, hf_error *err)
{
    struct hf__ticket *ticket = live_ticket(hold);

    return ticket ? ask_about(hold->client, ticket, waiter, err)
                  : hf__hold_none(hold, err);
}

static int verify_one(hf_hold *hold, hf_error *err)
{
    struct hf__waiter waiter;
    int rc;

    hf__waiter_init(&waiter);
    rc = await(hold->client, &waiter, hf__release_verify(hold, &waiter, err));
    return rc == 0 ? 0
                   : hf__fail(err, rc, "verify '%s': %s", hold->name,
                              hf_strerror(rc));
}

/* Do something about @hold, with the monitor. */
static int with_monitor(hf_hold *hold, int (*act)(hf_hold *, hf_error *),
                        hf_error *err)
{
    int rc;

    if (!hold)
        return hf__fail(err, HF_EINVAL, "hold is NULL");
    rc = hf__monitor_enter_any(hold->client, err);
    if (rc != 0)
        return rc;
    rc = act(hold, err);
    hf__monitor_leave(hold->client);
    return rc;
}

static int verify(hf_hold *hold, hf_error *err)
{
    int rc = hold->members_n == 0 ? verify_one(hold, err) : 0;

    for (uint32_t i = 0; i < hold->members_n && rc == 0; i++)
        rc = verify_one(hold->members[i], err);
    return rc;
}

int hf_verify(hf_hold *hold, hf_error *err)
{
    return with_monitor(hold, verify, err);
}

static int downgrade(hf_hold *hold, hf_error *err)
{
    hf_client *client = hold->client;
    struct hf__ticket *ticket = live_ticket(hold);
    struct hf__waiter waiter;
    int rc;

    if (hold->members_n > 0)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "a multi-lock cannot be downgraded");
    if (!ticket)
        return hf__hold_none(hold, err);
    if (ticket->mode == HF_SHARED)
        return 0;
    if (!client->engine->ops->downgrade || ticket->mode != HF_EXCLUSIVE ||
        ticket->cond)
        return hf__fail(err, HF_EUNSUPPORTED, "%s cannot downgrade '%s'",
                        client->engine_name, hold->name);
    hf__waiter_init(&waiter);
    waiter.for_shared = true;
    rc = await(client, &waiter, ask_about(client, ticket, &waiter, err));
    if (rc != 0)
        return hf__fail(err, rc, "downgrade '%s': %s", hold->name,
                        hf_strerror(rc));
    return 0;
}

int hf_downgrade(hf_hold *hold, hf_error *err)
{
    return with_monitor(hold, downgrade, err);
}

/* ---- the lock around a block ------------------------------------------------- */

hf_with hf_with_enter(hf_client *client, const char *name, const hf_opts *opts,
                      int *rc)
{
    hf_with with = {NULL, rc, 0};
    int acquired = hf_acquire(client, name, opts, &with.hold, /* err= */ NULL);

    if (rc)
        *rc = acquired;
    return with;
}

void hf_with_leave(hf_with *with)
{
    int rc = with->hold ? hf_release(with->hold, /* err= */ NULL) : 0;

    if (with->rc && *with->rc == 0)
        *with->rc = rc;
    with->hold = NULL;
}

void hf_autorelease_leave(hf_hold **hold)
{
    if (*hold)
        (void)hf_release(*hold, /* err= */ NULL); /* the way out is a return */
    *hold = NULL;
}
