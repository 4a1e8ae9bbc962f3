/* SPDX-License-Identifier: MIT */
/*
 * wire.c - version 3.0 of PostgreSQL's protocol, after a connection is made.
 *
 *   message  type (1 byte), length of the rest with itself (4), the rest
 *   P        prepare: name, text, types (2, none)
 *   B, E     bind and execute: portal, name, formats (2, none), values (2, and
 *            for each its length, 4, and bytes), formats (2, none); portal,
 *            rows (4, 0 for all)
 *   S        sync
 *   D        a row: values (2, and for each its length, 4; -1 for NULL)
 *   C        a statement is done: "DELETE 1"
 *   E, N     fields, each a letter and a text; then 0
 *
 * Numbers are big-endian, texts end in 0. What columns there are is not asked
 * for: whoever sends a statement knows.
 */
#include "engines/postgres/wire.h"

enum { HEADER = 5, KEPT = 64 * 1024 };

/* The length of a value that is NULL, and where it is. */
#define NO_VALUE UINT32_MAX
#define NOWHERE SIZE_MAX

/* ---- writing --------------------------------------------------------------- */

static char *put16(char *at, uint32_t number)
{
    at[0] = (char)(number >> 8 & 0xff);
    at[1] = (char)(number & 0xff);
    return at + 2;
}

static char *put32(char *at, uint32_t number)
{
    return put16(put16(at, number >> 16), number & 0xffff);
}

static char *put_text(char *at, const char *text, size_t len)
{
    memcpy(at, text, len + 1);
    return at + len + 1;
}

/* A message of @type is whole at @end. */
static char *seal(char *message, char type, char *end)
{
    message[0] = type;
    (void)put32(message + 1, (uint32_t)(end - message - 1));
    return end;
}

void hf__pg_put_query(struct hf__buf *to, const char *text)
{
    size_t len = strlen(text);
    char *start = hf__buf_room(to, HEADER + len + 1);

    if (start)
        hf__buf_filled(to,
                       seal(start, 'Q', put_text(start + HEADER, text, len)));
}

void hf__pg_put_prepare(struct hf__buf *to, const char *name, const char *text)
{
    size_t name_len = strlen(name);
    size_t len = strlen(text);
    char *start = hf__buf_room(to, HEADER + name_len + 1 + len + 1 + 2);
    char *at;

    if (!start)
        return;
    at = put_text(start + HEADER, name, name_len);
    at = put16(put_text(at, text, len), 0);
    hf__buf_filled(to, seal(start, 'P', at));
}

static char *put_execute(char *at)
{
    return seal(at, 'E', put32(put_text(at + HEADER, "", 0), 0));
}

void hf__pg_put_execute(struct hf__buf *to, const char *name,
                        const char *const *values, int n)
{
    size_t name_len = strlen(name);
    size_t most = HEADER + 1 + name_len + 1 + 2 + 2 + 2 + HEADER + 1 + 4;
    size_t lens[HF__PG_VALUES];
    char *start;
    char *at;

    assert(n <= HF__PG_VALUES);
    for (int i = 0; i < n; i++) {
        lens[i] = values[i] ? strlen(values[i]) : NO_VALUE;
        most += 4 + (values[i] ? lens[i] : 0);
    }
    start = hf__buf_room(to, most);
    if (!start)
        return;
    at = put_text(start + HEADER, "", 0);
    at = put_text(at, name, name_len);
    at = put16(put16(at, 0), (uint32_t)n);
    for (int i = 0; i < n; i++) {
        at = put32(at, (uint32_t)lens[i]);
        if (values[i]) {
            memcpy(at, values[i], lens[i]);
            at += lens[i];
        }
    }
    at = seal(start, 'B', put16(at, 0));
    hf__buf_filled(to, put_execute(at));
}

void hf__pg_put_sync(struct hf__buf *to)
{
    char *start = hf__buf_room(to, HEADER);

    if (start)
        hf__buf_filled(to, seal(start, 'S', start + HEADER));
}

/* ---- reading --------------------------------------------------------------- */

static uint32_t get16(const char *at)
{
    return (uint32_t)(uint8_t)at[0] << 8 | (uint8_t)at[1];
}

static uint32_t get32(const char *at)
{
    return get16(at) << 16 | get16(at + 2);
}

int hf__pg_next(const char *bytes, size_t len,
                struct hf__pg_message *ret_message, size_t *ret_len)
{
    size_t rest;

    if (len < HEADER)
        return HF__WIRE_MORE;
    rest = get32(bytes + 1);
    if (rest < HEADER - 1 || rest > HF__WIRE_MESSAGE_MAX)
        return HF__WIRE_BAD;
    if (len < 1 + rest)
        return HF__WIRE_MORE;
    ret_message->type = bytes[0];
    ret_message->body = bytes + HEADER;
    ret_message->len = 1 + rest - HEADER;
    *ret_len = 1 + rest;
    return HF__WIRE_WHOLE;
}

/* Move @at behind the text that is there, which is returned; NULL: it has no
 * end before @end. */
static const char *take_text(const char **at, const char *end)
{
    const char *text = *at;
    const char *zero = memchr(text, '\0', (size_t)(end - text));

    if (!zero)
        return NULL;
    *at = zero + 1;
    return text;
}

/* The sender's number, the channel, and what is said. */
const char *hf__pg_notification(const struct hf__pg_message *message)
{
    const char *end = message->body + message->len;
    const char *at = message->body + 4;

    if (message->len < 4 || !take_text(&at, end))
        return NULL;
    return take_text(&at, end);
}

void hf__pg_error_read(const struct hf__pg_message *message,
                       struct hf__pg_error *ret_error)
{
    const char *at = message->body;
    const char *end = at + message->len;

    *ret_error = (struct hf__pg_error){.state = "XX000"};
    while (at < end && *at != '\0') {
        char field = *at++;
        const char *text = take_text(&at, end);

        if (!text)
            return;
        if (field == 'C')
            hf__text_copy(ret_error->state, sizeof(ret_error->state), text);
        else if (field == 'M')
            hf__text_copy(ret_error->text, sizeof(ret_error->text), text);
        else if (field == 'V')
            ret_error->fatal = text[0] == 'F' || text[0] == 'P';
    }
}

bool hf__pg_error_is(const struct hf__pg_error *error, const char *state)
{
    return error && strncmp(error->state, state, strlen(state)) == 0;
}

/* ---- answers ---------------------------------------------------------------- */

static void add_cell(struct hf__pg_answer *answer, const char *value,
                     size_t len)
{
    size_t at = value ? answer->texts.len : NOWHERE;

    hf__buf_append(&answer->cells, &at, sizeof(at));
    if (!value)
        return;
    hf__buf_append(&answer->texts, value, len);
    hf__buf_add_char(&answer->texts, '\0');
}

static bool add_row(struct hf__pg_answer *answer,
                    const struct hf__pg_message *message)
{
    struct hf__pg_result *result = &answer->results[answer->n];
    const char *at = message->body;
    const char *end = at + message->len;
    int columns;

    if (message->len < 2)
        return false;
    columns = (int)get16(at);
    at += 2;
    if (result->rows > 0 && columns != result->columns)
        return false;
    if (result->rows++ == 0)
        result->first = answer->cells.len / sizeof(size_t);
    result->columns = columns;
    for (int i = 0; i < columns; i++) {
        size_t len;

        if (end - at < 4)
            return false;
        len = get32(at);
        at += 4;
        if (len == NO_VALUE) {
            add_cell(answer, NULL, 0);
            continue;
        }
        if ((size_t)(end - at) < len)
            return false;
        add_cell(answer, at, len);
        at += len;
    }
    return at == end;
}

/* What @text begins with, as far as that are digits. */
static uint64_t number_in(const char *text)
{
    uint64_t number = 0;

    for (; *text >= '0' && *text <= '9'; text++)
        number = number * 10 + (uint64_t)(*text - '0');
    return number;
}

/* "INSERT 0 1", "UPDATE 3", "COMMIT": the last word counts. */
static bool end_statement(struct hf__pg_answer *answer,
                          const struct hf__pg_message *message)
{
    struct hf__pg_result *result = &answer->results[answer->n];
    const char *at = message->body;
    const char *tag = take_text(&at, message->body + message->len);
    const char *space = tag ? strrchr(tag, ' ') : NULL;

    if (!tag)
        return false;
    result->answer = answer;
    result->changed = space ? (int64_t)number_in(space + 1) : 0;
    result->committed = strcmp(tag, "COMMIT") == 0;
    answer->last = result;
    answer->n++;
    return true;
}

bool hf__pg_answer_add(struct hf__pg_answer *answer,
                       const struct hf__pg_message *message)
{
    bool fits = answer->n < HF__PG_RESULTS;

    if (message->type == HF__WIRE_ERROR) {
        hf__pg_error_read(message, &answer->why);
        answer->error = &answer->why;
    } else if (message->type == HF__WIRE_ROW) {
        fits = fits && add_row(answer, message);
    } else {
        fits = fits && end_statement(answer, message);
    }
    return fits && !hf__buf_failed(&answer->texts) &&
           !hf__buf_failed(&answer->cells);
}

void hf__pg_answer_clear(struct hf__pg_answer *answer)
{
    if (answer->texts.size > KEPT || hf__buf_failed(&answer->texts))
        hf__buf_release(&answer->texts);
    if (answer->cells.size > KEPT || hf__buf_failed(&answer->cells))
        hf__buf_release(&answer->cells);
    answer->texts.len = 0;
    answer->cells.len = 0;
    for (int i = 0; i <= answer->n && i < HF__PG_RESULTS; i++)
        answer->results[i] = (struct hf__pg_result){0};
    answer->n = 0;
    answer->last = &answer->results[0]; /* empty */
    answer->error = NULL;
}

void hf__pg_answer_release(struct hf__pg_answer *answer)
{
    hf__buf_release(&answer->texts);
    hf__buf_release(&answer->cells);
    hf__pg_answer_clear(answer);
}

/* NULL: there is none, or it is NULL. */
static const char *find(const struct hf__pg_result *result, int row, int column)
{
    size_t cell;
    size_t at;

    if (!result || row >= result->rows || column >= result->columns)
        return NULL;
    cell = result->first + (size_t)row * (size_t)result->columns;
    memcpy(&at,
           result->answer->cells.text + (cell + (size_t)column) * sizeof(at),
           sizeof(at));
    return at == NOWHERE ? NULL : result->answer->texts.text + at;
}

const char *hf__pg_text(const struct hf__pg_result *result, int row, int column)
{
    const char *text = find(result, row, column);

    return text ? text : "";
}

int64_t hf__pg_number(const struct hf__pg_result *result, int row, int column,
                      int64_t standard)
{
    const char *text = find(result, row, column);

    if (!text)
        return standard;
    return text[0] == '-' ? (int64_t)(0 - number_in(text + 1))
                          : (int64_t)number_in(text);
}
