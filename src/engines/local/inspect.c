/* SPDX-License-Identifier: MIT */
/*
 * inspect.c - look at the table from outside: list, check, break, versions,
 * and the doctor.
 *
 * Listing copies bucket after bucket; it changes nothing and delays no other
 * client. Each name is shown as it was at one instant; two names need not be
 * of the same one. A list omits tickets whose client is dead or whose lease
 * has ended: the next request for the name drops them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/error.h"
#include "config/name.h"
#include "engines/local/local.h"

/* ---- list -------------------------------------------------------------- */

/* Show a text that another client wrote if it may be one of ours. */
static void copy_text(char *to, const char *text, size_t len)
{
    if (len > 0 && hf__name_check_text("text", text, len, 0, len, NULL) != 0) {
        text = "?";
        len = 1;
    }
    memcpy(to, text, len);
    to[len] = '\0';
}

/* The slot of @client if it is still that client's. */
static const struct hf__table_slot *slot_of(const struct hf__local *local,
                                            uint64_t client)
{
    return hf__life_alive(&local->store.table, client)
               ? &local->store.table.slots[hf__client_slot(client)]
               : NULL;
}

static void slot_host(const struct hf__table_slot *slot, char *to, size_t size)
{
    size_t len = slot ? strnlen(slot->host, sizeof(slot->host)) : 0;

    copy_text(to, slot ? slot->host : "", len < size ? len : size - 1);
}

/* Is @other in the same line as @record, which waits or is parked? */
static bool same_line(const struct hf__record *record,
                      const struct hf__record *other)
{
    const char *cond = record->texts + hf__record_cond_at(record);

    if (record->state == HF__RECORD_PARKED)
        return other->state == HF__RECORD_PARKED &&
               hf__record_is_cond(other, cond + 1, (uint8_t)cond[0]);
    return other->state == HF__RECORD_WAITING ||
           other->state == HF__RECORD_GRANTED;
}

/* Which waiter of its line @record is. */
static uint32_t place_of(const struct hf__local *local,
                         const struct hf__record *record, int64_t now_ns)
{
    const struct hf__key key = {
        .text = record->texts, .len = record->name_len, .hash = record->hash};
    uint32_t place = 1;

    HF__RECORDS(&local->store.draft, other) {
        if (other == record)
            break;
        if (same_line(record, other) && hf__record_is(other, &key) &&
            !hf__draft_stale(&local->store.table, other, now_ns))
            place++;
    }
    return place;
}

static int role_of(const struct hf__record *record)
{
    if (record->state == HF__RECORD_PARKED)
        return HF_PARKED;
    return record->state == HF__RECORD_HELD ||
                   record->state == HF__RECORD_DELAYED
               ? HF_HOLDER
               : HF_WAITER;
}

static int add_row(struct hf__local *local, struct hf__query *query,
                   const struct hf__record *record, int64_t now_ns)
{
    const struct hf__table_slot *slot = slot_of(local, record->client);
    char name[HF__KEY_MAX + 1];
    char owner[UINT8_MAX + 1];
    char note[UINT8_MAX + 1];
    char cond[HF_COND_MAX + 1] = "";
    char host[HF__TABLE_HOST];
    const char *texts = record->texts;
    hf_lock_info row = {.size = sizeof(row)};

    copy_text(name, texts + local->prefix_len,
              record->name_len - local->prefix_len);
    copy_text(owner, texts + record->name_len, record->owner_len);
    copy_text(note, texts + record->name_len + record->owner_len,
              record->note_len);
    slot_host(slot, host, sizeof(host));
    row.role = role_of(record);
    if (row.role == HF_PARKED) {
        texts += hf__record_cond_at(record);
        copy_text(cond, texts + 1, (uint8_t)texts[0]);
    }
    row.cond = cond;
    row.mode = record->mode;
    row.slots = record->slots;
    row.name = name;
    row.owner = owner;
    row.note = note;
    row.host = host;
    row.pid = slot ? slot->pid : 0;
    row.token = record->token;
    row.since_ms = (now_ns - record->since_ns) / HF_MS;
    row.lease_ms = -1;
    if (row.role == HF_HOLDER && record->expires_ns != HF_NEVER)
        row.lease_ms = (record->expires_ns - now_ns) / HF_MS;
    if (row.role != HF_HOLDER)
        row.place = place_of(local, record, now_ns);
    row.alive = record->state == HF__RECORD_DELAYED || !slot ? 0 : 1;
    return hf__query_add_lock(query, &row);
}

static bool is_asked_for(const struct hf__local *local,
                         const struct hf__query *query,
                         const struct hf__record *record)
{
    const char *wanted = query->name ? query->name : query->prefix;
    size_t len = wanted ? strlen(wanted) : 0;
    size_t before = local->prefix_len;

    if (record->name_len < before + len ||
        memcmp(record->texts, local->base.host->settings->prefix, before) != 0)
        return false;
    if (query->name && record->name_len != before + len)
        return false;
    return len == 0 || memcmp(record->texts + before, wanted, len) == 0;
}

/* Holders first, then waiters in their order, then those that are parked. */
static int list_bucket(struct hf__local *local, struct hf__query *query,
                       uint32_t bucket, int64_t now_ns, hf_error *err)
{
    struct hf__draft *draft = &local->store.draft;
    int rc = hf__block_load(&local->store, bucket, draft, err);

    for (int role = HF_HOLDER; role <= HF_PARKED && rc == 0; role++) {
        HF__RECORDS(draft, record) {
            if (record->state == HF__RECORD_VERSION ||
                role_of(record) != role ||
                !is_asked_for(local, query, record) ||
                hf__draft_stale(&local->store.table, record, now_ns))
                continue;
            rc = add_row(local, query, record, now_ns);
            if (rc != 0)
                return hf__fail(err, rc, "out of memory");
        }
    }
    return rc;
}

static int list(struct hf__local *local, struct hf__query *query,
                const struct hf__key *key, hf_error *err)
{
    const struct hf__table_bucket *buckets = local->store.table.buckets;
    int64_t now_ns = hf__table_now(&local->store.table);
    int rc = 0;

    if (query->name)
        return list_bucket(local, query, key->bucket, now_ns, err);
    for (uint32_t i = 0; i < HF__TABLE_BUCKETS && rc == 0; i++)
        if (!hf__word_empty(
                atomic_load_explicit(&buckets[i].word, memory_order_relaxed)))
            rc = list_bucket(local, query, i, now_ns, err);
    return rc;
}

int hf__local_list(struct hf__engine *engine, struct hf__query *query,
                   hf_error *err)
{
    return hf__local_answer(engine, query, list, err);
}

void hf__local_holder(const struct hf__local *local, const struct hf__key *key,
                      char *to, size_t size)
{
    char host[HF__TABLE_HOST];
    char note[UINT8_MAX + 1];

    hf__text_copy(to, size, "one that died, for its lock_delay");
    HF__RECORDS(&local->store.draft, record) {
        const struct hf__table_slot *slot;

        if ((record->state != HF__RECORD_HELD &&
             record->state != HF__RECORD_GRANTED) ||
            !hf__record_is(record, key))
            continue;
        slot = slot_of(local, record->client);
        slot_host(slot, host, sizeof(host));
        copy_text(note, record->texts + record->name_len + record->owner_len,
                  record->note_len);
        (void)snprintf(
            to, size, "%s:%lld%s%s%s", host, slot ? (long long)slot->pid : 0,
            note[0] != '\0' ? ", \"" : "", note, note[0] != '\0' ? "\"" : "");
        return;
    }
}

/* ---- check, break, versions -------------------------------------------- */

static int check_token(struct hf__local *local, struct hf__query *query,
                       const struct hf__key *key, hf_error *err)
{
    int64_t now_ns = hf__table_now(&local->store.table);
    int rc =
        hf__block_load(&local->store, key->bucket, &local->store.draft, err);

    if (rc != 0)
        return rc;
    rc = hf__fail(err, HF_ENOTFOUND, "nobody holds it");
    HF__RECORDS(&local->store.draft, record) {
        if (record->state != HF__RECORD_HELD || !hf__record_is(record, key) ||
            hf__draft_stale(&local->store.table, record, now_ns))
            continue;
        if (query->token >= record->token &&
            query->token < record->token + record->tokens)
            return 0;
        rc = hf__fail(err, HF_ECONFLICT, "it is held under token %llu",
                      (unsigned long long)record->token);
    }
    return rc;
}

int hf__local_check_token(struct hf__engine *engine, struct hf__query *query,
                          hf_error *err)
{
    return hf__local_answer(engine, query, check_token, err);
}

static int break_it(struct hf__local *local, struct hf__query *query,
                    const struct hf__key *key, hf_error *err)
{
    return hf__change_break(&local->store, key, query->token, query->owner,
                            err);
}

int hf__local_break(struct hf__engine *engine, struct hf__query *query,
                    hf_error *err)
{
    return hf__local_answer(engine, query, break_it, err);
}

static int read_version(struct hf__local *local, struct hf__query *query,
                        const struct hf__key *key, hf_error *err)
{
    struct hf__draft *draft = &local->store.draft;
    int rc = hf__block_load(&local->store, key->bucket, draft, err);

    if (rc == 0) {
        const struct hf__record *record = hf__draft_version(draft, key);

        query->version = record ? record->token : 0;
    }
    return rc;
}

int hf__local_version_read(struct hf__engine *engine, struct hf__query *query,
                           hf_error *err)
{
    return hf__local_answer(engine, query, read_version, err);
}

static int commit_version(struct hf__local *local, struct hf__query *query,
                          const struct hf__key *key, hf_error *err)
{
    return hf__change_commit(&local->store, key, query->token, &query->version,
                             err);
}

int hf__local_version_commit(struct hf__engine *engine, struct hf__query *query,
                             hf_error *err)
{
    return hf__local_answer(engine, query, commit_version, err);
}

/* ---- doctor ------------------------------------------------------------ */

/* Notes the first failure to add a finding. */
#define ADD(rc, ...)                                                           \
    do {                                                                       \
        if ((rc) == 0)                                                         \
            (rc) = hf__query_add_finding(__VA_ARGS__);                         \
    } while (0)

static int find_directory(const struct hf__local *local,
                          struct hf__query *query)
{
    struct statfs fs;
    struct stat st;
    int rc = 0;

    if (fstat(local->place.fd, &st) != 0 || fstatfs(local->place.fd, &fs) != 0)
        return hf__query_add_finding(query, HF_FINDING_FAIL, "directory",
                                     "look at its file system", "%s: %s",
                                     local->place.path, strerror(errno));
    ADD(rc, query, HF_FINDING_OK, "directory", "",
        "%s, of user %u, mode %04o%s", local->place.path, (unsigned)st.st_uid,
        (unsigned)st.st_mode & 07777,
        local->place.group ? ", shared by its group" : "");
    if (fs.f_type == 0x01021994 || fs.f_type == 0x858458f6)
        ADD(rc, query, HF_FINDING_OK, "file system", "", "in memory (tmpfs)");
    else
        ADD(rc, query, HF_FINDING_OK, "file system", "",
            "on a disk (type %lx): the kernel writes the store back now and "
            "then; a tmpfs saves that",
            (unsigned long)fs.f_type);
    return rc;
}

static int find_store(const struct hf__local *local, struct hf__query *query)
{
    const struct hf__table *table = &local->store.table;
    uint32_t used = atomic_load(&table->header->slots_used);
    uint32_t alive = 0;
    struct stat st;
    int rc = 0;

    for (uint32_t i = 0; i < used && i < HF__TABLE_SLOTS; i++)
        if (hf__life_alive(
                table,
                hf__client_id(atomic_load(&table->slots[i].generation), i)))
            alive++;
    if (!hf__table_is_current(table))
        ADD(rc, query, HF_FINDING_FAIL, "store",
            "do not delete the directory of a store in use",
            "the file was deleted or replaced under this client");
    else if (fstat(table->fd, &st) == 0)
        ADD(rc, query, HF_FINDING_OK, "store", "",
            "%lld KiB, %u clients alive, of this boot",
            (long long)st.st_blocks / 2, alive);
    if (table->size < HF__TABLE_SIZE)
        ADD(rc, query, HF_FINDING_WARN, "address space", "ulimit -v unlimited",
            "only %llu MiB of the store can be reached",
            (unsigned long long)table->size >> 20);
    return rc;
}

static int find_kernel(const struct hf__local *local, struct hf__query *query)
{
    int rc = 0;

    if (hf__watch_kernel_can())
        ADD(rc, query, HF_FINDING_OK, "waiting", "",
            "futex_waitv: waiters sleep until they are woken");
    else
        ADD(rc, query, HF_FINDING_WARN, "waiting",
            "Linux 5.16 or later, and a seccomp filter that allows "
            "futex_waitv",
            "no futex_waitv: waiters look every 20 ms");
    if (local->store.table.offset_ns != 0)
        ADD(rc, query, HF_FINDING_OK, "clock", "",
            "a time namespace shifts it by %lld s, which is taken into account",
            (long long)(local->store.table.offset_ns / HF_SECOND));
    else
        ADD(rc, query, HF_FINDING_OK, "clock", "", "CLOCK_BOOTTIME, unshifted");
    return rc;
}

static int find_mark(const struct hf__local *local, struct hf__query *query)
{
    const struct hf__mark *mark = &local->store.mark;
    const char *where = local->place.state_path[0] != '\0'
                            ? local->place.state_path
                            : local->place.path;
    uint64_t kept = hf__mark_read(mark);

    if (mark->fd < 0 || faccessat(mark->fd, ".", W_OK, AT_EACCESS) != 0)
        return hf__query_add_finding(
            query, HF_FINDING_WARN, "tokens",
            "make that directory, and writable",
            "the high-water mark cannot be kept in \"%s\": after a reboot "
            "tokens grow only if the clock is right",
            where);
    if (kept == 0)
        return hf__query_add_finding(
            query, HF_FINDING_OK, "tokens", "",
            "no token was granted yet; the mark will be in %s", where);
    return hf__query_add_finding(query, HF_FINDING_OK, "tokens", "",
                                 "below %llu, kept in %s",
                                 (unsigned long long)kept, where);
}

static int examine(struct hf__local *local, struct hf__query *query,
                   const struct hf__key *key, hf_error *err)
{
    int rc = find_directory(local, query);

    (void)key;
    if (rc == 0)
        rc = find_store(local, query);
    if (rc == 0)
        rc = find_kernel(local, query);
    if (rc == 0)
        rc = find_mark(local, query);
    return rc == 0 ? 0 : hf__fail(err, rc, "out of memory");
}

int hf__local_doctor(struct hf__engine *engine, struct hf__query *query,
                     hf_error *err)
{
    return hf__local_answer(engine, query, examine, err);
}
