/* SPDX-License-Identifier: MIT */
/* disk.c - a small disk for a test. */
#include "disk.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "test.h"

static bool is_ours;

void disk_prepare(void)
{
    if (!is_ours)
        is_ours = unshare(CLONE_NEWNS) == 0 &&
                  mount("none", "/", NULL, MS_REC | MS_PRIVATE,
                        /* data= */ NULL) == 0;
}

static void unmount(void *at)
{
    (void)umount2(at, MNT_DETACH);
    free(at);
}

bool disk_mount(const char *at, int kib)
{
    struct stat before;
    char options[128];

    if (!is_ours || stat(at, &before) != 0)
        return false;
    (void)snprintf(options, sizeof(options), "size=%dk,uid=%u,gid=%u,mode=0700",
                   kib, before.st_uid, before.st_gid);
    if (mount("tmpfs", at, "tmpfs", 0, options) != 0)
        return false;
    test_defer(unmount, strdup(at));
    return true;
}
