/* SPDX-License-Identifier: MIT */
/*
 * token.c - fencing tokens that grow for ever.
 *
 *     token = max(last of the bucket + 1, wall clock in µs)
 *
 * The first term makes them grow as long as the table lives, whatever the
 * clock does; the second makes those of a new table (after a reboot, or after
 * somebody deleted it) larger than the old ones, without a disk write for
 * each. But tokens can outrun the clock (a tight loop, reserved ranges), and
 * the clock can be set back. So there is a high-water mark on a disk: the
 * engine never grants a token above it. Before it would, it moves the mark an
 * hour ahead: one small file per hour of use. A new table begins above the
 * mark.
 *
 * The mark is the name of an empty file, "tokens-STORE-VALUE". A new one is
 * made before the old ones are removed, and the greatest counts: so writers
 * need no lock, and a crash at any instant leaves a mark that is not too low.
 *
 * Failure: without a place for the mark, tokens grow as long as the table lives
 * and the clock is right. doctor warns of that.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engines/local/store.h"

#define AHEAD_US UINT64_C(3600000000)
#define RETRY_NS (60 * HF_SECOND)

typedef void each_fn(const struct hf__mark *mark, const char *name,
                     uint64_t value, void *ctx);

/* Every mark of our store. */
static int each_mark(const struct hf__mark *mark, each_fn *each, void *ctx)
{
    size_t len = strlen(mark->name);
    int fd = openat(mark->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;

    if (!directory) {
        int code = errno;

        if (fd >= 0)
            (void)close(fd);
        return code;
    }
    while ((entry = readdir(directory))) {
        char *end;
        uint64_t value;

        if (strncmp(entry->d_name, mark->name, len) != 0)
            continue;
        value = strtoull(entry->d_name + len, &end, 16);
        if (*end == '\0' && value <= HF__TOKEN_MAX)
            each(mark, entry->d_name, value, ctx);
    }
    (void)closedir(directory);
    return 0;
}

static void find_greatest(const struct hf__mark *mark, const char *name,
                          uint64_t value, void *ctx)
{
    uint64_t *greatest = ctx;

    (void)mark;
    (void)name;
    if (value > *greatest)
        *greatest = value;
}

static void remove_smaller(const struct hf__mark *mark, const char *name,
                           uint64_t value, void *ctx)
{
    const uint64_t *greatest = ctx;

    if (value < *greatest)
        (void)unlinkat(mark->fd, name, 0); /* the next one will */
}

uint64_t hf__mark_read(const struct hf__mark *mark)
{
    uint64_t greatest = 0;

    if (mark->fd >= 0)
        (void)each_mark(mark, find_greatest, &greatest);
    return greatest;
}

int hf__mark_write(const struct hf__mark *mark, uint64_t value)
{
    char name[80];
    int fd;
    int rc;

    if (mark->fd < 0)
        return ENOENT;
    (void)snprintf(name, sizeof(name), "%s%llx", mark->name,
                   (unsigned long long)value);
    fd = openat(mark->fd, name,
                O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
    if (fd < 0)
        return errno;
    (void)close(fd); /* it has no contents: the name is what counts */
    rc = fsync(mark->fd) != 0 ? errno : 0;
    if (rc == 0 || rc == EINVAL) /* a file system without fsync */
        rc = each_mark(mark, remove_smaller, &value);
    return rc;
}

/* No token up to @token may be granted before the mark is above it. */
static void raise_mark(struct hf__store *store, uint64_t token)
{
    struct hf__mark *mark = &store->mark;
    _Atomic uint64_t *shared = &store->table.header->mark;
    uint64_t seen = atomic_load(shared);
    uint64_t value = token + AHEAD_US;
    int64_t now_ns;

    mark->known = seen;
    if (seen >= token && seen <= HF__TOKEN_MAX)
        return;
    now_ns = hf__now();
    if (now_ns < mark->retry_ns || value > HF__TOKEN_MAX)
        return;
    HF__POINT("mark");
    if (hf__mark_write(mark, value) != 0) {
        mark->retry_ns = now_ns + RETRY_NS;
        return;
    }
    while (seen < value && !atomic_compare_exchange_weak(shared, &seen, value))
        continue;
    mark->known = value;
}

/* The wall clock, cached for less than a millisecond: reading it takes a
 * quarter of an uncontended acquire. */
static uint64_t wall_us(struct hf__mark *mark, int64_t now_ns)
{
    if (now_ns - mark->wall_at_ns >= HF_MS || now_ns < mark->wall_at_ns) {
        mark->wall_at_ns = now_ns;
        mark->wall_us = (uint64_t)hf__world->wall_us();
    }
    return mark->wall_us;
}

uint64_t hf__token_next(struct hf__store *store, struct hf__draft *draft,
                        uint32_t count, int64_t now_ns)
{
    uint64_t token = wall_us(&store->mark, now_ns);
    uint64_t end;

    if (draft->last + 1 > token)
        token = draft->last + 1;
    if (HF_UNLIKELY(store->table.header->floor + 1 > token))
        token = store->table.header->floor + 1;
    end = token + count - 1;
    if (HF_UNLIKELY(end > store->mark.known))
        raise_mark(store, end);
    draft->last = end;
    return token;
}
