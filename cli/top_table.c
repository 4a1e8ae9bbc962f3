/* SPDX-License-Identifier: MIT */
/*
 * top_table.c - what top knows of the locks.
 *
 * A store shows the present. What happened since is found by comparing one look
 * with the next: another token is a hand-over, of which a look can show one and
 * hides the rest; a lease that is below half of its largest value was not
 * renewed in time, because a healthy holder renews after a third. A lease that
 * reads the same in every look is not counted down by the store (the timeout of
 * a session): nothing can be said of its margin, and nothing is.
 *
 * What was seen of a name outlives it for TOP_LOOKS looks, so that a lock that
 * is free for a moment keeps its history, and names that never come back do
 * not fill the memory.
 */
#include "top_table.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "text.h"

/* ---- look after look --------------------------------------------------------- */

static uint64_t hash(const char *text)
{
    uint64_t value = UINT64_C(14695981039346656037);

    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return value;
}

/* The newest grant of a lock; 0 if nobody holds it. */
static uint64_t grant_of(const struct look_lock *lock)
{
    uint64_t newest = 0;

    for (int i = 0; i < lock->holders; i++)
        if (lock->rows[i].token > newest)
            newest = lock->rows[i].token;
    return newest || lock->holders == 0 ? newest : hash(lock->rows->owner);
}

/* Tokens grow; where there are none, another owner is another grant. */
static bool is_later(const struct look_lock *lock, uint64_t grant, uint64_t old)
{
    return lock->rows->token > 0 ? grant > old : grant != old;
}

static void follow_lease(struct top_seen *seen, const struct look_lock *lock,
                         bool same)
{
    int64_t lease_ms = lock->lease_ms;

    if (lease_ms < 0) {
        seen->lease_ms = -1;
        return;
    }
    if (!same || seen->lease_ms < 0) {
        seen->most_ms = lock->rows->ttl_ms;
        seen->late = false;
    } else if (lease_ms != seen->lease_ms) {
        seen->moves = true;
    }
    if (lease_ms > seen->most_ms)
        seen->most_ms = lease_ms;
    if (seen->least_ms < 0 || lease_ms < seen->least_ms)
        seen->least_ms = lease_ms;
    if (lease_ms >= seen->most_ms / 2)
        seen->late = false;
    else if (!seen->late) {
        seen->late = true;
        seen->n_late++;
    }
    seen->lease_ms = lease_ms;
}

/* One more look, which had no such lock (@lock NULL) or this one. */
static void follow(struct top_seen *seen, const struct look_lock *lock,
                   int64_t now_ms)
{
    uint64_t grant = lock ? grant_of(lock) : 0;
    bool later =
        grant != 0 && seen->grant != 0 && is_later(lock, grant, seen->grant);

    seen->changes = seen->changes << 1 | later;
    if (seen->looks < TOP_LOOKS)
        seen->looks++;
    seen->absent = lock ? 0 : seen->absent + 1;
    if (!lock)
        return;
    follow_lease(seen, lock, /* same= */ grant == seen->grant);
    if (grant != 0 && (later || seen->grant == 0))
        seen->grant = grant;
    seen->at_ms = now_ms;
}

/* A name that was never seen. */
static bool begin(struct top_seen *seen, const struct look_lock *lock,
                  int64_t now_ms)
{
    *seen = (struct top_seen){
        .name = strdup(lock->name), .lease_ms = -1, .least_ms = -1};
    if (!seen->name)
        return false;
    follow(seen, lock, now_ms);
    seen->looks = 0; /* from the next one on there is something to compare */
    return true;
}

/* The names seen so far and the names of a look, merged; both are in order. */
struct merge {
    struct top_seen *all;
    size_t n;
    size_t from_seen;
    size_t from_look;
};

/* Take one name over. What has been gone for long stays behind. */
static bool merge_one(struct merge *merge, struct top_seen *old,
                      const struct look_lock *lock, int64_t now_ms)
{
    struct top_seen *next = &merge->all[merge->n];

    if (old)
        old->stays = !lock && old->absent >= TOP_LOOKS;
    if (old && old->stays)
        return true;
    if (!old && (!lock || !begin(next, lock, now_ms)))
        return false;
    if (old) {
        *next = *old;
        follow(next, lock, now_ms);
    }
    merge->n++;
    return true;
}

static bool merge_all(struct merge *merge, struct top_table *table,
                      const struct look *look, int64_t now_ms)
{
    while (merge->from_seen < table->n_seen || merge->from_look < look->n) {
        struct top_seen *old = merge->from_seen < table->n_seen
                                   ? &table->seen[merge->from_seen]
                                   : NULL;
        const struct look_lock *lock =
            merge->from_look < look->n ? &look->locks[merge->from_look] : NULL;
        int order = !old ? 1 : !lock ? -1 : strcmp(old->name, lock->name);

        merge->from_seen += order <= 0;
        merge->from_look += order >= 0;
        if (!merge_one(merge, order <= 0 ? old : NULL, order >= 0 ? lock : NULL,
                       now_ms))
            return false;
    }
    return true;
}

/* The merge failed: what it began goes, what it copied is still the table's. */
static int give_up(struct merge *merge)
{
    for (size_t i = 0; i < merge->n; i++)
        if (merge->all[i].looks == 0)
            free(merge->all[i].name);
    free(merge->all);
    return HF_ENOMEM;
}

/* The names that stay behind, and the list of all. */
static void forget_seen(struct top_table *table)
{
    for (size_t i = 0; i < table->n_seen; i++)
        if (table->seen[i].stays)
            free(table->seen[i].name);
    free(table->seen);
    table->seen = NULL;
}

int top_table_take(struct top_table *table, struct look *look, int64_t now_ms)
{
    struct top_seen *all = calloc(table->n_seen + look->n + 1, sizeof(*all));
    struct merge merge = {.all = all};

    if (!all)
        return HF_ENOMEM;
    if (!merge_all(&merge, table, look, now_ms))
        return give_up(&merge);
    look_forget(&table->look);
    table->look = *look;
    *look = (struct look){0};
    forget_seen(table);
    table->seen = all;
    table->n_seen = merge.n;
    table->n_rows = 0; /* they were of the look before */
    table->times_ms[table->looks++ % TOP_LOOKS] = now_ms;
    return top_table_arrange(table);
}

void top_table_release(struct top_table *table)
{
    for (size_t i = 0; i < table->n_seen; i++)
        free(table->seen[i].name);
    free(table->seen);
    free(table->rows);
    look_forget(&table->look);
    *table = (struct top_table){0};
}

/* ---- filter and order --------------------------------------------------------- */

static bool has(const char *text, const char *part)
{
    return strcasestr(text, part) != NULL;
}

static bool passes(const struct look_lock *lock, const char *filter)
{
    if (!*filter || has(lock->name, filter))
        return true;
    for (size_t i = 0; i < lock->n; i++)
        if (has(lock->rows[i].owner, filter) ||
            has(lock->rows[i].host, filter) || has(lock->rows[i].note, filter))
            return true;
    return false;
}

static unsigned handovers(const struct top_seen *seen)
{
    uint64_t mask = seen->looks ? UINT64_MAX >> (64 - seen->looks) : 0;

    return (unsigned)__builtin_popcountll(seen->changes & mask);
}

/* What comes first is large. */
static int64_t weight(const struct top_row *row, enum top_sort sort)
{
    switch (sort) {
    case TOP_BY_HELD:
        return row->lock->held_ms;
    case TOP_BY_LEASE:
        return row->lock->lease_ms < 0 ? INT64_MIN : -row->lock->lease_ms;
    case TOP_BY_LEAST:
        return !row->seen->moves ? INT64_MIN : -row->seen->least_ms;
    case TOP_BY_WAITERS:
        return row->lock->waiters;
    case TOP_BY_OLDEST:
        return row->lock->wait_ms;
    case TOP_BY_HANDOVERS:
        return handovers(row->seen);
    case TOP_BY_LATE:
        return row->seen->n_late;
    default:
        return 0;
    }
}

static int compare(const void *a, const void *b, void *ctx)
{
    const struct top_table *table = ctx;
    const struct top_row *left = a;
    const struct top_row *right = b;
    int64_t left_weight = weight(left, table->sort);
    int64_t right_weight = weight(right, table->sort);
    int order = (right_weight > left_weight) - (right_weight < left_weight);

    if (order == 0)
        order = strcmp(left->lock->name, right->lock->name);
    return table->reverse ? -order : order;
}

int top_table_arrange(struct top_table *table)
{
    struct top_row *rows =
        reallocarray(table->rows, table->look.n + 1, sizeof(*rows));
    size_t at = 0;

    if (!rows)
        return HF_ENOMEM;
    table->rows = rows;
    table->n_rows = 0;
    for (size_t i = 0; i < table->look.n; i++) {
        const struct look_lock *lock = &table->look.locks[i];

        /* Every name that is shown was seen, in the same order.
         * NOLINTNEXTLINE(clang-analyzer-core.NonNullParamChecker) */
        while (strcmp(table->seen[at].name, lock->name) != 0)
            at++;
        if (passes(lock, table->filter))
            rows[table->n_rows++] = (struct top_row){lock, &table->seen[at]};
    }
    if (table->sort != TOP_BY_NAME || table->reverse)
        qsort_r(rows, table->n_rows, sizeof(*rows), compare, table);
    return 0;
}

const char *top_sort_name(enum top_sort sort)
{
    static const char *const names[TOP_SORTS] = {
        "name",    "time held",   "lease left", "smallest margin",
        "waiters", "oldest wait", "hand-overs", "late renewals"};

    return names[sort];
}

/* ---- lines ------------------------------------------------------------------- */

/* The columns behind the holder, each with a space before it. */
static const struct {
    const char *title;
    int width;
    enum top_sort sort;
} fixed[] = {{"HELD", 6, TOP_BY_HELD},     {"LEASE", 6, TOP_BY_LEASE},
             {"LOW", 6, TOP_BY_LEAST},     {"WAIT", 4, TOP_BY_WAITERS},
             {"OLDEST", 6, TOP_BY_OLDEST}, {"HAND/S", 6, TOP_BY_HANDOVERS},
             {"LATE", 4, TOP_BY_LATE}};
enum { N_FIXED = sizeof(fixed) / sizeof(fixed[0]), MODE_WIDTH = 4 };

struct top_layout top_layout(size_t columns, size_t name_needs,
                             size_t holder_needs)
{
    enum { NAME_SHORT = 5, NAME_LEAST = 12, HOLDER_LEAST = 10 };
    enum { NOTE_LEAST = 12 };
    size_t taken = 1 + 1 + MODE_WIDTH + 1; /* the mark, and before a column */
    struct top_layout layout = {.name = name_needs < NAME_LEAST ? NAME_SHORT
                                                                : NAME_LEAST,
                                .holder = HOLDER_LEAST};
    size_t left;

    for (size_t i = 0; i < N_FIXED; i++)
        taken += 1 + (size_t)fixed[i].width;
    taken += layout.name + layout.holder;
    left = columns > taken ? columns - taken : 0;
    for (; left > 0;
         left--) { /* the holder has host, number and user: it needs more */
        bool name = name_needs > layout.name;
        bool holder = holder_needs > layout.holder;

        if (holder && (!name || layout.holder < layout.name + 5))
            layout.holder++;
        else if (name)
            layout.name++;
        else
            break;
    }
    if (left > NOTE_LEAST)
        layout.note = left - 1;
    else
        layout.holder += left;
    return layout;
}

/* @text in @width columns; what is too long ends with "~". */
static void put_cell(FILE *to, const char *text, size_t width, bool right)
{
    char cell[1100];
    size_t used;

    text_escape(text, cell, sizeof(cell));
    text_cut(cell, width);
    used = text_width(cell);
    fprintf(to, "%*s%s%*s", right ? (int)(width - used) : 0, "", cell,
            right ? 0 : (int)(width - used), "");
}

/* A line is put together in memory, and cut where the terminal ends. */
struct line {
    char *text;
    size_t size;
    FILE *file;
};

static FILE *begin_line(struct line *line)
{
    *line = (struct line){0};
    line->file = open_memstream(&line->text, &line->size);
    return line->file;
}

static void end_line(struct line *line, size_t columns, FILE *to)
{
    if (fclose(line->file) == 0) {
        text_cut(line->text, columns);
        fputs(line->text, to);
    }
    free(line->text);
}

void top_titles(const struct top_table *table, struct top_layout layout,
                size_t columns, FILE *to)
{
    struct line cut;
    FILE *line = begin_line(&cut);

    if (!line)
        return;
    fputc(' ', line);
    put_cell(line, table->sort == TOP_BY_NAME ? "*NAME" : "NAME", layout.name,
             false);
    fputs(" MODE ", line);
    put_cell(line, "HOLDER", layout.holder, false);
    for (size_t i = 0; i < N_FIXED; i++) {
        char title[16];

        snprintf(title, sizeof(title), "%s%s",
                 table->sort == fixed[i].sort ? "*" : "", fixed[i].title);
        /* The star may stand in the space before the column. */
        if (strlen(title) <= (size_t)fixed[i].width)
            fputc(' ', line);
        fprintf(line, "%*s", fixed[i].width, title);
    }
    if (layout.note)
        fprintf(line, " %-*s", (int)layout.note, "NOTE");
    end_line(&cut, columns, to);
}

char *top_handovers(const struct top_table *table, const struct top_seen *seen,
                    char *to, size_t size)
{
    unsigned n = handovers(seen);
    unsigned last = table->looks - 1;
    unsigned looks = seen->looks < TOP_LOOKS - 1 ? seen->looks : TOP_LOOKS - 1;
    int64_t span_ms;
    double rate;

    if (looks == 0) {
        snprintf(to, size, "-");
        return to;
    }
    span_ms = table->times_ms[last % TOP_LOOKS] -
              table->times_ms[(last - looks) % TOP_LOOKS];
    rate = span_ms > 0 ? (n < looks ? n : looks) * 1e3 / (double)span_ms : 0;
    if (n == 0)
        snprintf(to, size, "0");
    else if (n >= looks)
        snprintf(to, size, rate < 99 ? "%.1f+" : "%.0f+", rate);
    else
        snprintf(to, size, rate < 99 ? "%.2f" : "%.0f", rate);
    return to;
}

static const char *short_mode(int mode)
{
    static const char *const names[] = {"excl", "shrd", "slot"};

    return mode >= 0 && mode <= HF_SLOT ? names[mode] : "?";
}

/* The text of fixed[@column]. */
static char *cell_text(const struct top_table *table, struct top_row row,
                       size_t column, char to[TEXT_AGE])
{
    const struct look_lock *lock = row.lock;
    bool leased = lock->lease_ms >= 0;

    switch (fixed[column].sort) {
    case TOP_BY_HELD:
        return text_age(lock->held_ms, to);
    case TOP_BY_LEASE:
        return text_age(lock->lease_ms, to);
    case TOP_BY_LEAST:
        if (leased && !row.seen->moves)
            snprintf(to, TEXT_AGE, "n/a");
        else
            text_age(row.seen->moves ? row.seen->least_ms : -1, to);
        return to;
    case TOP_BY_WAITERS:
        snprintf(to, TEXT_AGE, "%d", lock->waiters);
        return to;
    case TOP_BY_OLDEST:
        return text_age(lock->wait_ms, to);
    case TOP_BY_HANDOVERS:
        return top_handovers(table, row.seen, to, TEXT_AGE);
    default:
        if (row.seen->moves)
            snprintf(to, TEXT_AGE, "%" PRIu32, row.seen->n_late);
        else
            snprintf(to, TEXT_AGE, leased ? "n/a" : "-");
        return to;
    }
}

void top_line(const struct top_table *table, struct top_row row,
              struct top_layout layout, size_t columns, FILE *to)
{
    const struct look_lock *lock = row.lock;
    char cell[TEXT_AGE];
    char holder[160];
    struct line cut;
    FILE *line = begin_line(&cut);

    if (!line)
        return;
    put_cell(line, lock->name, layout.name, false);
    fprintf(line, " %-*s ", MODE_WIDTH, short_mode(lock->rows->mode));
    put_cell(line, look_holders(lock, holder, sizeof(holder)), layout.holder,
             false);
    for (size_t i = 0; i < N_FIXED; i++) {
        fputc(' ', line);
        put_cell(line, cell_text(table, row, i, cell), (size_t)fixed[i].width,
                 true);
    }
    if (layout.note) {
        fputc(' ', line);
        put_cell(line, lock->holders > 0 ? lock->rows->note : "", layout.note,
                 false);
    }
    end_line(&cut, columns, to);
}
