/* SPDX-License-Identifier: MIT */
/*
 * disk.h - a small disk for a test, to be filled up.
 *
 * It is mounted where only this process and its children see it, so the kernel
 * takes it away with the last of them, whatever happens to the test.
 */
#ifndef HF_TESTS_DISK_H
#define HF_TESTS_DISK_H

#include <stdbool.h>

/* Before the server is started that is to see the disk. */
void disk_prepare(void);
/* One of @kib on the directory @at, whose owner keeps it. False where nothing
 * may be mounted. It is unmounted when the test is over. */
bool disk_mount(const char *at, int kib);

#endif
