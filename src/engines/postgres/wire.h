/* SPDX-License-Identifier: MIT */
/*
 * wire.h - PostgreSQL's messages, and the answer that they make up. Pure: texts
 * in, bytes out, and back; nothing that the server says about a length is
 * believed.
 */
#ifndef HF_POSTGRES_WIRE_H
#define HF_POSTGRES_WIRE_H

#include "base/buf.h"

enum {
    HF__PG_RESULTS = 16,
    HF__PG_VALUES = 8,
    HF__WIRE_MESSAGE_MAX = 16 * 1024 * 1024
};

/* ---- to the server ------------------------------------------------------- */

/* Statements as they are written, and all that they answer. */
void hf__pg_put_query(struct hf__buf *to, const char *text);
/* From now on @text has a name. */
void hf__pg_put_prepare(struct hf__buf *to, const char *name, const char *text);
/* Carry it out with @n values, all of them texts or NULL. */
void hf__pg_put_execute(struct hf__buf *to, const char *name,
                        const char *const *values, int n);
/* The end of a transaction, and of what is skipped after an error. */
void hf__pg_put_sync(struct hf__buf *to);

/* ---- from the server ----------------------------------------------------- */

enum hf__wire_type {
    HF__WIRE_PREPARED = '1',
    HF__WIRE_BOUND = '2',
    HF__WIRE_NOTIFIED = 'A',
    HF__WIRE_DONE = 'C',
    HF__WIRE_ROW = 'D',
    HF__WIRE_ERROR = 'E',
    HF__WIRE_NOTICE = 'N',
    HF__WIRE_SETTING = 'S',
    HF__WIRE_COLUMNS = 'T',
    HF__WIRE_READY = 'Z'
};

/* What the first byte of READY says. */
enum {
    HF__WIRE_IDLE = 'I',
    HF__WIRE_IN_TRANSACTION = 'T',
    HF__WIRE_FAILED = 'E'
};

struct hf__pg_message {
    char type;
    const char *body;
    size_t len;
};

enum { HF__WIRE_MORE, HF__WIRE_WHOLE, HF__WIRE_BAD };

/* The message that @bytes begin with, and how long it is. */
int hf__pg_next(const char *bytes, size_t len,
                struct hf__pg_message *ret_message, size_t *ret_len);

/* What is said to a channel; NULL if that is no text. */
const char *hf__pg_notification(const struct hf__pg_message *message);

struct hf__pg_error {
    char state[6];
    bool fatal; /* the server ends the session */
    char text[256];
};

/* @message is an error or a notice. */
void hf__pg_error_read(const struct hf__pg_message *message,
                       struct hf__pg_error *ret_error);
/* Does its code begin with @state? Not if there is none. */
bool hf__pg_error_is(const struct hf__pg_error *error, const char *state);

/* What one statement answered. */
struct hf__pg_result {
    const struct hf__pg_answer *answer;
    size_t first; /* of its cells */
    int rows;
    int columns;
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
    struct hf__buf texts; /* values, terminated */
    struct hf__buf cells; /* where they are: size_t each */
};

/* Add a row, the end of a statement, or an error. False: that cannot be, or
 * there is no memory. */
bool hf__pg_answer_add(struct hf__pg_answer *answer,
                       const struct hf__pg_message *message);
/* Empty again; its memory is kept, unless that is much. */
void hf__pg_answer_clear(struct hf__pg_answer *answer);
void hf__pg_answer_release(struct hf__pg_answer *answer);

/* A text in a result; "" where there is none. */
const char *hf__pg_text(const struct hf__pg_result *result, int row,
                        int column);
/* A number in a result; @standard where there is none. */
int64_t hf__pg_number(const struct hf__pg_result *result, int row, int column,
                      int64_t standard);

#endif
