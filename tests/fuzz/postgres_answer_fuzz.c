/* SPDX-License-Identifier: MIT */
/* postgres_answer_fuzz.c - what a PostgreSQL server says that hates us. */
#include "engines/postgres/wire.h"
#include "fuzz.h"

static void read_result(const struct hf__pg_result *result)
{
    for (int row = 0; row <= result->rows; row++) {
        for (int column = 0; column <= result->columns; column++) {
            CHECK(strlen(hf__pg_text(result, row, column)) < SIZE_MAX);
            (void)hf__pg_number(result, row, column, 1);
        }
    }
}

static void read_all(const struct hf__pg_answer *answer)
{
    for (int i = 0; i < answer->n; i++)
        read_result(&answer->results[i]);
    CHECK(hf__pg_text(answer->last, answer->last->rows, 0)[0] == '\0');
}

/* False: the session would be ended. */
static bool take(struct hf__pg_answer *answer,
                 const struct hf__pg_message *message)
{
    switch (message->type) {
    case HF__WIRE_NOTIFIED: {
        const char *text = hf__pg_notification(message);

        CHECK(!text || strlen(text) < message->len);
        return true;
    }
    case HF__WIRE_ERROR:
    case HF__WIRE_ROW:
    case HF__WIRE_DONE:
        return hf__pg_answer_add(answer, message);
    case HF__WIRE_READY:
        read_all(answer);
        hf__pg_answer_clear(answer);
        return true;
    default:
        return true;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = calloc(1, size > 0 ? size : 1); /* reading too far shows */
    struct hf__pg_answer answer = {0};
    struct hf__pg_message message;
    size_t at = 0;
    size_t len;

    CHECK(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    hf__pg_answer_clear(&answer);
    while (hf__pg_next(bytes + at, size - at, &message, &len) ==
           HF__WIRE_WHOLE) {
        CHECK(len >= 5 && len <= size - at);
        CHECK(message.body + message.len == bytes + at + len);
        at += len;
        if (!take(&answer, &message))
            break;
    }
    read_all(&answer);
    hf__pg_answer_release(&answer);
    free(bytes);
    return 0;
}
