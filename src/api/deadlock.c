/* SPDX-License-Identifier: MIT */
/*
 * deadlock.c - the deadlocks that the board of a store shows to anybody who
 * asks. core/detector.c finds those of our own requests by itself.
 */
#include "core/board.h"
#include "core/client.h"

/* Two looks this far apart have to see the same. */
#define CONFIRM_NS (250 * HF_MS)

struct cycles {
    struct hf__board_cycle *at; /* through each member; cycle_n 0: none */
    uint32_t n;
};

/* Where @cycle was found by several of its members, the first tells it. */
static bool is_first(const struct hf__board_look *look, uint32_t number,
                     const struct hf__board_cycle *cycle)
{
    for (uint32_t i = 1; i < cycle->cycle_n; i++) {
        for (uint32_t j = 0; j < number; j++) {
            const struct hf__notice_wait *wait = &look->members[j].wait;

            if (wait->process == cycle->at[i].process &&
                wait->owner == cycle->at[i].owner)
                return false;
        }
    }
    return true;
}

static int find(const struct hf__board_look *look, struct cycles *cycles,
                hf_error *err)
{
    cycles->at = hf__calloc(look->deadlock.n + 1, sizeof(cycles->at[0]));
    if (!cycles->at)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    for (uint32_t i = 0; i < look->deadlock.n; i++) {
        struct hf__board_cycle *cycle = &cycles->at[cycles->n];

        if (hf__board_look_cycle(look, i, cycle) && is_first(look, i, cycle))
            cycles->n++;
    }
    return 0;
}

static void pause_between(void)
{
    int64_t until_ns = hf__now() + CONFIRM_NS;
    _Atomic uint32_t word = 0;

    while (hf__now() < until_ns)
        hf__world->park(&word, 0, HF_ANYBODY, until_ns);
}

static int tell(const struct hf__board_look *look, const struct cycles *cycles,
                hf_deadlock_cb *each, void *ctx, hf_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < cycles->n && rc == 0; i++) {
        struct hf__buf text = {0};

        if (!hf__board_look_confirms(look, &cycles->at[i]))
            continue;
        hf__board_look_tell(look, &cycles->at[i], &text);
        rc = hf__buf_failed(&text) ? hf__fail(err, HF_ENOMEM, "out of memory")
                                   : each(hf__buf_text(&text), ctx);
        hf__buf_release(&text);
    }
    return rc;
}

static int look_once(const struct hf__board_place *place,
                     struct hf__board_look **ret_look, hf_error *err)
{
    struct hf__board_look *look = hf__board_look_new(place, 1);
    int rc;

    if (!look)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__board_look_read(look, HF__DEADLOCK_MEMBERS, err);
    if (rc != 0)
        hf__board_look_free(look);
    else
        *ret_look = look;
    return rc;
}

static int look_twice(const struct hf__board_place *place, hf_deadlock_cb *each,
                      void *ctx, hf_error *err)
{
    struct cycles cycles = {0};
    struct hf__board_look *look;
    int rc = look_once(place, &look, err);

    if (rc != 0)
        return rc;
    rc = find(look, &cycles, err);
    hf__board_look_free(look);
    if (rc == 0 && cycles.n > 0) {
        pause_between();
        rc = look_once(place, &look, err);
        if (rc == 0) {
            rc = tell(look, &cycles, each, ctx, err);
            hf__board_look_free(look);
        }
    }
    hf__free(cycles.at);
    return rc;
}

int hf_deadlocks(hf_client *client, hf_deadlock_cb *each, void *ctx,
                 hf_error *err)
{
    struct hf__board_place place = {.of = {.client = client}};
    int rc;

    if (!client || !each)
        return hf__fail(err, HF_EINVAL, "client or each is NULL");
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    memcpy(&place.of.identity, client->host.identity,
           sizeof(place.of.identity));
    hf__monitor_leave(client);
    place.store = hf__board_number(&place.of, &rc, err);
    if (rc != 0 || place.store == 0) /* nobody has ever posted a notice */
        return rc;
    return look_twice(&place, each, ctx, err);
}
