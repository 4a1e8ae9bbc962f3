/* SPDX-License-Identifier: MIT */
/*
 * waits.c - who of this process waits for long, and what those hold.
 *
 * Nothing is kept for this while locks are taken and released: the detector
 * walks over the gates. What an owner holds may be in other clients of
 * the process, so those are entered one after the other, never two at a time.
 */
#include "core/waits.h"

#include "core/gate.h"

/* Names and numbers of owners are different spaces. */
static uint64_t owner_number(uint64_t serial, const char *text)
{
    if (serial != 0)
        return serial;
    return hf__notice_hash(text, strlen(text)) | UINT64_C(1) << 63;
}

static uint64_t request_owner(const struct hf_request *request)
{
    return owner_number(request->owner_serial, request->owner);
}

#define EACH_GATE(client, gate)                                                \
    for (uint32_t i_##gate = 0; i_##gate < (client)->gates_size; i_##gate++)   \
        for (struct hf__gate *gate = (client)->gates[i_##gate]; gate;          \
             gate = gate->next)

#define EACH_REQUEST(gate, request)                                            \
    HF_LIST_EACH(&(gate)->waiting, link_##request)                             \
        for (struct hf_request *request =                                      \
                 HF_CONTAINER_OF(link_##request, struct hf_request, link);     \
             request; request = NULL)

/* ---- waits ------------------------------------------------------------------ */

static bool is_long(const hf_client *client, const struct hf_request *request)
{
    return !request->nowait &&
           client->now_ns - request->asked_ns >= HF__WAITS_LONG_NS;
}

/* What @request waits for, in effect. Behind a request of another mode, of the
 * same gate, it waits until all who hold the lock now have gone: as an exclusive
 * one would. The store does not know of it. */
static int effective_mode(const struct hf__gate *gate,
                          const struct hf_request *request)
{
    EACH_REQUEST(gate, before)
    {
        if (before == request)
            return request->mode;
        if (before->mode != request->mode)
            return HF_EXCLUSIVE;
    }
    return request->mode;
}

static void add_wait(const hf_client *client, const struct hf__gate *gate,
                     const struct hf_request *request, struct hf__waits *waits)
{
    struct hf__notice_wait *wait = &waits->at[waits->n];
    int64_t offset_us;

    waits->twice[waits->n++] = false;
    wait->process = hf__fork_process(&offset_us);
    wait->owner = request_owner(request);
    wait->serial = (uint64_t)request->asked_ns;
    wait->since = (uint64_t)(request->asked_ns / 1000 + offset_us);
    wait->store = client->store;
    wait->mode = effective_mode(gate, request);
    wait->breaks = client->settings.deadlock == HF__DEADLOCK_BREAK;
    wait->holds_n = 0;
    wait->pid = client->host.pid;
    hf__text_copy(wait->host, sizeof(wait->host), client->host.host);
    hf__text_copy(wait->name, sizeof(wait->name), gate->name);
}

void hf__waits_collect(hf_client *client, struct hf__waits *waits)
{
    waits->n = 0;
    waits->clients_n = 0;
    EACH_GATE(client, gate)
    {
        EACH_REQUEST(gate, request)
        {
            if (waits->n < HF__NOTICE_WAITS && is_long(client, request))
                add_wait(client, gate, request, waits);
        }
    }
}

struct hf_request *hf__waits_find(hf_client *client,
                                  const struct hf__notice_wait *wait)
{
    EACH_GATE(client, gate)
    {
        EACH_REQUEST(gate, request)
        {
            if ((uint64_t)request->asked_ns == wait->serial &&
                request_owner(request) == wait->owner &&
                strcmp(gate->name, wait->name) == 0)
                return request;
        }
    }
    return NULL;
}

int64_t hf__waits_next(const hf_client *client, bool *ret_long)
{
    int64_t next_ns = HF_NEVER;

    *ret_long = false;
    EACH_GATE(client, gate)
    {
        /* A request that comes to an idle place is not queued anew. */
        if (gate->place && hf__list_empty(&gate->waiting) &&
            client->now_ns + HF__WAITS_LONG_NS < next_ns)
            next_ns = client->now_ns + HF__WAITS_LONG_NS;
        EACH_REQUEST(gate, request)
        {
            if (is_long(client, request))
                *ret_long = true;
            else if (!request->nowait &&
                     request->asked_ns + HF__WAITS_LONG_NS < next_ns)
                next_ns = request->asked_ns + HF__WAITS_LONG_NS;
        }
    }
    return next_ns;
}

/* ---- holds ------------------------------------------------------------------- */

static void add_hold(struct hf__waits *waits, uint32_t number, uint8_t at,
                     const struct hf__gate *gate, const struct hf__ticket *seat)
{
    struct hf__notice_wait *wait = &waits->at[number];

    if (wait->holds_n == HF__NOTICE_HOLDS)
        return;
    waits->held_at[number][wait->holds_n] = at;
    wait->holds[wait->holds_n++] = (struct hf__notice_hold){
        .hash = hf__notice_hash(gate->name, gate->name_len),
        .token = seat->token,
        .mode = seat->mode};
    waits->used[at] = true;
}

static void add_seat(struct hf__waits *waits, uint8_t at,
                     const struct hf__gate *gate, const struct hf__ticket *seat)
{
    uint64_t owner = owner_number(seat->owner_serial, seat->owner);

    /* Without a token nobody can tell whether it is the same hold. */
    if (seat->token == 0 || gate->client->now_ns >= seat->deadline_ns)
        return;
    for (uint32_t i = 0; i < waits->n; i++) {
        if (waits->at[i].owner == owner)
            add_hold(waits, i, at, gate, seat);
    }
}

static void note_second_wait(struct hf__waits *waits,
                             const struct hf_request *request,
                             const struct hf__gate *gate)
{
    for (uint32_t i = 0; i < waits->n; i++) {
        const struct hf__notice_wait *wait = &waits->at[i];

        if (wait->owner == request_owner(request) &&
            (wait->serial != (uint64_t)request->asked_ns ||
             strcmp(wait->name, gate->name) != 0))
            waits->twice[i] = true;
    }
}

/* With the monitor of the client that is number @at. */
static void gather_from(struct hf__waits *waits, uint8_t at,
                        const hf_client *client)
{
    waits->stores[at] = client->store;
    EACH_GATE(client, gate)
    {
        HF_LIST_EACH(&gate->seats, link) {
            add_seat(waits, at, gate,
                     HF_CONTAINER_OF(link, struct hf__ticket, link));
        }
        EACH_REQUEST(gate, request)
        {
            note_second_wait(waits, request, gate);
        }
    }
}

void hf__waits_gather(struct hf__waits *waits)
{
    memset(waits->used, 0, sizeof(waits->used));
    waits->clients_n =
        (uint32_t)hf__fork_clients(waits->clients, HF__WAITS_CLIENTS);
    for (uint32_t i = 0; i < waits->n; i++)
        waits->at[i].holds_n = 0;
    for (uint32_t i = 0; i < waits->clients_n; i++) {
        hf_client *client = waits->clients[i].client;

        waits->stores[i] = 0;
        if (!hf__fork_keep(&waits->clients[i]))
            continue;
        if (hf__monitor_enter(client, /* err= */ NULL) == 0) {
            gather_from(waits, (uint8_t)i, client);
            hf__monitor_leave(client);
        }
        hf__fork_let_go(client);
    }
}

static void settle_holds(struct hf__waits *waits, uint32_t number)
{
    struct hf__notice_wait *wait = &waits->at[number];
    uint32_t n = 0;

    for (uint32_t i = 0; i < wait->holds_n; i++) {
        wait->holds[i].store = waits->stores[waits->held_at[number][i]];
        if (wait->holds[i].store != 0)
            wait->holds[n++] = wait->holds[i];
    }
    wait->holds_n = n;
}

void hf__waits_settle(struct hf__waits *waits)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < waits->n; i++) {
        settle_holds(waits, i);
        if (waits->at[i].holds_n > 0 && !waits->twice[i] &&
            waits->at[i].store != 0)
            waits->at[n++] = waits->at[i];
    }
    waits->n = n;
}
