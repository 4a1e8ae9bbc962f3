/* SPDX-License-Identifier: MIT */
/* dynlib.c - dlopen() and a table of symbols. */
#include "base/dynlib.h"

#include <dlfcn.h>

bool hf__dynlib_load(const char *file, const char *const *names, size_t n,
                     void *table)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    for (size_t i = 0; library && i < n; i++) {
        void *symbol = dlsym(library, names[i]);

        if (!symbol)
            return false;
        /* ISO C has no cast from an object to a function. */
        memcpy((char *)table + i * sizeof(symbol), &symbol, sizeof(symbol));
    }
    return library != NULL;
}
