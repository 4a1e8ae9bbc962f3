/* SPDX-License-Identifier: MIT */
/*
 * tickets.c - which tickets the server may know, and how they are written.
 *
 * A ticket is known from its first acquire until the report that ends it. Calls
 * and pushes name it by its number, which is looked up here, because the core
 * may have given the ticket back in the meantime.
 *
 * A record is what the server keeps of a ticket: a head of fixed places
 * (scripts.h), then host, process, owner and note in lines. It is composed once
 * and kept, since a waiter is taken out of the line by comparing the whole.
 *
 * Keys contain names only in their percent-encoded form (name.h), so a name
 * cannot close the braces that keep a lock's keys together.
 */
#include <inttypes.h>
#include <stdio.h>

#include "config/name.h"
#include "engines/common/holder.h"
#include "engines/redis/connection.h"
#include "engines/redis/redis.h"
#include "engines/redis/tickets.h"
#include "engines/redis/verbs.h"

/* Two digits in one step: every record has three long numbers. */
void hf__redis_tickets_put_digits(char *to, uint64_t number, size_t width)
{
    static const char pairs[] =
        "00010203040506070809101112131415161718192021222324252627282930313233"
        "34353637383940414243444546474849505152535455565758596061626364656667"
        "6869707172737475767778798081828384858687888990919293949596979899";

    for (; number > 9 && width > 1; number /= 100) {
        width -= 2;
        memcpy(to + width, pairs + 2 * (number % 100), 2);
    }
    if (number > 0 && width > 0)
        to[width - 1] = (char)('0' + number % 10);
}

uint64_t hf__redis_tickets_digits(const char *text, size_t len)
{
    uint64_t number = 0;

    for (size_t i = 0; i < len; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        number = number * 10 + (uint64_t)(text[i] - '0');
    }
    return number;
}

void hf__redis_tickets_put_uuid(const char *hex, char to[37])
{
    (void)snprintf(to, 37, "%.8s-%.4s-4%.3s-8%.3s-%.12s", hex, hex + 8,
                   hex + 13, hex + 17, hex + 20);
}

/* ---- records ----------------------------------------------------------- */

static void put_hex(char *to, uint64_t number, size_t width)
{
    for (; number > 0 && width > 0; number >>= 4)
        to[--width] = "0123456789abcdef"[number & 15];
}

/* What only the server's keys and we know of a ticket, so that nobody else can
 * push to it. */
static int take_nonce(struct hf__redis *redis, uint64_t *ret_nonce,
                      hf_error *err)
{
    if (redis->nonces_n == 0) {
        if (hf__world->random(redis->nonces, sizeof(redis->nonces)) != 0)
            return hf__fail(err, HF_EINTERNAL,
                            "the kernel gives no random numbers");
        redis->nonces_n = HF_COUNT_OF(redis->nonces);
    }
    *ret_nonce = redis->nonces[--redis->nonces_n];
    return 0;
}

/* A field of a record, and its width. */
#define AT(field) HF__RECORD_##field
#define WIDE(field) HF__RECORD_##field##_WIDTH

/* What is the same in every record of this client; the rest is zeroes. */
static void make_head(struct hf__redis *redis)
{
    const struct hf__engine_host *host = redis->base.host;

    memset(redis->head, '0', sizeof(redis->head));
    memcpy(redis->head, host->identity_hex, 32);
    hf__redis_tickets_put_digits(redis->head + AT(DELAY),
                                 (uint64_t)host->settings->lock_delay_ms,
                                 WIDE(DELAY));
    redis->head[AT(BOUND)] = '>';
}

void hf__redis_tickets_text(const struct hf__redis *redis, uint64_t id,
                            char to[HF__RECORD_TICKET_WIDTH])
{
    memcpy(to, redis->head, HF__RECORD_TICKET_WIDTH);
    put_hex(to + AT(NUMBER), id, WIDE(NUMBER));
}

static void put_head(const struct hf__redis *redis,
                     const struct hf__ticket *ticket, uint64_t token,
                     uint64_t nonce, char *to)
{
    static const char modes[] = {
        [HF_EXCLUSIVE] = 'x', [HF_SHARED] = 's', [HF_SLOT] = 'n'};

    memcpy(to, redis->head, sizeof(redis->head));
    put_hex(to + AT(NUMBER), ticket->id, WIDE(NUMBER));
    to[AT(MODE)] = modes[ticket->mode];
    hf__redis_tickets_put_digits(to + AT(SLOTS), (uint64_t)ticket->slots,
                                 WIDE(SLOTS));
    hf__redis_tickets_put_digits(to + AT(TTL), (uint64_t)ticket->ttl_ms,
                                 WIDE(TTL));
    hf__redis_tickets_put_digits(to + AT(RESERVE),
                                 ticket->reserve < 999 ? ticket->reserve : 999,
                                 WIDE(RESERVE));
    hf__redis_tickets_put_digits(
        to + AT(ASKED), (uint64_t)(hf__world->wall_us() / 1000), WIDE(ASKED));
    hf__redis_tickets_put_digits(to + AT(TOKEN), token, WIDE(TOKEN));
    put_hex(to + AT(NONCE), nonce, WIDE(NONCE));
}

/* Host and process are the same in every record. */
int hf__redis_tickets_init(struct hf__redis *redis)
{
    const struct hf__engine_host *host = redis->base.host;
    int n = snprintf(redis->whoami, sizeof(redis->whoami), "%s\n%" PRId64 "\n",
                     host->host, host->pid);

    redis->whoami_len =
        n > 0 && (size_t)n < sizeof(redis->whoami) ? (size_t)n : 0;
    redis->names = &redis->nobody;
    redis->names_size = 1;
    hf__text_copy(redis->identity, sizeof(redis->identity), host->identity_hex);
    redis->prefix_len = strlen(host->settings->prefix);
    make_head(redis);
    return hf__world->random(redis->hash_key, sizeof(redis->hash_key));
}

static char *put(char *to, const char *text, size_t len)
{
    memcpy(to, text, len);
    return to + len;
}

static void put_in(struct hf__redis *redis, struct hf__ticket *ticket)
{
    hf__ticket_table_add(&redis->tickets,
                         &hf__redis_ticket(redis, ticket)->entry, ticket);
    if (redis->tickets.n == 1 && (redis->sentinels || redis->in_cluster)) {
        redis->tickets_since_ns = ticket->sent_ns;
        hf__link_wake(&redis->link, ticket->sent_ns + HF__REDIS_WATCH_NS);
    }
    hf__redis_connection_count(redis);
}

static void take_out(struct hf__redis *redis, struct hf__ticket *ticket)
{
    hf__ticket_table_remove(&redis->tickets,
                            &hf__redis_ticket(redis, ticket)->entry);
    hf__redis_connection_count(redis);
}

static int make_record(struct hf__redis *redis, struct hf__ticket *ticket,
                       uint64_t token, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__buf *key = &redis->scratch;
    size_t owner_len = strlen(ticket->owner);
    size_t note_len = strlen(ticket->note);
    size_t cond_len = ticket->cond ? 1 + strlen(ticket->cond) : 0;
    size_t texts_len = redis->whoami_len + owner_len + 1 + note_len + cond_len;
    uint64_t nonce = 0;
    char *to;
    int rc = take_nonce(redis, &nonce, err);

    if (rc != 0)
        return rc;
    redis->dialect->key(redis, ticket->name, ticket->name_len);
    if (!hf__buf_failed(key))
        mine->record = hf__malloc(HF__RECORD_TEXTS + texts_len + key->len);
    if (!mine->record) {
        hf__buf_release(key);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    put_head(redis, ticket, token, nonce, mine->record);
    to = put(mine->record + HF__RECORD_TEXTS, redis->whoami, redis->whoami_len);
    to = put(to, ticket->owner, owner_len);
    *to++ = '\n';
    to = put(to, ticket->note, note_len);
    if (cond_len > 0) {
        *to++ = '\n';
        to = put(to, ticket->cond, cond_len - 1);
    }
    (void)put(to, key->text, key->len);
    mine->record_len = (uint32_t)(HF__RECORD_TEXTS + texts_len);
    mine->key_len = (uint32_t)key->len;
    put_in(redis, ticket);
    return 0;
}

int hf__redis_tickets_ask(struct hf__redis *redis, struct hf__ticket *ticket,
                          uint64_t token, hf_error *err)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    bool known = mine->record != NULL;
    int rc = known ? 0 : make_record(redis, ticket, token, err);

    if (rc != 0)
        return rc;
    hf__redis_ticket_to(mine, HF__REDIS_ASKING);
    mine->again = known;
    return 0;
}

void hf__redis_tickets_record_read(const char *record, size_t len,
                                   char copy[HF__REDIS_TEXTS],
                                   hf_lock_info *info)
{
    size_t head = len < HF__RECORD_TEXTS ? len : HF__RECORD_TEXTS;
    char *at =
        hf__holder_copy(record + head, len - head, copy, HF__REDIS_TEXTS);

    hf__holder_read(&at, info);
    info->cond = info->role == HF_PARKED ? hf__holder_line(&at) : "";
    info->alive = 2;
    if (len < HF__RECORD_TEXTS)
        return;
    info->ttl_ms =
        (int64_t)hf__redis_tickets_digits(record + HF__RECORD_TTL, 13);
    info->mode = record[HF__RECORD_MODE] == 'x'   ? HF_EXCLUSIVE
                 : record[HF__RECORD_MODE] == 's' ? HF_SHARED
                                                  : HF_SLOT;
    if (info->mode == HF_SLOT)
        info->slots =
            (int32_t)hf__redis_tickets_digits(record + HF__RECORD_SLOTS, 5);
}

void hf__redis_tickets_record_holder(const char *record, size_t len, char *to,
                                     size_t size)
{
    char copy[HF__REDIS_TEXTS];
    hf_lock_info info = {0};

    hf__redis_tickets_record_read(record, len, copy, &info);
    hf__holder_name(&info, to, size);
}

/* ---- moves ------------------------------------------------------------- */

#define MAY(state) HF__REDIS_BIT(state)

static const uint32_t moves[HF__REDIS_STATES] = {
    [HF__REDIS_IDLE] = MAY(IDLE) | MAY(ASKING),
    [HF__REDIS_ASKING] = MAY(IDLE) | MAY(ASKING) | MAY(TRIED) | MAY(SYNCING) |
                         MAY(WAITING) | MAY(PARKED) | MAY(HELD) | MAY(UNKNOWN) |
                         MAY(RETURNING) | MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_TRIED] = MAY(IDLE) | MAY(ASKING) | MAY(TRIED) | MAY(SYNCING) |
                        MAY(WAITING) | MAY(HELD) | MAY(UNKNOWN) |
                        MAY(RETURNING) | MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_SYNCING] = MAY(IDLE) | MAY(ASKING) | MAY(SYNCING) |
                          MAY(WAITING) | MAY(PARKED) | MAY(HELD) |
                          MAY(UNKNOWN) | MAY(RETURNING) | MAY(WITHDRAWING) |
                          MAY(RELEASING),
    [HF__REDIS_WAITING] = MAY(IDLE) | MAY(ASKING) | MAY(LOOKING) | MAY(CALLED) |
                          MAY(UNPARKING) | MAY(HELD) | MAY(WITHDRAWING),
    [HF__REDIS_LOOKING] = MAY(IDLE) | MAY(ASKING) | MAY(LOOKING) |
                          MAY(WAITING) | MAY(CALLED) | MAY(HELD) |
                          MAY(WITHDRAWING),
    [HF__REDIS_PARKED] = MAY(IDLE) | MAY(ASKING) | MAY(WAITING) |
                         MAY(UNPARKING) | MAY(CALLED) | MAY(STALE) | MAY(HELD) |
                         MAY(WITHDRAWING),
    [HF__REDIS_STALE] = MAY(IDLE) | MAY(ASKING) | MAY(WAITING) | MAY(CALLED) |
                        MAY(HELD) | MAY(DROPPING) | MAY(WITHDRAWING),
    [HF__REDIS_UNPARKING] = MAY(IDLE) | MAY(UNPARKING) | MAY(WAITING) |
                            MAY(CALLED) | MAY(HELD) | MAY(UNKNOWN) |
                            MAY(DROPPING) | MAY(WITHDRAWING),
    [HF__REDIS_CALLED] = MAY(IDLE) | MAY(ASKING) | MAY(CALLED) | MAY(WAITING) |
                         MAY(UNPARKING) | MAY(HELD) | MAY(UNKNOWN) |
                         MAY(DROPPING) | MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_HELD] = MAY(IDLE) | MAY(ASKING) | MAY(UNPARKING) |
                       MAY(YIELDING) | MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_YIELDING] = MAY(IDLE) | MAY(YIELDING) | MAY(HELD) |
                           MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_UNKNOWN] = MAY(IDLE) | MAY(ASKING) | MAY(UNPARKING) |
                          MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_RETURNING] = MAY(IDLE) | MAY(UNKNOWN),
    [HF__REDIS_DROPPING] = MAY(IDLE) | MAY(WAITING) | MAY(STALE),
    [HF__REDIS_WITHDRAWING] = MAY(IDLE) | MAY(WITHDRAWING) | MAY(RELEASING),
    [HF__REDIS_RELEASING] = MAY(IDLE) | MAY(WITHDRAWING) | MAY(RELEASING),
};

void hf__redis_ticket_to(struct hf__redis_ticket *mine,
                         enum hf__redis_state state)
{
    assert(moves[mine->state] & (1u << state));
    mine->state = (uint8_t)state;
}

static void held_again(struct hf__redis_ticket *old)
{
    if (old->state == HF__REDIS_YIELDING)
        hf__redis_ticket_to(old, HF__REDIS_HELD);
}

/* ---- the table --------------------------------------------------------- */

void hf__redis_tickets_forget(struct hf__redis *redis,
                              struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (!mine->record)
        return;
    if (mine->old) /* it is not parked, so that one is held as before */
        held_again(hf__redis_ticket(redis, mine->old));
    take_out(redis, ticket);
    hf__redis_wait_part(redis, mine);
    hf__free(mine->record);
    hf__free(mine->why);
    hf__redis_ticket_to(mine, HF__REDIS_IDLE);
    memset(mine, 0, sizeof(*mine));
}

static void make_stale(struct hf__ticket *ticket, void *redis)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);

    if (mine->state == HF__REDIS_PARKED)
        hf__redis_ticket_to(mine, HF__REDIS_STALE);
}

void hf__redis_tickets_move(struct hf__redis *from, struct hf__redis *to,
                            struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(from, ticket);

    if (!mine->record)
        return;
    /* What is under way at @from reports nothing any more. */
    hf__redis_sync_forget(from, ticket);
    if (mine->state == HF__REDIS_LOOKING || mine->state == HF__REDIS_CALLED)
        hf__redis_ticket_to(mine, HF__REDIS_WAITING);
    make_stale(ticket, from);
    hf__redis_wait_part(from, mine);
    take_out(from, ticket);
    put_in(to, ticket);
    mine->importing = false;
    mine->watch_ns = 0;
    mine->name_hash = 0;
    mine->sync = 0;
}

void hf__redis_tickets_other_data(struct hf__redis *redis)
{
    hf__ticket_table_each(&redis->tickets, make_stale, redis);
}

int hf__redis_tickets_not_asked(struct hf__redis *redis,
                                struct hf__ticket *ticket, const hf_error *err)
{
    hf_error why;

    if (!hf__redis_ticket(redis, ticket)->again) {
        hf__redis_tickets_forget(redis, ticket);
        return err ? err->code : HF_ENOMEM;
    }
    (void)hf__fail(&why, HF_ENOMEM, "out of memory");
    hf__redis_release_doubtful(redis, ticket, &why);
    return 0;
}

static void forget(struct hf__ticket *ticket, void *redis)
{
    hf__redis_tickets_forget(redis, ticket);
}

void hf__redis_tickets_forget_all(struct hf__redis *redis)
{
    hf__ticket_table_each(&redis->tickets, forget, redis);
    hf__ticket_table_release(&redis->tickets);
}

/* ---- what is known of names -------------------------------------------- */

void hf__redis_tickets_names_forget(struct hf__redis *redis)
{
    memset(redis->names, 0, redis->names_size * sizeof(*redis->names));
    redis->names_n = 0;
}

void hf__redis_tickets_names_release(struct hf__redis *redis)
{
    if (redis->names != &redis->nobody)
        hf__free(redis->names);
    redis->names = &redis->nobody;
    redis->names_size = 1;
}

/* Room for names that one does not displace another in. Without memory it
 * stays as it is: what is forgotten is asked for by a script. */
static void grow_names(struct hf__redis *redis)
{
    uint32_t size = redis->names_size < 64 ? 64 : 4 * redis->names_size;
    struct hf__redis_name *names = hf__calloc(size, sizeof(*names));

    if (!names)
        return;
    for (uint32_t i = 0; i < redis->names_size; i++) {
        if (redis->names[i].hash != 0)
            names[redis->names[i].hash % size] = redis->names[i];
    }
    hf__redis_tickets_names_release(redis);
    redis->names = names;
    redis->names_size = size;
}

struct hf__redis_name *hf__redis_ticket_name(struct hf__redis *redis,
                                             struct hf__ticket *ticket)
{
    struct hf__redis_ticket *mine = hf__redis_ticket(redis, ticket);
    struct hf__redis_name *place;
    uint64_t hash;

    if (mine->name_hash == 0)
        mine->name_hash =
            hf__name_hash(ticket->name, ticket->name_len, redis->hash_key);
    hash = mine->name_hash;
    place = &redis->names[hash % redis->names_size];
    if (HF_LIKELY(place->hash == hash))
        return place;
    if (4 * ++redis->names_n > redis->names_size &&
        redis->names_size < HF__REDIS_NAMES) {
        grow_names(redis);
        place = &redis->names[hash % redis->names_size];
    }
    memset(place, 0, sizeof(*place));
    place->hash = hash;
    return place;
}
