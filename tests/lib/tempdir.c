/* SPDX-License-Identifier: MIT */
/* tempdir.c - a directory that lives as long as a test. */
#define _GNU_SOURCE
#include "tempdir.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "remove_tree.h"
#include "test.h"

void tempdir_remove(const char *path)
{
    remove_tree(path);
}

static void remove_and_free(void *arg)
{
    tempdir_remove(arg);
    free(arg);
}

const char *tempdir_new(void)
{
    const char *base = getenv("TMPDIR");
    char *path;

    if (asprintf(&path, "%s/holdfast-test-XXXXXX", base ? base : "/tmp") < 0)
        FAIL("out of memory");
    if (!mkdtemp(path))
        FAIL("mkdtemp %s: %s", path, strerror(errno));
    test_defer(remove_and_free, path);
    return path;
}
