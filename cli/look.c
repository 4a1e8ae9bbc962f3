/* SPDX-License-Identifier: MIT */
/*
 * look.c - what the store shows of locks, kept for the verbs that print it.
 *
 * The library hands us rows, those of one name together. We copy them and fold
 * them by name. What a store does not keep, the command of a holder, we read
 * from /proc if the holder is a process of this host: one with the number of
 * the row that is older than the hold. Two hosts of one name could deceive us,
 * so nothing but a display may depend on it.
 *
 * Failure: without memory a look fails with HF_ENOMEM, and keeps nothing.
 */
#include "look.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *put_text(char **to, const char *text)
{
    size_t len = strlen(text) + 1;
    char *at = *to;

    memcpy(at, text, len);
    *to += len;
    return at;
}

/* The texts of a row are one block, which begins with the name. */
static int keep(const hf_lock_info *info, void *ctx)
{
    struct look *look = ctx;
    char *to;

    if (look->n_rows == look->room) {
        size_t room = look->room ? look->room * 2 : 64;
        hf_lock_info *rows =
            reallocarray(look->rows, room, sizeof(*look->rows));

        if (!rows)
            return HF_ENOMEM;
        look->rows = rows;
        look->room = room;
    }
    to = malloc(strlen(info->name) + strlen(info->owner) + strlen(info->host) +
                strlen(info->note) + strlen(info->cond) + 5);
    if (!to)
        return HF_ENOMEM;

    hf_lock_info *row = &look->rows[look->n_rows++];
    *row = *info;
    row->name = put_text(&to, info->name);
    row->owner = put_text(&to, info->owner);
    row->host = put_text(&to, info->host);
    row->note = put_text(&to, info->note);
    row->cond = put_text(&to, info->cond);
    return 0;
}

void look_forget(struct look *look)
{
    for (size_t i = 0; i < look->n_rows; i++)
        free((void *)(uintptr_t)look->rows[i].name);
    free(look->rows);
    free(look->locks);
    *look = (struct look){0};
}

static void raise_to(int64_t *value, int64_t other)
{
    if (other > *value)
        *value = other;
}

static void count(struct look_lock *lock, const hf_lock_info *row)
{
    lock->n++;
    if (row->slots > lock->slots)
        lock->slots = row->slots;
    if (row->role == HF_WAITER) {
        lock->waiters++;
        raise_to(&lock->wait_ms, row->since_ms);
        return;
    }
    if (row->role == HF_PARKED) {
        lock->parked++;
        return;
    }
    lock->holders++;
    raise_to(&lock->held_ms, row->since_ms);
    if (row->lease_ms >= 0 &&
        (lock->lease_ms < 0 || row->lease_ms < lock->lease_ms))
        lock->lease_ms = row->lease_ms;
}

/* Fold the rows by name. */
static int fold(struct look *look)
{
    struct look_lock *lock = NULL;

    if (look->n_rows == 0)
        return 0;
    look->locks = calloc(look->n_rows, sizeof(*look->locks));
    if (!look->locks)
        return HF_ENOMEM;
    for (size_t i = 0; i < look->n_rows; i++) {
        const hf_lock_info *row = &look->rows[i];

        if (!lock || strcmp(lock->name, row->name) != 0) {
            lock = &look->locks[look->n++];
            *lock = (struct look_lock){.name = row->name,
                                       .rows = row,
                                       .held_ms = -1,
                                       .wait_ms = -1,
                                       .lease_ms = -1};
        }
        count(lock, row);
    }
    return 0;
}

static int finish(struct look *look, int rc, hf_error *err)
{
    if (rc == 0)
        rc = fold(look);
    if (rc != 0)
        look_forget(look);
    if (rc == HF_ENOMEM) {
        err->code = HF_ENOMEM;
        snprintf(err->text, sizeof(err->text), "out of memory");
    }
    return rc;
}

int look_list(struct look *look, hf_client *client, const char *prefix,
              hf_error *err)
{
    look_forget(look);
    return finish(look, hf_list(client, prefix, keep, look, err), err);
}

int look_show(struct look *look, hf_client *client, const char *name,
              hf_error *err)
{
    look_forget(look);
    return finish(look, hf_show(client, name, keep, look, err), err);
}

/* ---- deadlocks ------------------------------------------------------------- */

bool look_has_long_wait(const struct look_lock *lock)
{
    return lock->waiters > 0 && (lock->wait_ms < 0 || lock->wait_ms >= 1000);
}

struct deadlocks {
    const char *name; /* NULL: all */
    void (*each)(const char *text, void *ctx);
    void *ctx;
};

/* Does somebody in the cycle @text wait for @name? */
static bool is_part(const char *text, const char *name)
{
    static const char waits[] = " waits for ";
    size_t len = strlen(name);
    const char *at = text;

    while ((at = strstr(at, waits)) != NULL) {
        at += sizeof(waits) - 1;
        if (strncmp(at, name, len) == 0 && strchr(" ,", at[len]) != NULL)
            return true;
    }
    return false;
}

static int take_deadlock(const char *text, void *ctx)
{
    const struct deadlocks *deadlocks = ctx;

    if (!deadlocks->name || is_part(text, deadlocks->name))
        deadlocks->each(text, deadlocks->ctx);
    return 0;
}

void look_deadlocks(hf_client *client, const char *name,
                    void (*each)(const char *text, void *ctx), void *ctx)
{
    struct deadlocks deadlocks = {.name = name, .each = each, .ctx = ctx};

    (void)hf_deadlocks(client, take_deadlock, &deadlocks, NULL);
}

/* ---- words for what a row says ------------------------------------------- */

const char *look_mode(int mode)
{
    static const char *const names[] = {"exclusive", "shared", "slot"};

    return mode >= 0 && mode <= HF_SLOT ? names[mode] : "unknown";
}

const char *look_life(const hf_lock_info *info)
{
    static const char *const names[] = {"dead", "alive"};

    if (info->alive < 2)
        return names[info->alive];
    return info->role == HF_HOLDER && info->lease_ms >= 0 ? "leased" : "-";
}

int64_t look_renewed_ms(const hf_lock_info *info)
{
    if (info->role != HF_HOLDER || info->ttl_ms <= 0 || info->lease_ms < 0)
        return -1;
    return info->lease_ms < info->ttl_ms ? info->ttl_ms - info->lease_ms : 0;
}

char *look_holder(const hf_lock_info *info, char *to, size_t size)
{
    char place[96];
    size_t owner_len = strlen(info->owner);

    if (!*info->host && info->pid <= 0) {
        snprintf(to, size, "%s", info->owner);
        return to;
    }
    snprintf(place, sizeof(place), "%.64s:%" PRId64, info->host, info->pid);

    /* The owner of a command is user@host:pid; do not say that twice. */
    size_t len = strlen(place);
    bool repeats = owner_len > len + 1 &&
                   strcmp(info->owner + owner_len - len, place) == 0 &&
                   info->owner[owner_len - len - 1] == '@';
    if (repeats)
        owner_len -= len + 1;
    if (strcmp(info->owner, place) == 0 || owner_len == 0)
        snprintf(to, size, "%s", place);
    else
        snprintf(to, size, "%s (%.*s)", place, (int)owner_len, info->owner);
    return to;
}

char *look_holders(const struct look_lock *lock, char *to, size_t size)
{
    if (lock->slots > 0)
        snprintf(to, size, "%d of %d", lock->holders, lock->slots);
    else if (lock->holders > 1)
        snprintf(to, size, "%d readers", lock->holders);
    else if (lock->holders == 1)
        look_holder(lock->rows, to, size);
    else
        snprintf(to, size, "-");
    return to;
}

/* ---- the command of a holder --------------------------------------------- */

/* At most @size - 1 bytes of /proc/PID/FILE; 0 if there are none. */
static size_t read_proc(int64_t pid, const char *file, char *to, size_t size)
{
    char path[64];
    ssize_t len = 0;
    int fd;

    snprintf(path, sizeof(path), "/proc/%" PRId64 "/%s", pid, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        len = read(fd, to, size - 1);
        close(fd);
    }
    to[len > 0 ? len : 0] = '\0';
    return len > 0 ? (size_t)len : 0;
}

/* When the process began, in milliseconds since the machine did; -1. */
static int64_t began_ms(int64_t pid)
{
    char stat[1024];
    unsigned long long ticks = 0;
    const char *end;

    if (read_proc(pid, "stat", stat, sizeof(stat)) == 0)
        return -1;
    end = strrchr(stat, ')');
    if (!end || sscanf(end,
                       ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u "
                       "%*d %*d %*d %*d %*d %*d %llu",
                       &ticks) != 1)
        return -1;
    return (int64_t)(ticks * 1000 / (unsigned long long)sysconf(_SC_CLK_TCK));
}

/* Is the process with that number here the one that holds? */
static bool is_here(const hf_lock_info *info)
{
    enum { SLACK_MS = 1000 }; /* clocks of two machines */
    char host[HOST_NAME_MAX + 1] = "";
    struct timespec now;
    int64_t began;

    if (info->pid <= 0 || info->alive == 0 || info->since_ms < 0 ||
        gethostname(host, sizeof(host) - 1) != 0 ||
        strcmp(host, info->host) != 0)
        return false;
    began = began_ms(info->pid);
    clock_gettime(CLOCK_BOOTTIME, &now);
    return began >= 0 && began <= now.tv_sec * INT64_C(1000) +
                                      now.tv_nsec / 1000000 - info->since_ms +
                                      SLACK_MS;
}

const char *look_command(const hf_lock_info *info, char to[LOOK_COMMAND])
{
    size_t len;

    to[0] = '\0';
    if (!is_here(info))
        return to;
    len = read_proc(info->pid, "cmdline", to, LOOK_COMMAND);
    while (len > 0 && to[len - 1] == '\0')
        len--;
    for (size_t i = 0; i < len; i++)
        if (to[i] == '\0')
            to[i] = ' ';
    return to;
}
