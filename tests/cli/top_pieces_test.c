/* SPDX-License-Identifier: MIT */
/*
 * top_pieces_test.c - the parts of top that need no terminal: what is seen look
 * after look, order, filter, widths, lines, keys.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/screen.h"
#include "cli/text.h"
#include "cli/top_table.h"
#include "test.h"

/* What the pieces want from main.c. */
struct cli cli;

static int64_t now_ms;

/* One row of a look, in the order of names. */
static void add(struct look *look, const char *name, uint64_t token,
                int64_t lease_ms, int waiters)
{
    hf_lock_info *row;

    if (!look->rows) {
        look->rows = calloc(16, sizeof(*look->rows));
        look->locks = calloc(16, sizeof(*look->locks));
    }
    row = &look->rows[look->n_rows++];
    *row = (hf_lock_info){.name = strdup(name),
                          .owner = "ann",
                          .host = "db1",
                          .note = "why",
                          .pid = 7,
                          .token = token,
                          .since_ms = 5000,
                          .lease_ms = lease_ms,
                          .alive = 2};
    look->locks[look->n++] = (struct look_lock){.name = row->name,
                                                .rows = row,
                                                .n = 1,
                                                .holders = 1,
                                                .waiters = waiters,
                                                .held_ms = 5000,
                                                .wait_ms = waiters ? 100 : -1,
                                                .lease_ms = lease_ms};
}

/* A look a second later. */
static void take(struct top_table *table, struct look *look)
{
    now_ms += 1000;
    ASSERT_EQ(top_table_take(table, look, now_ms), 0);
    ASSERT_NULL(look->rows);
}

static void see(struct top_table *table, uint64_t token, int64_t lease_ms)
{
    struct look look = {0};

    add(&look, "x", token, lease_ms, 0);
    take(table, &look);
}

static void see_nothing(struct top_table *table)
{
    take(table, &(struct look){0});
}

static const char *rate(const struct top_table *table)
{
    static char text[TEXT_AGE];

    return top_handovers(table, table->rows[0].seen, text, sizeof(text));
}

TEST(top_table, smallest_margin_is_what_the_looks_showed)
{
    struct top_table table = {0};

    see(&table, 1, 30000);
    ASSERT_FALSE(table.rows[0].seen->moves);
    see(&table, 1, 29000);
    see(&table, 1, 21000);
    see(&table, 1, 30000); /* renewed */
    ASSERT_TRUE(table.rows[0].seen->moves);
    ASSERT_EQ(table.rows[0].seen->least_ms, 21000);
    ASSERT_EQ(table.rows[0].seen->n_late, 0);
    top_table_release(&table);
}

TEST(top_table, lease_that_the_store_does_not_count_down_has_no_margin)
{
    struct top_table table = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *to;

    see(&table, 1, 10000);
    see(&table, 1, 10000);
    see(&table, 1, 10000);
    ASSERT_FALSE(table.rows[0].seen->moves);
    to = open_memstream(&text, &size);
    top_line(&table, table.rows[0], top_layout(79, 1, 5), 79, to);
    fclose(to);
    ASSERT_HAS(text, " 10s    n/a ");
    ASSERT_HAS(text, "  n/a");
    free(text);
    top_table_release(&table);
}

/* How many renewals were late, after these two looks at the lease. */
static unsigned late_after(struct top_table *table, uint64_t token,
                           int64_t first_ms, int64_t second_ms)
{
    see(table, token, first_ms);
    see(table, token, second_ms);
    return (unsigned)table->rows[0].seen->n_late;
}

TEST(top_table, lease_below_its_half_is_a_late_renewal_once)
{
    struct top_table table = {0};

    ASSERT_EQ(late_after(&table, 1, 30000, 16000), 0);
    ASSERT_EQ(late_after(&table, 1, 14000, 13000), 1);
    ASSERT_EQ(late_after(&table, 1, 30000, 2000), 2);
    /* A new grant may be shorter. */
    ASSERT_EQ(late_after(&table, 2, 5000, 4000), 2);
    ASSERT_EQ(table.rows[0].seen->least_ms, 2000);
    top_table_release(&table);
}

TEST(top_table, hand_overs_are_counted_by_tokens)
{
    struct top_table table = {0};

    see(&table, 5, -1);
    ASSERT_STREQ(rate(&table), "-");
    see(&table, 5, -1);
    ASSERT_STREQ(rate(&table), "0");
    see(&table, 6, -1);
    ASSERT_STREQ(rate(&table), "0.50");
    see(&table, 6, -1);
    see(&table, 9, -1);
    ASSERT_STREQ(rate(&table), "0.50");
    /* The newest of several readers has left. */
    see(&table, 8, -1);
    ASSERT_STREQ(rate(&table), "0.40");
    top_table_release(&table);
}

TEST(top_table, hand_over_in_every_look_says_that_there_may_be_more)
{
    struct top_table table = {0};

    for (uint64_t token = 1; token < 2 * TOP_LOOKS + 5; token++)
        see(&table, token, -1);
    ASSERT_STREQ(rate(&table), "1.0+");
    top_table_release(&table);
}

TEST(top_table, name_that_is_free_for_a_moment_keeps_its_history)
{
    struct top_table table = {0};

    see(&table, 1, -1);
    see_nothing(&table);
    ASSERT_EQ(table.n_rows, 0);
    see(&table, 2, -1);
    ASSERT_STREQ(rate(&table), "0.50");
    for (int i = 0; i <= TOP_LOOKS; i++)
        see_nothing(&table);
    ASSERT_EQ(table.n_seen, 0);
    top_table_release(&table);
}

static void three(struct top_table *table)
{
    struct look look = {0};

    add(&look, "a", 1, 3000, 2);
    add(&look, "b", 1, 1000, 0);
    add(&look, "c", 1, 2000, 5);
    take(table, &look);
}

static const char *order(struct top_table *table, enum top_sort sort,
                         bool reverse)
{
    static char names[8];

    table->sort = sort;
    table->reverse = reverse;
    ASSERT_EQ(top_table_arrange(table), 0);
    names[0] = '\0';
    for (size_t i = 0; i < table->n_rows; i++)
        strcat(names, table->rows[i].lock->name);
    return names;
}

TEST(top_table, rows_are_sorted_and_filtered)
{
    struct top_table table = {0};

    three(&table);
    ASSERT_STREQ(order(&table, TOP_BY_NAME, false), "abc");
    ASSERT_STREQ(order(&table, TOP_BY_NAME, true), "cba");
    ASSERT_STREQ(order(&table, TOP_BY_WAITERS, false), "cab");
    ASSERT_STREQ(order(&table, TOP_BY_LEASE, false), "bca");
    ASSERT_STREQ(order(&table, TOP_BY_LEAST, false), "abc"); /* none known */
    snprintf(table.filter, sizeof(table.filter), "B");
    ASSERT_STREQ(order(&table, TOP_BY_NAME, false), "abc"); /* host db1 */
    snprintf(table.filter, sizeof(table.filter), "c");
    ASSERT_STREQ(order(&table, TOP_BY_NAME, false), "c");
    snprintf(table.filter, sizeof(table.filter), "WHY");
    ASSERT_STREQ(order(&table, TOP_BY_NAME, false), "abc");
    top_table_release(&table);
}

TEST(top_table, layout_gives_room_to_what_needs_it)
{
    struct top_layout layout = top_layout(80, 7, 15);

    ASSERT_EQ(layout.note, 0);
    ASSERT_GE(layout.name, 7);
    ASSERT_GE(layout.holder, 15);
    layout = top_layout(80, 200, 200);
    ASSERT_EQ(layout.name + layout.holder, 28);
    ASSERT_GE(layout.name, 12);
    layout = top_layout(160, 20, 20);
    ASSERT_EQ(layout.name, 20);
    ASSERT_EQ(layout.holder, 20);
    ASSERT_GT(layout.note, 30);
    layout = top_layout(20, 200, 200);
    ASSERT_GT(layout.name, 0);
}

static char *line_of(const struct top_table *table, size_t columns, bool title)
{
    struct top_layout layout = top_layout(columns, 40, 30);
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    if (title)
        top_titles(table, layout, columns, to);
    else
        top_line(table, table->rows[0], layout, columns, to);
    fclose(to);
    return text;
}

TEST(top_table, line_is_never_wider_than_the_terminal)
{
    struct top_table table = {0};
    struct look look = {0};

    add(&look,
        "\xe9\x94\x81\xe9\x94\x81\xe9\x94\x81\xe9\x94\x81\xe9\x94\x81"
        "\xe9\x94\x81\xe9\x94\x81\xe9\x94\x81\xe9\x94\x81\xe9\x94\x81",
        UINT64_MAX, INT64_MAX / 2, 1000000);
    take(&table, &look);
    for (size_t columns = 1; columns < 200; columns++) {
        for (table.sort = 0; table.sort < TOP_SORTS; table.sort++) {
            char *text = line_of(&table, columns, true);

            ASSERT_LE(text_width(text), columns);
            free(text);
        }
        table.sort = TOP_BY_NAME;

        char *text = line_of(&table, columns, false);
        ASSERT_LE(text_width(text), columns);
        free(text);
    }
    top_table_release(&table);
}

TEST(top_table, hostile_texts_are_escaped)
{
    struct top_table table = {0};
    struct look look = {0};
    char *text;

    add(&look, "a\033]0;x\007\xe2\x80\xae\n", 1, -1, 0);
    look.rows[0].note = "\033[2J\xc2\x9b";
    look.rows[0].host = "\033[31m";
    take(&table, &look);
    text = line_of(&table, 190, false);
    for (const char *at = text; *at; at++)
        ASSERT_GE((unsigned char)*at, 0x20);
    ASSERT_NULL(strstr(text, "\xe2\x80\xae"));
    ASSERT_NULL(strstr(text, "\xc2\x9b"));
    ASSERT_HAS(text, "a\\x1b]0;x\\x07\\u{202e}\\x0a");
    ASSERT_HAS(text, "\\x1b[2J\\u{9b}");
    free(text);
    top_table_release(&table);
}

static int key_of(const char *bytes, size_t *ret_used)
{
    int key;

    *ret_used = screen_parse(bytes, strlen(bytes), &key);
    return key;
}

TEST(screen, keys_are_bytes_or_sequences)
{
    size_t used;

    ASSERT_EQ(key_of("q", &used), 'q');
    ASSERT_EQ(used, 1);
    ASSERT_EQ(key_of("\033[Aq", &used), SCREEN_UP);
    ASSERT_EQ(used, 3);
    ASSERT_EQ(key_of("\033OB", &used), SCREEN_DOWN);
    ASSERT_EQ(key_of("\033[6~", &used), SCREEN_PAGE_DOWN);
    ASSERT_EQ(used, 4);
    ASSERT_EQ(key_of("\033[1;5Cx", &used), SCREEN_NO_KEY);
    ASSERT_EQ(used, 6);
    ASSERT_EQ(key_of("\033", &used), SCREEN_NO_KEY);
    ASSERT_EQ(used, 0);
    ASSERT_EQ(key_of("\033[", &used), SCREEN_NO_KEY);
    ASSERT_EQ(used, 0);
    ASSERT_EQ(key_of("\033q", &used), SCREEN_ESCAPE);
    ASSERT_EQ(used, 1);
    ASSERT_EQ(key_of("\177", &used), SCREEN_BACKSPACE);
    ASSERT_EQ(key_of("\n", &used), SCREEN_ENTER);
    ASSERT_EQ(key_of("\xc3", &used), 0xc3);
}
