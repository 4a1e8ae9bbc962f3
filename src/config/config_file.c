/* SPDX-License-Identifier: MIT */
/*
 * config_file.c - configuration from an INI file.
 *
 *     ttl = 30s                    before the first section: always
 *
 *     [production]                 a profile: when it is asked for
 *     url = redis://lock.example/0
 *     password_file = /etc/holdfast/password
 *
 *     [lock report:*]              names that match the shell pattern
 *     max_hold = 2h
 *
 * A line is empty, a comment (# or ; at its beginning), a section or key =
 * value. A value in double quotes keeps its spaces. There are no continuation
 * lines and no comments behind a value: a password may have a # in it.
 *
 * Everything is read into a copy of the configuration, which takes the
 * original's place when the last line was good. The sections of other
 * profiles are checked too, so a mistake shows before the night it is needed.
 *
 * Failure: HF_ECONFIG with file and line. A file with a password that others
 * may read is refused.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "config/config.h"
#include "config/url.h"
#include "config/value.h"

enum { FILE_MAX = 1 << 20 };

enum section { TOP, PROFILE, OTHER_PROFILE, LOCK };

struct file {
    hf_config *config; /* the copy */
    const char *source;
    const char *profile; /* wanted; NULL: none */
    bool profile_found;
    bool has_secret;
    enum section section;
    struct hf__override *override; /* of the [lock …] being read */
    unsigned line;
    hf_error *err;
};

static void trim(char **text)
{
    char *end;

    *text += strspn(*text, " \t");
    end = *text + strlen(*text);
    while (end > *text && strchr(" \t\r", end[-1]))
        end--;
    *end = '\0';
}

/* The message of @inner, with the place in front. */
static int fail_at(const struct file *file, int rc, const char *message)
{
    return hf__fail(file->err, rc, "%s:%u: %s", file->source, file->line,
                    message);
}

static int begin_lock(struct file *file, char *pattern)
{
    struct hf__override *override;

    trim(&pattern);
    if (*pattern == '\0')
        return fail_at(file, HF_ECONFIG,
                       "[lock] needs a pattern, as in [lock jobs:*]");
    override = hf__calloc(1, sizeof(*override));
    if (!override)
        return fail_at(file, HF_ENOMEM, "out of memory");
    override->wait_ms = INT64_MIN;
    override->pattern = hf__strdup(pattern);
    if (!override->pattern) {
        hf__override_free(override);
        return fail_at(file, HF_ENOMEM, "out of memory");
    }
    hf__config_add_override(file->config, override);
    file->override = override;
    file->section = LOCK;
    return 0;
}

/* @text begins behind the bracket. */
static int begin_section(struct file *file, char *text)
{
    size_t len = strlen(text);

    if (len == 0 || text[len - 1] != ']')
        return fail_at(file, HF_ECONFIG, "a section ends with ]");
    text[len - 1] = '\0';
    trim(&text);
    if (*text == '\0')
        return fail_at(file, HF_ECONFIG, "a section needs a name");
    if (strcmp(text, "lock") == 0 || strncmp(text, "lock ", 5) == 0)
        return begin_lock(file, text + 4);

    file->section = OTHER_PROFILE;
    if (file->profile && strcmp(text, file->profile) == 0) {
        file->section = PROFILE;
        file->profile_found = true;
    }
    return 0;
}

static int set_note(struct file *file, const char *value)
{
    char *note = hf__strdup(value);

    if (!note)
        return fail_at(file, HF_ENOMEM, "out of memory");
    hf__free(file->override->note);
    file->override->note = note;
    return 0;
}

/* Only these four can differ from lock to lock. */
static int set_override(struct file *file, const char *key, const char *value)
{
    struct hf__override *override = file->override;
    hf_error inner;
    int rc;

    if (strcmp(key, "ttl") != 0 && strcmp(key, "wait") != 0 &&
        strcmp(key, "max_hold") != 0 && strcmp(key, "note") != 0)
        return fail_at(file, HF_ECONFIG,
                       "in [lock …] there may be ttl, wait, max_hold and "
                       "note");
    rc = hf__config_check(key, value, &inner);
    if (rc != 0)
        return fail_at(file, rc, inner.text);
    if (key[0] == 'n')
        return set_note(file, value);
    return hf__value_duration(value, /* bare_unit_ms= */ 0, key[0] == 'w',
                              key[0] == 't'   ? &override->ttl_ms
                              : key[0] == 'w' ? &override->wait_ms
                                              : &override->max_hold_ms,
                              file->err);
}

static int set_key(struct file *file, const char *key, const char *value)
{
    hf_error inner;
    int rc;

    if (file->section == LOCK)
        return set_override(file, key, value);
    if (file->section == OTHER_PROFILE)
        rc = hf__config_check(key, value, &inner);
    else
        rc = hf__config_set_layer(file->config, HF__LAYER_FILE, key, value,
                                  &inner);
    if (rc != 0)
        return fail_at(file, rc, inner.text);
    file->has_secret |= strcmp(key, "password") == 0 ||
                        strcmp(key, "acl") == 0 ||
                        (strcmp(key, "url") == 0 && hf__url_has_secret(value));
    return 0;
}

static int read_pair(struct file *file, char *text)
{
    char *equals = strchr(text, '=');
    char *value;
    size_t len;

    if (!equals)
        return fail_at(file, HF_ECONFIG,
                       "expected key = value, [section] or # comment");
    *equals = '\0';
    value = equals + 1;
    trim(&text);
    trim(&value);
    len = strlen(value);
    if (len >= 2 && value[0] == '"' && value[len - 1] == '"') {
        value[len - 1] = '\0';
        value++;
    }
    if (*text == '\0')
        return fail_at(file, HF_ECONFIG, "there is no key before the =");
    return set_key(file, text, value);
}

static int read_line(struct file *file, char *text)
{
    trim(&text);
    if (*text == '\0' || *text == '#' || *text == ';')
        return 0;
    if (*text == '[')
        return begin_section(file, text + 1);
    return read_pair(file, text);
}

/* @text is ours, and is cut to pieces. */
static int read_lines(struct file *file, char *text)
{
    static const char mark[] = "\xef\xbb\xbf"; /* byte order mark */

    if (strncmp(text, mark, 3) == 0)
        text += 3;
    for (char *next; text; text = next) {
        int rc;

        next = strchr(text, '\n');
        if (next)
            *next++ = '\0';
        file->line++;
        rc = read_line(file, text);
        if (rc != 0)
            return rc;
    }
    if (file->profile && !file->profile_found) {
        char shown[HF__VALUE_WORD];

        return hf__fail(file->err, HF_ENOTFOUND, "%s: there is no profile [%s]",
                        file->source, hf__value_quote(file->profile, shown));
    }
    return 0;
}

int hf__config_parse(hf_config *config, const char *text, size_t len,
                     const char *source, const char *profile,
                     bool *ret_has_secret, hf_error *err)
{
    struct file file = {.source = source, .profile = profile, .err = err};
    char *copy;
    int rc;

    if (memchr(text, '\0', len))
        return hf__fail(err, HF_ECONFIG, "%s: is not a text file", source);
    copy = hf__strndup(text, len);
    file.config = hf__config_copy(config);
    if (!copy || !file.config)
        rc = hf__fail(err, HF_ENOMEM, "%s: out of memory", source);
    else
        rc = read_lines(&file, copy);
    if (rc == 0)
        hf__config_swap(config, file.config);
    if (rc == 0 && ret_has_secret)
        *ret_has_secret = file.has_secret;
    if (copy)
        explicit_bzero(copy, len);
    hf__free(copy);
    hf_config_free(file.config);
    return rc;
}

/* All of the open file; @ret_text is the caller's. */
static int read_file(int fd, const char *path, char **ret_text, size_t *ret_len,
                     hf_error *err)
{
    char *text = hf__malloc(FILE_MAX + 1);
    size_t len = 0;
    ssize_t n;

    if (!text)
        return hf__fail(err, HF_ENOMEM, "%s: out of memory", path);
    do {
        n = read(fd, text + len, FILE_MAX + 1 - len);
        if (n > 0)
            len += (size_t)n;
    } while (n > 0 && len <= FILE_MAX);
    if (n < 0 || len > FILE_MAX) {
        int rc = n < 0 ? hf__fail_engine(err, HF_ECONFIG, errno,
                                         "%s: cannot be read: %m", path)
                       : hf__fail(err, HF_ECONFIG,
                                  "%s: larger than a configuration", path);

        hf__free(text);
        return rc;
    }
    *ret_text = text;
    *ret_len = len;
    return 0;
}

/* The password in a file is as safe as the file. */
static int check_mode(int fd, const char *path, hf_error *err)
{
    struct stat stat;

    if (fstat(fd, &stat) == 0 && (stat.st_mode & 077) == 0)
        return 0;
    return hf__fail(err, HF_ECONFIG,
                    "%s: has a password, and others may read it; chmod 600 "
                    "it, or use password_file",
                    path);
}

static int load(hf_config *config, int fd, const char *path,
                const char *profile, hf_error *err)
{
    hf_config *copy = hf__config_copy(config);
    bool has_secret = false;
    char *text = NULL;
    size_t len = 0;
    int rc;

    if (!copy)
        return hf__fail(err, HF_ENOMEM, "%s: out of memory", path);
    rc = read_file(fd, path, &text, &len, err);
    if (rc == 0)
        rc = hf__config_parse(copy, text, len, path, profile, &has_secret, err);
    if (rc == 0 && has_secret)
        rc = check_mode(fd, path, err);
    if (rc == 0)
        hf__config_swap(config, copy);
    if (text)
        explicit_bzero(text, len);
    hf__free(text);
    hf_config_free(copy);
    return rc;
}

/* The path may be a URL that stands in the wrong place. */
static int no_file(const char *path, int number, hf_error *err)
{
    char shown[256];

    (void)hf_redact(path, "***", shown, sizeof(shown));
    return hf__fail_engine(err, number == ENOENT ? HF_ENOTFOUND : HF_ECONFIG,
                           number, "%s: cannot be opened: %s", shown,
                           strerror(number));
}

int hf_config_load(hf_config *config, const char *path, const char *profile,
                   hf_error *err)
{
    int fd;
    int rc;

    if (!config || !path)
        return hf__fail(err, HF_EINVAL,
                        "hf_config_load: config or path is NULL");
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0)
        return no_file(path, errno, err);
    rc = load(config, fd, path, profile, err);
    close(fd);
    return rc;
}
