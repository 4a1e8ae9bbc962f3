/* SPDX-License-Identifier: MIT */
/*
 * watch.c - hints that something changed: a count in the header.
 *
 * A client that watches writes into the header until when it does, and again
 * every second. A client that has changed a bucket reads that instant: 0 means
 * that nobody watches, and is all that an unwatched pair pays for. Otherwise it
 * adds to the count of changes, and wakes the watchers' life threads that sleep
 * on it. The bit below the count says that there are any; so however many
 * changes there are, a life thread is woken once, and sleeps on the count again
 * no earlier than 50 ms later.
 *
 * The count does not say what changed: the core lists.
 *
 * Failure: a watcher that is killed is forgotten three seconds later. A process
 * that cannot sleep on several words (no futex_waitv) is looked after in turns.
 */
#include "engines/local/local.h"

#define WATCHED_NS (3 * HF_SECOND)
#define REFRESH_NS HF_SECOND
#define GAP_NS (50 * HF_MS)

/* ---- who changes something -------------------------------------------------- */

void hf__local_watch_tell(const struct hf__table *table)
{
    struct hf__table_header *header = table->header;
    int64_t until_ns = atomic_load(&header->watched_ns);
    int64_t now_ns = hf__table_now(table);

    if (until_ns < now_ns || until_ns > now_ns + 2 * WATCHED_NS) {
        (void)atomic_compare_exchange_strong(&header->watched_ns, &until_ns, 0);
        return;
    }
    if (atomic_fetch_add(&header->changes, 2) & 1) {
        (void)atomic_fetch_and(&header->changes, ~UINT32_C(1));
        hf__futex_wake_all(&header->changes);
    }
}

/* ---- who watches ------------------------------------------------------------ */

static uint32_t count_of(const struct hf__local *local)
{
    return atomic_load(&local->store.table.header->changes) & ~UINT32_C(1);
}

static void set_timer(struct hf__local *local, int64_t after_ns)
{
    const struct hf__engine_host *host = local->base.host;

    host->timer(host, &local->watch_timer, hf__now() + after_ns);
}

static void listen(struct hf__local *local)
{
    struct hf__table *table = &local->store.table;

    atomic_store(&table->header->watched_ns, hf__table_now(table) + WATCHED_NS);
    local->resting = false;
    hf__life_listen(&local->life, local->changes);
    set_timer(local, REFRESH_NS);
}

/* Has anything changed? Then tell it, and listen again a little later. */
static bool look(struct hf__local *local)
{
    uint32_t changes = count_of(local);

    if (changes == local->changes)
        return false;
    local->changes = changes;
    local->resting = true;
    set_timer(local, GAP_NS);
    hf__up_changed(&local->base, NULL);
    return true;
}

void hf__local_watch_attend(struct hf__local *local)
{
    if (!look(local) && !local->resting && !hf__life_listens(&local->life))
        listen(local);
}

static void watch_fire(struct hf__timer *timer)
{
    struct hf__local *local =
        HF_CONTAINER_OF(timer, struct hf__local, watch_timer);

    if (local->connected && !hf__list_empty(&local->feeds) && !look(local))
        listen(local);
}

void hf__local_watch(struct hf__engine *engine, struct hf__feed *feed)
{
    struct hf__local *local = (struct hf__local *)engine;

    hf__list_remove(&feed->link);
    feed->live = local->connected && hf__watch_kernel_can();
    feed->refused = !hf__watch_kernel_can();
    if (!feed->live)
        return;
    hf__list_append(&local->feeds, &feed->link);
    local->watch_timer.fire = watch_fire;
    local->changes = count_of(local);
    listen(local);
    hf__up_changed(engine, NULL);
}

void hf__local_watch_stop(struct hf__engine *engine, struct hf__feed *feed)
{
    struct hf__local *local = (struct hf__local *)engine;

    hf__list_remove(&feed->link);
    feed->live = false;
    if (hf__list_empty(&local->feeds))
        hf__timer_stop(engine->host->loop, &local->watch_timer);
}
