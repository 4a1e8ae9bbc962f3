/* SPDX-License-Identifier: MIT */
/*
 * wait.c - which channels this connection listens to, and for which tickets.
 *
 * Where locks have channels of their own (redisson_acquire.c; in a cluster all)
 * one is joined for each ticket that waits. The first ticket on a channel
 * subscribes, the last one that parts unsubscribes, all on the one connection
 * there is: messages on a channel and the answers to our commands come in one
 * order.
 *
 * Failure: a subscription ends with its connection, or in a cluster when its
 * slot goes elsewhere. A channel remembers the connection it is heard on, and a
 * ticket that looks again on a new one subscribes first. That look finds what a
 * message would have told that was lost in between.
 */
#include "config/name.h"
#include "engines/redis/connection.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

struct hf__redis_channel {
    struct hf__redis_channel *next;
    struct hf__list waiters; /* hf__redis_ticket.hearing */
    int64_t heard_ns;        /* connect_ns of the connection; 0: none */
    size_t len;
    char text[];
};

static struct hf__redis_channel **find(struct hf__redis *redis,
                                       const char *text, size_t len)
{
    uint64_t hash = hf__name_hash(text, len, redis->hash_key);
    struct hf__redis_channel **at = &redis->channels[hash % HF__REDIS_CHANNELS];

    while (*at && ((*at)->len != len || memcmp((*at)->text, text, len) != 0))
        at = &(*at)->next;
    return at;
}

struct hf__list *hf__redis_wait_waiters(struct hf__redis *redis,
                                        const char *text, size_t len)
{
    struct hf__redis_channel *channel = *find(redis, text, len);

    return channel ? &channel->waiters : NULL;
}

int hf__redis_wait_join(struct hf__redis *redis, struct hf__redis_ticket *mine,
                        const char *text, size_t len, hf_error *err)
{
    struct hf__redis_channel **at = find(redis, text, len);
    struct hf__redis_channel *channel = *at;

    if (!channel) {
        channel = hf__malloc(sizeof(*channel) + len);
        if (!channel)
            return hf__fail(err, HF_ENOMEM, "out of memory");
        channel->next = NULL;
        channel->heard_ns = 0;
        channel->len = len;
        memcpy(channel->text, text, len);
        hf__list_init(&channel->waiters);
        *at = channel;
    }
    mine->channel = channel;
    hf__list_append(&channel->waiters, &mine->hearing);
    return 0;
}

int hf__redis_wait_listen(struct hf__redis *redis,
                          const struct hf__redis_ticket *mine, hf_error *err)
{
    struct hf__redis_channel *channel = mine->channel;
    int rc;

    if (channel->heard_ns == redis->connect_ns)
        return 0;
    hf__redis_connection_put_asking(redis, mine);
    rc = hf__redis_connection_send_subscribe(redis, /* on= */ true,
                                             channel->text, channel->len, err);
    if (rc == 0)
        channel->heard_ns = redis->connect_ns;
    return rc;
}

void hf__redis_wait_ended(struct hf__redis *redis, const char *text, size_t len)
{
    struct hf__redis_channel *channel = *find(redis, text, len);

    if (!channel || !hf__redis_is_up(redis))
        return;
    channel->heard_ns = 0;
    HF_LIST_EACH(&channel->waiters, link) {
        struct hf__ticket *ticket = hf__redis_ticket_of(
            redis, HF_CONTAINER_OF(link, struct hf__redis_ticket, hearing));

        (void)redis->dialect->renew(redis, &ticket, 1, /* err= */ NULL);
    }
}

void hf__redis_wait_unheard(struct hf__redis *redis)
{
    for (size_t i = 0; i < HF__REDIS_CHANNELS; i++) {
        struct hf__redis_channel *channel = redis->channels[i];

        for (; channel; channel = channel->next)
            channel->heard_ns = 0;
    }
}

void hf__redis_wait_part(struct hf__redis *redis, struct hf__redis_ticket *mine)
{
    struct hf__redis_channel *channel = mine->channel;
    struct hf__redis_channel **at;

    if (!channel)
        return;
    mine->channel = NULL;
    hf__list_remove(&mine->hearing);
    if (!hf__list_empty(&channel->waiters))
        return;
    if (hf__redis_is_up(redis) && channel->heard_ns == redis->connect_ns)
        (void)hf__redis_connection_send_subscribe(redis, /* on= */ false,
                                                  channel->text, channel->len,
                                                  /* err= */ NULL);
    at = find(redis, channel->text, channel->len);
    *at = channel->next;
    hf__free(channel);
}
