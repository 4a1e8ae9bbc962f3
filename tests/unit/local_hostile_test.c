/* SPDX-License-Identifier: MIT */
/*
 * local_hostile_test.c - a client that may write the store, and writes what no
 * client of ours would. Its blocks have good checksums: it installs them as
 * everybody does.
 */
#include <stdlib.h>
#include <unistd.h>

#include "lib/tempdir.h"
#include "lib/test.h"
#include "local_fixture.h"

/* The records of @name's bucket, to be changed. */
static struct hf__draft *open_bucket(struct side *side, const char *name,
                                     struct hf__key *key)
{
    struct hf__draft *draft = &side->local->store.draft;
    hf_error err;

    hf__local_key(side->local, name, strlen(name), key);
    ASSERT_OK(hf__block_load(&side->local->store, key->bucket, draft, &err),
              &err);
    return draft;
}

/* The first of them. */
static struct hf__record *open_record(struct side *side, const char *name,
                                      struct hf__draft **ret_draft)
{
    struct hf__key key;

    *ret_draft = open_bucket(side, name, &key);
    return HF__RECORD_AT(*ret_draft, 0);
}

static void close_now(struct side *side)
{
    side->engine->ops->close(side->engine, /* forked= */ false);
    hf__free(side->engine);
    side->engine = NULL;
}

static void install(struct side *side, struct hf__draft *draft)
{
    hf_error err;

    ASSERT_OK(hf__block_install(&side->local->store, draft, &err), &err);
}

/* A record of @name that nobody made, installed. */
static void forge(struct side *side, const char *name,
                  const struct hf__record *what)
{
    struct hf__key key;
    struct hf__draft *draft = open_bucket(side, name, &key);
    struct hf__record *record = hf__draft_append(draft, &key, "", "");

    ASSERT_NOT_NULL(record);
    record->client = what->client;
    record->id = what->id;
    record->token = what->token;
    record->tokens = what->tokens;
    record->expires_ns = what->expires_ns;
    record->since_ns = what->since_ns;
    record->delay_ms = what->delay_ms;
    record->state = what->state;
    install(side, draft);
}

TEST_FORKED(hostile, record_without_texts_is_not_written_beyond_its_end)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.a, "a-name-of-some-length");
    struct hf__draft *draft;
    struct hf__record *record =
        open_record(at.b, "a-name-of-some-length", &draft);
    uint64_t token = 0;

    record->name_len = 0;
    record->owner_len = 0;
    record->note_len = 0;
    record->size = sizeof(*record) / 8;
    draft->used = sizeof(*record);
    install(at.b, draft);
    ASSERT_EQ(at.a->engine->ops->pass(at.a->engine, held->ticket, &token),
              HF_ELOST);
    ASSERT_EQ(side_release(at.a, held), LEFT);
}

/* Before, the purge looked for it for ever. */
TEST_FORKED(hostile, grant_to_nobody_does_not_stop_the_purge)
{
    struct sides at = sides_new(2);

    forge(at.b, "jobs",
          &(struct hf__record){.state = HF__RECORD_GRANTED, .expires_ns = 1});
    hf__block_purge(&at.a->local->store);
    ASSERT_EQ(side_take(at.a, "jobs")->report, GRANTED);
}

TEST_FORKED(hostile, instants_before_the_beginning_are_damage)
{
    struct sides at = sides_new(2);
    struct rows rows;

    forge(at.b, "jobs",
          &(struct hf__record){.state = HF__RECORD_HELD,
                               .client = at.b->local->store.client,
                               .since_ns = INT64_MIN,
                               .expires_ns = HF_NEVER});
    ASSERT_EQ(side_list(at.a, "jobs", &rows), HF_ECONFIG);
    ASSERT_EQ(side_ask(at.a, "jobs", HF_EXCLUSIVE, 0)->report, FAILED);
}

TEST_FORKED(hostile, token_beyond_all_tokens_is_damage)
{
    struct sides at = sides_new(2);
    struct hf__key key;
    struct hf__draft *draft = open_bucket(at.b, "jobs", &key);

    draft->last = UINT64_MAX;
    install(at.b, draft); /* empty, but for its last token */
    ASSERT_EQ(side_ask(at.a, "jobs", HF_EXCLUSIVE, 0)->report, FAILED);
    ASSERT_EQ(side_take(at.a, "other")->report, GRANTED);
}

TEST_FORKED(hostile, death_before_the_beginning_is_long_ago)
{
    const char *dir = tempdir_new();
    struct side *enemy = side_new(dir);
    uint64_t dead = enemy->local->store.client;
    struct side *victim = side_new(dir);
    struct hf__table_slot *slot;

    close_now(enemy);
    slot = &victim->local->store.table.slots[hf__client_slot(dead)];
    atomic_store(&slot->dead_ns, INT64_MIN);
    ASSERT_TRUE(hf__life_buried(&victim->local->store.table, dead));
}

/* Every block that there will ever be belongs to the enemy. */
TEST_FORKED(hostile, store_whose_new_blocks_are_taken_is_damaged)
{
    struct sides at = sides_new(2);
    struct hf__table *table = &at.a->local->store.table;
    hf_error err;

    for (uint32_t i = 1; i < 100; i++) {
        ASSERT_OK(hf__table_grow(table, 1, &err), &err);
        for (uint32_t unit = 0; unit < HF__TABLE_UNITS; unit++)
            atomic_store(
                &hf__table_block_at(table, i * HF__TABLE_UNITS + unit)->owner,
                at.a->local->store.client);
    }
    atomic_store(&table->header->segments, 1); /* to be grown into again */
    atomic_store(&table->header->classes[1], 0);
    for (int i = 1; i < 100; i++)
        atomic_store(&table->map[i], 0);
    ASSERT_EQ(side_ask(at.b, "jobs", HF_EXCLUSIVE, 0)->report, FAILED);
}

TEST_FORKED(hostile, texts_are_not_shown_with_control_characters)
{
    struct sides at = sides_new(2);
    struct ask *held = side_take(at.b, "jobs");
    struct hf__draft *draft;
    struct hf__record *record = open_record(at.b, "jobs", &draft);
    struct rows rows;
    struct ask *ask;

    memcpy(record->texts + record->name_len + record->owner_len, "\033[2J", 4);
    memcpy(at.b->local->store.slot->host, "\033]0;x\007", 7);
    install(at.b, draft);
    ask = side_ask_with(at.a, "jobs", HF_EXCLUSIVE, 0, 1000, 1, true);
    ASSERT_EQ(ask->report, BUSY);
    ASSERT_NULL(strchr(ask->holder, '\033'));
    ASSERT_OK(side_list(at.a, "jobs", &rows), NULL);
    ASSERT_STREQ(rows.note, "?");
    ASSERT_STREQ(rows.host, "?");
    ASSERT_EQ(held->report, GRANTED);
}

/* Shorter than it says: refused before anything of it is touched. */
TEST(hostile, truncated_table_is_refused)
{
    static const off_t sizes[] = {HF__TABLE_HEAP_AT, HF__TABLE_SLOTS_AT + 4096,
                                  HF__TABLE_BUCKETS_AT, 4096, 0};
    const char *dir = tempdir_new();
    hf_error err;

    close_now(side_new(dir));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        ASSERT_EQ(truncate(side_path(dir, "table"), sizes[i]), 0);
        ASSERT_RC(side_connect(side_prepare(side_url(dir)), &err), HF_ECONFIG,
                  &err);
        ASSERT_HAS(err.text, "damaged");
    }
}
