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
 *   HOLDFAST_INHERIT  "hash of the URL:hash of file and profile:path"
 *
 * What is secret, and what -o said about the engine, is in a file at that path:
 * a file in the memory of the parent with mode 0600, seen through /proc by this
 * user alone, which ends with the parent. Its lines are NAME=VALUE for a
 * variable, and -oKEY=VALUE.
 *
 * A script may choose another engine inside: by -u, by -c or --profile, or by
 * the variables. The hashes tell: where it changed the URL, its URL counts;
 * where it changed file or profile, the URL of the run does not.
 *
 * Failure: a file that cannot be read is an error. So is no URL at all inside
 * of a run on an engine that is not local.
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

enum { FILE_MAX = 64 * 1024 };

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

static void write_lines(FILE *file)
{
    const char *url = chosen_url();
    const char *key;
    const char *value;

    if (url && secret_has(url))
        fprintf(file, "HOLDFAST_URL=%s\n", url);
    for (size_t i = 0; environ[i]; i++)
        if (strncmp(environ[i], "HOLDFAST_URL=", 13) != 0 &&
            secret_variable(environ[i]))
            fprintf(file, "%s\n", environ[i]);
    for (size_t i = 0; cli_option(i, &key, &value); i++)
        if (!is_of_one_lock(key))
            fprintf(file, "-o%s=%s\n", key, value);
}

/* The private file; -1 if there is nothing to put in it. */
static int make_file(int *ret_fd)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    int rc = memory ? 0 : -1;

    *ret_fd = -1;
    if (memory) {
        write_lines(memory);
        rc = fclose(memory) == 0 ? 0 : -1;
    }
    if (rc == 0 && len > 0) {
        *ret_fd = memfd_create("holdfast-inherit", MFD_CLOEXEC);
        rc = *ret_fd >= 0 && fchmod(*ret_fd, 0600) == 0 &&
                     write(*ret_fd, text, len) == (ssize_t)len
                 ? 0
                 : -1;
    }
    if (text)
        explicit_bzero(text, len);
    free(text);
    return rc;
}

static int make_mark(struct inherit *inherit)
{
    char path[64] = "";

    if (inherit->fd >= 0)
        snprintf(path, sizeof(path), "/proc/%ld/fd/%d", (long)getpid(),
                 inherit->fd);
    return asprintf(&inherit->mark, "%016" PRIx64 ":%016" PRIx64 ":%s",
                    ancestor_hash(inherit->url ? inherit->url : ""),
                    hash_files(inherit->config ? inherit->config : "",
                               inherit->profile ? inherit->profile : ""),
                    path) < 0
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
    if ((inherit->url || !url) && make_file(&inherit->fd) == 0 &&
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

/* The whole file, if it is private and ours; NULL with errno. */
static char *read_file(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat st;
    char *text = NULL;
    ssize_t len = -1;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
        (st.st_mode & (S_IRWXG | S_IRWXO)))
        errno = EPERM;
    else if ((text = calloc(1, FILE_MAX + 1)) != NULL)
        len = pread(fd, text, FILE_MAX, 0);
    if (len < 0) {
        free(text);
        text = NULL;
    }
    close(fd);
    return text;
}

static int take_option(char *pair)
{
    char *equals = strchr(pair, '=');

    if (!equals)
        return 0;
    *equals = '\0';
    return cli_was_set(pair) ? 0 : cli_set(pair, equals + 1);
}

static int take_line(char *line)
{
    char *equals = strchr(line, '=');

    if (strncmp(line, "-o", 2) == 0)
        return take_option(line + 2);
    if (!equals || strncmp(line, "HOLDFAST_", 9) != 0)
        return 0;
    *equals = '\0';
    return setenv(line, equals + 1, /* overwrite= */ 1) == 0 ? 0 : CLI_INTERNAL;
}

static int take_file(const char *path)
{
    char *text = read_file(path);
    int rc = 0;

    if (!text) {
        fprintf(stderr,
                "holdfast: cannot read what the run around this command says "
                "about %s: %s\n",
                text_safe(secret_shown(variable("HOLDFAST_URL"))),
                strerror(errno));
        if (!cli.quiet)
            fprintf(stderr, "  the run has ended, or is another user's; say "
                            "it again: -u URL\n");
        return CLI_CONFIG;
    }
    for (char *line = text, *end; rc == 0 && *line; line = end + 1) {
        end = line + strcspn(line, "\n");
        if (*end == '\0')
            break; /* not whole: not ours */
        *end = '\0';
        rc = take_line(line);
    }
    explicit_bzero(text, FILE_MAX);
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
