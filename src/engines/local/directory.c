/* SPDX-License-Identifier: MIT */
/*
 * directory.c - choose, make, check and lock the directory of the store.
 *
 * local:///some/dir names it. Without one it is, in this order,
 *
 *   $XDG_RUNTIME_DIR/holdfast   if that belongs to us
 *   /run/holdfast               for root, or if it is there and we may use it
 *   /tmp/holdfast-UID
 *
 * Whoever may write the table may break every lock in it. So the directory is
 * opened without following a link, must belong to us or to root, and must not
 * be writable for others; then everything in it is opened relative to that
 * descriptor. A directory with mode 2770 is shared by its group on purpose.
 *
 * Failure: each refusal says what is wrong and what to do. Nothing is ever
 * changed about a directory that was there before.
 */
#include "engines/local/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "error.h"
#include "name.h"

#define LOCK_WAIT_NS (100 * HF_MS)
/* A hundred processes that come at once and look every millisecond leave the
 * one that is inside no time to get on: they look ever less often. */
#define LOCK_PAUSE_NS HF_MS
#define LOCK_PAUSE_MAX_NS (16 * HF_MS)

static bool fits(char *to, size_t size, const char *a, const char *b)
{
    int n = snprintf(to, size, "%s%s", a, b);

    return n > 0 && (size_t)n < size;
}

/* ---- which one --------------------------------------------------------- */

static bool belongs_to_us(const char *path)
{
    struct stat st;

    return path[0] == '/' && stat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid();
}

static void choose_default(struct hf__place *place)
{
    const char *runtime = secure_getenv("XDG_RUNTIME_DIR");

    if (runtime && belongs_to_us(runtime) &&
        fits(place->path, sizeof(place->path), runtime, "/holdfast"))
        return;
    (void)fits(place->path, sizeof(place->path), "/run/holdfast", "");
    if (geteuid() == 0 ||
        faccessat(AT_FDCWD, place->path, W_OK | X_OK, AT_EACCESS) == 0)
        return;
    (void)snprintf(place->path, sizeof(place->path), "/tmp/holdfast-%u",
                   (unsigned)geteuid());
}

int hf__place_choose(struct hf__place *place, const struct hf__url *url,
                     hf_error *err)
{
    size_t len = strlen(url->path);

    place->fd = -1;
    if (url->user || url->password ||
        (url->n_hosts > 0 && url->hosts[0].host[0] != '\0'))
        return hf__fail(err, HF_ECONFIG,
                        "local: has no host: write local:///dir for the "
                        "directory /dir, or local: for the usual one");
    if (len == 0) {
        place->chosen_by_us = true;
        choose_default(place);
        return 0;
    }
    if (url->path[0] != '/')
        return hf__fail(err, HF_ECONFIG,
                        "local:%s is not absolute: write local:///dir",
                        url->path);
    while (len > 1 && url->path[len - 1] == '/')
        len--;
    if (len >= sizeof(place->path) || len == 1)
        return hf__fail(err, HF_ECONFIG,
                        "local:// needs a directory of its own, such as "
                        "local:///run/holdfast");
    memcpy(place->path, url->path, len);
    place->path[len] = '\0';
    return 0;
}

/* ---- open and check ---------------------------------------------------- */

const char *hf__place_network(int fd)
{
    static const struct {
        long type;
        const char *name;
    } networks[] = {
        {0x6969, "NFS"},      {0x517b, "SMB"},          {0xff534d42, "CIFS"},
        {0xfe534d42, "SMB"},  {0x00c36400, "Ceph"},     {0x5346414f, "AFS"},
        {0x01021997, "9P"},   {0x65735546, "FUSE"},     {0x7461636f, "OCFS2"},
        {0x01161970, "GFS2"}, {0x73757245, "Coda"},     {0x0bd00bd0, "Lustre"},
        {0x564c, "NCP"},      {0x6a656a63, "virtiofs"},
    };
    struct statfs st;

    if (fstatfs(fd, &st) != 0)
        return NULL;
    for (size_t i = 0; i < HF_COUNT_OF(networks); i++)
        if ((unsigned long)st.f_type == (unsigned long)networks[i].type)
            return networks[i].name;
    return NULL;
}

static int check(struct hf__place *place, hf_error *err)
{
    const char *network = hf__place_network(place->fd);
    struct stat st;

    if (fstat(place->fd, &st) != 0)
        return hf__fail_engine(err, HF_EUNAVAILABLE, errno, "%s: %s",
                               place->path, strerror(errno));
    if (network)
        return hf__fail(err, HF_ECONFIG,
                        "%s is on %s: the local store works on one machine "
                        "only; use a directory of a local file system",
                        place->path, network);
    place->group = (st.st_mode & (S_ISGID | S_IWGRP)) == (S_ISGID | S_IWGRP);
    if (st.st_uid != geteuid() && st.st_uid != 0 && !place->group)
        return hf__fail(err, HF_ECONFIG,
                        "%s belongs to user %u: use a directory of your own",
                        place->path, (unsigned)st.st_uid);
    if ((st.st_mode & S_IWOTH) || ((st.st_mode & S_IWGRP) && !place->group))
        return hf__fail(err, HF_ECONFIG,
                        "%s has mode %04o: others could break its locks; "
                        "chmod 0700, or 2770 to share it with its group",
                        place->path, (unsigned)st.st_mode & 07777);
    return 0;
}

static int cannot_open(const struct hf__place *place, hf_error *err)
{
    int code = errno;

    if (code == ELOOP || code == ENOTDIR)
        return hf__fail_engine(err, HF_ECONFIG, code,
                               "%s is not a directory, or is a symbolic "
                               "link: name the directory itself",
                               place->path);
    if (code == EACCES || code == EPERM || code == EROFS)
        return hf__fail_engine(err, HF_EAUTH, code,
                               "%s: %s; name a directory that you may write",
                               place->path, strerror(code));
    if (code == ENOENT)
        return hf__fail_engine(err, HF_ECONFIG, code,
                               "%s cannot be made: its parent directory is "
                               "not there",
                               place->path);
    return hf__fail_engine(err, HF_EUNAVAILABLE, code, "%s: %s", place->path,
                           strerror(code));
}

int hf__place_open(struct hf__place *place, hf_error *err)
{
    int rc;

    if (mkdir(place->path, 0700) != 0 && errno != EEXIST && errno != EROFS)
        return cannot_open(place, err);
    place->fd =
        open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place->fd < 0)
        return cannot_open(place, err);
    rc = check(place, err);
    if (rc != 0) {
        hf__place_release(place);
        return rc;
    }
    /* systemd-tmpfiles leaves a locked directory alone. If somebody else has
     * it locked for good, we can do without. */
    (void)flock(place->fd, LOCK_SH | LOCK_NB);
    return 0;
}

void hf__place_release(struct hf__place *place)
{
    if (place->fd >= 0)
        (void)close(place->fd);
    place->fd = -1;
}

/* ---- one at a time ----------------------------------------------------- */

/* True if the file that we locked is still the one of that name. */
static bool is_the_lock(const struct hf__place *place, int fd)
{
    struct stat ours;
    struct stat named;

    return fstat(fd, &ours) == 0 && S_ISREG(ours.st_mode) &&
           fstatat(place->fd, "lock", &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static int open_lock(const struct hf__place *place, int *ret_fd, hf_error *err)
{
    mode_t mode = place->group ? 0660 : 0600;
    int fd =
        openat(place->fd, "lock",
               O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode);

    if (fd < 0) {
        if (errno == ENOSPC || errno == EDQUOT)
            return hf__fail_engine(err, HF_ENOSPACE, errno, "%s: %s",
                                   place->path, strerror(errno));
        return hf__fail_engine(err, errno == ELOOP ? HF_ECONFIG : HF_EAUTH,
                               errno, "cannot open %s/lock: %s", place->path,
                               strerror(errno));
    }
    if (place->group)
        (void)fchmod(fd, mode); /* not ours: it has that mode already */
    *ret_fd = fd;
    return 0;
}

int hf__place_lock(const struct hf__place *place, int *ret_fd, hf_error *err)
{
    int64_t until_ns = hf__instant_add(hf__now(), LOCK_WAIT_NS);
    int64_t pause_ns = LOCK_PAUSE_NS;
    _Atomic uint32_t nobody = 0;

    for (;;) {
        int fd = -1;
        int rc = open_lock(place, &fd, err);

        if (rc != 0)
            return rc;
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 && is_the_lock(place, fd)) {
            *ret_fd = fd;
            return 0;
        }
        (void)close(fd);
        if (hf__now() >= until_ns)
            return hf__fail(err, HF_EUNAVAILABLE,
                            "another process is opening the local store and "
                            "does not get on (%s/lock)",
                            place->path);
        hf__world->park(&nobody, 0, HF_ANYBODY,
                        hf__instant_add(hf__now(), pause_ns));
        if (pause_ns < LOCK_PAUSE_MAX_NS)
            pause_ns *= 2;
    }
}

/* ---- where the mark is ------------------------------------------------- */

static int open_state(const char *path)
{
    struct stat st;
    int fd;

    (void)mkdir(path, 0700); /* it may be there */
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
        (st.st_mode & (S_IWGRP | S_IWOTH)) == 0)
        return fd;
    (void)close(fd);
    return -1;
}

/* For stores that do not survive a reboot: a directory that does. */
static void choose_state(char *to, size_t size)
{
    const char *state = secure_getenv("XDG_STATE_HOME");
    const char *home = secure_getenv("HOME");
    char parent[PATH_MAX];

    to[0] = '\0';
    if (geteuid() == 0) {
        (void)fits(to, size, "/var/lib/holdfast", "");
    } else if (state && state[0] == '/') {
        (void)fits(to, size, state, "/holdfast");
    } else if (home && home[0] == '/') {
        if (fits(parent, sizeof(parent), home, "/.local"))
            (void)mkdir(parent, 0700);
        if (fits(parent, sizeof(parent), home, "/.local/state"))
            (void)mkdir(parent, 0700);
        (void)fits(to, size, home, "/.local/state/holdfast");
    }
}

void hf__place_open_mark(struct hf__place *place, struct hf__mark *mark)
{
    static const uint64_t key[2] = {0, 0};

    memset(mark, 0, sizeof(*mark));
    if (!place->chosen_by_us) {
        place->state_path[0] = '\0';
        mark->fd = openat(place->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)snprintf(mark->name, sizeof(mark->name), "tokens-");
        return;
    }
    choose_state(place->state_path, sizeof(place->state_path));
    mark->fd =
        place->state_path[0] == '\0' ? -1 : open_state(place->state_path);
    (void)snprintf(mark->name, sizeof(mark->name), "tokens-%016llx-",
                   (unsigned long long)hf__name_hash(place->path,
                                                     strlen(place->path), key));
}
