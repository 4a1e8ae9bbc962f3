/* SPDX-License-Identifier: MIT */
/*
 * board.c - the boards of the stores: posting, and looking for cycles.
 *
 * An owner that waits for long and holds something has a notice on the board of each
 * store that it touches. All members of a cycle do, so the notices contain the
 * cycle. But a notice may be some moments old. So a look asks the stores who
 * holds the locks that members wait for, and compares: a holder counts as a
 * member if that member's notice has the holder's token, and a member counts
 * as waiting if its process is in line.
 *
 * A second look, later, must see the same: neither the serial of a wait nor a
 * token is used twice, so what both looks have seen was there all the time
 * between, all of it at once.
 *
 * Where the looker has no client of a store, the notices alone count, and only
 * exclusive holds.
 */
#include "core/board.h"

#include <inttypes.h>
#include <stddef.h>

#include "core/query.h"

/* A seat may have been passed on inside its process, under a larger token than
 * the store's record has: as often as local_handover allows. */
#define PASSES_MAX UINT64_C(1000000)

/* ---- asking ------------------------------------------------------------------ */

/* Ask by the slot at @offset, while nobody closes the client. */
static int ask(const struct hf__fork_client *of, size_t offset,
               struct hf__query **query, hf_error *err)
{
    int rc;

    if (!hf__fork_keep(of))
        return hf__fail(err, HF_ECLOSED, "the client is closed");
    rc = hf__query_ask(of->client, offset, query, err);
    if (rc == 0 && (*query)->version != 0 &&
        hf__monitor_enter(of->client, /* err= */ NULL) == 0) {
        of->client->store = (*query)->version;
        hf__monitor_leave(of->client);
    }
    hf__fork_let_go(of->client);
    return rc;
}

uint64_t hf__board_number(const struct hf__fork_client *of, int *ret_rc,
                          hf_error *err)
{
    struct hf__query *query = hf__query_new(err);
    uint64_t number = 0;

    *ret_rc = HF_ENOMEM;
    if (query)
        *ret_rc =
            ask(of, offsetof(struct hf__engine_ops, board_read), &query, err);
    if (*ret_rc == 0)
        number = query->version;
    hf__query_free(query);
    return number;
}

uint64_t hf__board_post(const struct hf__fork_client *of, const char *identity,
                        const char *text, int *ret_rc)
{
    struct hf__query *query = hf__query_new(/* err= */ NULL);
    uint64_t number = 0;
    int rc = HF_ENOMEM;

    if (query)
        rc = hf__query_set(&query->owner, identity, /* err= */ NULL);
    if (rc == 0 && text)
        rc = hf__query_set(&query->text, text, /* err= */ NULL);
    if (rc == 0)
        rc = ask(of, offsetof(struct hf__engine_ops, board_post), &query,
                 /* err= */ NULL);
    if (rc == 0)
        number = query->version;
    hf__query_free(query);
    *ret_rc = rc;
    return number;
}

/* ---- members ------------------------------------------------------------------ */

struct hf__board_look *hf__board_look_new(const struct hf__board_place *places,
                                          uint32_t n)
{
    struct hf__board_look *look = hf__calloc(1, sizeof(*look));

    if (look) {
        look->places = places;
        look->places_n = n;
    }
    return look;
}

void hf__board_look_free(struct hf__board_look *look)
{
    hf__free(look);
}

static int find_actor(const struct hf__board_look *look, uint64_t process,
                      uint64_t owner)
{
    for (uint32_t i = 0; i < look->deadlock.n; i++) {
        const struct hf__notice_wait *wait = &look->members[i].wait;

        if (wait->process == process && wait->owner == owner)
            return (int)i;
    }
    return HF__DEADLOCK_NOBODY;
}

void hf__board_look_add(struct hf__board_look *look,
                        const struct hf__notice_wait *wait)
{
    if (find_actor(look, wait->process, wait->owner) != HF__DEADLOCK_NOBODY)
        return;
    if (look->deadlock.n == HF__DEADLOCK_MEMBERS) {
        look->too_much = true;
        return;
    }
    look->members[look->deadlock.n++].wait = *wait;
}

static int add_notices(struct hf__board_look *look, const struct hf__rows *rows,
                       hf_error *err)
{
    struct hf__notice_wait *waits =
        hf__malloc(HF__NOTICE_WAITS * sizeof(struct hf__notice_wait));

    if (!waits)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    look->too_much |= rows->n > HF__DEADLOCK_MEMBERS;
    for (size_t i = 0; i < rows->n && !look->too_much; i++) {
        int n = hf__notice_read(rows->at[i]->texts, rows->at[i]->is.notice_len,
                                waits, HF__NOTICE_WAITS);

        for (int j = 0; j < n; j++)
            hf__board_look_add(look, &waits[j]);
    }
    hf__free(waits);
    return 0;
}

static int read_board(struct hf__board_look *look,
                      const struct hf__board_place *place, hf_error *err)
{
    struct hf__query *query = hf__query_new(err);
    int rc = HF_ENOMEM;

    if (query)
        rc = ask(&place->of, offsetof(struct hf__engine_ops, board_read),
                 &query, err);
    if (rc == 0)
        rc = add_notices(look, query->rows, err);
    hf__query_free(query);
    return rc;
}

/* ---- who keeps a member waiting ------------------------------------------------ */

static uint64_t mix(uint64_t signature, uint64_t number)
{
    signature = (signature ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return signature ^ signature >> 29;
}

static bool is_of(const hf_lock_info *row, const struct hf__notice_wait *wait)
{
    return (row->pid == 0 || row->pid == wait->pid) &&
           strncmp(row->host, wait->host, strlen(row->host)) == 0;
}

/* Is @hold the one that the store shows as @token? */
static bool is_hold(const struct hf__notice_hold *hold, uint64_t store,
                    uint64_t hash, int mode, uint64_t token)
{
    uint64_t passes = mode == HF_EXCLUSIVE ? PASSES_MAX : 0;

    return hold->store == store && hold->hash == hash && hold->mode == mode &&
           hold->token >= token && hold->token - token <= passes;
}

/* The member that holds what the holder's @row shows of what @wait waits for. */
static int find_holder(const struct hf__board_look *look,
                       const struct hf__notice_wait *wait,
                       const hf_lock_info *row)
{
    uint64_t hash = hf__notice_hash(wait->name, strlen(wait->name));

    for (uint32_t i = 0; i < look->deadlock.n; i++) {
        const struct hf__notice_wait *other = &look->members[i].wait;

        for (uint32_t j = 0; j < other->holds_n && is_of(row, other); j++) {
            if (is_hold(&other->holds[j], wait->store, hash, row->mode,
                        row->token))
                return (int)i;
        }
    }
    return HF__DEADLOCK_NOBODY;
}

/* Rows of one lock, as deadlock.h wants them. */
struct rows {
    struct hf__deadlock_row *at;
    size_t n;
    uint64_t signature;
    bool in_line; /* the member itself is among them */
};

static void add_row(const struct hf__board_look *look,
                    const struct hf__notice_wait *wait, const hf_lock_info *row,
                    struct rows *rows)
{
    int member = HF__DEADLOCK_NOBODY;

    if (row->role == HF_WAITER && (rows->in_line || is_of(row, wait))) {
        rows->in_line = true; /* what is behind it does not count */
        return;
    }
    if (row->role == HF_HOLDER)
        member = find_holder(look, wait, row);
    rows->signature = mix(rows->signature, row->token);
    rows->signature = mix(rows->signature, (uint64_t)row->pid << 8 |
                                               (uint64_t)row->mode << 4 |
                                               (uint64_t)row->role);
    if (member != HF__DEADLOCK_NOBODY)
        rows->signature =
            mix(rows->signature, look->members[member].wait.serial);
    rows->at[rows->n++] = (struct hf__deadlock_row){
        .role = row->role, .mode = row->mode, .member = member};
}

static int note_rows(struct hf__board_look *look, uint32_t number,
                     const struct hf__rows *shown, hf_error *err)
{
    struct hf__board_member *member = &look->members[number];
    struct rows rows = {.signature = 1};

    rows.at = hf__calloc(shown->n + 1, sizeof(rows.at[0]));
    if (!rows.at)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    /* Holders come first, then waiters in their order. */
    for (size_t i = 0; i < shown->n; i++)
        add_row(look, &member->wait, &shown->at[i]->is.lock, &rows);
    if (!rows.in_line)
        rows.n = 0; /* it does not wait any more */
    hf__deadlock_rows(&look->deadlock, number, member->wait.mode, rows.at,
                      rows.n);
    member->signature = rows.signature;
    hf__free(rows.at);
    return 0;
}

static int show(struct hf__board_look *look, uint32_t number,
                const struct hf__board_place *place, hf_error *err)
{
    struct hf__query *query = hf__query_new(err);
    int rc = HF_ENOMEM;

    if (++look->shows > HF__BOARD_SHOWS) {
        look->too_much = true;
        hf__query_free(query);
        return 0;
    }
    if (query)
        rc = hf__query_name(query, look->members[number].wait.name, err);
    if (rc == 0)
        rc = hf__query_set(&query->prefix, "", err);
    if (rc == 0)
        rc =
            ask(&place->of, offsetof(struct hf__engine_ops, list), &query, err);
    if (rc == 0)
        rc = note_rows(look, number, query->rows, err);
    hf__query_free(query);
    return rc;
}

/* Nobody can be asked: by the notices alone. */
static void guess(struct hf__board_look *look, uint32_t number)
{
    struct hf__board_member *member = &look->members[number];
    uint64_t hash =
        hf__notice_hash(member->wait.name, strlen(member->wait.name));
    struct hf__deadlock_row row = {.role = HF_HOLDER, .mode = HF_EXCLUSIVE};
    size_t n = 0;

    for (uint32_t i = 0; i < look->deadlock.n; i++) {
        const struct hf__notice_wait *other = &look->members[i].wait;

        for (uint32_t j = 0; j < other->holds_n; j++) {
            const struct hf__notice_hold *hold = &other->holds[j];

            if (n == 1 || hold->store != member->wait.store ||
                hold->hash != hash || hold->mode != HF_EXCLUSIVE)
                continue;
            row.member = (int32_t)i;
            member->signature = mix(hold->token, other->serial);
            n = 1;
        }
    }
    hf__deadlock_rows(&look->deadlock, number, member->wait.mode, &row, n);
}

static const struct hf__board_place *place_of(const struct hf__board_look *look,
                                              uint64_t store)
{
    for (uint32_t i = 0; i < look->places_n; i++) {
        if (look->places[i].store == store)
            return &look->places[i];
    }
    return NULL;
}

static int ask_about(struct hf__board_look *look, uint32_t number,
                     hf_error *err)
{
    const struct hf__board_place *place =
        place_of(look, look->members[number].wait.store);

    look->members[number].asked = true;
    if (place)
        return show(look, number, place, err);
    guess(look, number);
    return 0;
}

/* Ask about the members that @from waits for and that were not asked about. */
static int follow(struct hf__board_look *look, uint32_t from, hf_error *err)
{
    uint32_t line[HF__DEADLOCK_MEMBERS];
    uint32_t n = 0;
    int rc = 0;

    if (!look->members[from].asked)
        line[n++] = from;
    for (uint32_t i = 0; i < n && rc == 0; i++) {
        rc = ask_about(look, line[i], err);
        for (uint32_t to = 0; to < look->deadlock.n && rc == 0; to++) {
            const struct hf__deadlock_set *holders =
                &look->deadlock.members[line[i]].holders;
            bool in_line = look->members[to].asked;

            for (uint32_t j = i + 1; j < n; j++)
                in_line |= line[j] == to;
            if (!in_line && hf__deadlock_has(holders, to))
                line[n++] = to;
        }
    }
    return rc;
}

int hf__board_look_read(struct hf__board_look *look, uint32_t n, hf_error *err)
{
    int rc = 0;

    for (uint32_t i = 0; i < look->places_n && rc == 0; i++)
        rc = read_board(look, &look->places[i], err);
    for (uint32_t i = 0; i < n && i < look->deadlock.n && rc == 0; i++)
        rc = follow(look, i, err);
    if (rc == 0 && look->too_much)
        rc = hf__fail(err, HF_ENOSPACE,
                      "more wait than a look for deadlocks takes in");
    if (rc == 0)
        hf__deadlock_solve(&look->deadlock);
    return rc;
}

/* ---- cycles ---------------------------------------------------------------------- */

static void add_sight(const struct hf__board_look *look, uint32_t number,
                      struct hf__board_cycle *cycle)
{
    const struct hf__board_member *member = &look->members[number];

    cycle->at[cycle->n++] =
        (struct hf__board_sight){.process = member->wait.process,
                                 .owner = member->wait.owner,
                                 .serial = member->wait.serial,
                                 .signature = member->signature};
}

/* All stuck members that those in @line wait for. */
static void add_rest(const struct hf__board_look *look, uint16_t *line,
                     struct hf__board_cycle *cycle)
{
    for (uint32_t i = 0; i < cycle->n; i++) {
        for (uint32_t to = 0; to < look->deadlock.n; to++) {
            bool known = !hf__deadlock_has(&look->deadlock.stuck, to);

            for (uint32_t j = 0; j < cycle->n; j++)
                known |= line[j] == to;
            if (known ||
                !hf__deadlock_has(&look->deadlock.members[line[i]].holders, to))
                continue;
            line[cycle->n] = (uint16_t)to;
            add_sight(look, to, cycle);
        }
    }
}

bool hf__board_look_cycle(const struct hf__board_look *look, uint32_t number,
                          struct hf__board_cycle *cycle)
{
    uint16_t line[HF__DEADLOCK_MEMBERS];

    cycle->n = 0;
    cycle->cycle_n = hf__deadlock_cycle(&look->deadlock, number, line);
    for (uint32_t i = 0; i < cycle->cycle_n; i++)
        add_sight(look, line[i], cycle);
    add_rest(look, line, cycle);
    return cycle->cycle_n > 0;
}

static int find_sight(const struct hf__board_look *look,
                      const struct hf__board_sight *sight)
{
    return find_actor(look, sight->process, sight->owner);
}

static bool sees(const struct hf__board_look *look,
                 const struct hf__board_sight *sight)
{
    int number = find_sight(look, sight);

    return number != HF__DEADLOCK_NOBODY &&
           hf__deadlock_has(&look->deadlock.stuck, (uint32_t)number) &&
           look->members[number].wait.serial == sight->serial &&
           look->members[number].signature == sight->signature;
}

bool hf__board_look_confirms(const struct hf__board_look *look,
                             const struct hf__board_cycle *cycle)
{
    for (uint32_t i = 0; i < cycle->n; i++) {
        if (!sees(look, &cycle->at[i]))
            return false;
    }
    for (uint32_t i = 0; i < cycle->cycle_n; i++) {
        int from = find_sight(look, &cycle->at[i]);
        int to = find_sight(look, &cycle->at[(i + 1) % cycle->cycle_n]);

        if (!hf__deadlock_has(&look->deadlock.members[from].holders,
                              (uint32_t)to))
            return false;
    }
    return cycle->cycle_n > 0;
}

static bool is_younger(const struct hf__notice_wait *a,
                       const struct hf__notice_wait *b)
{
    if (a->since != b->since)
        return a->since > b->since;
    return a->process != b->process ? a->process > b->process
                                    : a->owner > b->owner;
}

int hf__board_look_victim(const struct hf__board_look *look,
                          const struct hf__board_cycle *cycle)
{
    int victim = HF__DEADLOCK_NOBODY;

    for (uint32_t i = 0; i < cycle->cycle_n; i++) {
        int number = find_sight(look, &cycle->at[i]);

        if (look->members[number].wait.breaks &&
            (victim == HF__DEADLOCK_NOBODY ||
             is_younger(&look->members[number].wait,
                        &look->members[victim].wait)))
            victim = number;
    }
    return victim;
}

void hf__board_look_tell(const struct hf__board_look *look,
                         const struct hf__board_cycle *cycle,
                         struct hf__buf *to)
{
    const struct hf__notice_wait *wait = NULL;

    for (uint32_t i = 0; i <= cycle->cycle_n; i++) {
        const struct hf__notice_wait *before = wait;

        wait = &look->members[find_sight(look, &cycle->at[i % cycle->cycle_n])]
                    .wait;
        if (i == 0) {
            int last = find_sight(look, &cycle->at[cycle->cycle_n - 1]);

            hf__buf_printf(to, "%s: %s:%" PRId64, look->members[last].wait.name,
                           wait->host, wait->pid);
            continue;
        }
        hf__buf_printf(to, "%s waits for %s", i > 1 ? ", who" : "",
                       before->name);
        if (i < cycle->cycle_n)
            hf__buf_printf(to, " held by %s:%" PRId64, wait->host, wait->pid);
    }
    if (cycle->cycle_n == 1)
        hf__buf_add(to, " itself");
}
