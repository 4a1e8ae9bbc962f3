/* SPDX-License-Identifier: MIT */
/*
 * waiting.c - sleep until something may have happened.
 *
 * A waiting client sleeps in futex_waitv() on its inbox and on a life word of
 * every client whose death concerns it: the waiter before it, or all holders
 * if it is the first. A client that grants adds one to the inbox and wakes it.
 * Of the 64 life words of a client each watcher uses the one of its own slot
 * number, because the kernel wakes only one sleeper of a dead thread's word,
 * and only if FUTEX_WAITERS is set in it; a watcher that finds a word dead
 * wakes the others that share it.
 *
 * A thread makes the set under the monitor and sleeps on it without. It reads
 * the values of the set before the buckets, so a change in between ends the
 * sleep before it begins.
 *
 * Failure: without futex_waitv (before Linux 5.16, or forbidden), and for more
 * than 119 words, a client sleeps on the inbox alone, 20 ms at a time. Every
 * sleep has an end anyway (attend.c), which covers a wake-up whose sender was
 * killed before it sent it.
 */
#include "engines/local/waiting.h"

#define NO_WAITV_NS (20 * HF_MS)

static _Atomic bool kernel_cannot;

void hf__watch_ask_kernel(void)
{
    struct hf__futex_waitv none[1];

    memset(none, 0, sizeof(none));
    if (!hf__futex_wait_any(none, 0, NULL)) /* EINVAL where it is known */
        atomic_store(&kernel_cannot, true);
}

bool hf__watch_kernel_can(void)
{
    return !atomic_load(&kernel_cannot);
}

void hf__watch_forbid(bool forbid)
{
    atomic_store(&kernel_cannot, forbid);
}

void hf__watch_init(struct hf__watch *watch)
{
    memset(watch, 0, sizeof(*watch));
    (void)pthread_mutex_init(&watch->lock, NULL); /* cannot fail on Linux */
    watch->until_ns = HF_NEVER;
}

void hf__watch_release(struct hf__watch *watch)
{
    (void)pthread_mutex_destroy(&watch->lock);
}

void hf__watch_begin(struct hf__watch *watch)
{
    (void)pthread_mutex_lock(&watch->lock);
}

void hf__watch_end(struct hf__watch *watch)
{
    (void)pthread_mutex_unlock(&watch->lock);
}

void hf__watch_reset(struct hf__watch *watch, const struct hf__store *store,
                     uint32_t value)
{
    watch->n = 1;
    watch->until_ns = HF_NEVER;
    watch->at[0].word = &store->slot->inbox;
    watch->at[0].value = value;
}

void hf__watch_inbox(struct hf__watch *watch, uint32_t value)
{
    watch->at[0].value = value;
}

void hf__watch_until(struct hf__watch *watch, const struct hf__store *store,
                     int64_t instant_ns)
{
    int64_t own_ns = hf__instant_add(instant_ns, store->table.offset_ns);

    if (own_ns < watch->until_ns)
        watch->until_ns = own_ns;
}

/* Ask the kernel to wake us when the owner of @word dies. 0: it is dead. */
static uint32_t mark_watched(_Atomic uint32_t *word)
{
    uint32_t value = atomic_load(word);

    for (;;) {
        if ((value & FUTEX_TID_MASK) == 0 || (value & FUTEX_OWNER_DIED) != 0)
            return 0;
        if (value & FUTEX_WAITERS)
            return value;
        if (atomic_compare_exchange_weak(word, &value, value | FUTEX_WAITERS))
            return value | FUTEX_WAITERS;
    }
}

static bool append(struct hf__watch *watch, _Atomic uint32_t *word,
                   uint32_t value)
{
    if (watch->n >= HF__WATCH_MAX - 3) /* three are the life thread's */
        return false;
    watch->at[watch->n].word = word;
    watch->at[watch->n].value = value;
    watch->n++;
    return true;
}

bool hf__watch_add(struct hf__watch *watch, const struct hf__store *store,
                   uint64_t client)
{
    uint32_t own = hf__client_slot(store->client) % HF__TABLE_LIVES;
    uint32_t index = hf__client_slot(client);
    _Atomic uint32_t *word;
    uint32_t value;

    if (client == store->client)
        return true;
    if (!hf__life_alive(&store->table, client))
        return false;
    word = &store->table.slots[index].life[own].word;
    for (uint32_t i = 1; i < watch->n; i++)
        if (watch->at[i].word == word)
            return true;
    value = mark_watched(word);
    if (value == 0 || !hf__life_alive(&store->table, client))
        return false;
    if (!append(watch, word, value))
        hf__watch_until(watch, store,
                        hf__table_now(&store->table) + NO_WAITV_NS);
    return true;
}

bool hf__watch_pass_on(const struct hf__watch *watch)
{
    bool died = false;

    for (uint32_t i = 1; i < watch->n; i++) {
        uint32_t value = atomic_load(watch->at[i].word);

        if (value == watch->at[i].value)
            continue;
        hf__futex_wake_all(watch->at[i].word);
        died = true;
    }
    return died;
}

static struct timespec *monotonic_at(struct timespec *at, int64_t left_ns)
{
    (void)clock_gettime(CLOCK_MONOTONIC, at); /* cannot fail */
    at->tv_sec += left_ns / HF_SECOND;
    at->tv_nsec += left_ns % HF_SECOND;
    if (at->tv_nsec >= HF_SECOND) {
        at->tv_nsec -= HF_SECOND;
        at->tv_sec++;
    }
    return at;
}

void hf__watch_sleep_on(const struct hf__watch *watch, int64_t until_ns)
{
    struct hf__futex_waitv words[HF__WATCH_MAX];
    struct timespec at;
    struct timespec *timeout = NULL;
    int64_t left_ns = HF_NEVER;

    if (until_ns != HF_NEVER) {
        left_ns = until_ns - hf__now();
        if (left_ns <= 0)
            return;
        timeout = monotonic_at(&at, left_ns);
    }
    for (uint32_t i = 0; i < watch->n; i++) {
        words[i].value = watch->at[i].value;
        words[i].address = (uint64_t)(uintptr_t)watch->at[i].word;
        words[i].flags =
            HF__FUTEX_32 |
            (watch->at[i].private ? (uint32_t)HF__FUTEX_PRIVATE : 0);
        words[i].reserved = 0;
    }
    if (watch->n > 1 && !atomic_load(&kernel_cannot)) {
        if (hf__futex_wait_any(words, watch->n, timeout))
            return;
        atomic_store(&kernel_cannot, true);
    }
    if (watch->n > 1 && left_ns > NO_WAITV_NS)
        timeout = monotonic_at(&at, NO_WAITV_NS);
    hf__futex_wait(watch->at[0].word, watch->at[0].value, watch->at[0].private,
                   timeout);
}

void hf__watch_sleep(struct hf__watch *watch, const struct hf__store *store,
                     _Atomic bool *kicked, int64_t until_ns)
{
    struct hf__watch copy;

    (void)pthread_mutex_lock(&watch->lock);
    copy.n = watch->n;
    copy.until_ns = watch->until_ns;
    memcpy(copy.at, watch->at, sizeof(watch->at[0]) * watch->n);
    (void)pthread_mutex_unlock(&watch->lock);
    if (copy.until_ns < until_ns)
        until_ns = copy.until_ns;
    (void)atomic_fetch_add(&store->slot->sleeping, 1);
    if (!atomic_exchange(kicked, false))
        hf__watch_sleep_on(&copy, until_ns);
    (void)atomic_fetch_sub(&store->slot->sleeping, 1);
}
