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

typedef void torture_fn(const struct torture *torture);

/* Inside of TEST_FORKED, after heap_install(). */
torture_fn torture;
/* The same by two who wait on a condition, wake each other, and wait in vain. */
torture_fn torture_conditions;

#endif
