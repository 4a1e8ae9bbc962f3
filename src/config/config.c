/* SPDX-License-Identifier: MIT */
/*
 * config.c - one set of keys for URL, file, environment and code.
 *
 * keys.c has the table of keys. A hf_config keeps one text per key and layer;
 * each text is checked when it is set, so that the error comes where the
 * mistake is. hf__config_resolve() takes the highest layer of each key, fills
 * hf__settings and checks what only the whole can tell.
 *
 * Failure: HF_ECONFIG with a sentence that says what the key takes. A number
 * without a unit, a calculation left in a file, a key that is almost right:
 * each has its hint. A secret is never repeated, nor is the value of a key
 * that we do not know.
 */
#include "config/config.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "config/keys.h"
#include "config/url.h"

struct hf_config {
    char *texts[HF__LAYERS][HF__KEYS];
    char *url_shown; /* of the url in force, without secrets */
    struct hf__override *overrides;
    struct hf__log_hook log;
};

/* The same, with the key in front of what went wrong. */
static int parse_key(const struct hf__key *key, const char *text,
                     union hf__value *ret, hf_error *err)
{
    int rc = hf__value_parse(key, text, ret, err);

    return rc == 0 ? 0 : hf__fail_in(err, rc, "%s", key->name);
}

int hf__config_check(const char *key, const char *value, hf_error *err)
{
    const struct hf__key *row = hf__key_find(key);
    union hf__value ignored;

    return row ? parse_key(row, value, &ignored, err)
               : hf__key_unknown(key, err);
}

/*
 * Configurations
 * --------------
 */

hf_config *hf_config_new(void)
{
    return hf__calloc(1, sizeof(hf_config));
}

void hf__override_free(struct hf__override *override)
{
    if (!override)
        return;
    hf__free(override->pattern);
    hf__free(override->note);
    hf__free(override);
}

/* Secrets do not stay behind in freed memory. */
static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    hf__free(text);
}

static void forget(const struct hf__key *key, char *text)
{
    if (key->flags & (HF__VALUE_SECRET | HF__VALUE_URL))
        wipe(text);
    else
        hf__free(text);
}

void hf_config_free(hf_config *config)
{
    if (!config)
        return;
    for (size_t layer = 0; layer < HF__LAYERS; layer++) {
        for (size_t i = 0; i < HF__KEYS; i++)
            forget(&hf__keys[i], config->texts[layer][i]);
    }
    while (config->overrides) {
        struct hf__override *override = config->overrides;

        config->overrides = override->next;
        hf__override_free(override);
    }
    hf__free(config->url_shown);
    hf__free(config);
}

void hf__config_swap(hf_config *a, hf_config *b)
{
    hf_config c = *a;

    *a = *b;
    *b = c;
}

void hf__config_add_override(hf_config *config, struct hf__override *override)
{
    struct hf__override **end = &config->overrides;

    while (*end)
        end = &(*end)->next;
    *end = override;
}

static int copy_override(hf_config *to, const struct hf__override *from)
{
    struct hf__override *copy = hf__malloc(sizeof(*copy));

    if (!copy)
        return HF_ENOMEM;
    *copy = *from;
    copy->next = NULL;
    copy->pattern = hf__strdup(from->pattern);
    copy->note = from->note ? hf__strdup(from->note) : NULL;
    if (!copy->pattern || (from->note && !copy->note)) {
        hf__override_free(copy);
        return HF_ENOMEM;
    }
    hf__config_add_override(to, copy);
    return 0;
}

static int copy_texts(hf_config *to, const hf_config *from)
{
    for (size_t layer = 0; layer < HF__LAYERS; layer++) {
        for (size_t i = 0; i < HF__KEYS; i++) {
            if (!from->texts[layer][i])
                continue;
            to->texts[layer][i] = hf__strdup(from->texts[layer][i]);
            if (!to->texts[layer][i])
                return HF_ENOMEM;
        }
    }
    if (from->url_shown) {
        to->url_shown = hf__strdup(from->url_shown);
        if (!to->url_shown)
            return HF_ENOMEM;
    }
    return 0;
}

hf_config *hf__config_copy(const hf_config *config)
{
    hf_config *copy = hf_config_new();
    int rc;

    if (!copy)
        return NULL;
    copy->log = config->log;
    rc = copy_texts(copy, config);
    for (const struct hf__override *o = config->overrides; o && rc == 0;
         o = o->next)
        rc = copy_override(copy, o);
    if (rc != 0) {
        hf_config_free(copy);
        return NULL;
    }
    return copy;
}

void hf_config_set_log(hf_config *config, hf_log_cb *log, int level, void *ctx)
{
    if (config)
        config->log = (struct hf__log_hook){log, level, ctx};
}

struct hf__log_hook hf__config_log(const hf_config *config)
{
    return config->log;
}

/* The text of the highest layer that has one, or NULL. */
static const char *text_of(const hf_config *config, const struct hf__key *key,
                           int *ret_layer)
{
    for (int layer = HF__LAYERS - 1; layer >= 0; layer--) {
        const char *text = config->texts[layer][key - hf__keys];

        if (text) {
            *ret_layer = layer;
            return text;
        }
    }
    return NULL;
}

/* After url has changed: what hf_config_get() may show of it. */
static int show_url(hf_config *config, hf_error *err)
{
    HF_CLEANUP(hf__url_freep) struct hf__url *url = NULL;
    const char *text = hf__config_url(config);
    int rc;

    hf__free(HF_STEAL(config->url_shown));
    if (!text)
        return 0;
    rc = hf__url_parse(text, &url, err);
    if (rc != 0)
        return rc;
    config->url_shown = HF_STEAL(url->redacted);
    return 0;
}

int hf__config_set_layer(hf_config *config, enum hf__config_layer layer,
                         const char *key, const char *value, hf_error *err)
{
    const struct hf__key *row = hf__key_find(key);
    union hf__value ignored;
    char *copy;
    char **place;
    int rc;

    if (!row)
        return hf__key_unknown(key, err);
    if ((row->flags & HF__VALUE_URL) &&
        (layer == HF__LAYER_ENVIRONMENT || layer == HF__LAYER_URL))
        return hf__fail(err, HF_ECONFIG, "%s: not inside a URL", key);
    rc = parse_key(row, value, &ignored, err);
    if (rc != 0)
        return rc;
    copy = hf__strdup(value);
    if (!copy)
        return hf__fail(err, HF_ENOMEM, "%s: out of memory", key);

    place = &config->texts[layer][row - hf__keys];
    forget(row, *place);
    *place = copy;
    return row->flags & HF__VALUE_URL ? show_url(config, err) : 0;
}

static int set_checked(hf_config *config, int layer, const char *call,
                       const char *key, const char *value, hf_error *err)
{
    if (!config || !key || !value)
        return hf__fail(err, HF_EINVAL, "%s: config, key or value is NULL",
                        call);
    return hf__config_set_layer(config, layer, key, value, err);
}

int hf_config_set(hf_config *config, const char *key, const char *value,
                  hf_error *err)
{
    return set_checked(config, HF__LAYER_CODE, "hf_config_set", key, value,
                       err);
}

int hf_config_prefer(hf_config *config, const char *key, const char *value,
                     hf_error *err)
{
    return set_checked(config, HF__LAYER_PROGRAM, "hf_config_prefer", key,
                       value, err);
}

const char *hf_config_get(const hf_config *config, const char *key)
{
    const struct hf__key *row = key ? hf__key_find(key) : NULL;
    const char *text;
    int layer;

    if (!config || !row)
        return NULL;
    text = text_of(config, row, &layer);
    if (!text)
        return row->standard;
    if (row->flags & HF__VALUE_SECRET)
        return *text ? "***" : "";
    return row->flags & HF__VALUE_URL ? config->url_shown : text;
}

const char *hf__config_url(const hf_config *config)
{
    int layer;

    return text_of(config, hf__key_find("url"), &layer);
}

/* Is @name given by something stronger than @weaker? */
static bool stronger(const hf_config *config, const char *name, int weaker)
{
    int layer = weaker;

    return text_of(config, hf__key_find(name), &layer) && layer > weaker;
}

bool hf__config_is_asked_for(const hf_config *config, const char *key)
{
    return stronger(config, key, HF__LAYER_PROGRAM);
}

static bool overruled(const hf_config *config, const char *name)
{
    return stronger(config, name, HF__LAYER_FILE);
}

void hf__config_yield(hf_config *config)
{
    bool ttl = overruled(config, "ttl");
    bool wait = overruled(config, "wait");
    bool max_hold = overruled(config, "max_hold");
    bool note = overruled(config, "note");

    for (struct hf__override *o = config->overrides; o; o = o->next) {
        o->ttl_ms = ttl ? 0 : o->ttl_ms;
        o->wait_ms = wait ? INT64_MIN : o->wait_ms;
        o->max_hold_ms = max_hold ? 0 : o->max_hold_ms;
        if (note)
            hf__free(HF_STEAL(o->note));
    }
}

const struct hf__override *hf__config_override(const hf_config *config,
                                               const char *name)
{
    for (const struct hf__override *o = config->overrides; o; o = o->next) {
        if (fnmatch(o->pattern, name, 0) == 0)
            return o;
    }
    return NULL;
}

static const char *type_of(const struct hf__key *key)
{
    static const char *const words[] = {
        [HF__VALUE_DURATION] = "duration", [HF__VALUE_INTEGER] = "integer",
        [HF__VALUE_NUMBER] = "number",     [HF__VALUE_BOOLEAN] = "on|off",
        [HF__VALUE_CAPS] = "capabilities", [HF__VALUE_TEXT] = "text",
    };

    return key->kind == HF__VALUE_CHOICE ? key->choices : words[key->kind];
}

int hf_config_keys(hf_key_cb *each, void *ctx)
{
    if (!each)
        return HF_EINVAL;
    for (size_t i = 0; i < HF__KEYS; i++) {
        const hf_key_info info = {
            .size = (uint32_t)sizeof(info),
            .name = hf__keys[i].name,
            .type = type_of(&hf__keys[i]),
            .standard = hf__keys[i].standard,
            .help = hf__keys[i].help,
        };
        int rc = each(&info, ctx);

        if (rc != 0)
            return rc;
    }
    return 0;
}

void hf_opts_init(hf_opts *opts, size_t size)
{
    hf_opts standard = HF_OPTS_INIT;

    if (!opts || size < sizeof(opts->size))
        return;
    standard.size = (uint32_t)size;
    memset(opts, 0, size);
    memcpy(opts, &standard, size < sizeof(standard) ? size : sizeof(standard));
}

/*
 * The environment
 * ---------------
 */

/* What the command and its children use; these are not keys. */
static const char *const other_variables[] = {
    "URL",    "CONFIG", "PROFILE",     "NAME", "TOKEN",   "OWNER",
    "ENGINE", "TTL_MS", "ENGINE_PATH", "HELD", "INHERIT",
};

static bool is_other_variable(const char *name, size_t len)
{
    for (size_t i = 0; i < HF_COUNT_OF(other_variables); i++) {
        if (strlen(other_variables[i]) == len &&
            strncmp(other_variables[i], name, len) == 0)
            return true;
    }
    return len > 5 && strncmp(name, "TEST_", 5) == 0;
}

/* RETRY_BASE is retry.base: no two keys differ in the separator alone. */
static bool spells(const char *name, size_t len, const char *key)
{
    if (strlen(key) != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        char c = key[i] == '.' ? '_' : key[i];

        if (name[i] != (c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c))
            return false;
    }
    return true;
}

static int bad_variable(const char *name, size_t len, hf_error *err)
{
    char word[HF__VALUE_WORD];
    char shown[HF__VALUE_WORD];
    const char *similar;

    snprintf(word, sizeof(word), "%.*s",
             (int)(len < HF__VALUE_WORD ? len : HF__VALUE_WORD), name);
    similar = hf__key_similar(word);
    if (!similar)
        return hf__fail(err, HF_ECONFIG,
                        "environment: HOLDFAST_%s is no setting of ours; "
                        "unset it, or see libholdfast(3) for the keys",
                        hf__value_quote(word, shown));
    return hf__fail(err, HF_ECONFIG,
                    "environment: HOLDFAST_%s is no setting of ours; did you "
                    "mean the variable of %s?",
                    hf__value_quote(word, shown), similar);
}

static int load_variable(hf_config *config, const char *name, hf_error *err)
{
    size_t len = strcspn(name, "=");

    if (name[len] != '=' || name[len + 1] == '\0' ||
        is_other_variable(name, len))
        return 0;
    for (size_t i = 0; i < HF__KEYS; i++) {
        int rc;

        if (!spells(name, len, hf__keys[i].name))
            continue;
        rc = hf__config_set_layer(config, HF__LAYER_ENVIRONMENT,
                                  hf__keys[i].name, name + len + 1, err);
        return rc == 0 ? 0
                       : hf__fail_in(err, rc, "environment: HOLDFAST_%.*s",
                                     (int)len, name);
    }
    return bad_variable(name, len, err);
}

int hf__config_load_environment(hf_config *config, hf_error *err)
{
    static const char prefix[] = "HOLDFAST_";

    /* Of a set-user-id program the environment is the attacker's. */
    if (getauxval(AT_SECURE) != 0)
        return 0;
    for (char **entry = environ; entry && *entry; entry++) {
        int rc;

        if (strncmp(*entry, prefix, sizeof(prefix) - 1) != 0)
            continue;
        rc = load_variable(config, *entry + sizeof(prefix) - 1, err);
        if (rc != 0)
            return rc;
    }
    return 0;
}

/*
 * Settings
 * --------
 */

static void *field_of(struct hf__settings *settings, const struct hf__key *key)
{
    return (char *)settings + key->offset;
}

void hf__settings_release(struct hf__settings *settings)
{
    for (size_t i = 0; i < HF__KEYS; i++) {
        char **text = field_of(settings, &hf__keys[i]);

        if (hf__keys[i].kind != HF__VALUE_TEXT ||
            hf__keys[i].offset == HF__NOWHERE)
            continue;
        forget(&hf__keys[i], *text);
        *text = NULL;
    }
    wipe(HF_STEAL(settings->tls_key_password));
}

static int store(struct hf__settings *settings, const struct hf__key *key,
                 const union hf__value *value, hf_error *err)
{
    void *field = field_of(settings, key);

    switch ((enum hf__value_kind)key->kind) {
    case HF__VALUE_DURATION:
        *(int64_t *)field = value->ms;
        return 0;
    case HF__VALUE_INTEGER:
    case HF__VALUE_BOOLEAN:
    case HF__VALUE_CHOICE:
        *(int32_t *)field = value->number;
        return 0;
    case HF__VALUE_NUMBER:
        *(double *)field = value->share;
        return 0;
    case HF__VALUE_CAPS:
        *(uint64_t *)field = value->caps;
        return 0;
    case HF__VALUE_TEXT:
        *(char **)field = hf__strdup(value->text);
        if (!*(char **)field)
            return hf__fail(err, HF_ENOMEM, "%s: out of memory", key->name);
        return 0;
    }
    return HF_EINTERNAL;
}

/* The first line of the open file, at most @size - 1 bytes. */
static int read_secret(int fd, const char *key, const char *path, char *text,
                       size_t size, hf_error *err)
{
    struct stat stat;
    ssize_t n;

    if (fstat(fd, &stat) != 0 || !S_ISREG(stat.st_mode))
        return hf__fail(err, HF_ECONFIG, "%s: %s is not a file", key, path);
    if (stat.st_mode & 077)
        return hf__fail(err, HF_ECONFIG, "%s: others may read %s; chmod 600 it",
                        key, path);
    n = read(fd, text, size - 1);
    if (n < 0)
        return hf__fail(err, HF_ECONFIG, "%s: cannot read %s: %m", key, path);
    text[n] = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (text[0] == '\0')
        return hf__fail(err, HF_ECONFIG, "%s: %s is empty", key, path);
    return 0;
}

/* Put what the file @path of @key says in place of *@secret. */
static int load_secret(const char *key, const char *path, char **secret,
                       hf_error *err)
{
    char text[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    char *copy;
    int rc;

    if (fd < 0)
        return hf__fail(err, HF_ECONFIG, "%s: cannot open %s: %m", key, path);
    rc = read_secret(fd, key, path, text, sizeof(text), err);
    close(fd);
    copy = rc == 0 ? hf__strdup(text) : NULL;
    explicit_bzero(text, sizeof(text));
    if (rc != 0)
        return rc;
    if (!copy)
        return hf__fail(err, HF_ENOMEM, "%s: out of memory", key);
    wipe(*secret);
    *secret = copy;
    return 0;
}

/* "" without tls.key_password_file. */
static int resolve_key_password(const hf_config *config,
                                struct hf__settings *settings, hf_error *err)
{
    static const char key[] = "tls.key_password_file";
    int layer;
    const char *path = text_of(config, hf__key_find(key), &layer);

    if (path && *path)
        return load_secret(key, path, &settings->tls_key_password, err);
    settings->tls_key_password = hf__strdup("");
    return settings->tls_key_password
               ? 0
               : hf__fail(err, HF_ENOMEM, "%s: out of memory", key);
}

/* Of password and password_file the one from the higher layer counts. */
static int resolve_password(const hf_config *config,
                            struct hf__settings *settings, hf_error *err)
{
    int direct_layer = -1;
    int file_layer = -1;
    const char *path =
        text_of(config, hf__key_find("password_file"), &file_layer);

    (void)text_of(config, hf__key_find("password"), &direct_layer);
    if (!path || !*path || direct_layer > file_layer)
        return 0;
    if (direct_layer == file_layer)
        return hf__fail(err, HF_ECONFIG,
                        "both password and password_file are set; one is "
                        "enough");
    return load_secret("password_file", path, &settings->password, err);
}

/* What only the whole can tell. */
static int check_whole(const struct hf__settings *settings, hf_error *err)
{
    if (settings->retry_policy == HF__RETRY_NTIMES &&
        settings->retry_max_attempts == 0)
        return hf__fail(err, HF_ECONFIG,
                        "retry.policy=ntimes needs retry.max_attempts");
    if (settings->retry_base_ms > settings->retry_max_interval_ms)
        return hf__fail(err, HF_ECONFIG,
                        "retry.base is longer than retry.max_interval");
    if (!*settings->tls_cert != !*settings->tls_key)
        return hf__fail(err, HF_ECONFIG,
                        "tls.cert and tls.key belong together; %s is missing",
                        *settings->tls_cert ? "tls.key" : "tls.cert");
    return 0;
}

static int resolve_all(const hf_config *config, struct hf__settings *settings,
                       hf_error *err)
{
    int rc;

    for (size_t i = 0; i < HF__KEYS; i++) {
        union hf__value value;
        int layer;
        const char *text = text_of(config, &hf__keys[i], &layer);

        if (hf__keys[i].offset == HF__NOWHERE)
            continue;
        if (text && strncmp(hf__keys[i].name, "tls.", strlen("tls.")) == 0)
            settings->tls_asked = true;
        rc = parse_key(&hf__keys[i], text ? text : hf__keys[i].standard, &value,
                       err);
        if (rc != 0)
            return rc;
        rc = store(settings, &hf__keys[i], &value, err);
        if (rc != 0)
            return rc;
    }
    rc = resolve_password(config, settings, err);
    return rc != 0 ? rc : resolve_key_password(config, settings, err);
}

int hf__config_resolve(const hf_config *config,
                       struct hf__settings *ret_settings, hf_error *err)
{
    struct hf__settings settings = {0};
    int rc = resolve_all(config, &settings, err);

    if (rc == 0)
        rc = check_whole(&settings, err);
    if (rc != 0) {
        hf__settings_release(&settings);
        return rc;
    }
    *ret_settings = settings;
    return 0;
}
