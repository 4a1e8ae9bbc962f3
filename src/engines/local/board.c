/* SPDX-License-Identifier: MIT */
/*
 * board.c - the board: a small file for each client that waits for long and
 * holds something, beside the table.
 *
 *   wait-IDENTITY:   STORE EXPIRES CLIENT (in hexadecimal) LF, then the notice
 *
 * Only processes that wait for seconds write here, so files are quick enough,
 * and the layout of the table stays as it is. A file counts until EXPIRES (the
 * table's time) and while its client lives; readers remove the others.
 *
 * Failure: a notice that cannot be written is an error of the question, and a
 * deadlock that nobody finds. A file that is not well-formed is not read.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "config/name.h"
#include "engines/local/local.h"

enum { HEAD_MAX = 64, NOTICE_MAX = 16384, FILES_MAX = 1024 };

static const char prefix[] = "wait-";

/* The table's number by chance, and different for each prefix= of names. */
static uint64_t store_number(const struct hf__local *local)
{
    const uint64_t *seed = local->store.table.header->seed;

    return hf__name_hash(local->base.host->settings->prefix, local->prefix_len,
                         seed) |
           1;
}

/* ---- posting ----------------------------------------------------------------- */

static int write_file(const struct hf__local *local, const char *name,
                      const struct hf__buf *text)
{
    mode_t mode = local->place.group ? 0660 : 0600;
    int fd = openat(local->place.fd, name,
                    O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC |
                        O_NONBLOCK,
                    mode);
    int rc = 0;

    if (fd < 0)
        return errno;
    (void)fchmod(fd, mode); /* as if there were no umask; the notice is public
                               to all who share the store */
    if (write(fd, text->text, text->len) != (ssize_t)text->len)
        rc = ENOSPC;
    (void)close(fd);
    return rc;
}

/* Readers see the old notice or the new one. */
static int replace(const struct hf__local *local, const char *name,
                   const char *notice)
{
    int64_t expires_ns =
        hf__table_now(&local->store.table) + HF__BOARD_MS * HF_MS;
    struct hf__buf text = {0};
    char fresh[64];
    int rc;

    (void)snprintf(fresh, sizeof(fresh), "%s.new", name);
    hf__buf_printf(&text, "%llx %llx %llx\n%s",
                   (unsigned long long)store_number(local),
                   (unsigned long long)expires_ns,
                   (unsigned long long)local->store.client, notice);
    rc = hf__buf_failed(&text) ? ENOMEM : write_file(local, fresh, &text);
    if (rc == 0 && renameat(local->place.fd, fresh, local->place.fd, name) != 0)
        rc = errno;
    if (rc != 0)
        (void)unlinkat(local->place.fd, fresh, 0);
    hf__buf_release(&text);
    return rc;
}

static int post(struct hf__local *local, struct hf__query *query,
                const struct hf__key *key, hf_error *err)
{
    char name[48];
    int rc = 0;

    (void)key;
    (void)snprintf(name, sizeof(name), "%s%.32s", prefix, query->owner);
    if (query->text)
        rc = replace(local, name, query->text);
    else
        (void)unlinkat(local->place.fd, name, 0);
    query->version = store_number(local);
    return rc == 0 ? 0
                   : hf__fail(err, HF_EUNAVAILABLE, "%s/%s: %s",
                              local->place.path, name, strerror(rc));
}

int hf__local_board_post(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return hf__local_answer(engine, query, post, err);
}

/* ---- reading ------------------------------------------------------------------ */

struct notice {
    uint64_t store;
    int64_t expires_ns;
    uint64_t client;
    const char *text;
    size_t len;
};

/* One number of the head, and the character that must follow. */
static bool take_number(const char **at, char end, uint64_t *ret_number)
{
    uint64_t number = 0;
    int digits = 0;

    for (; digits < 16; digits++) {
        char c = (*at)[digits];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                                           : -1;

        if (digit < 0)
            break;
        number = number << 4 | (uint64_t)digit;
    }
    if (digits == 0 || (*at)[digits] != end)
        return false;
    *at += digits + 1;
    *ret_number = number;
    return true;
}

/* @bytes is terminated. */
static bool parse(const char *bytes, size_t len, struct notice *notice)
{
    const char *at = bytes;
    uint64_t expires;

    if (!take_number(&at, ' ', &notice->store) ||
        !take_number(&at, ' ', &expires) || expires > INT64_MAX ||
        !take_number(&at, '\n', &notice->client))
        return false;
    notice->expires_ns = (int64_t)expires;
    notice->text = at;
    notice->len = len - (size_t)(at - bytes);
    return true;
}

/* The contents of a file, terminated; 0: there is nothing to read. */
static size_t read_file(const struct hf__local *local, const char *name,
                        char *to, size_t size)
{
    int fd = openat(local->place.fd, name,
                    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat st;
    ssize_t n = 0;

    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0 &&
        st.st_size < (off_t)size)
        n = read(fd, to, size - 1);
    (void)close(fd);
    n = n < 0 ? 0 : n;
    to[n] = '\0';
    return (size_t)n;
}

static int add_file(const struct hf__local *local, struct hf__query *query,
                    const char *name)
{
    static const size_t size = HEAD_MAX + NOTICE_MAX;
    int64_t now_ns = hf__table_now(&local->store.table);
    char *bytes = hf__malloc(size);
    struct notice notice;
    size_t len;
    int rc = 0;

    if (!bytes)
        return HF_ENOMEM;
    len = read_file(local, name, bytes, size);
    if (len > 0 && parse(bytes, len, &notice)) {
        if (notice.expires_ns <= now_ns ||
            !hf__life_alive(&local->store.table, notice.client))
            (void)unlinkat(local->place.fd, name, 0);
        else if (notice.store == store_number(local))
            rc = hf__query_add_notice(query, notice.text, notice.len);
    }
    hf__free(bytes);
    return rc;
}

static bool is_notice(const char *name)
{
    size_t len = sizeof(prefix) - 1;

    return strncmp(name, prefix, len) == 0 && strlen(name) == len + 32;
}

static int read_files(const struct hf__local *local, struct hf__query *query)
{
    int fd = openat(local->place.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    int files = 0;
    int rc = 0;

    if (!directory) {
        if (fd >= 0)
            (void)close(fd);
        return HF_EUNAVAILABLE;
    }
    while (rc == 0 && files < FILES_MAX && (entry = readdir(directory))) {
        if (!is_notice(entry->d_name))
            continue;
        files++;
        rc = add_file(local, query, entry->d_name);
    }
    (void)closedir(directory);
    return rc;
}

static int read_all(struct hf__local *local, struct hf__query *query,
                    const struct hf__key *key, hf_error *err)
{
    int rc = read_files(local, query);

    (void)key;
    query->version = store_number(local);
    return rc == 0 ? 0
                   : hf__fail(err, rc, "%s: cannot read the notices of waiters",
                              local->place.path);
}

int hf__local_board_read(struct hf__engine *engine, struct hf__query *query,
                         hf_error *err)
{
    return hf__local_answer(engine, query, read_all, err);
}
