/* SPDX-License-Identifier: MIT */
/*
 * directory.c - make, check and lock the directory of the store; choose.c says
 * which one it is.
 *
 * A user who may write the table may break every lock in it, and crash its
 * other users. So the directory is opened without following a link, belongs to
 * us, to root or to the user that trust_owner= names, and nobody else may
 * write it, by its mode or by an access list; then everything in it is opened
 * relative to that descriptor. A directory with mode 2770 is shared by its
 * group on purpose; the one that we choose for a user never is.
 *
 * Failure: each refusal says what is wrong and what to do. The engine never
 * changes a directory that it did not make.
 */
#include "engines/local/directory.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/error.h"

#define LOCK_WAIT_NS (100 * HF_MS)
/* A hundred processes that poll every millisecond leave the one that has the
 * lock no time to run: the pause grows. */
#define LOCK_PAUSE_NS HF_MS
#define LOCK_PAUSE_MAX_NS (16 * HF_MS)

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

/* "2001 (mallory)", or the number alone. */
static const char *user_text(uid_t uid, char to[64])
{
    struct passwd entry;
    struct passwd *found = NULL;
    char buffer[1024];

    if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) == 0 && found)
        (void)snprintf(to, 64, "%u (%s)", (unsigned)uid, found->pw_name);
    else
        (void)snprintf(to, 64, "%u", (unsigned)uid);
    return to;
}

static bool is_trusted(const struct hf__place *place, uid_t uid)
{
    if (uid == geteuid())
        return true;
    if (place->kind == HF__PLACE_OWN)
        return false;
    return uid == hf__place_roots->administrator ||
           (place->kind == HF__PLACE_NAMED && place->trusts &&
            uid == place->trusted);
}

static int check_owner(const struct hf__place *place, uid_t uid, hf_error *err)
{
    char user[64];

    if (is_trusted(place, uid))
        return 0;
    if (place->kind == HF__PLACE_NAMED)
        return hf__fail(err, HF_ECONFIG,
                        "%s belongs to user %s: use a directory of your own, "
                        "or trust that user with your locks "
                        "(trust_owner=%u)",
                        place->path, user_text(uid, user), (unsigned)uid);
    return hf__fail(err, HF_ECONFIG,
                    "%s, where your locks are by default, belongs to user %s: "
                    "have an administrator remove it, or name another "
                    "directory (local:///dir)",
                    place->path, user_text(uid, user));
}

/* A POSIX access list as the kernel gives it: a version, then entries. */
struct acl_entry {
    uint16_t tag;
    uint16_t permissions;
    uint32_t id;
};

bool hf__place_listed(const struct hf__place *place, int fd, const char *list)
{
    enum { VERSION = 2, USER = 0x02, GROUP = 0x08, WRITE = 2, ENTRIES = 512 };
    struct {
        uint32_t version;
        struct acl_entry entries[ENTRIES];
    } acl;
    ssize_t size = fgetxattr(fd, list, &acl, sizeof(acl));
    size_t n;

    if (size < 0) /* none, or more than we are ready to read */
        return errno == ERANGE;
    if ((size_t)size < sizeof(acl.version))
        return false;
    if (le32toh(acl.version) != VERSION)
        return true;
    n = ((size_t)size - sizeof(acl.version)) / sizeof(acl.entries[0]);
    for (size_t i = 0; i < n; i++) {
        uint16_t tag = le16toh(acl.entries[i].tag);

        if ((le16toh(acl.entries[i].permissions) & WRITE) == 0)
            continue;
        if (tag == GROUP ||
            (tag == USER && !is_trusted(place, le32toh(acl.entries[i].id))))
            return true;
    }
    return false;
}

/* Without group bits an access list gives nothing: they are its mask. */
static int check_mode(struct hf__place *place, mode_t mode, hf_error *err)
{
    const mode_t shared = S_ISGID | S_IWGRP;
    const char *remedy = place->kind == HF__PLACE_OWN
                             ? "chmod 0700"
                             : "chmod 0700, or 2770 to share it with its group";

    place->group = place->kind != HF__PLACE_OWN && (mode & shared) == shared;
    if ((mode & S_IWOTH) || ((mode & S_IWGRP) && !place->group))
        return hf__fail(err, HF_ECONFIG,
                        "%s has mode %04o: others could break its locks; %s",
                        place->path, (unsigned)mode & 07777, remedy);
    if (place->group &&
        (hf__place_listed(place, place->fd, "system.posix_acl_access") ||
         hf__place_listed(place, place->fd, "system.posix_acl_default")))
        return hf__fail(err, HF_ECONFIG,
                        "%s has an access list that lets others than its "
                        "group write: they could break its locks; setfacl -b",
                        place->path);
    return 0;
}

static int check(struct hf__place *place, hf_error *err)
{
    const char *network = hf__place_network(place->fd);
    struct stat st;
    int rc;

    if (fstat(place->fd, &st) != 0)
        return hf__fail_engine(err, HF_EUNAVAILABLE, errno, "%s: %s",
                               place->path, strerror(errno));
    if (network)
        return hf__fail(err, HF_ECONFIG,
                        "%s is on %s: the local store works on one machine "
                        "only; use a directory of a local file system",
                        place->path, network);
    rc = check_owner(place, st.st_uid, err);
    return rc != 0 ? rc : check_mode(place, st.st_mode, err);
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
                               "not there%s",
                               place->path,
                               place->kind == HF__PLACE_NAMED
                                   ? ""
                                   : "; name another one (local:///dir)");
    return hf__fail_engine(err, HF_EUNAVAILABLE, code, "%s: %s", place->path,
                           strerror(code));
}

int hf__place_open(struct hf__place *place, hf_error *err)
{
    int why;
    int rc;

    if (place->in_home)
        hf__place_make_parents(place->path);
    place->made = mkdir(place->path, 0700) == 0;
    why = place->made ? EEXIST : errno;
    if (why != EEXIST && why != EROFS)
        return cannot_open(place, err);
    place->fd =
        open(place->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (place->fd < 0) {
        if (errno == ENOENT)
            errno = why; /* not there, and cannot be made */
        return cannot_open(place, err);
    }
    rc = check(place, err);
    if (rc != 0) {
        hf__place_release(place);
        return rc;
    }
    /* systemd-tmpfiles does not clean a locked directory. Not having the
     * lock, because another process keeps it, is no error. */
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
                               errno,
                               "cannot open %s/lock: %s; name a directory "
                               "that you may write",
                               place->path, strerror(errno));
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
