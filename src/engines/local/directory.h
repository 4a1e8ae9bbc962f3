/* SPDX-License-Identifier: MIT */
/* directory.h - where the store lies. */
#ifndef HF_LOCAL_DIRECTORY_H
#define HF_LOCAL_DIRECTORY_H

#include <limits.h>

#include "engines/local/store.h"
#include "url.h"

struct hf__place {
    char path[PATH_MAX];
    bool chosen_by_us;         /* no directory in the URL */
    bool group;                /* 2770: the members of its group share it */
    int fd;                    /* -1: not open; carries a shared flock() */
    char state_path[PATH_MAX]; /* of the high-water mark; "": beside it */
};

/* What the URL says, without touching anything. HF_ECONFIG. */
int hf__place_choose(struct hf__place *place, const struct hf__url *url,
                     hf_error *err);
/* Make it if it is not there, and check it. HF_ECONFIG, HF_EAUTH. */
int hf__place_open(struct hf__place *place, hf_error *err);
void hf__place_release(struct hf__place *place);
/* One opens at a time. Waits a tenth of a second. */
int hf__place_lock(const struct hf__place *place, int *ret_fd, hf_error *err);
/* Where the mark of this store is kept: mark->fd is -1 if nowhere. */
void hf__place_open_mark(struct hf__place *place, struct hf__mark *mark);
/* The file system's name if it is one that other machines may share. */
const char *hf__place_network(int fd);

#endif
