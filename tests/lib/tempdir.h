/* SPDX-License-Identifier: MIT */
/* tempdir.h - a directory that lives as long as a test. */
#ifndef HF_TESTS_TEMPDIR_H
#define HF_TESTS_TEMPDIR_H

/* A new, empty directory of mode 0700; removed with all its contents when the
 * running test is over. The path is valid until then. */
const char *tempdir_new(void);
/* Remove @path and everything below it. */
void tempdir_remove(const char *path);

#endif
