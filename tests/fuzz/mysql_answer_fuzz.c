/* SPDX-License-Identifier: MIT */
/* mysql_answer_fuzz.c - answers of a MariaDB server that hates us. */
#include "engines/mysql/packet.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *bytes = calloc(1, size > 0 ? size : 1); /* reading too far shows */
    struct hf__mysql_answer answer;

    CHECK(bytes != NULL);
    if (size > 0)
        memcpy(bytes, data, size);
    if (hf__mysql_parse_answer(bytes, size, &answer) == HF__MYSQL_WHOLE) {
        CHECK(size <= HF__MYSQL_ANSWER_MAX);
        CHECK(answer.code == 0 ||
              (answer.text >= bytes + 7 &&
               answer.text + answer.text_len == bytes + size));
    }
    free(bytes);
    return 0;
}
