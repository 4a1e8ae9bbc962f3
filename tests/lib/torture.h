/* SPDX-License-Identifier: MIT */
/*
 * torture.h - the n-th allocation fails, for every n.
 *
 * Two clients open, contend for a name, look, downgrade, release and close. Any
 * call may fail; none may crash, keep memory, or leave something on the server.
 * What client libraries allocate does not pass through us, and does not fail.
 */
#ifndef HF_TESTS_TORTURE_H
#define HF_TESTS_TORTURE_H

#include <stdbool.h>

struct torture {
    const char *url;
    int mode; /* HF_EXCLUSIVE, HF_SLOT */
    /* Is nothing left on the server? Asked until it is so. */
    bool (*clean)(void *ctx);
    void *ctx;
    int every; /* ask after so many failures; 0: after each */
};

/* Inside of TEST_FORKED, after heap_install(). */
void torture(const struct torture *torture);

#endif
