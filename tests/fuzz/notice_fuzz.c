/* SPDX-License-Identifier: MIT */
/* notice_fuzz.c - what is read of a notice is written as the same bytes. */
#include "core/notice.h"

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct hf__notice_wait waits[HF__NOTICE_WAITS];
    struct hf__buf buf = {0};
    char *text = fuzz_text(data, size);
    int n = hf__notice_read(text, size, waits, HF__NOTICE_WAITS);

    CHECK(n >= -1 && n <= HF__NOTICE_WAITS);
    if (n > 0) {
        hf__notice_write(waits, (size_t)n, &buf);
        CHECK(!hf__buf_failed(&buf));
        CHECK(buf.len == size && memcmp(buf.text, text, size) == 0);
        hf__buf_release(&buf);
    }
    free(text);
    return 0;
}
