/* SPDX-License-Identifier: MIT */
/* memcached_meta_fuzz.c - answers of a Memcached server that hates us. */
#include "engines/memcached/wire.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = malloc(size + 1); /* its end is where reading too far shows */
    size_t at = 0;

    CHECK(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    bytes = realloc(bytes, size > 0 ? size : 1);
    CHECK(bytes != NULL);
    while (at < size) {
        struct hf__meta meta;
        size_t used = 0;
        char value[16];

        if (hf__memcached_wire_parse(bytes + at, size - at, &meta, &used) !=
            HF__META_WHOLE)
            break;
        CHECK(used > 0 && used <= size - at);
        CHECK(meta.value_len <= HF__META_VALUE_MAX);
        CHECK(meta.kind != HF__META_VA ||
              (meta.value >= bytes + at &&
               meta.value + meta.value_len + 2 <= bytes + at + used));
        CHECK(meta.text_len <= used);
        if (hf__memcached_wire_stat(&meta, "evictions", value, sizeof(value)))
            CHECK(strlen(value) < sizeof(value));
        at += used;
    }
    free(bytes);
    return 0;
}
