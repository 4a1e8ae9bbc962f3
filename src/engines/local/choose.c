/* SPDX-License-Identifier: MIT */
/*
 * choose.c - which directory the store is in, and where its mark is kept.
 *
 * local:///some/dir names it. Without one it is, in this order,
 *
 *   /run/holdfast             if an administrator made it and we may write it
 *   /run/lock/holdfast-UID    if every user may make directories in /run/lock
 *   ~/.local/state/holdfast   ~ as the passwd database has it
 *
 * So it depends on the user alone: cron, a login and a service of one user
 * agree, whatever their environments say. And it outlives logins: what
 * $XDG_RUNTIME_DIR names ends with the last of them, and /tmp and /dev/shm are
 * cleaned while locks are held.
 *
 * Failure: this file makes no directory, and does not try one after another. A
 * directory that exists but is not ours is an error of directory.c, never a
 * reason to take the next one: another user could choose for us.
 */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "config/name.h"
#include "engines/local/directory.h"

static const struct hf__place_roots machine = {
    .system = "/run/holdfast",
    .everybody = "/run/lock",
    .system_state = "/var/lib/holdfast",
};

const struct hf__place_roots *hf__place_roots = &machine;

static bool fits(char *to, size_t size, const char *a, const char *b)
{
    int n = snprintf(to, size, "%s%s", a, b);

    return n > 0 && (size_t)n < size;
}

/* ---- users ------------------------------------------------------------- */

enum { ACCOUNT = 16384 };

/* The state directory of our account, whatever $HOME says. */
static int account_state(char *to, size_t size, hf_error *err)
{
    const char *home = hf__place_roots->home;
    struct passwd entry;
    struct passwd *found = NULL;
    char buffer[ACCOUNT];

    if (!home &&
        getpwuid_r(geteuid(), &entry, buffer, sizeof(buffer), &found) == 0 &&
        found)
        home = found->pw_dir;
    if (home && home[0] == '/' &&
        fits(to, size, home, "/.local/state/holdfast"))
        return 0;
    return hf__fail(err, HF_ECONFIG,
                    "user %u has no home directory in the passwd database: "
                    "name a directory for the locks (local:///dir)",
                    (unsigned)geteuid());
}

/* A name or a number. */
static int find_trusted(struct hf__place *place, const char *user,
                        hf_error *err)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char buffer[ACCOUNT];
    char *end;
    unsigned long uid;

    if (!user || user[0] == '\0')
        return 0;
    place->trusts = true;
    errno = 0;
    uid = strtoul(user, &end, 10);
    if (user[0] >= '0' && user[0] <= '9' && *end == '\0') {
        place->trusted = (uid_t)uid;
        if (errno == 0 && uid < (uid_t)-1)
            return 0;
    } else if (getpwnam_r(user, &entry, buffer, sizeof(buffer), &found) == 0 &&
               found) {
        place->trusted = found->pw_uid;
        return 0;
    }
    return hf__fail(err, HF_ECONFIG, "trust_owner: there is no user %s", user);
}

/* ---- which one --------------------------------------------------------- */

/* Root's, and every user may make a directory in it that others cannot
 * remove. */
static bool is_for_everybody(const char *path)
{
    const mode_t all = S_ISVTX | S_IWOTH | S_IXOTH;
    struct stat st;

    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == hf__place_roots->administrator &&
           (st.st_mode & all) == all;
}

static int choose_default(struct hf__place *place, hf_error *err)
{
    const struct hf__place_roots *roots = hf__place_roots;
    char own[32];

    if (faccessat(AT_FDCWD, roots->system, W_OK | X_OK, AT_EACCESS) == 0) {
        place->kind = HF__PLACE_SYSTEM;
        (void)fits(place->path, sizeof(place->path), roots->system, "");
        return 0;
    }
    place->kind = HF__PLACE_OWN;
    if (is_for_everybody(roots->everybody)) {
        (void)snprintf(own, sizeof(own), "/holdfast-%u", (unsigned)geteuid());
        (void)fits(place->path, sizeof(place->path), roots->everybody, own);
        return 0;
    }
    place->in_home = true;
    return account_state(place->path, sizeof(place->path), err);
}

int hf__place_choose(struct hf__place *place, const struct hf__url *url,
                     const char *trust_owner, hf_error *err)
{
    size_t len = strlen(url->path);

    place->fd = -1;
    if (url->user || url->password ||
        (url->n_hosts > 0 && url->hosts[0].host[0] != '\0'))
        return hf__fail(err, HF_ECONFIG,
                        "local: has no host: write local:///dir for the "
                        "directory /dir, or local: for the usual one");
    if (len == 0)
        return choose_default(place, err);
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
    return find_trusted(place, trust_owner, err);
}

void hf__place_make_parents(const char *path)
{
    static const char *const tails[] = {"/state/holdfast", "/holdfast"};
    size_t len = strlen(path);
    char parent[PATH_MAX];

    for (size_t i = 0; i < HF_COUNT_OF(tails); i++)
        if (len > strlen(tails[i]) && fits(parent, sizeof(parent), path, "")) {
            parent[len - strlen(tails[i])] = '\0';
            (void)mkdir(parent, 0700); /* it may be there */
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
    if (geteuid() == hf__place_roots->administrator)
        (void)fits(to, size, hf__place_roots->system_state, "");
    else if (account_state(to, size, NULL) == 0)
        hf__place_make_parents(to);
    else
        to[0] = '\0';
}

void hf__place_open_mark(struct hf__place *place, struct hf__mark *mark)
{
    static const uint64_t key[2] = {0, 0};

    memset(mark, 0, sizeof(*mark));
    if (place->kind == HF__PLACE_NAMED || place->in_home) {
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
