/* SPDX-License-Identifier: MIT */
/*
 * life.c - the kernel reports the death of clients.
 *
 * Each client has a slot in the table and one thread whose only purpose is to
 * end with the process. The thread registers a robust futex list
 * (set_robust_list(2)), whose words are the life words of the slot: when the
 * thread ends, for whatever reason - kill -9, exec, a crash - the kernel marks
 * the words, the first one first, and wakes a sleeper of each. It does so
 * before it tears down the memory of the process, and between pid namespaces
 * (a word belongs to a slot, and only its own thread's list leads to it); a
 * forked child does not inherit the list. No other mechanism of Linux does all
 * of this.
 *
 * The list's nodes are private memory; one constant offset leads from node i
 * to word i. So other processes cannot change an address of ours.
 *
 * The same thread is the sentry: when none of the client's own threads is in
 * wait(), it sleeps on the watch and kicks the client's loop. It always sleeps
 * on the alarm, by which another client reports that it broke a lock of ours.
 * It also listens for changes of any lock, where somebody watches (watch.c).
 *
 * BURIAL. A thread of a killed process may run for a moment after the kernel
 * has marked its life words. Other clients pass on its locks at once, but reuse
 * its slot and its private blocks only when it is certain that no thread runs:
 * when the client's lock on a byte of the file is gone (the kernel frees it
 * with the last thread), or, because forked children inherit that lock, after
 * two seconds.
 *
 * Failure: a client killed while it took a slot leaves a dead slot.
 */
#include "engines/local/life.h"

#include <errno.h>
#include <fcntl.h>

#include "base/error.h"

#define BURIAL_NS (2 * HF_SECOND)
/* dead_ns of a client that ended in order: no thread of it is left. */
#define LONG_AGO 1

/* ---- others ------------------------------------------------------------ */

void hf__life_notify(const struct hf__table *table, uint64_t client,
                     uint32_t bucket)
{
    uint32_t index = hf__client_slot(client);
    struct hf__table_slot *slot = &table->slots[index];
    uint32_t number;

    if (index >= atomic_load(&table->header->slots_used) ||
        index >= HF__TABLE_SLOTS)
        return;
    number = atomic_fetch_add(&slot->hints_n, 1);
    atomic_store(&slot->hints[number % HF__TABLE_HINTS],
                 (uint64_t)number << 32 | bucket);
    (void)atomic_fetch_add(&slot->inbox, 1);
    HF__POINT("notify");
    if (atomic_load(&slot->sleeping) != 0)
        hf__futex_wake_all(&slot->inbox);
}

void hf__life_alarm(const struct hf__table *table, uint64_t client)
{
    uint32_t index = hf__client_slot(client);
    struct hf__table_slot *slot = &table->slots[index];

    if (index >= atomic_load(&table->header->slots_used) ||
        index >= HF__TABLE_SLOTS)
        return;
    (void)atomic_fetch_add(&slot->alarm, 1);
    hf__futex_wake_all(&slot->alarm);
}

static bool word_lives(uint32_t word)
{
    return (word & FUTEX_TID_MASK) != 0 && (word & FUTEX_OWNER_DIED) == 0;
}

/* The byte of the file that the client of a slot has locked. */
static struct flock slot_lock(uint32_t index)
{
    return (struct flock){
        .l_type = F_WRLCK,
        .l_whence = SEEK_SET,
        .l_start =
            (off_t)(HF__TABLE_SLOTS_AT + index * sizeof(struct hf__table_slot)),
        .l_len = 1,
    };
}

/* Dead slots only: can no thread of its client be running any more? */
static bool slot_buried(const struct hf__table *table, uint32_t index,
                        int64_t now_ns)
{
    struct hf__table_slot *slot = &table->slots[index];
    int64_t dead_ns = atomic_load(&slot->dead_ns);
    struct flock lock = slot_lock(index);

    if (dead_ns == 0 &&
        atomic_compare_exchange_strong(&slot->dead_ns, &dead_ns, now_ns))
        dead_ns = now_ns;
    if (dead_ns < now_ns - BURIAL_NS)
        return true;
    if (fcntl(table->fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK)
        return false;
    (void)atomic_compare_exchange_strong(&slot->dead_ns, &dead_ns, LONG_AGO);
    return true;
}

bool hf__life_buried(const struct hf__table *table, uint64_t client)
{
    uint32_t index = hf__client_slot(client);
    struct hf__table_slot *slot = &table->slots[index];

    if (index >= atomic_load(&table->header->slots_used) ||
        index >= HF__TABLE_SLOTS)
        return true;
    if (word_lives(atomic_load(&slot->life[0].word)) &&
        hf__client_id(atomic_load(&slot->generation), index) == client)
        return false;
    if (hf__client_id(atomic_load(&slot->generation), index) != client)
        return true; /* its slot was taken anew, so it was buried then */
    return slot_buried(table, index, hf__table_now(table));
}

uint64_t hf__life_deaths(const struct hf__table *table)
{
    uint32_t used = atomic_load(&table->header->slots_used);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < used && i < HF__TABLE_SLOTS; i++) {
        struct hf__table_slot *slot = &table->slots[i];
        bool lives = word_lives(atomic_load(&slot->life[0].word));

        sum += (atomic_load(&slot->generation) * 2 + lives) * (2 * i + 1);
    }
    return sum;
}

/* ---- our slot ---------------------------------------------------------- */

static int find_slot(struct hf__store *store, uint32_t *ret_index,
                     hf_error *err)
{
    struct hf__table *table = &store->table;
    uint32_t used = atomic_load(&table->header->slots_used);
    int64_t now_ns = hf__table_now(table);
    int rc;

    if (used > HF__TABLE_SLOTS)
        return hf__table_damaged(err, "slots");
    for (uint32_t i = 0; i < used; i++) {
        struct hf__table_slot *slot = &table->slots[i];

        if (!word_lives(atomic_load(&slot->life[0].word)) &&
            slot_buried(table, i, now_ns)) {
            *ret_index = i;
            return 0;
        }
    }
    rc = hf__table_reserve_slots(table, used + 1, err);
    if (rc != 0)
        return rc;
    atomic_store(&table->header->slots_used, used + 1);
    *ret_index = used;
    return 0;
}

/* A client may still sleep on the words of the previous one in this slot. */
static void clear_words(struct hf__table_slot *slot)
{
    for (unsigned i = 0; i < HF__TABLE_LIVES; i++)
        if (atomic_exchange(&slot->life[i].word, 0) & FUTEX_WAITERS)
            hf__futex_wake_all(&slot->life[i].word);
}

int hf__life_take(struct hf__store *store, const char *host, int64_t pid,
                  hf_error *err)
{
    struct hf__table_slot *slot;
    struct flock lock;
    uint32_t index = 0;
    uint64_t generation;
    int rc = find_slot(store, &index, err);

    if (rc != 0)
        return rc;
    lock = slot_lock(index);
    (void)fcntl(store->table.fd, F_OFD_SETLK, &lock); /* else: two seconds */
    slot = &store->table.slots[index];
    generation = (atomic_load(&slot->generation) + 1) & UINT32_MAX;
    if (generation == 0)
        generation = 1; /* client ids are not 0 */
    clear_words(slot);
    atomic_store(&slot->generation, generation);
    atomic_store(&slot->dead_ns, 0);
    atomic_store(&slot->sleeping, 0);
    slot->pid = pid;
    hf__text_copy(slot->host, sizeof(slot->host), host);
    store->slot = slot;
    store->client = hf__client_id(generation, index);
    return 0;
}

/* ---- the thread -------------------------------------------------------- */

static void register_list(struct hf__life *life)
{
    struct hf__table_slot *slot = life->store->slot;

    for (unsigned i = 0; i < HF__TABLE_LIVES; i++)
        life->nodes[i].list.next = i + 1 < HF__TABLE_LIVES
                                       ? &life->nodes[i + 1].list
                                       : &life->head.list;
    life->head.list.next = &life->nodes[0].list;
    life->head.futex_offset =
        (long)((intptr_t)&slot->life[0].word - (intptr_t)&life->nodes[0]);
    life->head.list_op_pending = NULL;
    (void)syscall(SYS_set_robust_list, &life->head, sizeof(life->head));
}

static void be_born(struct hf__life *life)
{
    struct hf__table_slot *slot = life->store->slot;
    uint32_t tid = (uint32_t)syscall(SYS_gettid);

    _Static_assert(sizeof(life->nodes[0]) == sizeof(slot->life[0]),
                   "one offset leads from every node to its word");
    register_list(life);
    for (unsigned i = HF__TABLE_LIVES; i > 0; i--)
        atomic_store(&slot->life[i - 1].word, tid);
}

/* The same that the kernel would do. */
static void die(struct hf__life *life)
{
    struct hf__table_slot *slot = life->store->slot;

    for (unsigned i = 0; i < HF__TABLE_LIVES; i++)
        if (atomic_exchange(&slot->life[i].word, FUTEX_OWNER_DIED) &
            FUTEX_WAITERS)
            hf__futex_wake_all(&slot->life[i].word);
    atomic_store(&slot->dead_ns, LONG_AGO);
}

/* The count of changes, if we listen for it. The bit asks those who add to it to
 * wake us. */
static void gather_changes(struct hf__life *life, struct hf__watch *own)
{
    _Atomic uint32_t *word = &life->store->table.header->changes;

    if (!atomic_load(&life->listening))
        return;
    (void)atomic_fetch_or(word, 1);
    own->at[own->n].word = word;
    own->at[own->n].value = atomic_load(&life->changes) | 1;
    own->at[own->n].private = false;
    own->n++;
}

/* The words that this thread sleeps on: the bell, the alarm, the changes, and
 * the watch if it is the sentry; then the inbox is among them. */
static bool gather(struct hf__life *life, struct hf__watch *own, uint32_t bell,
                   uint32_t alarm)
{
    struct hf__watch *watch = life->watch;

    own->n = 2;
    own->until_ns = HF_NEVER;
    own->at[0].word = &life->bell;
    own->at[0].value = bell;
    own->at[0].private = true;
    own->at[1].word = &life->store->slot->alarm;
    own->at[1].value = alarm;
    own->at[1].private = false;
    gather_changes(life, own);
    if (!atomic_load(&life->armed)) {
        if (!hf__watch_kernel_can())
            own->n = 1; /* a late alarm is better than a busy loop */
        return false;
    }
    (void)pthread_mutex_lock(&watch->lock);
    for (uint32_t i = 0; i < watch->n && own->n < HF__WATCH_MAX; i++)
        own->at[own->n++] = watch->at[i];
    own->until_ns = watch->until_ns;
    (void)pthread_mutex_unlock(&watch->lock);
    return true;
}

/* True if one of the words has changed. */
static bool has_come(const struct hf__watch *own)
{
    for (uint32_t i = 1; i < own->n; i++)
        if (atomic_load(own->at[i].word) != own->at[i].value)
            return true;
    return own->until_ns != HF_NEVER && own->until_ns <= hf__now();
}

static void live(void *arg)
{
    struct hf__life *life = arg;
    struct hf__table_slot *slot = life->store->slot;
    struct hf__watch own;
    uint32_t alarm = atomic_load(&slot->alarm);

    be_born(life);
    atomic_store(&life->started, 1);
    hf__world->unpark(&life->started, HF_ANYBODY);
    memset(&own, 0, sizeof(own));
    for (;;) {
        uint32_t bell = atomic_load(&life->bell);
        uint32_t armed;

        if (atomic_load(&life->stop))
            break;
        armed = gather(life, &own, bell, alarm) ? 1 : 0;
        (void)atomic_fetch_add(&slot->sleeping, armed);
        hf__watch_sleep_on(&own, own.until_ns);
        (void)atomic_fetch_sub(&slot->sleeping, armed);
        if (!has_come(&own))
            continue;
        /* Once per watch: the thread that handles it makes the next. */
        alarm = atomic_load(&slot->alarm);
        atomic_store(&life->armed, false);
        atomic_store(&life->listening, false);
        hf__loop_kick(life->loop);
    }
    die(life);
}

static void ring(struct hf__life *life)
{
    (void)atomic_fetch_add(&life->bell, 1);
    hf__world->unpark(&life->bell, HF_ANYBODY);
}

int hf__life_start(struct hf__life *life, struct hf__store *store,
                   struct hf__watch *watch, struct hf__loop *loop,
                   hf_error *err)
{
    memset(life, 0, sizeof(*life));
    life->store = store;
    life->watch = watch;
    life->loop = loop;
    if (hf__world->thread_start(&life->thread, "hf-life", live, life) != 0) {
        life->thread = NULL;
        return hf__fail(err, HF_ENOMEM, "cannot start a thread");
    }
    while (atomic_load(&life->started) == 0)
        hf__world->park(&life->started, 0, HF_ANYBODY, HF_NEVER);
    return 0;
}

void hf__life_stop(struct hf__life *life)
{
    if (!life->thread)
        return;
    atomic_store(&life->stop, true);
    ring(life);
    hf__world->thread_join(life->thread);
    life->thread = NULL;
}

void hf__life_arm(struct hf__life *life, bool on)
{
    if (!life->thread || (!on && !atomic_load(&life->armed)))
        return;
    atomic_store(&life->armed, on);
    ring(life);
}

void hf__life_listen(struct hf__life *life, uint32_t changes)
{
    if (!life->thread)
        return;
    atomic_store(&life->changes, changes);
    atomic_store(&life->listening, true);
    ring(life);
}
