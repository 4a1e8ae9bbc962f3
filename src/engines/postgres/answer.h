/* SPDX-License-Identifier: MIT */
/*
 * answer.h - what the server answered to a call: libpq's results, checked.
 *
 * A result is taken only if it has the shape that schema.c declares for its
 * statement: so many rows and columns, numbers where numbers belong, NULL where
 * NULL may be. Readers of an answer need no checks of their own.
 */
#ifndef HF_POSTGRES_ANSWER_H
#define HF_POSTGRES_ANSWER_H

#include "engines/postgres/pq.h"

enum {
    HF__PG_RESULTS = 16, /* statements of a call */
    HF__PG_VALUES = 8,
    HF__PG_ROWS_MAX = 100 * 1000, /* of one result */
    /* Bytes of one answer that is not complete. */
    HF__PG_BYTES_MAX = 64 * 1024 * 1024
};

struct hf__pg_error {
    char state[6];
    bool fatal; /* the server ends the session */
    char text[256];
};

/* errors.c: @result is an error or a notice. */
void hf__pg_errors_read(const PGresult *result, struct hf__pg_error *ret_error);
/* Does its code begin with @state? Not if there is none. */
bool hf__pg_errors_is(const struct hf__pg_error *error, const char *state);

/* What one statement answered. */
struct hf__pg_result {
    PGresult *from; /* NULL: nothing */
    int rows;
    int64_t changed; /* rows, if it changes any */
    bool committed;
};

/* … and those of a call, as far as they came. Zeroed, then cleared. */
struct hf__pg_answer {
    struct hf__pg_result results[HF__PG_RESULTS];
    int n;
    const struct hf__pg_result *last; /* never NULL once it was cleared */
    const struct hf__pg_error *error; /* NULL: none */
    struct hf__pg_error why;
};

/*
 * Add what a statement answered; @result is the answer's from then on. False:
 * it has not the shape of @shape:
 *
 *   -  no rows and no columns; else how many rows: 1, ? for none or one, * for
 *      any number; and a letter for each column:
 *   n  a number   b  a boolean   t  a text   v  anything but NULL
 *   N, B, T, V    … or NULL
 */
bool hf__pg_answer_add(struct hf__pg_answer *answer, PGresult *result,
                       const char *shape);
/* It ended in an error. */
void hf__pg_answer_fail(struct hf__pg_answer *answer, const PGresult *result);
void hf__pg_answer_clear(struct hf__pg_answer *answer);

/* A text in a result; "" where there is none. */
const char *hf__pg_answer_text(const struct hf__pg_result *result, int row,
                               int column);
/* A number in a result; @standard where there is none. */
int64_t hf__pg_answer_number(const struct hf__pg_result *result, int row,
                             int column, int64_t standard);

#endif
