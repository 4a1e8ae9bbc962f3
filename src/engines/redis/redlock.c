/* SPDX-License-Identifier: MIT */
/*
 * redlock.c - the engine for independent Redis servers: redlock://h1,…,h5
 *
 * The holder of a lock has it on a majority of servers that know nothing of one
 * another. All are asked in parallel (redlock_ballot.c); the lease counts from
 * before the first of them was asked, and the core takes the drift off its end.
 *
 * For the core we are connected while a majority is. It is not told of servers
 * that come and go: redlock_node.c connects each of them again. At the start we
 * wait a moment for those that are still connecting, because the first request
 * would miss their votes.
 *
 * What it does not give: a token. The servers have no number in common that
 * grows with every grant, and none is claimed.
 */
#include "engines/redis/redlock.h"
#include "engines/common/caps.h"

#include <strings.h>

static struct hf__redlock *redlock_of(struct hf__engine *engine)
{
    return (struct hf__redlock *)engine;
}

/* ---- the majority ------------------------------------------------------ */

void hf__redlock_count(struct hf__redlock *redlock)
{
    uint32_t calls = 0;

    for (uint32_t i = 0; i < redlock->n; i++)
        calls += redlock->nodes[i].redis->base.under_way +
                 (redlock->nodes[i].state == HF__PEER_CONNECTING);
    redlock->base.under_way = calls;
}

void hf__redlock_weigh(struct hf__redlock *redlock)
{
    uint32_t up = 0;
    uint32_t coming = 0;
    hf_error err;

    for (uint32_t i = 0; i < redlock->n; i++) {
        up += redlock->nodes[i].state >= HF__PEER_UP;
        coming += redlock->nodes[i].state == HF__PEER_CONNECTING;
    }
    hf__redlock_count(redlock);
    if (redlock->state != HF__PEER_UP && up >= redlock->quorum &&
        (coming == 0 || !hf__timer_running(&redlock->late))) {
        hf__timer_stop(redlock->base.host->loop, &redlock->late);
        redlock->state = HF__PEER_UP;
        hf__up_connected(&redlock->base);
    } else if (up < redlock->quorum &&
               (redlock->state == HF__PEER_UP ||
                (redlock->state == HF__PEER_CONNECTING &&
                 up + coming < redlock->quorum))) {
        redlock->state = HF__PEER_DOWN;
        hf__redlock_node_no_majority(redlock, &err);
        hf__up_down(&redlock->base, &err);
    }
}

/* ---- opening ----------------------------------------------------------- */

/* Who has not come by now may come later. */
static void on_late(struct hf__timer *timer)
{
    hf__redlock_weigh(HF_CONTAINER_OF(timer, struct hf__redlock, late));
}

static void await_all(struct hf__redlock *redlock)
{
    const struct hf__engine_host *host = redlock->base.host;
    int64_t wait_ms = host->settings->node_timeout_ms;

    if (wait_ms > host->settings->connect_timeout_ms / 2)
        wait_ms = host->settings->connect_timeout_ms / 2;
    redlock->late.fire = on_late;
    host->timer(host, &redlock->late, hf__now() + hf__ms_to_ns(wait_ms));
}

static int check_hosts(const struct hf__url *url, hf_error *err)
{
    if (url->n_hosts < HF__REDLOCK_LEAST || url->n_hosts > HF__REDLOCK_NODES)
        return hf__fail(err, HF_ECONFIG,
                        "redlock:// wants %d to %d independent servers, best "
                        "five; for one server write redis://",
                        HF__REDLOCK_LEAST, HF__REDLOCK_NODES);
    for (size_t i = 0; i < url->n_hosts; i++) {
        for (size_t j = 0; j < i; j++) {
            int port = url->hosts[i].port ? url->hosts[i].port : 6379;
            int other = url->hosts[j].port ? url->hosts[j].port : 6379;

            if (port == other &&
                strcasecmp(url->hosts[i].host, url->hosts[j].host) == 0)
                return hf__fail(err, HF_ECONFIG,
                                "%s:%d is in the list twice: one server has "
                                "one vote",
                                url->hosts[i].host, port);
        }
    }
    return 0;
}

static int redlock_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__redlock *redlock = redlock_of(engine);
    const struct hf__settings *settings = engine->host->settings;
    const struct hf__url *url = engine->host->url;
    static char plain[] = "plain";
    int rc = check_hosts(url, err);

    hf__redlock_ballot_init(redlock);
    if (rc != 0)
        return rc;
    if (settings->dialect[0] != '\0' && strcmp(settings->dialect, "plain") != 0)
        return hf__fail(err, HF_ECONFIG, "dialect=%s: redlock has plain",
                        settings->dialect);
    redlock->settings = *settings;
    redlock->settings.dialect = plain;
    redlock->longest_ms = settings->ttl_ms + settings->lock_delay_ms;
    redlock->shortest_ms = settings->ttl_ms;
    redlock->quorum = hf__redlock_quorum((uint32_t)url->n_hosts);
    for (size_t i = 0; i < url->n_hosts && rc == 0; i++) {
        rc = hf__redlock_node_open(redlock, i, hf__redlock_ballot_offset(i),
                                   err);
    }
    redlock->ballot_size = hf__redlock_ballot_offset(url->n_hosts);
    return rc;
}

static int redlock_connect(struct hf__engine *engine, hf_error *err)
{
    struct hf__redlock *redlock = redlock_of(engine);

    (void)err;
    redlock->state = HF__PEER_CONNECTING;
    await_all(redlock);
    for (uint32_t i = 0; i < redlock->n; i++)
        hf__redlock_node_connect(&redlock->nodes[i]);
    hf__redlock_weigh(redlock);
    return 0;
}

static void redlock_close(struct hf__engine *engine, bool forked)
{
    struct hf__redlock *redlock = redlock_of(engine);

    for (uint32_t i = 0; i < redlock->n; i++)
        hf__redlock_node_close(&redlock->nodes[i], forked);
    if (forked)
        return;
    redlock->n = 0;
    hf__timer_stop(engine->host->loop, &redlock->patience);
    hf__timer_stop(engine->host->loop, &redlock->late);
    hf__redlock_ballot_free_all(redlock);
}

static void redlock_flush(struct hf__engine *engine)
{
    struct hf__redlock *redlock = redlock_of(engine);

    for (uint32_t i = 0; i < redlock->n; i++) {
        struct hf__engine *node = &redlock->nodes[i].redis->base;

        node->ops->flush(node);
    }
    hf__redlock_count(redlock);
}

const struct hf__engine_ops hf__engine_redlock = {
    .name = "redlock",
    .schemes = "redlock redlocks",
    .dialects = "plain",
    .caps = HF__CAPS_LEASED,
    .flags = HF__RESERVES_TOKENS, /* none is as good as a range of them */
    .size = sizeof(struct hf__redlock),
    .ticket_size = sizeof(struct hf__redlock_ticket),
    .timers = 2 * HF__REDLOCK_NODES + 2,
    .open = redlock_open,
    .connect = redlock_connect,
    .close = redlock_close,
    .acquire = hf__redlock_ballot_acquire,
    .withdraw = hf__redlock_ballot_withdraw,
    .release = hf__redlock_ballot_release,
    .renew = hf__redlock_ballot_renew,
    .doctor = hf__redlock_doctor,
    .flush = redlock_flush,
};
