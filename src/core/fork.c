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
#include <pthread.h>

#include "core/client.h"

_Atomic uint32_t hf__fork_generation;

static pthread_mutex_t all_guard = PTHREAD_MUTEX_INITIALIZER;
static struct hf__list all = {&all, &all};
static pthread_once_t once = PTHREAD_ONCE_INIT;
static int watching;

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
