/* SPDX-License-Identifier: MIT */
/* planted.c - which mistake this process makes: see planted.h. */
#include "base/planted.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

bool hf__planted(const char *name)
{
    static const char *_Atomic chosen;

    if (!chosen) {
        const char *text = secure_getenv("HOLDFAST_TEST_PLANT");

        chosen = text ? text : "";
    }
    return strcmp(chosen, name) == 0;
}
