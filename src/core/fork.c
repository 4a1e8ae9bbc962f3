/* SPDX-License-Identifier: MIT */
/*
 * fork.c - what a forked child may not do.
 *
 * The child has copies of our memory and descriptors but not our threads, and
 * a monitor that another thread held at the fork stays locked for ever. So
 * every handle remembers the generation of processes it was made in, and is
 * refused in a later one before its mutex is touched. The child also closes
 * our descriptors, by close() alone: it must keep no connection, and with it
 * no lock, of the parent alive.
 */
#include "core/fork.h"

#include <pthread.h>

_Atomic uint32_t hf__fork_generation;

static pthread_mutex_t all_guard = PTHREAD_MUTEX_INITIALIZER;
static struct hf__list all = {&all, &all};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watching;
static uint64_t process; /* 0: not made yet */
static int64_t process_offset_us;

static void before_fork(void)
{
    (void)pthread_mutex_lock(&all_guard);
}

static void after_fork_parent(void)
{
    (void)pthread_mutex_unlock(&all_guard);
}

static void after_fork_child(void)
{
    atomic_fetch_add_explicit(&hf__fork_generation, 1, memory_order_relaxed);
    process = 0;
    HF_LIST_EACH(&all, link) {
        hf_client *client = HF_CONTAINER_OF(link, hf_client, link);

        hf__list_remove(link);
        hf__client_abandon(client);
    }
    (void)pthread_mutex_unlock(&all_guard);
}

static void watch(void)
{
    watching = pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

int hf__fork_watch(hf_client *client)
{
    (void)pthread_once(&once, watch);
    if (watching != 0)
        return HF_ENOMEM;
    (void)pthread_mutex_lock(&all_guard);
    hf__list_append(&all, &client->link);
    client->fork_generation = atomic_load(&hf__fork_generation);
    (void)pthread_mutex_unlock(&all_guard);
    return 0;
}

void hf__fork_unwatch(hf_client *client)
{
    (void)pthread_mutex_lock(&all_guard);
    hf__list_remove(&client->link);
    (void)pthread_mutex_unlock(&all_guard);
}

/* ---- asking several clients ------------------------------------------------ */

static uint64_t identity_of(const hf_client *client)
{
    uint64_t identity;

    memcpy(&identity, client->host.identity, sizeof(identity));
    return identity;
}

size_t hf__fork_clients(struct hf__fork_client *to, size_t max)
{
    size_t n = 0;

    (void)pthread_mutex_lock(&all_guard);
    HF_LIST_EACH(&all, link) {
        hf_client *client = HF_CONTAINER_OF(link, hf_client, link);

        if (n < max)
            to[n++] = (struct hf__fork_client){client, identity_of(client)};
    }
    (void)pthread_mutex_unlock(&all_guard);
    return n;
}

bool hf__fork_keep(const struct hf__fork_client *found)
{
    bool kept = false;

    (void)pthread_mutex_lock(&all_guard);
    HF_LIST_EACH(&all, link) {
        hf_client *client = HF_CONTAINER_OF(link, hf_client, link);

        if (client == found->client && !client->unkept &&
            identity_of(client) == found->identity) {
            atomic_fetch_add(&client->keepers, 1);
            kept = true;
        }
    }
    (void)pthread_mutex_unlock(&all_guard);
    return kept;
}

void hf__fork_let_go(hf_client *client)
{
    _Atomic uint32_t *keepers = &client->keepers;

    (void)pthread_mutex_lock(&all_guard);
    atomic_fetch_sub(keepers, 1);
    (void)pthread_mutex_unlock(&all_guard);
    hf__world->unpark(keepers, HF_ANYBODY); /* does not read it */
}

void hf__fork_await_keepers(hf_client *client)
{
    uint32_t n;

    (void)pthread_mutex_lock(&all_guard);
    client->unkept = true;
    n = atomic_load(&client->keepers);
    (void)pthread_mutex_unlock(&all_guard);
    while (n > 0) {
        hf__world->park(&client->keepers, n, HF_ANYBODY, HF_NEVER);
        /* A thread lets go under the guard: wait until it is out of that. */
        (void)pthread_mutex_lock(&all_guard);
        n = atomic_load(&client->keepers);
        (void)pthread_mutex_unlock(&all_guard);
    }
}

uint64_t hf__fork_process(int64_t *ret_offset_us)
{
    uint64_t number;

    (void)pthread_mutex_lock(&all_guard);
    if (process == 0) {
        (void)hf__world->random(&process, sizeof(process));
        process |= 1;
        process_offset_us = hf__world->wall_us() - hf__now() / 1000;
    }
    number = process;
    *ret_offset_us = process_offset_us;
    (void)pthread_mutex_unlock(&all_guard);
    return number;
}
