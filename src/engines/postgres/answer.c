/* SPDX-License-Identifier: MIT */
/*
 * answer.c - what the server answered to a call: libpq's results, checked.
 *
 * libpq has parsed the protocol; what it cannot know is what a statement of
 * ours may answer. A server that answers with other rows, columns or values is
 * not one that we can talk to: its connection ends.
 */
#include "engines/postgres/answer.h"

/* ---- shapes -------------------------------------------------------------- */

/* An optional sign, then digits that fit into 63 bits. */
static bool read_number(const char *text, int64_t *ret_number)
{
    bool minus = text[0] == '-';
    int64_t number = 0;

    text += minus;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        int digit = *text - '0';

        if (digit < 0 || digit > 9 || number > (INT64_MAX - digit) / 10)
            return false;
        number = number * 10 + digit;
    }
    *ret_number = minus ? -number : number;
    return true;
}

static bool fits_value(const PGresult *result, int row, int column, char kind)
{
    const char *text = hf__pq.PQgetvalue(result, row, column);
    bool may_be_null = kind >= 'A' && kind <= 'Z';
    size_t len = (size_t)hf__pq.PQgetlength(result, row, column);
    int64_t number;

    if (hf__pq.PQgetisnull(result, row, column))
        return may_be_null;
    if (strlen(text) != len)
        return false;
    switch (kind) {
    case 'n':
    case 'N':
        return read_number(text, &number);
    case 'b':
    case 'B':
        return strcmp(text, "t") == 0 || strcmp(text, "f") == 0;
    default:
        return true;
    }
}

static bool fits_rows(int rows, char how_many)
{
    switch (how_many) {
    case '1':
        return rows == 1;
    case '?':
        return rows <= 1;
    default:
        return rows <= HF__PG_ROWS_MAX;
    }
}

static bool fits(const PGresult *result, const char *shape)
{
    const char *kinds = shape + 1;
    int rows = hf__pq.PQntuples(result);
    int columns = hf__pq.PQnfields(result);

    if (shape[0] == '-')
        return hf__pq.PQresultStatus(result) == PGRES_COMMAND_OK;
    if (hf__pq.PQresultStatus(result) != PGRES_TUPLES_OK ||
        columns != (int)strlen(kinds) || !fits_rows(rows, shape[0]))
        return false;
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) {
            if (!fits_value(result, row, column, kinds[column]))
                return false;
        }
    }
    return true;
}

/* ---- answers ------------------------------------------------------------- */

bool hf__pg_answer_add(struct hf__pg_answer *answer, PGresult *result,
                       const char *shape)
{
    struct hf__pg_result *to = &answer->results[answer->n];

    if (answer->n == HF__PG_RESULTS || !fits(result, shape)) {
        hf__pq.PQclear(result);
        return false;
    }
    to->from = result;
    to->rows = hf__pq.PQntuples(result);
    if (!read_number(hf__pq.PQcmdTuples(result), &to->changed))
        to->changed = 0;
    to->committed = strcmp(hf__pq.PQcmdStatus(result), "COMMIT") == 0;
    answer->last = to;
    answer->n++;
    return true;
}

void hf__pg_answer_fail(struct hf__pg_answer *answer, const PGresult *result)
{
    hf__pg_errors_read(result, &answer->why);
    answer->error = &answer->why;
}

void hf__pg_answer_clear(struct hf__pg_answer *answer)
{
    for (int i = 0; i < answer->n; i++) {
        hf__pq.PQclear(answer->results[i].from);
        answer->results[i] = (struct hf__pg_result){0};
    }
    answer->n = 0;
    answer->last = &answer->results[0]; /* empty */
    answer->error = NULL;
}

const char *hf__pg_answer_text(const struct hf__pg_result *result, int row,
                               int column)
{
    if (!result->from || row >= result->rows ||
        column >= hf__pq.PQnfields(result->from))
        return "";
    return hf__pq.PQgetvalue(result->from, row, column);
}

int64_t hf__pg_answer_number(const struct hf__pg_result *result, int row,
                             int column, int64_t standard)
{
    int64_t number;

    return read_number(hf__pg_answer_text(result, row, column), &number)
               ? number
               : standard;
}
