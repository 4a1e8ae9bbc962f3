/* SPDX-License-Identifier: MIT */
/*
 * hold.c - the caller's handle of a lock.
 *
 * A hold is proof of a granted ticket. It carries its own state, deadline and
 * token, so that hf_check() needs two loads and the clock, on any thread, also
 * while the process was stopped: past the deadline it answers LOST whether or
 * not anybody has noticed yet.
 *
 * One ticket may have several holds (re-entry); each keeps the memory of the
 * client, so a handle is never left hanging by hf_close().
 */
#include "core/hold.h"

#include "core/client.h"
#include "core/keeper.h"

static void prepare_event(struct hf__callback *callback)
{
    hf_hold *hold = HF_CONTAINER_OF(callback, hf_hold, callback);

    /* The state at this moment: LOST replaces a HELD that is still pending. */
    hold->told = atomic_load_explicit(&hold->state, memory_order_relaxed);
}

static void run_event(struct hf__callback *callback)
{
    hf_hold *hold = HF_CONTAINER_OF(callback, hf_hold, callback);

    hold->on_event(hold->whole ? hold->whole : hold, hold->told, hold->ctx);
}

static hf_hold *take_spare(hf_client *client)
{
    struct hf__list *link = hf__list_first(&client->spare_holds);

    if (!link)
        return hf__malloc(sizeof(hf_hold));
    hf__list_remove(link);
    client->spare_holds_n--;
    return HF_CONTAINER_OF(link, hf_hold, link);
}

static char *place_for_name(hf_hold *hold, size_t name_len)
{
    return name_len < HF__SMALL_NAME ? hold->small_name
                                     : hf__malloc(name_len + 1);
}

hf_hold *hf__hold_new(hf_client *client, const char *name, size_t name_len)
{
    hf_hold *hold = take_spare(client);
    char *copy;

    if (!hold)
        return NULL;
    memset(hold, 0, sizeof(*hold));
    copy = place_for_name(hold, name_len);
    if (!copy) {
        hf__free(hold);
        return NULL;
    }
    memcpy(copy, name, name_len);
    copy[name_len] = '\0';
    hold->name = copy;
    atomic_init(&hold->refs, 1);
    hold->fork_generation = client->fork_generation;
    hold->client = client;
    hold->callback.prepare = prepare_event;
    hold->callback.tell = run_event;
    hold->told = HF_HELD;
    hf__list_init(&hold->link);
    client->handles++;
    return hold;
}

void hf__hold_free(hf_hold *hold)
{
    hf_client *client = hold->client;

    if (hold->name != hold->small_name)
        hf__free((char *)(uintptr_t)hold->name);
    hf__free(hold->members);
    hf__free(hold->lost);
    if (client->closed || client->spare_holds_n >= HF__CLIENT_SPARES) {
        hf__free(hold);
    } else {
        hf__list_init(&hold->link);
        hf__list_append(&client->spare_holds, &hold->link);
        client->spare_holds_n++;
    }
    hf__monitor_handle_gone(client);
}

void hf__hold_bind(hf_hold *hold, struct hf__ticket *ticket)
{
    hold->ticket = ticket;
    hf__list_append(&ticket->holds, &hold->link);
    atomic_store_explicit(&hold->token, ticket->token, memory_order_relaxed);
    atomic_store_explicit(&hold->deadline_ns, ticket->deadline_ns,
                          memory_order_relaxed);
    atomic_store_explicit(&hold->beat, 1, memory_order_relaxed);
    hold->moved = HF_HELD;
    atomic_store_explicit(&hold->state, HF_HELD, memory_order_release);
}

bool hf__hold_seen_lost(const hf_hold *hold)
{
    return atomic_load_explicit(&hold->state, memory_order_acquire) == HF_LOST;
}

void hf__hold_move(hf_hold *hold, int state)
{
    int before = atomic_load_explicit(&hold->state, memory_order_acquire);
    bool tell = hold->on_event && state <= HF_LOST;

    /* LOST is final once hf_check() has returned it. */
    while (before != HF_LOST &&
           !atomic_compare_exchange_weak(&hold->state, &before, state))
        continue;
    if (before == HF_LOST)
        state = HF_LOST;
    if (hold->moved == state)
        return;
    hold->moved = state;
    if (tell)
        hf__callbacks_add(hold->client, &hold->callback);
}

static struct hf__acquired *remember(const struct hf__ticket *ticket)
{
    size_t owner_len = strlen(ticket->owner) + 1;
    size_t note_len = strlen(ticket->note) + 1;
    int64_t max_hold_ms = hf__keeper_max_hold(ticket);
    struct hf__acquired *lost =
        hf__malloc(sizeof(*lost) + owner_len + note_len);

    if (!lost)
        return NULL;
    lost->mode = ticket->downgrading ? HF_SHARED : ticket->mode;
    lost->slots = ticket->slots;
    lost->flags = ticket->flags;
    lost->ttl_ms = ticket->ttl_ms;
    lost->max_hold_ms = max_hold_ms != 0 ? max_hold_ms : HF_FOREVER;
    lost->owner_serial = ticket->owner_serial;
    lost->owner = memcpy(lost->texts, ticket->owner, owner_len);
    lost->note = memcpy(lost->texts + owner_len, ticket->note, note_len);
    return lost;
}

void hf__hold_revive(hf_hold *hold, hf_hold *fresh)
{
    struct hf__ticket *ticket = HF_STEAL(fresh->ticket);

    hf__list_remove(&fresh->link);
    hf__hold_free(fresh);
    hf__hold_bind(hold, ticket);
}

int hf__hold_none(const hf_hold *hold, hf_error *err)
{
    if (hold->wait)
        return hf__fail(err, HF_EINVAL,
                        "'%s' is given up while it waits on a condition",
                        hold->name);
    return hf__fail(err, HF_ELOST, "'%s' was lost or released", hold->name);
}

void hf__hold_part(hf_hold *hold, int state)
{
    if (state == HF_LOST && !hold->lost)
        hold->lost = remember(hold->ticket);
    hf__list_remove(&hold->link);
    hold->ticket = NULL;
    hold->client->metrics.held--;
    hf__hold_move(hold, state);
}

/* LOST is for ever, also if a renewal that was sent in time is confirmed an
 * instant later: the first check that sees it writes it down. */
static int own_check(const hf_hold *hold, int64_t now_ns)
{
    hf_hold *self = (hf_hold *)(uintptr_t)hold;
    int state = atomic_load_explicit(&hold->state, memory_order_acquire);

    while (state <= HF_JEOPARDY && !HF__PLANTED("check_without_the_clock") &&
           now_ns >=
               atomic_load_explicit(&hold->deadline_ns, memory_order_acquire)) {
        if (atomic_compare_exchange_weak(&self->state, &state, HF_LOST))
            return HF_LOST;
    }
    return state;
}

int hf__hold_check(const hf_hold *hold, int64_t now_ns)
{
    int worst = HF_HELD;

    if (HF_LIKELY(hold->members_n == 0))
        return own_check(hold, now_ns);
    for (uint32_t i = 0; i < hold->members_n; i++) {
        int state = own_check(hold->members[i], now_ns);

        worst = state > worst ? state : worst;
    }
    return worst;
}

int64_t hf__hold_deadline(const hf_hold *hold)
{
    int64_t first_ns =
        atomic_load_explicit(&hold->deadline_ns, memory_order_acquire);

    for (uint32_t i = 0; i < hold->members_n; i++) {
        int64_t ns = hf__hold_deadline(hold->members[i]);

        first_ns = i == 0 || ns < first_ns ? ns : first_ns;
    }
    return first_ns;
}
