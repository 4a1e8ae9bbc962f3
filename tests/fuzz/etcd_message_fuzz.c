/* SPDX-License-Identifier: MIT */
/*
 * etcd_message_fuzz.c - answers of etcd: frames of gRPC with messages of
 * protobuf in them. Every part of what is read lies in it.
 */
#include "engines/etcd/frame.h"

#include "fuzz.h"

enum { DEEPEST = 4, FIELDS = 12 };

static void check_inside(struct hf__pb part, struct hf__pb whole)
{
    CHECK(part.bytes >= whole.bytes);
    CHECK(part.bytes + part.len <= whole.bytes + whole.len);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as DEEPEST. */
static void walk(struct hf__pb message, int depth)
{
    for (uint32_t field = 1; field < FIELDS && depth < DEEPEST; field++) {
        struct hf__pb last = hf__pb_inside(message, field);
        struct hf__pb part;
        struct hf__pb before = {0};
        size_t at = 0;

        (void)hf__pb_number(message, field);
        while (hf__pb_there(part = hf__pb_next(message, field, &at))) {
            check_inside(part, message);
            walk(part, depth + 1);
            before = part;
        }
        CHECK(at == message.len);
        CHECK(last.bytes == before.bytes && last.len == before.len);
    }
}

static void check_text(struct hf__pb value)
{
    char text[24];

    hf__pb_text(value, text, sizeof(text));
    CHECK(strlen(text) < sizeof(text));
    hf__frame_text(value.bytes, value.len, text, sizeof(text));
    CHECK(strlen(text) < sizeof(text));
    CHECK(hf__frame_code(value.bytes, value.len) >= 0);
    CHECK(hf__frame_code(value.bytes, value.len) <= HF__FRAME_LAST_CODE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* Not terminated: reading beyond the end must be seen. */
    char *bytes = malloc(size > 0 ? size : 1);
    struct hf__pb come = {bytes, size};
    struct hf__pb message;
    size_t at = 0;

    CHECK(bytes);
    if (size > 0)
        memcpy(bytes, data, size);
    check_text(come);
    walk(come, 0);
    while (hf__frame_next(come, &at, &message) > 0) {
        CHECK(at <= size);
        check_inside(message, come);
        (void)hf__pb_whole(message);
        walk(message, 0);
    }
    free(bytes);
    return 0;
}
