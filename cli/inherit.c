/* SPDX-License-Identifier: MIT */
/*
 * inherit.c - the engine of the run that a command is inside of.
 *
 * A holdfast inside of a run, and a program that calls hf_open(NULL), have to
 * reach the engine of that run: another one would give locks that exclude
 * nobody. So the child gets
 *
 *   HOLDFAST_URL      the URL without its secrets, wherever it came from
 *   HOLDFAST_CONFIG   -c, as an absolute path
 *   HOLDFAST_PROFILE  --profile
 *   HOLDFAST_INHERIT  "hash of the URL:hash of file and profile:key:path"
 *
 * What is secret, and what -o said about the engine, is in a file at that path:
 * a file in the memory of the parent with mode 0600, seen through /proc by this
 * user alone, which ends with the parent. Its entries are the key, NAME=VALUE
 * for a variable, -oKEY=VALUE, and "end"; a NUL ends each, since no value has
 * one. The key is random: when the kernel gives the parent's process number to
 * another run, the child does not take that run's file for the parent's.
 *
 * A script may choose another engine inside: by -u, by -c or --profile, or by
 * the variables. The hashes tell: where it changed the URL, its URL counts;
 * where it changed file or profile, the URL of the run does not.
 *
 * Failure: a file that cannot be read, is not the parent's or is not whole is
 * an error. So is no URL at all inside of a run on an engine that is not local.
 */
#include "inherit.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ancestor.h"
#include "secret.h"
#include "text.h"

enum { FILE_MAX = 64 * 1024, KEY_LENGTH = SECRET_KEY };

static const char end_entry[] = "end";

static const char *variable(const char *name)
{
    const char *value = secure_getenv(name);

    return value ? value : "";
}

/* What hf_open() chooses; NULL if only the configuration file has it: the
 * library does not tell us the secrets of that one. */
static const char *chosen_url(void)
{
    const char *url = cli.url ? cli.url : secure_getenv("HOLDFAST_URL");

    if (url)
        return url;
    if (cli.config)
        url = hf_config_get(cli.config, "url");
    if (!url || !*url)
        return "local:";
    return secret_has(url) ? NULL : url;
}

bool inherit_is_local(void)
{
    const char *url = chosen_url();

    return url && strncmp(url, "local:", 6) == 0;
}

bool inherit_is_default(void)
{
    const char *url = chosen_url();

    return url && strcmp(url, "local:") == 0;
}

static uint64_t hash_files(const char *config, const char *profile)
{
    return ancestor_hash(config) * 31 + ancestor_hash(profile);
}

/* These say something about one lock, not about the engine. */
static bool is_of_one_lock(const char *key)
{
    static const char *const keys[] = {"ttl", "wait", "max_hold", "require"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        if (strcmp(keys[i], key) == 0)
            return true;
    return false;
}

/* ---- for the child ------------------------------------------------------ */

static int write_entry(FILE *file, const char *name, const char *between,
                       const char *value)
{
    fprintf(file, "%s%s%s", name, between, value);
    fputc('\0', file);
    return 1;
}

/* How many there are. */
static int write_entries(FILE *file)
{
    const char *url = chosen_url();
    const char *key;
    const char *value;
    int n = 0;

    if (url && secret_has(url))
        n += write_entry(file, "HOLDFAST_URL", "=", url);
    for (size_t i = 0; environ[i]; i++)
        if (strncmp(environ[i], "HOLDFAST_URL=", 13) != 0 &&
            secret_variable(environ[i]))
            n += write_entry(file, environ[i], "", "");
    for (size_t i = 0; cli_option(i, &key, &value); i++)
        if (!is_of_one_lock(key)) {
            fputs("-o", file);
            n += write_entry(file, key, "=", value);
        }
    return n;
}

/* A file in memory with this text; -1 with errno. */
static int put(struct inherit *inherit, const char *text, size_t len)
{
    if (len > FILE_MAX) {
        errno = EFBIG;
        return -1;
    }
    inherit->fd = memfd_create("holdfast-inherit", MFD_CLOEXEC);
    return inherit->fd >= 0 && fchmod(inherit->fd, 0600) == 0 &&
                   write(inherit->fd, text, len) == (ssize_t)len
               ? 0
               : -1;
}

/* The private file; none if there is nothing to put in it. */
static int make_file(struct inherit *inherit)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    int rc = memory ? secret_key(inherit->key) : -1;
    int n = 0;

    if (memory) {
        write_entry(memory, inherit->key, "", "");
        n = write_entries(memory);
        write_entry(memory, end_entry, "", "");
        if (fclose(memory) != 0)
            rc = -1;
    }
    if (rc == 0 && n > 0)
        rc = put(inherit, text, len);
    if (text)
        explicit_bzero(text, len);
    free(text);
    return rc;
}

static int make_mark(struct inherit *inherit)
{
    char file[128] = "";

    if (inherit->fd >= 0)
        snprintf(file, sizeof(file), "%s:/proc/%ld/fd/%d", inherit->key,
                 (long)getpid(), inherit->fd);
    return asprintf(&inherit->mark, "%016" PRIx64 ":%016" PRIx64 ":%s",
                    ancestor_hash(inherit->url ? inherit->url : ""),
                    hash_files(inherit->config ? inherit->config : "",
                               inherit->profile ? inherit->profile : ""),
                    file) < 0
               ? -1
               : 0;
}

int inherit_give(struct inherit *inherit)
{
    const char *url = chosen_url();

    *inherit = (struct inherit){.fd = -1};
    if (url)
        inherit->url = secret_hidden(url, /* mask= */ NULL);
    if (cli.config_path) {
        inherit->config = realpath(cli.config_path, NULL);
        if (!inherit->config) /* a pipe, or removed since we read it */
            inherit->config = strdup(cli.config_path);
    }
    if (cli.profile)
        inherit->profile = strdup(cli.profile);
    if ((inherit->url || !url) && make_file(inherit) == 0 &&
        make_mark(inherit) == 0)
        return 0;
    fprintf(stderr, "holdfast: cannot tell the command its engine: %s\n",
            strerror(errno));
    inherit_release(inherit);
    return CLI_INTERNAL;
}

void inherit_release(struct inherit *inherit)
{
    if (inherit->fd >= 0)
        close(inherit->fd);
    free(inherit->url);
    free(inherit->config);
    free(inherit->profile);
    free(inherit->mark);
    *inherit = (struct inherit){.fd = -1};
}

/* ---- in the child ------------------------------------------------------- */

/* A file that is private and ours, and not too long; else errno. */
static bool may_read(int fd, struct stat *st)
{
    if (fstat(fd, st) != 0)
        return false;
    if (!S_ISREG(st->st_mode) || st->st_uid != geteuid() ||
        (st->st_mode & (S_IRWXG | S_IRWXO)))
        errno = EPERM;
    else if (st->st_size > FILE_MAX)
        errno = EFBIG;
    else
        return true;
    return false;
}

/* The whole file; NULL with errno. */
static char *read_file(const char *path, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    char *text = NULL;

    if (fd < 0)
        return NULL;
    if (may_read(fd, &st) && (text = calloc(1, FILE_MAX + 1)) != NULL) {
        *ret_len = (size_t)st.st_size;
        if (pread(fd, text, *ret_len, 0) != st.st_size) {
            free(text);
            text = NULL;
            errno = EIO;
        }
    }
    close(fd);
    return text;
}

/* Whether the first entry is the key and the last one "end". */
static bool is_of_parent(const char *text, size_t len, const char *key)
{
    return len > KEY_LENGTH + sizeof(end_entry) &&
           strnlen(text, len) == KEY_LENGTH &&
           strncmp(text, key, KEY_LENGTH) == 0 &&
           text[len - sizeof(end_entry) - 1] == '\0' &&
           memcmp(text + len - sizeof(end_entry), end_entry,
                  sizeof(end_entry)) == 0;
}

static int cannot_take(int error)
{
    fprintf(stderr,
            "holdfast: cannot read what the run around this command says "
            "about %s: %s\n",
            text_safe(secret_shown(variable("HOLDFAST_URL"))), strerror(error));
    if (!cli.quiet)
        fprintf(stderr,
                "  the run or the keeper has ended, or is another user's; say "
                "it again: -u URL\n");
    return CLI_CONFIG;
}

static int take_entry(char *entry)
{
    bool is_option = strncmp(entry, "-o", 2) == 0;
    char *name = is_option ? entry + 2 : entry;
    char *equals = strchr(name, '=');

    if (!equals || (!is_option && strncmp(name, "HOLDFAST_", 9) != 0))
        return cannot_take(EBADMSG);
    *equals = '\0';
    if (is_option)
        return cli_was_set(name) ? 0 : cli_set(name, equals + 1);
    return setenv(name, equals + 1, /* overwrite= */ 1) == 0 ? 0 : CLI_INTERNAL;
}

/* @file is "key:path". */
static int take_file(const char *file)
{
    const char *path = strchr(file, ':');
    size_t len = 0;
    char *text;
    int rc = 0;

    if (!path || path - file != KEY_LENGTH)
        return cannot_take(EBADMSG);
    text = read_file(path + 1, &len);
    if (!text)
        return cannot_take(errno);
    if (!is_of_parent(text, len, file))
        rc = cannot_take(ESTALE);
    for (char *entry = text + KEY_LENGTH + 1, *next;
         rc == 0 && entry < text + len - sizeof(end_entry); entry = next) {
        next = entry + strlen(entry) + 1;
        rc = take_entry(entry);
    }
    explicit_bzero(text, len);
    free(text);
    return rc;
}

int inherit_take(void)
{
    const char *mark = variable("HOLDFAST_INHERIT");
    char *at = NULL;
    uint64_t url = strtoull(mark, &at, 16);

    if (cli.url || *at != ':' || url != ancestor_hash(variable("HOLDFAST_URL")))
        return 0;

    uint64_t files = strtoull(at + 1, &at, 16);
    if (*at != ':')
        return 0;
    if (cli.config_path || cli.profile ||
        files != hash_files(variable("HOLDFAST_CONFIG"),
                            variable("HOLDFAST_PROFILE")))
        return unsetenv("HOLDFAST_URL") == 0 ? 0 : CLI_INTERNAL;
    return at[1] == '\0' ? 0 : take_file(at + 1);
}

int inherit_check(void)
{
    const char *engine = variable("HOLDFAST_ENGINE");
    const char *configured =
        cli.config ? hf_config_get(cli.config, "url") : NULL;

    if (cli.url || secure_getenv("HOLDFAST_URL") ||
        (configured && *configured) || *engine == '\0' ||
        strcmp(engine, "local") == 0)
        return 0;
    fprintf(stderr,
            "holdfast: this runs under a lock on %s, and nothing says where "
            "that is\n",
            text_safe(engine));
    if (!cli.quiet)
        fprintf(stderr, "  say it: -u URL; -u local: for this machine alone\n");
    return CLI_CONFIG;
}
