/* SPDX-License-Identifier: MIT */
/* top_table.h - what top knows of the locks: look after look, and as lines. */
#ifndef CLI_TOP_TABLE_H
#define CLI_TOP_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "look.h"

/* Hand-overs are counted over so many looks. */
enum { TOP_LOOKS = 60 };

/* What was seen of one name so far. */
struct top_seen {
    char *name;
    uint64_t grant;   /* the newest: its token, or a hash of its owner */
    int64_t lease_ms; /* at the last look; -1: none */
    int64_t least_ms; /* the smallest lease left that was seen; -1 */
    int64_t most_ms;  /* the largest, for this grant */
    int64_t at_ms;    /* the last look that had it */
    bool moves;       /* the lease was seen to run down, or to be renewed */
    bool late;        /* it is below half of the largest */
    uint32_t n_late;
    uint64_t changes; /* a bit for each look; bit 0 is the last one */
    unsigned looks;   /* how many of them count */
    unsigned absent;  /* looks that did not show it */
    bool stays;       /* behind, at the next merge */
};

enum top_sort {
    TOP_BY_NAME,
    TOP_BY_HELD,
    TOP_BY_LEASE,
    TOP_BY_LEAST,
    TOP_BY_WAITERS,
    TOP_BY_OLDEST,
    TOP_BY_HANDOVERS,
    TOP_BY_LATE,
    TOP_SORTS
};

/* A lock as it is now, and what was seen of it. */
struct top_row {
    const struct look_lock *lock;
    const struct top_seen *seen;
};

/* { 0 } begins. */
struct top_table {
    struct look look;
    struct top_seen *seen; /* in the order of names */
    size_t n_seen;
    int64_t times_ms[TOP_LOOKS]; /* of the looks, as a ring */
    unsigned looks;
    struct top_row *rows; /* those that the filter lets through, sorted */
    size_t n_rows;
    enum top_sort sort;
    bool reverse;
    char filter[128];
};

/* Take over what a look at @now_ms showed; @look is empty afterwards. 0 or
 * HF_ENOMEM, and then nothing has changed. */
int top_table_take(struct top_table *table, struct look *look, int64_t now_ms);
/* Filter and sort again. */
int top_table_arrange(struct top_table *table);
void top_table_release(struct top_table *table);
const char *top_sort_name(enum top_sort sort);

/* The widths of the columns that have no fixed one; 0: not shown. */
struct top_layout {
    size_t name;
    size_t holder;
    size_t note;
};
struct top_layout top_layout(size_t columns, size_t name_needs,
                             size_t holder_needs);
/* One line without its end, cut to @columns. */
void top_titles(const struct top_table *table, struct top_layout layout,
                size_t columns, FILE *to);
void top_line(const struct top_table *table, struct top_row row,
              struct top_layout layout, size_t columns, FILE *to);
/* "0.25", "1.0+" if every look showed another holder. */
char *top_handovers(const struct top_table *table, const struct top_seen *seen,
                    char *to, size_t size);

#endif
