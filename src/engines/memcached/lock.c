/* SPDX-License-Identifier: MIT */
/*
 * lock.c - a lock is an item that only its owner can touch.
 *
 *   acquire   add, with a value that no other ticket has
 *   renew     replace, if the item's number is still ours (cas)
 *   release   delete, if the item's number is still ours (md … C)
 *   look      what is there, and its number (mg … v c): behind each of the
 *             first two, in the same write, and whenever the number is unknown
 *
 * Not by the newer command ms: a server without memory for it (-M) deletes the
 * item that is there, whoever's it is. The older ones leave it alone.
 *
 * Every item has a number that grows with each change, so "still ours" and
 * the change are one step at the server. Numbers start again when the server
 * does; one that was told on another connection is not believed, but looked up
 * together with the value. So nobody's item is taken for ours.
 *
 * LEASES. The server counts whole seconds: T30 ends between 29 and 30 seconds
 * later. We ask for a second more, rounded up, and claim what was asked for.
 *
 * NAMES. A key is at most 250 bytes without spaces. Names are percent-encoded;
 * what is too long then is a hash, and the whole name stands in the value,
 * where it is compared: two names never become one lock.
 */
#include <inttypes.h>
#include <stdio.h>

#include "config/name.h"
#include "engines/memcached/memcached.h"

enum {
    KEY_MAX = 250,
    NAME_MAX = 128 + HF_NAME_MAX, /* prefix and name */
    TICKET_LEN = 44,              /* identity and number, in hex */
    VALUE_MAX = 1200,
    SECONDS_MAX = 30 * 24 * 3600 /* longer is an instant to the server */
};

static struct hf__memcached_ticket *mine(const struct hf__memcached *memcached,
                                         struct hf__ticket *ticket)
{
    return hf__engine_ticket(&memcached->base, ticket);
}

/* ---- names and values ---------------------------------------------------- */

/* @text to @to, as far as there is room before @end. */
static char *put(char *to, char *end, const char *text)
{
    char *behind = memccpy(to, text, '\0', (size_t)(end - to));

    return behind ? behind - 1 : end;
}

/* Prefix and name; its length. */
static size_t full_name(const struct hf__memcached *memcached,
                        const struct hf__ticket *ticket, char to[NAME_MAX + 1])
{
    char *end = put(to, to + NAME_MAX, memcached->base.host->settings->prefix);

    end = put(end, to + NAME_MAX, ticket->name);
    *end = '\0';
    return (size_t)(end - to);
}

/* As tooz has it, which does not encode anything. */
static int tooz_key(const char *name, size_t len, char to[KEY_MAX + 1],
                    hf_error *err)
{
    int n = snprintf(to, KEY_MAX + 1, "__TOOZ_LOCK_%s", name);

    if (n > KEY_MAX || memchr(name, ' ', len))
        return hf__fail(err, HF_EINVAL,
                        "dialect=tooz: the name is too long for a key of "
                        "Memcached, or has a space in it");
    return 0;
}

static int make_key(const struct hf__memcached *memcached,
                    const struct hf__ticket *ticket, char to[KEY_MAX + 1],
                    hf_error *err)
{
    static const uint64_t seeds[2][2] = {{1, 2}, {3, 4}};
    char name[NAME_MAX + 1];
    size_t len = full_name(memcached, ticket, name);

    if (memcached->tooz)
        return tooz_key(name, len, to, err);
    memcpy(to, "hf:", 3);
    if (hf__name_encode(name, len, to + 3, KEY_MAX + 1 - 3) == 0)
        (void)snprintf(to, KEY_MAX + 1, "hf:#%016" PRIx64 "%016" PRIx64,
                       hf__name_hash(name, len, seeds[0]),
                       hf__name_hash(name, len, seeds[1]));
    return 0;
}

/* What no other ticket of any client has. */
static void put_ticket(const struct hf__memcached *memcached,
                       const struct hf__ticket *ticket, char to[TICKET_LEN])
{
    static const char digits[] = "0123456789abcdef";
    uint64_t id = ticket->id;

    memcpy(to, memcached->base.host->identity_hex, 32);
    for (int i = TICKET_LEN - 1; i >= 32; i--, id >>= 4)
        to[i] = digits[id & 15];
}

/* Ticket, colon, host, process, owner, note, name in lines; its length. */
static size_t make_value(const struct hf__memcached *memcached,
                         const struct hf__ticket *ticket, char to[VALUE_MAX])
{
    char *end = to + VALUE_MAX;
    char name[NAME_MAX + 1];
    char *at = to + TICKET_LEN;

    put_ticket(memcached, ticket, to);
    if (memcached->tooz)
        return TICKET_LEN;
    (void)full_name(memcached, ticket, name);
    at = put(at, end, memcached->origin);
    at = put(at, end, ticket->owner);
    at = put(at, end, "\n");
    at = put(at, end, ticket->note);
    at = put(at, end, "\n");
    return (size_t)(put(at, end, name) - to);
}

static bool is_ours(const struct hf__memcached *memcached,
                    const struct hf__ticket *ticket,
                    const struct hf__meta *meta)
{
    char ours[TICKET_LEN];

    put_ticket(memcached, ticket, ours);
    return meta->value_len >= TICKET_LEN &&
           memcmp(meta->value, ours, TICKET_LEN) == 0;
}

/* The part of a value behind @lines line ends, up to the next one. */
static size_t line_of(const struct hf__meta *meta, int lines,
                      const char **ret_at)
{
    const char *at = meta->value;
    const char *end = at + meta->value_len;
    const char *next;

    for (; lines > 0 && at; lines--) {
        at = memchr(at, '\n', (size_t)(end - at));
        at = at ? at + 1 : NULL;
    }
    *ret_at = at;
    if (!at)
        return 0;
    next = memchr(at, '\n', (size_t)(end - at));
    return (size_t)((next ? next : end) - at);
}

/* Another name with the same hash? Foreign values have no name. */
static bool is_other_name(const struct hf__memcached *memcached,
                          const struct hf__ticket *ticket,
                          const struct hf__meta *meta)
{
    char name[NAME_MAX + 1];
    const char *theirs;
    size_t len = full_name(memcached, ticket, name);
    size_t their_len = line_of(meta, 4, &theirs);

    return theirs && (their_len != len || memcmp(theirs, name, len) != 0);
}

/* "db1:4211 (thread 1)", or nothing for a value that is not our kind. */
static bool read_holder(const struct hf__meta *meta, char *to, size_t size)
{
    const char *host;
    const char *pid;
    const char *owner;
    size_t host_len = line_of(meta, 0, &host);
    size_t pid_len = line_of(meta, 1, &pid);
    size_t owner_len = line_of(meta, 2, &owner);

    if (!owner || host_len <= TICKET_LEN || host_len > 200 || pid_len > 20 ||
        owner_len > HF_OWNER_MAX || host[TICKET_LEN] != ':' ||
        hf__name_check_text("host", host, host_len, 1, 200, NULL) != 0 ||
        hf__name_check_text("pid", pid, pid_len, 0, 20, NULL) != 0 ||
        hf__name_check_text("owner", owner, owner_len, 0, HF_OWNER_MAX, NULL) !=
            0)
        return false;
    (void)snprintf(to, size, "%.*s:%.*s (%.*s)",
                   (int)(host_len - TICKET_LEN - 1), host + TICKET_LEN + 1,
                   (int)pid_len, pid, (int)owner_len, owner);
    return true;
}

/* ---- sending ------------------------------------------------------------- */

static int64_t lease_s(const struct hf__memcached *memcached,
                       const struct hf__ticket *ticket)
{
    int64_t lease_ms =
        ticket->ttl_ms + memcached->base.host->settings->lock_delay_ms;

    return (lease_ms + 999) / 1000 + 1;
}

static void on_stored(struct hf__memcached *memcached,
                      const struct hf__memcached_call *call,
                      const struct hf__meta *meta);
static void on_looked(struct hf__memcached *memcached,
                      const struct hf__memcached_call *call,
                      const struct hf__meta *meta);
static void on_deleted(struct hf__memcached *memcached,
                       const struct hf__memcached_call *call,
                       const struct hf__meta *meta);

/* The command behind @mark is one of @ticket. */
static int send_it(struct hf__memcached *memcached, size_t mark,
                   hf__memcached_reply_fn *done,
                   enum hf__memcached_answers answers,
                   struct hf__ticket *ticket, hf_error *err)
{
    struct hf__memcached_call call = {
        .done = done, .answers = answers, .ticket = ticket};
    int rc = hf__memcached_sent(memcached, mark, &call, err);

    mine(memcached, ticket)->calls += rc == 0;
    return rc;
}

static int send_look_at(struct hf__memcached *memcached,
                        struct hf__ticket *ticket, const char *key,
                        hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;

    hf__buf_add(out, "mg ");
    hf__buf_add(out, key);
    hf__buf_add(out, " v c\r\n");
    return send_it(memcached, mark, on_looked, HF__MEMCACHED_LOOK, ticket, err);
}

static int send_look(struct hf__memcached *memcached, struct hf__ticket *ticket,
                     hf_error *err)
{
    char key[KEY_MAX + 1];

    (void)make_key(memcached, ticket, key, /* err= */ NULL);
    return send_look_at(memcached, ticket, key, err);
}

/* Store our value, and look what is there then: add it, or replace the item
 * with the number @cas. */
static int send_store(struct hf__memcached *memcached,
                      struct hf__ticket *ticket, uint64_t cas, hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;
    char key[KEY_MAX + 1];
    char value[VALUE_MAX];
    size_t len = make_value(memcached, ticket, value);
    int rc = make_key(memcached, ticket, key, err);

    if (rc != 0)
        return rc;
    hf__buf_add(out, cas ? "cas " : "add ");
    hf__buf_add(out, key);
    hf__buf_add(out, memcached->tooz ? " 1 " : " 0 ");
    hf__buf_add_number(out, (uint64_t)lease_s(memcached, ticket));
    hf__buf_add_char(out, ' ');
    hf__buf_add_number(out, len);
    if (cas) {
        hf__buf_add_char(out, ' ');
        hf__buf_add_number(out, cas);
    }
    hf__buf_add(out, "\r\n");
    hf__buf_append(out, value, len);
    hf__buf_add(out, "\r\n");
    rc = send_it(memcached, mark, on_stored, HF__MEMCACHED_STORE, ticket, err);
    return rc == 0 ? send_look_at(memcached, ticket, key, err) : rc;
}

static int send_delete(struct hf__memcached *memcached,
                       struct hf__ticket *ticket, uint64_t cas, hf_error *err)
{
    struct hf__buf *out = &memcached->stream.out;
    size_t mark = out->len;
    char key[KEY_MAX + 1];

    (void)make_key(memcached, ticket, key, /* err= */ NULL);
    hf__buf_add(out, "md ");
    hf__buf_add(out, key);
    hf__buf_add(out, " C");
    hf__buf_add_number(out, cas);
    hf__buf_add(out, "\r\n");
    return send_it(memcached, mark, on_deleted, HF__MEMCACHED_DELETE, ticket,
                   err);
}

/* The number of our item; 0 if we have to look. */
static uint64_t known_cas(const struct hf__memcached *memcached,
                          struct hf__ticket *ticket)
{
    const struct hf__memcached_ticket *m = mine(memcached, ticket);

    return m->epoch == memcached->epoch ? m->cas : 0;
}

/* ---- reporting ----------------------------------------------------------- */

/* It may be gone after the next report. */
static void forget(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    if (mine(memcached, ticket)->calls > 0)
        hf__memcached_forget(memcached, ticket);
    memset(mine(memcached, ticket), 0, sizeof(struct hf__memcached_ticket));
}

static void unknown(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    hf_error err;

    hf__memcached_explain_lost(memcached, &err);
    mine(memcached, ticket)->asking = false;
    hf__up_unknown(&memcached->base, ticket, &err);
}

/* Nothing came, or nothing that means something: who asked or leaves hears so,
 * who renews counts the time. */
static void no_answer(struct hf__memcached *memcached,
                      struct hf__ticket *ticket)
{
    const struct hf__memcached_ticket *m = mine(memcached, ticket);

    if (m->asking || m->leaving)
        unknown(memcached, ticket);
}

static void busy(struct hf__memcached *memcached, struct hf__ticket *ticket,
                 const struct hf__meta *meta)
{
    char holder[400];
    bool named = meta && read_holder(meta, holder, sizeof(holder));

    forget(memcached, ticket);
    /* Gone meanwhile: at once again. */
    hf__up_busy(&memcached->base, ticket, meta ? 0 : hf__now(),
                named ? holder : NULL);
}

static void collided(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: another name has the same hash; use a shorter one",
                   memcached->peer);
    forget(memcached, ticket);
    hf__up_failed(&memcached->base, ticket, &err);
}

static void failed(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    hf_error err;

    (void)hf__fail(&err, HF_ENOSPACE,
                   "%s: no memory for another lock: raise -m, or free some",
                   memcached->peer);
    forget(memcached, ticket);
    hf__up_failed(&memcached->base, ticket, &err);
}

static void granted(struct hf__memcached *memcached, struct hf__ticket *ticket,
                    int64_t sent_ns)
{
    struct hf__grant grant = {
        .tokens = 1, .lease_ms = ticket->ttl_ms, .sent_ns = sent_ns};
    struct hf__memcached_ticket *m = mine(memcached, ticket);

    if (m->asking) {
        m->asking = false;
        hf__up_granted(&memcached->base, ticket, &grant);
    } else {
        hf__up_renewed(&memcached->base, ticket, &grant);
    }
}

static void lost(struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    forget(memcached, ticket);
    hf__up_lost(&memcached->base, ticket, HF__LOST_TAKEN);
}

static void left(struct hf__memcached *memcached, struct hf__ticket *ticket,
                 bool was_ours)
{
    bool releasing = mine(memcached, ticket)->releasing;

    forget(memcached, ticket);
    hf__up_left(&memcached->base, ticket,
                releasing && !was_ours ? HF_ELOST : 0);
}

/* ---- answers ------------------------------------------------------------- */

/* The look behind it decides. */
static void on_stored(struct hf__memcached *memcached,
                      const struct hf__memcached_call *call,
                      const struct hf__meta *meta)
{
    struct hf__memcached_ticket *m =
        call->ticket ? mine(memcached, call->ticket) : NULL;

    if (!m)
        return;
    m->calls--;
    m->stored_ns = meta && meta->kind == HF__META_HD ? call->sent_ns : 0;
    m->full = meta && meta->kind == HF__META_ERROR;
}

/* It is ours, with this number: stored just now, or by a request whose answer
 * was lost, or it is to be renewed or deleted. It is stored again once: a
 * server could show it as ours and refuse to store it for ever. */
static int go_on(struct hf__memcached *memcached, struct hf__ticket *ticket,
                 uint64_t cas, int64_t stored_ns)
{
    struct hf__memcached_ticket *m = mine(memcached, ticket);

    m->cas = cas;
    m->epoch = memcached->epoch;
    if (m->leaving)
        return send_delete(memcached, ticket, cas, /* err= */ NULL);
    if (stored_ns != 0) {
        granted(memcached, ticket, stored_ns);
        return 0;
    }
    if (m->full || m->repeated)
        return HF_ENOSPACE;
    m->repeated = true;
    return send_store(memcached, ticket, cas, /* err= */ NULL);
}

/* It is not there, or (@meta) another's. */
static void not_ours(struct hf__memcached *memcached, struct hf__ticket *ticket,
                     const struct hf__meta *meta)
{
    const struct hf__memcached_ticket *m = mine(memcached, ticket);

    if (m->leaving)
        left(memcached, ticket, /* was_ours= */ false);
    else if (!m->asking)
        lost(memcached, ticket);
    else if (meta && is_other_name(memcached, ticket, meta))
        collided(memcached, ticket);
    else if (!meta && m->full)
        failed(memcached, ticket);
    else
        busy(memcached, ticket, meta);
}

static void on_looked(struct hf__memcached *memcached,
                      const struct hf__memcached_call *call,
                      const struct hf__meta *meta)
{
    struct hf__ticket *ticket = call->ticket;
    struct hf__memcached_ticket *m = ticket ? mine(memcached, ticket) : NULL;
    int64_t stored_ns;

    if (!ticket)
        return;
    m->calls--;
    stored_ns = m->stored_ns;
    m->stored_ns = 0;
    if (m->leaving && m->calls > 0)
        return; /* the last one decides */
    if (meta && meta->kind == HF__META_EN)
        not_ours(memcached, ticket, /* meta= */ NULL);
    else if (meta && meta->kind == HF__META_VA && meta->cas != 0 &&
             !is_ours(memcached, ticket, meta))
        not_ours(memcached, ticket, meta);
    else if (!meta || meta->kind != HF__META_VA || meta->cas == 0 ||
             go_on(memcached, ticket, meta->cas, stored_ns) != 0)
        no_answer(memcached, ticket);
}

static void on_deleted(struct hf__memcached *memcached,
                       const struct hf__memcached_call *call,
                       const struct hf__meta *meta)
{
    struct hf__ticket *ticket = call->ticket;

    if (!ticket)
        return;
    mine(memcached, ticket)->calls--;
    if (!meta || meta->kind == HF__META_ERROR)
        no_answer(memcached, ticket);
    else
        left(memcached, ticket, meta->kind == HF__META_HD);
}

/* ---- calls of the core --------------------------------------------------- */

static int not_up(const struct hf__memcached *memcached, hf_error *err)
{
    return hf__fail(err, HF_EUNAVAILABLE, "%s: not connected", memcached->peer);
}

int hf__memcached_acquire(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;
    struct hf__memcached_ticket *m = mine(memcached, ticket);
    bool known = m->known;
    int rc;

    if (!memcached->up)
        return not_up(memcached, err);
    if (lease_s(memcached, ticket) > SECONDS_MAX)
        return hf__fail(err, HF_EINVAL,
                        "the longest lease of Memcached is 30 days");
    m->known = m->asking = true;
    m->repeated = false;
    rc = send_store(memcached, ticket, /* cas= */ 0, err);
    if (rc == 0)
        return 0;
    if (!known && m->calls == 0) {
        forget(memcached, ticket);
        return rc;
    }
    unknown(memcached, ticket); /* it may be there, or soon */
    return 0;
}

static int leave(struct hf__engine *engine, struct hf__ticket *ticket,
                 bool releasing, hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;
    struct hf__memcached_ticket *m = mine(memcached, ticket);
    uint64_t cas = known_cas(memcached, ticket);

    if (!m->known) {
        hf__up_left(engine, ticket, releasing ? HF_ELOST : 0);
        return 0;
    }
    if (!memcached->up)
        return not_up(memcached, err);
    m->asking = false;
    m->leaving = true;
    m->releasing = releasing;
    if (cas == 0 || m->calls > 0) /* which may change it */
        return send_look(memcached, ticket, err);
    return send_delete(memcached, ticket, cas, err);
}

int hf__memcached_withdraw(struct hf__engine *engine, struct hf__ticket *ticket,
                           hf_error *err)
{
    return leave(engine, ticket, /* releasing= */ false, err);
}

int hf__memcached_release(struct hf__engine *engine, struct hf__ticket *ticket,
                          hf_error *err)
{
    return leave(engine, ticket, /* releasing= */ true, err);
}

int hf__memcached_renew(struct hf__engine *engine, struct hf__ticket **tickets,
                        size_t n, hf_error *err)
{
    struct hf__memcached *memcached = (struct hf__memcached *)engine;

    if (!memcached->up)
        return not_up(memcached, err);
    for (size_t i = 0; i < n; i++) {
        struct hf__memcached_ticket *m = mine(memcached, tickets[i]);
        uint64_t cas = known_cas(memcached, tickets[i]);
        int rc;

        m->full = m->repeated = false; /* is found out anew */
        if (cas == 0 || m->calls > 0)
            rc = send_look(memcached, tickets[i], err);
        else
            rc = send_store(memcached, tickets[i], cas, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}
