/* SPDX-License-Identifier: MIT */
/* remove_tree.h - remove a directory with all that is in it. */
#ifndef HF_TESTS_REMOVE_TREE_H
#define HF_TESTS_REMOVE_TREE_H

#include <ftw.h>
#include <stdio.h>

static inline int remove_tree_entry(const char *path, const struct stat *info,
                                    int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    (void)remove(path);
    return 0;
}

static inline void remove_tree(const char *path)
{
    (void)nftw(path, remove_tree_entry, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
