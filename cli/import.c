/* SPDX-License-Identifier: MIT */
/*
 * import.c - holdfast config import: the settings of Java programs as ours.
 *
 * The file becomes a flat list of settings (yaml.c, settings.c). Spring binds
 * names loosely, so case, dashes and underscores do not count. A prefix tells
 * whose setting it is: Redis (Spring, Redisson, JedisPool) or ZooKeeper
 * (Curator, Spring Cloud); a table says what it is called here. The library
 * checks each value. Documents of a YAML file that Spring binds to a profile
 * become profiles.
 *
 * What has no meaning here is named in a comment, without its value, which could
 * be a password. A password that is ours is written out, under a warning, and
 * to stdout alone.
 */
#include "import.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "import_engine.h"
#include "secret.h"
#include "settings.h"
#include "text.h"

/* One document of the file. */
struct document {
    struct settings *settings;
    int number;
    const char *profile; /* "": none */
    struct import_engine engines[IMPORT_FAMILIES];
};

/* Lower case, without dashes and underscores; [3] becomes []. */
static void normalise(const char *key, char *to)
{
    for (; *key; key++) {
        if (*key == '-' || *key == '_')
            continue;
        *to++ = (char)tolower((unsigned char)*key);
        if (*key == '[')
            key += strspn(key + 1, "0123456789");
    }
    *to = '\0';
}

static bool is_of(const struct document *document,
                  const struct setting *setting)
{
    return setting->document == document->number;
}

/* "${NAME:default}" is its default. NULL: there is none, or it is encrypted. */
static char *resolve(const char *value)
{
    char *text = NULL;
    size_t len = 0;
    FILE *memory = open_memstream(&text, &len);
    bool good = memory && strncmp(value, "ENC(", 4) != 0;

    while (good && *value) {
        const char *end = strchr(value, '}');

        if (strncmp(value, "${", 2) != 0) {
            fputc(*value++, memory);
            continue;
        }
        size_t name = strcspn(value, ":}");
        good = end && value[name] == ':';
        if (good) {
            fwrite(value + name + 1, 1, (size_t)(end - value) - name - 1,
                   memory);
            value = end + 1;
        }
    }
    if (!memory || fclose(memory) != 0 || !good) {
        free(text);
        return NULL;
    }
    return text;
}

static void take(struct document *document, struct setting *setting);

/* A whole file of Redisson's as the value of one setting. */
static bool take_nested(struct document *document, struct setting *setting)
{
    struct settings nested = {0};

    if (!strchr(setting->value, '\n'))
        return false;
    if (settings_read_yaml(&nested, setting->value, strlen(setting->value)))
        setting->used = true;
    else
        printf("# %s: line %d of its text: %s\n", text_safe(setting->key),
               nested.line, text_safe(nested.error));
    for (size_t i = 0; i < nested.n && setting->used; i++) {
        take(document, &nested.list[i]);
        if (!nested.list[i].used)
            printf("# %s (line %d): no meaning here\n",
                   text_safe(nested.list[i].key),
                   setting->line + nested.list[i].line);
    }
    settings_release(&nested);
    return true;
}

static void take(struct document *document, struct setting *setting)
{
    char key[SETTINGS_KEY + 1];
    char *value;

    if (take_nested(document, setting))
        return;
    value = resolve(setting->value);
    normalise(setting->key, key);
    for (int i = 0; i < IMPORT_FAMILIES; i++) {
        const char *tail = import_tail(i, key);

        if (!tail || !import_knows(i, tail))
            continue;
        setting->used = true;
        if (!value)
            printf("# %s (line %d): a placeholder without a default, or "
                   "encrypted; set it by hand\n",
                   text_safe(setting->key), setting->line);
        else if (*value && strcmp(value, "null") != 0)
            import_take(&document->engines[i], i, tail, value);
        break;
    }
    if (value)
        explicit_bzero(value, strlen(value));
    free(value);
}

/* ---- locks ---------------------------------------------------------------- */

static const char *last_part(const char *key)
{
    const char *dot = strrchr(key, '.');

    return dot ? dot + 1 : key;
}

/* The setting beside @setting whose last part is @part; NULL: none. */
static struct setting *find_beside(const struct document *document,
                                   const struct setting *setting,
                                   const char *part)
{
    char key[SETTINGS_KEY + 1];
    size_t parent = (size_t)(last_part(setting->key) - setting->key);

    for (size_t i = 0; i < document->settings->n; i++) {
        struct setting *other = &document->settings->list[i];

        if (!is_of(document, other) ||
            (size_t)(last_part(other->key) - other->key) != parent ||
            strncmp(other->key, setting->key, parent) != 0)
            continue;
        normalise(last_part(other->key), key);
        if (strcmp(key, part) == 0)
            return other;
    }
    return NULL;
}

/* lockName, with lockType and requireTime beside it. */
static void write_lock(const struct document *document, struct setting *name)
{
    struct setting *type = find_beside(document, name, "locktype");
    struct setting *time = find_beside(document, name, "requiretime");
    hf_error err;

    name->used = true;
    if (hf_name_check(name->value, strlen(name->value), &err) != 0 ||
        strpbrk(name->value, "]*?[")) {
        printf("\n# %s: a name that [lock ...] cannot have\n",
               text_safe(name->key));
        return;
    }
    printf("\n[lock %s]\n", name->value);
    if (type) {
        type->used = true;
        printf("# %s: exclusive; -s is shared, --slots N admits N\n",
               text_safe(type->key));
    }
    if (time) {
        time->used = true;
        if (time->value[0] &&
            strspn(time->value, "0123456789") == strlen(time->value))
            printf("wait = %ss\n", time->value);
        else
            printf("# %s: no number of seconds\n", text_safe(time->key));
    }
}

static void write_locks(const struct document *document)
{
    char key[SETTINGS_KEY + 1];

    for (size_t i = 0; i < document->settings->n; i++) {
        struct setting *setting = &document->settings->list[i];

        if (!is_of(document, setting))
            continue;
        normalise(last_part(setting->key), key);
        if (strcmp(key, "lockname") == 0 && *setting->value)
            write_lock(document, setting);
    }
}

/* ---- documents ------------------------------------------------------------ */

static void find_profile(struct document *document)
{
    static const char *const names[] = {"spring.profiles",
                                        "spring.config.activate.onprofile"};
    char key[SETTINGS_KEY + 1];

    document->profile = "";
    for (size_t i = 0; i < document->settings->n; i++) {
        struct setting *setting = &document->settings->list[i];

        normalise(setting->key, key);
        if (!is_of(document, setting) ||
            (strcmp(key, names[0]) != 0 && strcmp(key, names[1]) != 0) ||
            !*setting->value || strpbrk(setting->value, "[]\n"))
            continue;
        setting->used = true;
        document->profile = setting->value;
    }
}

/* What is left is said, so that nobody believes it counts. */
static void write_rest(const struct document *document)
{
    for (size_t i = 0; i < document->settings->n; i++) {
        const struct setting *setting = &document->settings->list[i];

        if (is_of(document, setting) && !setting->used)
            printf("# %s (line %d): no meaning here\n", text_safe(setting->key),
                   setting->line);
    }
}

static void write_section(const struct document *document, int family,
                          bool is_first)
{
    if (*document->profile && is_first)
        printf("\n[%s]\n", document->profile);
    else if (*document->profile)
        printf("\n[%s-%s]\n", document->profile, import_name(family));
    else if (document->number > 0)
        printf("\n[%s-%d]\n", import_name(family), document->number + 1);
    else if (!is_first)
        printf("\n[%s]\n", import_name(family));
}

/* True if there was an engine. */
static bool write_engines(struct document *document)
{
    bool any = false;

    for (int i = 0; i < IMPORT_FAMILIES; i++) {
        struct import_engine *engine = &document->engines[i];

        if (import_is_known(engine)) {
            write_section(document, i, !any);
            import_write(engine, i);
            any = true;
        }
        import_forget(engine);
    }
    return any;
}

static bool write_document(struct settings *settings, int number)
{
    struct document document = {.settings = settings, .number = number};
    bool any;

    find_profile(&document);
    for (size_t i = 0; i < settings->n; i++)
        if (is_of(&document, &settings->list[i]) && !settings->list[i].used)
            take(&document, &settings->list[i]);
    any = write_engines(&document);
    write_locks(&document);
    write_rest(&document);
    return any;
}

/* ---- the file ------------------------------------------------------------- */

/* The whole file, with a NUL behind it; NULL: said. */
static char *read_file(const char *path, size_t *ret_len)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    char *text = fd >= 0 ? calloc(1, SETTINGS_BYTES + 2) : NULL;
    size_t len = 0;
    ssize_t n = 1;

    while (text && n > 0 && len <= SETTINGS_BYTES) {
        n = read(fd, text + len, SETTINGS_BYTES + 1 - len);
        if (n > 0)
            len += (size_t)n;
    }
    if (!text || n < 0) {
        fprintf(stderr, "holdfast: cannot read %s: %s\n",
                text_safe(secret_shown(path)), strerror(errno));
        free(text);
        text = NULL;
    }
    if (fd >= 0)
        close(fd);
    *ret_len = len;
    return text;
}

static bool is_properties(const char *path)
{
    const char *dot = strrchr(path, '.');

    return dot && strcmp(dot, ".properties") == 0;
}

static int write_all(struct settings *settings, const char *path)
{
    bool any = false;

    printf("# From %s, by holdfast config import.\n"
           "# A line without # counts; see libholdfast(3), and holdfast "
           "config check FILE.\n",
           text_safe(path));
    for (int i = 0; i <= settings->documents; i++)
        any |= write_document(settings, i);
    if (any)
        return CLI_DONE;
    fprintf(stderr, "holdfast: %s says nothing about a Redis or ZooKeeper\n",
            text_safe(secret_shown(path)));
    return CLI_NO;
}

int import_file(const char *path)
{
    struct settings settings = {0};
    size_t len;
    char *text = read_file(path, &len);
    int code = CLI_CONFIG;

    if (!text)
        return CLI_CONFIG;
    if (is_properties(path) ? settings_read_properties(&settings, text, len)
                            : settings_read_yaml(&settings, text, len))
        code = write_all(&settings, path);
    else
        fprintf(stderr, "holdfast: %s:%d: %s\n", text_safe(secret_shown(path)),
                settings.line, text_safe(settings.error));
    settings_release(&settings);
    explicit_bzero(text, len);
    free(text);
    return code;
}
