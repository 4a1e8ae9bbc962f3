/* SPDX-License-Identifier: MIT */
/*
 * block.c - blocks between the table and the draft, and their owners.
 *
 * READING. Load the bucket's word, copy the block it names, load the word
 * again: if it is the same, the copy is whole, because a block is not written
 * while it is installed and versions never repeat. The block has a checksum
 * over the word and itself: a mismatch is damage, and no client acts on it.
 *
 * WRITING. Fill a block of our own, then compare-and-swap the word. The client
 * that replaces a block becomes the owner of the old one. So a client needs a
 * few spare blocks and no free list, and a client killed at any instruction
 * leaves nothing to repair, only blocks without an owner.
 *
 * OWNING. block.owner moves by compare-and-swap, and its tag grows with every
 * move. A block may be taken by
 *
 *   the client that has just replaced it, from the owner that it read while
 *   the block was installed;
 *   any client, if the block has no owner, or one that is dead and buried, or
 *   is the client's own (the client that replaced it was killed before it took
 *   it), and no bucket names it.
 *
 * In the second case the client reads the owner, then the bucket, then swaps
 * the owner. Only an owner installs a block, and this one does not, so it is
 * not installed between the read and the swap unless the owner, and so the tag,
 * has changed. If a replacer has removed it but not taken it yet, one of the
 * two swaps fails. tests/model/local_blocks.pml checks this protocol.
 *
 * "Buried" (life.c): none of its threads can still be running. Two clients must
 * not write one private block.
 */
#include "base/error.h"
#include "engines/local/store.h"

/* ---- the checksum ------------------------------------------------------ */

static inline uint64_t check_add(uint64_t sum, uint64_t word)
{
    return ((sum << 7) | (sum >> 57)) + word * UINT64_C(0x9e3779b97f4a7c15);
}

static inline uint64_t check_begin(uint64_t word, uint64_t last, uint64_t place)
{
    return check_add(check_add(check_add(1, word), last), place);
}

/* ---- spare blocks ------------------------------------------------------ */

/* Does a bucket name the block at @unit? */
static bool installed(const struct hf__table *table, uint32_t unit)
{
    const struct hf__table_block *block = hf__table_block_at(table, unit);
    uint32_t bucket =
        (uint32_t)atomic_load_explicit(&block->place, memory_order_acquire);
    uint64_t word;

    if (bucket >= HF__TABLE_BUCKETS)
        return false;
    word = atomic_load_explicit(&table->buckets[bucket].word,
                                memory_order_acquire);
    return !hf__word_empty(word) && hf__word_unit(word) == unit;
}

void hf__block_put(struct hf__store *store, uint32_t unit, unsigned size_class)
{
    struct hf__stock *stock = &store->stock;
    struct hf__table_block *block;
    uint64_t owner;

    if (HF_LIKELY(stock->n[size_class] < HF__STOCK)) {
        stock->unit[size_class][stock->n[size_class]++] = unit;
        return;
    }
    block = hf__table_block_at(&store->table, unit);
    owner = atomic_load_explicit(&block->owner, memory_order_relaxed);
    atomic_store_explicit(&block->owner, owner & ~HF__OWNER_CLIENT,
                          memory_order_release);
    (void)atomic_fetch_add_explicit(&store->table.header->free[size_class], 1,
                                    memory_order_relaxed);
}

void hf__block_release(struct hf__store *store)
{
    for (unsigned c = 1; c <= HF__TABLE_CLASSES; c++) {
        while (store->stock.n[c] > 0) {
            uint32_t unit = store->stock.unit[c][--store->stock.n[c]];
            struct hf__table_block *block =
                hf__table_block_at(&store->table, unit);
            uint64_t owner = atomic_load(&block->owner);

            atomic_store(&block->owner, owner & ~HF__OWNER_CLIENT);
            (void)atomic_fetch_add(&store->table.header->free[c], 1);
        }
    }
}

static bool in_stock(const struct hf__stock *stock, uint32_t unit,
                     unsigned size_class)
{
    for (unsigned i = 0; i < stock->n[size_class]; i++)
        if (stock->unit[size_class][i] == unit)
            return true;
    return false;
}

static inline uint64_t owner_next(uint64_t owner, uint64_t client)
{
    return ((owner & ~HF__OWNER_CLIENT) + HF__OWNER_TAG) | client;
}

/* Take a block in the second case above. */
static bool claim(struct hf__store *store, uint32_t unit, unsigned size_class)
{
    struct hf__table_block *block = hf__table_block_at(&store->table, unit);
    uint64_t owner = atomic_load(&block->owner);
    uint64_t client = owner & HF__OWNER_CLIENT;

    if (client == store->client) {
        if (in_stock(&store->stock, unit, size_class))
            return false;
    } else if (client != 0 && !hf__life_buried(&store->table, client)) {
        return false;
    }
    if (installed(&store->table, unit))
        return false;
    HF__POINT("claim");
    if (!atomic_compare_exchange_strong(&block->owner, &owner,
                                        owner_next(owner, store->client)))
        return false;
    if (client == 0)
        (void)atomic_fetch_sub_explicit(&store->table.header->free[size_class],
                                        1, memory_order_relaxed);
    return true;
}

/* Claim blocks of one segment; true if there are enough. */
static bool claim_segment(struct hf__store *store, uint32_t segment,
                          unsigned size_class)
{
    uint32_t step = hf__class_units(size_class);
    uint32_t unit = segment * HF__TABLE_UNITS;
    uint32_t end =
        step > HF__TABLE_UNITS ? unit + step : unit + HF__TABLE_UNITS;

    for (; unit + step <= end && end <= store->table.units; unit += step) {
        if (!claim(store, unit, size_class))
            continue;
        hf__block_put(store, unit, size_class);
        if (store->stock.n[size_class] >= HF__STOCK / 2)
            return true;
    }
    return false;
}

/* One lap over all segments of the class, beginning where the last one
 * ended. */
static void scan(struct hf__store *store, unsigned size_class)
{
    struct hf__table *table = &store->table;
    uint32_t *cursor = &store->stock.cursor[size_class];
    uint32_t segments;

    if (!hf__table_reach(table, 0))
        return;
    segments = table->units / HF__TABLE_UNITS;
    for (uint32_t i = 0; i < segments; i++) {
        if (*cursor >= segments)
            *cursor = 0;
        if (atomic_load_explicit(&table->map[*cursor], memory_order_acquire) ==
                size_class &&
            claim_segment(store, *cursor, size_class))
            return;
        (*cursor)++;
    }
    /* Nothing left, whatever the hint says. */
    atomic_store_explicit(&table->header->free[size_class], 0,
                          memory_order_relaxed);
}

/* More memory: an eighth of what there is, so that laps stay rare. */
static int grow(struct hf__store *store, unsigned size_class, hf_error *err)
{
    struct hf__table *table = &store->table;
    uint32_t more = atomic_load(&table->header->classes[size_class]) / 8 + 1;
    int rc = 0;

    if (size_class == HF__TABLE_CLASSES || more > 64)
        more = size_class == HF__TABLE_CLASSES ? 1 : 64;
    store->stock.cursor[size_class] = table->units / HF__TABLE_UNITS;
    for (uint32_t i = 0; i < more && rc == 0; i++) {
        rc = hf__table_grow(table, size_class, err);
        if (rc != 0 && i > 0)
            rc = 0; /* less than wanted, but some */
    }
    return rc;
}

/* Claim blocks of dead clients, spare or with their tickets, if a client may
 * have died since the last search. */
static void inherit(struct hf__store *store, unsigned size_class,
                    unsigned wanted)
{
    struct hf__table_header *header = store->table.header;
    uint64_t deaths = hf__life_deaths(&store->table);

    if (atomic_load(&header->segments) <= 1 ||
        atomic_load(&header->purged) == deaths)
        return;
    scan(store, size_class);
    if (store->stock.n[size_class] < wanted) {
        hf__block_purge(store);
        atomic_store(&header->purged, deaths);
        scan(store, size_class);
    }
}

/* Others may take the new blocks before us, but not for ever. */
enum { GROWTHS = 16 };

/* At least @wanted spare blocks of the class. */
static int fill(struct hf__store *store, unsigned size_class, unsigned wanted,
                hf_error *err)
{
    struct hf__stock *stock = &store->stock;
    int rc;

    if (HF_LIKELY(stock->n[size_class] >= wanted))
        return 0;
    if (atomic_load(&store->table.header->free[size_class]) > 0)
        scan(store, size_class);
    if (stock->n[size_class] >= wanted)
        return 0;
    if (stock->purging)
        return HF_ENOSPACE;
    inherit(store, size_class, wanted);
    for (int i = 0; stock->n[size_class] < wanted; i++) {
        if (i == GROWTHS)
            return hf__table_damaged(err, "no new block is free");
        rc = grow(store, size_class, err);
        scan(store, size_class);
        if (rc != 0 && stock->n[size_class] < wanted)
            return rc;
    }
    return 0;
}

static unsigned class_for(uint32_t used)
{
    uint32_t bytes = used + (uint32_t)sizeof(struct hf__table_block);
    unsigned size_class = 1;

    while (hf__class_bytes(size_class) < bytes)
        size_class++;
    return size_class;
}

int hf__block_ready(struct hf__store *store, const struct hf__draft *draft,
                    hf_error *err)
{
    unsigned size_class = class_for(draft->used);

    return fill(store, size_class, size_class < 4 ? 2 : 1, err);
}

/* ---- reading ----------------------------------------------------------- */

/* Copy the block that @word names. 0; 1: inconsistent, which is damage if the
 * bucket still has that word; HF_ENOMEM. */
static int copy(struct hf__store *store, uint64_t word, struct hf__draft *draft)
{
    unsigned size_class = hf__word_class(word);
    uint32_t unit = hf__word_unit(word);
    const struct hf__table_block *block;
    uint64_t last;
    uint64_t place;
    uint64_t sum;
    uint64_t wanted;

    if (size_class == 0 || size_class > HF__TABLE_CLASSES || unit == 0)
        return 1;
    if (unit + hf__class_units(size_class) > store->table.units &&
        !hf__table_reach(&store->table, unit + hf__class_units(size_class)))
        return 1;
    block = hf__table_block_at(&store->table, unit);
    draft->owner = atomic_load_explicit(&block->owner, memory_order_acquire);
    last = atomic_load_explicit(&block->last, memory_order_relaxed);
    place = atomic_load_explicit(&block->place, memory_order_relaxed);
    wanted = atomic_load_explicit(&block->check, memory_order_relaxed);
    draft->used = (uint32_t)(place >> 32);
    if ((uint32_t)place != draft->bucket || draft->used % 8 != 0 ||
        draft->used + sizeof(*block) > hf__class_bytes(size_class))
        return 1;
    if (hf__draft_room(draft, draft->used) != 0)
        return HF_ENOMEM;
    sum = check_begin(word, last, place);
    for (uint32_t i = 0; i < draft->used / 8; i++) {
        uint64_t value =
            atomic_load_explicit(&block->records[i], memory_order_relaxed);

        memcpy(draft->bytes + (size_t)i * 8, &value, 8);
        sum = check_add(sum, value);
    }
    if (sum != wanted || last > HF__TOKEN_MAX || !hf__draft_check(draft))
        return 1;
    if (last > draft->last)
        draft->last = last;
    return 0;
}

int hf__block_load(struct hf__store *store, uint32_t bucket,
                   struct hf__draft *draft, hf_error *err)
{
    const struct hf__table_bucket *at = &store->table.buckets[bucket];
    int rc;

    draft->bucket = bucket;
    draft->changed = false;
    for (;;) {
        uint64_t word = atomic_load_explicit(&at->word, memory_order_acquire);

        draft->word = word;
        draft->last = atomic_load_explicit(&at->last, memory_order_acquire);
        draft->used = 0;
        draft->owner = 0;
        if (draft->last > HF__TOKEN_MAX)
            return hf__table_damaged(err, "tokens");
        if (hf__word_empty(word))
            return 0;
        rc = copy(store, word, draft);
        if (rc < 0)
            return hf__fail(err, rc, "out of memory");
        HF__FENCE(memory_order_acquire);
        if (atomic_load_explicit(&at->word, memory_order_relaxed) != word)
            continue; /* replaced while we read it: progress */
        return rc == 0 ? 0 : hf__table_damaged(err, "block");
    }
}

/* ---- writing ----------------------------------------------------------- */

static void raise_last(struct hf__table_bucket *at, uint64_t last)
{
    uint64_t seen = atomic_load_explicit(&at->last, memory_order_relaxed);

    while (seen < last && !atomic_compare_exchange_weak(&at->last, &seen, last))
        continue;
}

static void fill_block(struct hf__table_block *block, uint64_t word,
                       const struct hf__draft *draft)
{
    uint64_t place = (uint64_t)draft->used << 32 | draft->bucket;
    uint64_t sum = check_begin(word, draft->last, place);

    /* A reader that sees any of these stores must also see that its bucket
     * has changed since. */
    HF__FENCE(memory_order_release);
    atomic_store_explicit(&block->last, draft->last, memory_order_relaxed);
    atomic_store_explicit(&block->place, place, memory_order_relaxed);
    for (uint32_t i = 0; i < draft->used / 8; i++) {
        uint64_t value;

        memcpy(&value, draft->bytes + (size_t)i * 8, 8);
        atomic_store_explicit(&block->records[i], value, memory_order_relaxed);
        sum = check_add(sum, value);
    }
    atomic_store_explicit(&block->check, sum, memory_order_relaxed);
}

/* We have just replaced the block of @word: take it. */
static void take_old(struct hf__store *store, uint64_t word, uint64_t owner)
{
    uint32_t unit = hf__word_unit(word);
    struct hf__table_block *block = hf__table_block_at(&store->table, unit);

    HF__POINT("take");
    if (atomic_compare_exchange_strong(&block->owner, &owner,
                                       owner_next(owner, store->client)))
        hf__block_put(store, unit, hf__word_class(word));
}

/* The swap comes before the load: a watcher sees the one, or we the other. */
static inline void tell_watchers(const struct hf__store *store)
{
    if (HF_UNLIKELY(atomic_load(&store->table.header->watched_ns) != 0))
        hf__local_watch_tell(&store->table);
}

int hf__block_install(struct hf__store *store, struct hf__draft *draft,
                      hf_error *err)
{
    struct hf__table_bucket *at = &store->table.buckets[draft->bucket];
    uint64_t seen = draft->word;
    uint64_t word;
    unsigned size_class = 0;
    uint32_t unit = 0;

    if (draft->used == 0) {
        raise_last(at, draft->last);
    } else {
        int rc;

        size_class = class_for(draft->used);
        rc = fill(store, size_class, 1, err);
        if (rc != 0)
            return rc;
        unit = store->stock.unit[size_class][--store->stock.n[size_class]];
    }
    word = hf__word_next(seen, unit, size_class);
    if (draft->used != 0)
        fill_block(hf__table_block_at(&store->table, unit), word, draft);
    HF__POINT("before_cas");
    if (!atomic_compare_exchange_strong(&at->word, &seen, word)) {
        if (draft->used != 0)
            hf__block_put(store, unit, size_class);
        return 1;
    }
    HF__POINT("after_cas");
    tell_watchers(store);
    if (!hf__word_empty(seen))
        take_old(store, seen, draft->owner);
    draft->word = word;
    draft->changed = false;
    return 0;
}

bool hf__block_empty(struct hf__store *store, uint32_t bucket, uint64_t word,
                     uint64_t last)
{
    struct hf__table_bucket *at = &store->table.buckets[bucket];

    if (atomic_load_explicit(&at->word, memory_order_relaxed) != word)
        return false;
    raise_last(at, last);
    HF__POINT("before_cas");
    if (!atomic_compare_exchange_strong(&at->word, &word,
                                        hf__word_next(word, 0, 0)))
        return false;
    HF__POINT("after_cas");
    tell_watchers(store);
    hf__block_put(store, hf__word_unit(word), hf__word_class(word));
    return true;
}

/* ---- the tickets of the dead ------------------------------------------- */

/* One dead ticket's name; false if there is none in the draft. */
static bool find_dead(const struct hf__store *store,
                      const struct hf__draft *draft, struct hf__key *key,
                      int64_t now_ns)
{
    HF__RECORDS(draft, record) {
        if (!hf__draft_stale(&store->table, record, now_ns) ||
            (record->state == HF__RECORD_HELD && record->delay_ms != 0))
            continue;
        key->text = record->texts;
        key->len = record->name_len;
        key->hash = record->hash;
        key->bucket = draft->bucket;
        return true;
    }
    return false;
}

static void notify(const struct hf__store *store, const struct hf__draft *draft)
{
    HF__RECORDS(draft, record)
        if (record->wake)
            hf__life_notify(&store->table, record->client, draft->bucket);
}

static void purge_bucket(struct hf__store *store, uint32_t bucket)
{
    struct hf__draft *draft = &store->purge_draft;
    int64_t now_ns = hf__table_now(&store->table);
    struct hf__key key;
    int rc;

    do {
        char name[HF__KEY_MAX];

        if (hf__block_load(store, bucket, draft, /* err= */ NULL) != 0)
            return; /* the next request for this bucket reports it */
        while (find_dead(store, draft, &key, now_ns)) {
            memcpy(name, key.text, key.len);
            key.text = name; /* the draft moves under it */
            hf__draft_purge(&store->table, draft, &key, now_ns, 0, 0);
            hf__draft_promote(draft, &key, now_ns);
        }
        if (!draft->changed)
            return;
        rc = hf__block_install(store, draft, /* err= */ NULL);
    } while (rc == 1);
    if (rc == 0)
        notify(store, draft);
}

void hf__block_purge(struct hf__store *store)
{
    store->stock.purging = true;
    for (uint32_t i = 0; i < HF__TABLE_BUCKETS; i++) {
        uint64_t word = atomic_load_explicit(&store->table.buckets[i].word,
                                             memory_order_relaxed);

        if (!hf__word_empty(word))
            purge_bucket(store, i);
    }
    store->stock.purging = false;
}
