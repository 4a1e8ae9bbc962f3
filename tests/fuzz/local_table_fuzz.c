/* SPDX-License-Identifier: MIT */
/*
 * local_table_fuzz.c - a store in which another client wrote anything.
 *
 * The client is real. Between its calls the fuzzer changes the bucket of the
 * name that it uses: forged records under a good checksum, which is what an
 * enemy writes, or raw bytes of the block, of the bucket and of the header,
 * which is what a fault writes.
 */
#include <ftw.h>
#include <stdio.h>

#include "config/name.h"
#include "core/client.h"
#include "engines/local/local.h"
#include "fuzz.h"

static hf_client *client;
static struct hf__local *local;
static struct hf__draft forged;
static char directory[64];

/* ---- the input ----------------------------------------------------------- */

struct input {
    const uint8_t *at;
    size_t left;
};

static uint8_t next(struct input *in)
{
    if (in->left == 0)
        return 0;
    in->left--;
    return *in->at++;
}

static uint64_t next_number(struct input *in)
{
    uint64_t number = 0;

    for (int i = 0; i < 8; i++)
        number = number << 8 | next(in);
    return number;
}

/* ---- the store ----------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    (void)remove(path);
    return 0;
}

static void remove_store(void)
{
    (void)nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void open_store(void)
{
    const char *base = getenv("TMPDIR");
    char url[128];

    (void)snprintf(directory, sizeof(directory), "%.30s/holdfast-fuzz-XXXXXX",
                   base ? base : "/tmp");
    CHECK(mkdtemp(directory));
    CHECK(atexit(remove_store) == 0);
    (void)snprintf(url, sizeof(url),
                   "local://%s?drive=app&ttl=60s&io_timeout=1ms", directory);
    CHECK(hf_open(url, NULL, &client, NULL) == 0);
    local = (struct hf__local *)client->engine;
}

/* Empty, as if nobody had been there. */
static struct hf__table_bucket *clear_bucket(void)
{
    struct hf__table_bucket *bucket;
    struct hf__key key;

    hf__local_key(local, "jobs", 4, &key);
    bucket = &local->store.table.buckets[key.bucket];
    atomic_store(&bucket->word, ((atomic_load(&bucket->word) >> 27) + 1) << 27);
    atomic_store(&bucket->last, 0);
    return bucket;
}

/* ---- an enemy ------------------------------------------------------------ */

static void fill_record(struct input *in, struct hf__record *record)
{
    uint8_t how = next(in);

    record->client = how & 1   ? local->store.client
                     : how & 2 ? 0
                               : next_number(in);
    record->id = how & 4 ? client->next_ticket - next(in) % 4 : next(in);
    record->state = how & 8 ? next(in) : 1 + next(in) % 5;
    record->mode = next(in) % 4;
    record->token = how & 16 ? next_number(in) : 5;
    record->tokens = how & 16 ? (uint32_t)next_number(in) : 1;
    record->expires_ns = how & 32 ? (int64_t)next_number(in) : HF_NEVER;
    record->since_ns = how & 32 ? (int64_t)next_number(in) : 1;
    record->delay_ms = how & 64 ? UINT32_MAX : 0;
    record->slots = next(in);
    if ((how & 128) == 0)
        return;
    record->name_len = next(in);
    record->owner_len = next(in);
    record->note_len = next(in);
    record->hash ^= next(in) % 2;
}

/* Records with a good checksum, in place of what is there. */
static void forge(struct input *in)
{
    struct hf__key key;
    int n = next(in) % 6;

    hf__local_key(local, "jobs", 4, &key);
    if (hf__block_load(&local->store, key.bucket, &forged, NULL) != 0)
        return;
    forged.used = 0;
    for (int i = 0; i < n; i++) {
        struct hf__record *record =
            hf__draft_append(&forged, &key, "o", "n", NULL);

        CHECK(record);
        fill_record(in, record);
    }
    if (n > 0 && next(in) % 8 == 0)
        HF__RECORD_AT(&forged, 0)->size = next(in);
    if (next(in) % 8 == 0)
        forged.last = next_number(in);
    (void)hf__block_install(&local->store, &forged, NULL);
}

/* Raw bytes somewhere near. */
static void damage(struct input *in, struct hf__table_bucket *bucket)
{
    struct hf__table *table = &local->store.table;
    uint32_t unit = hf__word_unit(atomic_load(&bucket->word));
    uint8_t where = next(in);

    if (where < 8) {
        atomic_store(&bucket->word, next_number(in));
    } else if (where < 16) {
        atomic_store(&bucket->last, next_number(in));
    } else if (where < 24) {
        atomic_store(&table->header->free[where % 6], (int32_t)next_number(in));
        atomic_store(&table->header->classes[where % 6],
                     (uint32_t)next_number(in));
        atomic_store(&table->header->purged, next_number(in));
        atomic_store(&table->header->mark, next_number(in));
    } else if (unit != 0 && unit < table->units) {
        char *block = (char *)hf__table_block_at(table, unit);

        block[where] = (char)next(in);
    }
}

/* ---- the client ---------------------------------------------------------- */

static int each(const hf_lock_info *info, void *ctx)
{
    (void)ctx;
    CHECK(strlen(info->name) <= HF__KEY_MAX && strlen(info->owner) < 256 &&
          strlen(info->note) < 256 && strlen(info->host) < HF__TABLE_HOST);
    CHECK(!strchr(info->note, '\033') && !strchr(info->name, '\033'));
    return 0;
}

struct calls {
    hf_hold *hold;
    hf_request *request;
};

static void start(struct calls *calls, const char *owner)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.owner = owner;
    if (!calls->request && hf_acquire_start(client, "jobs", &opts, NULL, NULL,
                                            &calls->request, NULL) != 0)
        calls->request = NULL;
}

static void finish(struct calls *calls)
{
    hf_hold *hold = NULL;

    if (!calls->request)
        return;
    hf_cancel(calls->request);
    if (hf_request_wait(calls->request, 1, &hold, NULL) == 0 && hold)
        (void)hf_release(hold, NULL);
    hf_request_free(calls->request);
    calls->request = NULL;
}

static void try_it(struct calls *calls)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.owner = "a";
    opts.wait_ms = 0;
    if (!calls->hold &&
        hf_acquire(client, "jobs", &opts, &calls->hold, NULL) != 0)
        calls->hold = NULL;
}

static void release(struct calls *calls)
{
    if (calls->hold)
        (void)hf_release(calls->hold, NULL);
    calls->hold = NULL;
}

static void look(uint8_t what)
{
    uint64_t version;

    if ((what & 0xc1) == 0xc1) /* seldom: it looks at every bucket */
        (void)hf_list(client, "", each, NULL, NULL);
    if (what & 2)
        (void)hf_show(client, "jobs", each, NULL, NULL);
    if (what & 4)
        (void)hf_check_token(client, "jobs", 5, NULL);
    if (what & 8)
        (void)hf_break(client, "jobs", what & 128 ? 5 : 0, "o", NULL);
    if (what & 16)
        (void)hf_version_read(client, "jobs", &version, NULL);
    if (what & 32)
        (void)hf_version_commit(client, "jobs", 5, &version, NULL);
    if ((what & 0xc2) == 0x42) /* it does so too */
        hf__block_purge(&local->store);
}

static void step(struct input *in, struct calls *calls,
                 struct hf__table_bucket *bucket)
{
    switch (next(in) % 10) {
    case 0:
        try_it(calls);
        break;
    case 1:
        start(calls, "another-owner-with-a-long-name");
        break;
    case 2:
        release(calls);
        break;
    case 3:
        finish(calls);
        break;
    case 4:
        look(next(in));
        break;
    case 5:
        if (calls->hold)
            (void)hf_verify(calls->hold, NULL);
        break;
    case 6:
        if (calls->hold)
            (void)hf_downgrade(calls->hold, NULL);
        break;
    case 7:
        damage(in, bucket);
        break;
    case 8:
        (void)hf_dispatch(client);
        break;
    default:
        forge(in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct calls calls = {NULL, NULL};
    struct hf__table_bucket *bucket;

    if (!client)
        open_store();
    bucket = clear_bucket();
    while (in.left > 0)
        step(&in, &calls, bucket);
    (void)clear_bucket();
    finish(&calls);
    release(&calls);
    (void)hf_dispatch(client);
    return 0;
}
