/* SPDX-License-Identifier: MIT */
/*
 * textfile.c - a file that is replaced at once, for node_exporter.
 *
 * It is written beside the old one and renamed: a reader sees all of one or all
 * of the other. It is for everybody to read, as node_exporter is another user.
 */
#include "textfile.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lock.h"
#include "talk.h"
#include "text.h"

/* What may be wrong comes from the system: -1 and errno. */
static int replace(const char *path, const char *new_path, FILE *file, int rc)
{
    bool written = fchmod(fileno(file), 0644) == 0 && !ferror(file);

    written = fclose(file) == 0 && written;
    if (rc == 0 && written && rename(new_path, path) == 0)
        return 0;

    int why = errno;
    unlink(new_path);
    errno = why;
    return rc == 0 ? -1 : rc;
}

int textfile_write(const char *path, textfile_fn *fill, void *ctx)
{
    char new_path[PATH_MAX];
    int len = snprintf(new_path, sizeof(new_path), "%s.XXXXXX", path);

    if (len < 0 || (size_t)len >= sizeof(new_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    int fd = mkstemp(new_path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file)
        return -1;
    return replace(path, new_path, file, fill(file, ctx));
}

static void write_piece(const char *text, size_t len, void *ctx)
{
    (void)fwrite(text, 1, len, ctx); /* ferror() tells */
}

static int write_counters(FILE *to, void *client)
{
    return hf_metrics_write(client, write_piece, to);
}

void textfile_save(hf_client *client)
{
    if (lock.metrics && textfile_write(lock.metrics, write_counters, client))
        talk_say("cannot write the metrics to %s: %s", text_safe(lock.metrics),
                 strerror(errno));
}
