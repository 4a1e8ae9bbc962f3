/* SPDX-License-Identifier: MIT */
/*
 * queue.c - the keys of a lock, and who of them holds it.
 *
 *   <prefix><name>/<lease>-<ticket>   one ticket, holding or in line
 *   <prefix>~gone/<lease>-<ticket>    it has left, whatever arrives later
 *   <prefix>~lease/<lease>            its end is the end of the lease
 *   <prefix>~version/<name>           hf_version_commit()
 *   <prefix>~cond/<name>/<cond>/<lease>-<ticket>
 *                                     parked, or bears a wake-up
 *   <prefix>~wake/<name>/<cond>       the wake-ups that are not used up
 *
 * This is the layout of Go's concurrency.Mutex and of etcdctl lock: all keys
 * under "<name>/" are one queue in the order of their create revisions, and
 * the first one holds. They look at revisions, not at what follows the slash,
 * so a further part keeps two tickets of one lease apart, and they wait for
 * ours as we for theirs. Keys whose value is not a record of ours are theirs,
 * and exclusive.
 *
 * Names are percent-encoded: without that, the lock "a" would see the keys of
 * the lock "a/b". The tilde is in no encoded name.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "config/name.h"
#include "engines/common/holder.h"
#include "engines/etcd/etcd.h"

/* ---- keys -------------------------------------------------------------- */

/* The path of the URL is a folder of keys; the setting comes after it. */
int hf__etcd_queue_init(struct hf__etcd *etcd)
{
    const struct hf__engine_host *host = etcd->base.host;
    const char *path = host->url->path;
    struct hf__buf prefix = {0};

    while (*path == '/')
        path++;
    hf__buf_add(&prefix, path);
    if (prefix.len > 0 && prefix.text[prefix.len - 1] != '/')
        hf__buf_add(&prefix, "/");
    hf__buf_add(&prefix, host->settings->prefix);
    etcd->prefix_len = prefix.len;
    etcd->prefix = hf__buf_steal(&prefix);
    (void)snprintf(etcd->whoami, sizeof(etcd->whoami), "%s\n%" PRId64 "\n",
                   host->host, host->pid);
    return etcd->prefix ? 0 : HF_ENOMEM;
}

static void add_name(struct hf__buf *key, const char *name, size_t len)
{
    char encoded[3 * HF_NAME_MAX + 1];

    hf__buf_append(key, encoded,
                   hf__name_encode(name, len, encoded, sizeof(encoded)));
}

void hf__etcd_queue_key_of(struct hf__etcd *etcd, struct hf__pb key)
{
    etcd->key.len = 0;
    etcd->key.failed = false; /* it may have memory now */
    hf__buf_append(&etcd->key, key.bytes, key.len);
}

static void begin_key(struct hf__etcd *etcd)
{
    hf__etcd_queue_key_of(etcd,
                          (struct hf__pb){etcd->prefix, etcd->prefix_len});
}

void hf__etcd_queue_key(struct hf__etcd *etcd, const char *name, size_t len)
{
    begin_key(etcd);
    add_name(&etcd->key, name, len);
    hf__buf_add_char(&etcd->key, '/');
}

/* In lower case, as other clients write the number of a lease. */
static void add_hex(struct hf__buf *to, uint64_t number)
{
    char digits[16];
    char *end = digits + sizeof(digits);
    char *at = end;

    do {
        *--at = "0123456789abcdef"[number % 16];
        number /= 16;
    } while (number > 0);
    hf__buf_append(to, at, (size_t)(end - at));
}

static void add_ticket(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    add_hex(&etcd->key, (uint64_t)hf__etcd_ticket(etcd, ticket)->lease_id);
    hf__buf_add_char(&etcd->key, '-');
    add_hex(&etcd->key, ticket->id);
}

void hf__etcd_queue_key_ticket(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    hf__etcd_queue_key(etcd, ticket->name, ticket->name_len);
    add_ticket(etcd, ticket);
}

void hf__etcd_queue_key_gone(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    begin_key(etcd);
    hf__buf_add(&etcd->key, "~gone/");
    add_ticket(etcd, ticket);
}

void hf__etcd_queue_key_beside(struct hf__etcd *etcd, const char *what,
                               const char *name, size_t len)
{
    begin_key(etcd);
    hf__buf_add_char(&etcd->key, '~');
    hf__buf_add(&etcd->key, what);
    hf__buf_add_char(&etcd->key, '/');
    add_name(&etcd->key, name, len);
}

void hf__etcd_queue_key_condition(struct hf__etcd *etcd, const char *what,
                                  const char *name, const char *cond)
{
    hf__etcd_queue_key_beside(etcd, what, name, strlen(name));
    hf__buf_add_char(&etcd->key, '/');
    add_name(&etcd->key, cond, strlen(cond));
}

void hf__etcd_queue_key_records(struct hf__etcd *etcd, const char *name,
                                const char *cond)
{
    hf__etcd_queue_key_condition(etcd, "cond", name, cond);
    hf__buf_add_char(&etcd->key, '/');
}

void hf__etcd_queue_key_record(struct hf__etcd *etcd, struct hf__ticket *ticket)
{
    hf__etcd_queue_key_records(etcd, ticket->name, ticket->cond);
    add_ticket(etcd, ticket);
}

void hf__etcd_queue_key_names(struct hf__etcd *etcd, const char *prefix)
{
    begin_key(etcd);
    if (prefix[0] != '\0')
        add_name(&etcd->key, prefix, strlen(prefix));
}

struct hf__pb hf__etcd_queue_behind(const struct hf__etcd *etcd,
                                    struct hf__pb key, const char *what)
{
    size_t skip = etcd->prefix_len + strlen(what);

    if (key.len <= skip ||
        memcmp(key.bytes + etcd->prefix_len, what, strlen(what)) != 0)
        return (struct hf__pb){0};
    return (struct hf__pb){key.bytes + skip, key.len - skip};
}

/* The first key after all that begin with etcd->key; "\0" means all of them. No
 * key of ours ends in the last byte there is. */
static void add_key(struct hf__etcd *etcd, struct hf__buf *to, uint32_t field,
                    uint32_t end_field)
{
    struct hf__buf *key = &etcd->key;

    to->failed |= hf__buf_failed(key);
    if (hf__buf_failed(to))
        return;
    if (key->len == 0) {
        hf__pb_add_bytes(to, field, "", 1);
        if (end_field != 0)
            hf__pb_add_bytes(to, end_field, "", 1);
        return;
    }
    hf__pb_add_bytes(to, field, key->text, key->len);
    if (end_field == 0)
        return;
    key->text[key->len - 1]++;
    hf__pb_add_bytes(to, end_field, key->text, key->len);
    key->text[key->len - 1]--;
}

void hf__etcd_queue_add_key(struct hf__etcd *etcd, struct hf__buf *to,
                            bool range)
{
    add_key(etcd, to, HF__OF_KEY, range ? HF__OF_RANGE_END : 0);
}

void hf__etcd_queue_add_compare(struct hf__etcd *etcd, struct hf__buf *to,
                                bool range, uint64_t revision)
{
    size_t compare = hf__pb_begin(to, HF__TXN_COMPARE);

    hf__pb_add_number(to, HF__COMPARE_TARGET, HF__TARGET_CREATED);
    add_key(etcd, to, HF__COMPARE_KEY, range ? HF__COMPARE_RANGE_END : 0);
    hf__pb_add_number(to, HF__COMPARE_CREATED, revision);
    hf__pb_end(to, compare);
}

void hf__etcd_queue_add_compare_modified(struct hf__etcd *etcd,
                                         struct hf__buf *to, uint64_t revision)
{
    size_t compare = hf__pb_begin(to, HF__TXN_COMPARE);

    hf__pb_add_number(to, HF__COMPARE_TARGET, HF__TARGET_MODIFIED);
    add_key(etcd, to, HF__COMPARE_KEY, /* end_field= */ 0);
    hf__pb_add_number(to, HF__COMPARE_MODIFIED, revision);
    hf__pb_end(to, compare);
}

void hf__etcd_queue_add_delete(struct hf__etcd *etcd, struct hf__buf *to)
{
    size_t part = hf__pb_begin(to, HF__TXN_SUCCESS);
    size_t delete = hf__pb_begin(to, HF__OP_DELETE);

    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_end(to, delete);
    hf__pb_end(to, part);
}

/* ---- parts of a transaction ------------------------------------------ */

size_t hf__etcd_queue_begin_put(struct hf__etcd *etcd, struct hf__buf *to,
                                uint32_t field, int64_t id, size_t *ret_put)
{
    size_t part = hf__pb_begin(to, field);

    *ret_put = hf__pb_begin(to, HF__OP_PUT);
    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_add_number(to, HF__PUT_LEASE, (uint64_t)id);
    return part;
}

void hf__etcd_queue_add_put(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field, struct hf__ticket *ticket)
{
    size_t part;
    size_t put;

    hf__etcd_queue_key_ticket(etcd, ticket);
    part = hf__etcd_queue_begin_put(
        etcd, to, field, hf__etcd_ticket(etcd, ticket)->lease_id, &put);
    hf__etcd_queue_add_record(etcd, to, ticket);
    hf__pb_end(to, put);
    hf__pb_end(to, part);
}

void hf__etcd_queue_add_list(struct hf__etcd *etcd, struct hf__buf *to,
                             uint64_t limit, bool keys_only)
{
    size_t part = hf__pb_begin(to, HF__TXN_SUCCESS);
    size_t range = hf__pb_begin(to, HF__OP_RANGE);

    hf__etcd_queue_add_key(etcd, to, /* range= */ true);
    hf__pb_add_number(to, HF__RANGE_LIMIT, limit);
    if (keys_only)
        hf__pb_add_number(to, HF__RANGE_KEYS_ONLY, 1);
    hf__pb_end(to, range);
    hf__pb_end(to, part);
}

void hf__etcd_queue_add_get(struct hf__etcd *etcd, struct hf__buf *to,
                            uint32_t field)
{
    size_t part = hf__pb_begin(to, field);
    size_t range = hf__pb_begin(to, HF__OP_RANGE);

    hf__etcd_queue_add_key(etcd, to, /* range= */ false);
    hf__pb_add_number(to, HF__RANGE_KEYS_ONLY, 1);
    hf__pb_end(to, range);
    hf__pb_end(to, part);
}

/* ---- answers ----------------------------------------------------------- */

struct hf__pb hf__etcd_queue_range_of(struct hf__pb root, int i)
{
    struct hf__pb response;
    size_t at = 0;

    do
        response = hf__pb_next(root, HF__TXN_RESPONSES, &at);
    while (i-- > 0);
    return hf__pb_inside(response, HF__OP_RANGE);
}

bool hf__etcd_queue_is_long(struct hf__pb range)
{
    size_t at = 0;
    size_t n = 0;

    while (n <= HF__ETCD_ROWS &&
           hf__pb_there(hf__pb_next(range, HF__RANGE_KVS, &at)))
        n++;
    return n > HF__ETCD_ROWS;
}

struct hf__pb hf__etcd_queue_first_of(struct hf__pb range)
{
    size_t at = 0;

    return hf__pb_next(range, HF__RANGE_KVS, &at);
}

uint64_t hf__etcd_queue_revision_of(struct hf__pb root)
{
    uint64_t revision = hf__pb_number(hf__pb_inside(root, HF__ANSWER_HEADER),
                                      HF__HEADER_REVISION);

    return revision <= INT64_MAX ? revision : 0; /* below zero */
}

/* ---- records ----------------------------------------------------------- */

/* "hf1 x 0 30000 1763253000000", then host, process, owner and note in lines. */
static const char magic[] = "hf1 ";
static const char modes[] =
    {[HF_EXCLUSIVE] = 'x', [HF_SHARED] = 's', [HF_SLOT] = 'n'};

void hf__etcd_queue_add_record(struct hf__etcd *etcd, struct hf__buf *to,
                               const struct hf__ticket *ticket)
{
    size_t record = hf__pb_begin(to, HF__PUT_VALUE);
    const uint64_t numbers[] = {(uint64_t)ticket->slots,
                                (uint64_t)ticket->ttl_ms,
                                (uint64_t)hf__world->wall_us() / 1000};

    hf__buf_add(to, magic);
    hf__buf_add_char(to, modes[ticket->mode]);
    for (size_t i = 0; i < HF_COUNT_OF(numbers); i++) {
        hf__buf_add_char(to, ' ');
        hf__buf_add_number(to, numbers[i]);
    }
    hf__buf_add_char(to, '\n');
    hf__buf_add(to, etcd->whoami);
    hf__buf_add(to, ticket->owner);
    hf__buf_add_char(to, '\n');
    hf__buf_add(to, ticket->note);
    hf__pb_end(to, record);
}

static int mode_of(char letter)
{
    return letter == modes[HF_SHARED] ? HF_SHARED
           : letter == modes[HF_SLOT] ? HF_SLOT
                                      : HF_EXCLUSIVE;
}

/* The record, terminated; "" for a value of others. */
static const char *record_text(struct hf__pb value, char copy[HF__ETCD_RECORD])
{
    size_t len = value.len < HF__ETCD_RECORD ? value.len : 0;

    if (len > 0)
        memcpy(copy, value.bytes, len);
    copy[len] = '\0';
    return strncmp(copy, magic, strlen(magic)) == 0 ? copy : "";
}

struct hf__etcd_entry hf__etcd_queue_read(struct hf__pb kv)
{
    uint64_t revision = hf__pb_number(kv, HF__KV_CREATED);
    struct hf__etcd_entry entry = {
        .revision = revision <= INT64_MAX ? revision : 0,
        .lease = (int64_t)hf__pb_number(kv, HF__KV_LEASE),
        .mode = HF_EXCLUSIVE,
        .key = hf__pb_inside(kv, HF__KV_KEY),
        .value = hf__pb_inside(kv, HF__KV_VALUE),
    };
    char copy[HF__ETCD_RECORD];
    const char *text = record_text(entry.value, copy);

    if (text[0] != '\0') {
        entry.mode = mode_of(text[4]);
        entry.slots = entry.mode == HF_SLOT ? atoi(text + 5) : 0;
    }
    return entry;
}

void hf__etcd_queue_judge(struct hf__etcd_entry *entries, size_t n)
{
    bool exclusive = false; /* among those before */
    bool shared = false;
    size_t slots = 0;

    for (size_t i = 0; i < n; i++) {
        struct hf__etcd_entry *entry = &entries[i];

        if (entry->mode == HF_SHARED)
            entry->holds = !exclusive && slots == 0;
        else if (entry->mode == HF_SLOT)
            entry->holds =
                !exclusive && !shared && slots < (size_t)entry->slots;
        else
            entry->holds = i == 0;
        exclusive |= entry->mode == HF_EXCLUSIVE;
        shared |= entry->mode == HF_SHARED;
        slots += entry->mode == HF_SLOT;
    }
}

void hf__etcd_queue_read_record(const struct hf__etcd_entry *entry,
                                char copy[HF__ETCD_RECORD], hf_lock_info *info)
{
    char *at = copy;
    long long ttl_ms = -1;
    long long asked_ms = -1;

    info->mode = entry->mode;
    info->slots = entry->slots;
    info->token = entry->revision;
    info->since_ms = -1;
    info->lease_ms = -1;
    info->alive = 2;
    if (record_text(entry->value, copy)[0] == '\0') {
        (void)snprintf(copy, HF__ETCD_RECORD, "lease %" PRIx64,
                       (uint64_t)entry->lease);
        info->owner = copy;
        info->host = "";
        info->note = "";
        return;
    }
    if (sscanf(hf__holder_line(&at), "hf1 %*c %*d %lld %lld", &ttl_ms,
               &asked_ms) == 2) {
        info->since_ms = hf__holder_age_ms(asked_ms);
        info->lease_ms = ttl_ms;
    }
    hf__holder_read(&at, info);
}

void hf__etcd_queue_read_holder(const struct hf__etcd_entry *entry, char *to,
                                size_t size)
{
    char copy[HF__ETCD_RECORD];
    hf_lock_info info = {0};

    hf__etcd_queue_read_record(entry, copy, &info);
    if (info.pid == 0)
        (void)snprintf(to, size, "%s", info.owner);
    else
        hf__holder_name(&info, to, size);
}
