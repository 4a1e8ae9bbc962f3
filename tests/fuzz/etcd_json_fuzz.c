/* SPDX-License-Identifier: MIT */
/* etcd_json_fuzz.c - answers of etcd: every part of what is read lies in it. */
#include "engines/etcd/json.h"

#include "fuzz.h"

static void check_inside(struct hf__json part, struct hf__json whole)
{
    CHECK(part.text >= whole.text);
    CHECK(part.text + part.len <= whole.text + whole.len);
}

static void check_value(struct hf__json value)
{
    char text[64];
    char bytes[64];
    long n = hf__base64_read(value, bytes, sizeof(bytes));

    hf__json_text(value, text, sizeof(text));
    CHECK(strlen(text) < sizeof(text));
    CHECK(n >= -1 && n <= (long)sizeof(bytes));
    (void)hf__json_number(value);
    (void)hf__json_true(value);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as HF__JSON_DEPTH. */
static void walk(struct hf__json value)
{
    static const char *const names[] = {"a", "kvs", "key", "header", "events"};
    struct hf__json part;
    size_t at = 0;

    check_value(value);
    while ((part = hf__json_next(value, &at)).type != HF__JSON_NONE) {
        check_inside(part, value);
        walk(part);
    }
    for (size_t i = 0; i < HF_COUNT_OF(names); i++) {
        part = hf__json_member(value, names[i]);
        if (part.type != HF__JSON_NONE) {
            check_inside(part, value);
            walk(part);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Not terminated: reading beyond the end must be seen. */
    char *text = malloc(size > 0 ? size : 1);

    CHECK(text);
    if (size > 0)
        memcpy(text, data, size);
    walk(hf__json_read(text, size));
    free(text);
    return 0;
}
