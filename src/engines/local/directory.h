/* SPDX-License-Identifier: MIT */
/* directory.h - where the store lies. */
#ifndef HF_LOCAL_DIRECTORY_H
#define HF_LOCAL_DIRECTORY_H

#include <limits.h>

#include "config/url.h"
#include "engines/local/store.h"

enum hf__place_kind {
    HF__PLACE_NAMED,  /* by the URL */
    HF__PLACE_SYSTEM, /* made by an administrator; used if we may write it */
    HF__PLACE_OWN     /* of this user alone */
};

struct hf__place {
    char path[PATH_MAX];
    enum hf__place_kind kind;
    bool in_home; /* OWN: below the home directory */
    bool group;   /* 2770: the members of its group share it */
    bool made;    /* by us, now */
    bool trusts;
    uid_t trusted;             /* if @trusts: this owner too */
    int fd;                    /* -1: not open; carries a shared flock() */
    char state_path[PATH_MAX]; /* of the high-water mark; "": beside it */
};

/* The directories of this machine that choose.c looks at. Tests replace
 * them. */
struct hf__place_roots {
    const char *system;
    const char *everybody;
    const char *system_state;
    const char *home; /* NULL: as the passwd database has it */
    uid_t administrator;
};

extern const struct hf__place_roots *hf__place_roots;

/* What the URL says, without touching anything. HF_ECONFIG. */
int hf__place_choose(struct hf__place *place, const struct hf__url *url,
                     const char *trust_owner, hf_error *err);
/* @path ends in /.local/state/holdfast: make the two above it. */
void hf__place_make_parents(const char *path);
/* Make it if it is not there, and check it. HF_ECONFIG, HF_EAUTH. */
int hf__place_open(struct hf__place *place, hf_error *err);
void hf__place_release(struct hf__place *place);
/* One opens at a time. Waits a tenth of a second. */
int hf__place_lock(const struct hf__place *place, int *ret_fd, hf_error *err);
/* Where the mark of this store is kept: mark->fd is -1 if nowhere. */
void hf__place_open_mark(struct hf__place *place, struct hf__mark *mark);
/* Does the access list called @list let users that we do not trust, or other
 * groups than its own, write @fd? */
bool hf__place_listed(const struct hf__place *place, int fd, const char *list);
/* The file system's name if it is one that other machines may share. */
const char *hf__place_network(int fd);

#endif
