/* SPDX-License-Identifier: MIT */
/*
 * url.c - the URL of an engine, taken apart.
 *
 * A pure parser: text in, struct out, no name is resolved and no file touched.
 * The text is read once from left to right; while it is read, a second text is
 * built beside it in which every secret is "***". That one is for people, and
 * nothing else in library or command decides what is a secret (hf_redact).
 *
 *   wrapper+ scheme: // user:password@ host:port,host /path ?key=value&…
 *   └prefix()──────┘ └authority()────────────────────┘└path┘└query()──┘
 *
 * Failure: HF_ECONFIG with a sentence. No sentence quotes anything that could
 * be part of a password, not even a misplaced one: a '/' or '@' inside a
 * password makes its rest look like a host or a path, so hosts, ports and
 * paths are described, never repeated.
 */
#include "config/url.h"

#include "base/buf.h"
#include "base/error.h"

struct reader {
    const char *at;
    struct hf__url *url;
    struct hf__buf shown; /* becomes url->redacted */
    const char *mask;     /* in place of a secret; NULL: nothing */
    hf_error *err;
};

static void forget(char *secret)
{
    if (secret)
        explicit_bzero(secret, strlen(secret));
    hf__free(secret);
}

void hf__url_free(struct hf__url *url)
{
    if (!url)
        return;
    for (size_t i = 0; i < url->n_wrappers; i++)
        hf__free(url->wrappers[i]);
    for (size_t i = 0; i < url->n_hosts; i++)
        hf__free(url->hosts[i].host);
    while (url->query) {
        struct hf__url_pair *pair = url->query;

        url->query = pair->next;
        hf__free(pair->key);
        forget(pair->value);
        hf__free(pair);
    }
    hf__free(url->scheme);
    hf__free(url->user);
    forget(url->password);
    hf__free(url->path);
    hf__free(url->redacted);
    hf__free(url);
}

static int no_memory(hf_error *err)
{
    return hf__fail(err, HF_ENOMEM, "URL: out of memory");
}

/* ASCII alone, whatever the locale is. */
static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* A copy of @len bytes at @from with percent-encoding undone. */
static int decode(const char *from, size_t len, const char *what,
                  char **ret_text, hf_error *err)
{
    char *text = hf__malloc(len + 1);
    size_t n = 0;

    if (!text)
        return no_memory(err);
    for (size_t i = 0; i < len; i++) {
        int c = (unsigned char)from[i];

        if (c == '%') {
            int high = len - i > 2 ? hex(from[i + 1]) : -1;
            int low = len - i > 2 ? hex(from[i + 2]) : -1;

            if (high < 0 || low < 0) {
                explicit_bzero(text, n);
                hf__free(text);
                return hf__fail(err, HF_ECONFIG,
                                "URL: a %% in the %s is not followed by two "
                                "hex digits; a literal %% is written %%25",
                                what);
            }
            c = high << 4 | low;
            i += 2;
        }
        if (c < 0x20 || c == 0x7f) {
            explicit_bzero(text, n);
            hf__free(text);
            return hf__fail(err, HF_ECONFIG,
                            "URL: there is a control character in the %s",
                            what);
        }
        text[n++] = (char)c;
    }
    text[n] = '\0';
    *ret_text = text;
    return 0;
}

/* Wrappers and the scheme, up to and with the colon. */
static size_t word_length(const char *text)
{
    size_t len = 0;

    if (!is_letter(text[0]))
        return 0;
    while (is_letter(text[len]) || is_digit(text[len]) || text[len] == '-' ||
           text[len] == '.')
        len++;
    return len;
}

static char *lower_copy(const char *text, size_t len)
{
    char *copy = hf__strndup(text, len);

    for (char *c = copy; c && *c; c++) {
        if (*c >= 'A' && *c <= 'Z')
            *c = (char)(*c - 'A' + 'a');
    }
    return copy;
}

static int bad_start(const struct reader *reader)
{
    const char *text = reader->at;

    if (text[0] == '\0' && reader->url->n_wrappers == 0)
        return hf__fail(reader->err, HF_ECONFIG,
                        "the URL is empty; write local: or redis://host");
    if (text[0] == '/' || text[0] == '.')
        return hf__fail(reader->err, HF_ECONFIG,
                        "a path is not a URL; for locks in a directory write "
                        "local:///the/directory");
    return hf__fail(reader->err, HF_ECONFIG,
                    "the URL has no scheme; it begins like local: or "
                    "redis://host");
}

/* "redis+unix" is one word: what stands before the transport is no wrapper. */
static int join_transport(struct hf__url *url)
{
    size_t last = url->n_wrappers - 1;
    struct hf__buf whole = {0};

    if (url->n_wrappers == 0 || strcmp(url->scheme, "unix") != 0)
        return 0;
    hf__buf_add(&whole, url->wrappers[last]);
    hf__buf_add(&whole, "+");
    hf__buf_add(&whole, url->scheme);
    hf__free(url->wrappers[last]);
    hf__free(url->scheme);
    url->n_wrappers = last;
    url->scheme = hf__buf_steal(&whole);
    return url->scheme ? 0 : HF_ENOMEM;
}

static int prefix(struct reader *reader)
{
    struct hf__url *url = reader->url;

    for (;;) {
        size_t len = word_length(reader->at);
        char *word;

        if (len == 0 || (reader->at[len] != '+' && reader->at[len] != ':'))
            return bad_start(reader);
        if (reader->at[len] == '+' && url->n_wrappers == HF__URL_WRAPPERS)
            return hf__fail(reader->err, HF_ECONFIG,
                            "URL: more than %d wrappers before the scheme",
                            HF__URL_WRAPPERS);
        word = lower_copy(reader->at, len);
        if (!word)
            return no_memory(reader->err);
        hf__buf_add(&reader->shown, word);
        hf__buf_add_char(&reader->shown, reader->at[len]);
        reader->at += len + 1;
        if (reader->at[-1] == ':') {
            url->scheme = word;
            return join_transport(url) == 0 ? 0 : no_memory(reader->err);
        }
        url->wrappers[url->n_wrappers++] = word;
    }
}

/* user[:password], already cut out. */
static int userinfo(struct reader *reader, const char *text, size_t len)
{
    struct hf__url *url = reader->url;
    const char *colon = memchr(text, ':', len);
    size_t user_len = colon ? (size_t)(colon - text) : len;
    int rc;

    if (user_len > 0) {
        rc = decode(text, user_len, "user", &url->user, reader->err);
        if (rc != 0)
            return rc;
        hf__buf_append(&reader->shown, text, user_len);
    }
    if (colon) {
        rc = decode(colon + 1, len - user_len - 1, "password", &url->password,
                    reader->err);
        if (rc != 0)
            return rc;
        if (reader->mask) {
            hf__buf_add_char(&reader->shown, ':');
            hf__buf_add(&reader->shown, reader->mask);
        }
    }
    hf__buf_add_char(&reader->shown, '@');
    return 0;
}

/* Digits to 1…65535; -1 for anything else. */
static int port_number(const char *text, size_t len)
{
    int port = 0;

    if (len == 0 || len > 5)
        return -1;
    for (size_t i = 0; i < len; i++) {
        if (!is_digit(text[i]))
            return -1;
        port = port * 10 + (text[i] - '0');
    }
    return port >= 1 && port <= 65535 ? port : -1;
}

static bool host_is_good(const char *text, size_t len, bool bracketed)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];

        if (is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_')
            continue;
        if (!bracketed || (c != ':' && c != '%'))
            return false;
    }
    return len > 0;
}

static int bad_host(const struct reader *reader, const char *problem)
{
    return hf__fail(reader->err, HF_ECONFIG,
                    "URL: %s. In a password, write @ / ? # : %% as "
                    "%%40 %%2F %%3F %%23 %%3A %%25",
                    problem);
}

/* host, host:port, [v6], [v6]:port, already cut out. */
static int host(struct reader *reader, const char *text, size_t len)
{
    struct hf__url *url = reader->url;
    bool bracketed = len > 0 && text[0] == '[';
    const char *end = memchr(text, bracketed ? ']' : ':', len);
    const char *name = bracketed ? text + 1 : text;
    size_t name_len;
    size_t used;
    int port = 0;

    if (bracketed && !end)
        return bad_host(reader, "a [ has no ]");
    name_len = end ? (size_t)(end - name) : len;
    used = bracketed ? (size_t)(end - text) + 1 : name_len;
    if (!host_is_good(name, name_len, bracketed))
        return bad_host(reader, "a host is missing or has characters that no "
                                "host has (IPv6 goes in brackets)");
    if (used < len) {
        port = text[used] == ':' ? port_number(text + used + 1, len - used - 1)
                                 : -1;
        if (port < 0)
            return bad_host(reader, "a port is not a number from 1 to 65535");
    }
    if (url->n_hosts == HF__URL_HOSTS)
        return hf__fail(reader->err, HF_ECONFIG, "URL: more than %d hosts",
                        HF__URL_HOSTS);

    url->hosts[url->n_hosts].host = hf__strndup(name, name_len);
    if (!url->hosts[url->n_hosts].host)
        return no_memory(reader->err);
    url->hosts[url->n_hosts++].port = port;
    return 0;
}

static int hosts(struct reader *reader, const char *text, size_t len)
{
    const char *end = text + len;

    hf__buf_append(&reader->shown, text, len);
    while (len > 0) {
        const char *comma = memchr(text, ',', (size_t)(end - text));
        const char *stop = comma ? comma : end;
        int rc = host(reader, text, (size_t)(stop - text));

        if (rc != 0)
            return rc;
        if (!comma)
            return 0;
        text = comma + 1;
    }
    return 0;
}

/* What follows the two slashes. */
static int authority(struct reader *reader)
{
    const char *text = reader->at;
    size_t len = strcspn(text, "/?#");
    const char *at = memrchr(text, '@', len);
    int rc;

    reader->at += len;
    hf__buf_add(&reader->shown, "//");
    if (at) {
        rc = userinfo(reader, text, (size_t)(at - text));
        if (rc != 0)
            return rc;
        len -= (size_t)(at + 1 - text);
        text = at + 1;
        if (len == 0)
            return bad_host(reader, "after the @ there is no host");
    }
    return hosts(reader, text, len);
}

static int path(struct reader *reader)
{
    size_t len = strcspn(reader->at, "?#");
    const char *text = reader->at;

    if (len > 0 && text[0] != '/')
        return hf__fail(reader->err, HF_ECONFIG,
                        "URL: after '%s:' comes //host, /path, ?settings or "
                        "nothing; a directory is written local:///some/dir",
                        reader->url->scheme);
    if (memchr(text, '@', len) && reader->url->n_hosts > 0)
        return bad_host(reader, "there is an @ in the path");
    reader->at += len;
    hf__buf_append(&reader->shown, text, len);
    return decode(text, len, "path", &reader->url->path, reader->err);
}

/* Whatever is, or looks like, a secret; a file's name is none. */
static bool is_secret(const char *key)
{
    size_t len = strlen(key);

    if (len > 5 && strcasecmp(key + len - 5, "_file") == 0)
        return false;
    return strcasestr(key, "pass") || strcasestr(key, "secret") ||
           strcasestr(key, "acl") || strcasestr(key, "token") ||
           strcasestr(key, "pwd");
}

/* The key may be percent-encoded: one that is not well encoded, or longer than
 * any key, may be any. Nothing is allocated: this cannot fail. */
static bool key_is(const char *text, size_t len, bool (*is)(const char *key))
{
    char key[128];
    size_t n = 0;

    for (size_t i = 0; i < len; i++, n++) {
        int high = text[i] == '%' && len - i > 2 ? hex(text[i + 1]) : -1;
        int low = high >= 0 ? hex(text[i + 2]) : -1;

        if (n == sizeof(key) - 1 || (text[i] == '%' && low < 0))
            return true;
        key[n] = (char)(low < 0 ? text[i] : high << 4 | low);
        if (key[n] == '\0')
            return true;
        i += low < 0 ? 0 : 2;
    }
    key[n] = '\0';
    return is(key);
}

/* Where the value of the first secret in @text begins, by any of the ways in
 * which people separate pairs; NULL: there is none. */
static const char *find_secret(const char *text, size_t len)
{
    const char *equals = text;

    while ((equals = memchr(equals, '=', len - (size_t)(equals - text)))) {
        const char *key = equals;

        while (key > text && !strchr("?&;,= \t", key[-1]))
            key--;
        equals++;
        if (key_is(key, (size_t)(equals - 1 - key), is_secret))
            return equals;
    }
    return NULL;
}

/* Text that is no URL, or a value in one: where a secret begins, all that
 * follows may belong to it. */
static void redact_text(struct hf__buf *shown, const char *text, size_t len,
                        const char *mask)
{
    const char *secret = find_secret(text, len);
    size_t open = secret ? (size_t)(secret - text) : len;

    hf__buf_append(shown, text, open);
    if (open < len && mask)
        hf__buf_add(shown, mask);
}

/* key=value, already cut out. */
static int pair_new(struct reader *reader, const char *text, size_t len,
                    struct hf__url_pair **ret_pair)
{
    const char *equals = memchr(text, '=', len);
    size_t key_len = equals ? (size_t)(equals - text) : len;
    struct hf__url_pair *pair;
    int rc;

    if (!equals || key_len == 0)
        return hf__fail(reader->err, HF_ECONFIG,
                        "URL: after the ? come settings like ttl=30s, "
                        "separated by &; one of them is not");
    pair = hf__calloc(1, sizeof(*pair));
    if (!pair)
        return no_memory(reader->err);
    *ret_pair = pair;
    rc = decode(text, key_len, "query", &pair->key, reader->err);
    if (rc != 0)
        return rc;
    rc = decode(equals + 1, len - key_len - 1, "query", &pair->value,
                reader->err);
    if (rc != 0)
        return rc;
    redact_text(&reader->shown, text, len, reader->mask);
    return 0;
}

static int query(struct reader *reader)
{
    struct hf__url_pair **end = &reader->url->query;

    if (*reader->at != '?')
        return 0;
    if (*++reader->at == '\0')
        return 0;
    hf__buf_add_char(&reader->shown, '?');
    for (;;) {
        size_t len = strcspn(reader->at, "&#");
        int rc = pair_new(reader, reader->at, len, end);

        if (rc != 0)
            return rc;
        end = &(*end)->next;
        reader->at += len;
        if (*reader->at != '&')
            return 0;
        hf__buf_add_char(&reader->shown, '&');
        reader->at++;
    }
}

static int parse(struct reader *reader)
{
    int rc = prefix(reader);

    if (rc != 0)
        return rc;
    if (strncmp(reader->at, "//", 2) == 0) {
        reader->at += 2;
        rc = authority(reader);
        if (rc != 0)
            return rc;
    }
    rc = path(reader);
    if (rc != 0)
        return rc;
    rc = query(reader);
    if (rc != 0)
        return rc;
    if (*reader->at == '#')
        return hf__fail(reader->err, HF_ECONFIG,
                        "URL: there is a #; inside a value write it %%23");

    reader->url->redacted = hf__buf_steal(&reader->shown);
    return reader->url->redacted ? 0 : no_memory(reader->err);
}

static int parse_masked(const char *text, const char *mask,
                        struct hf__url **ret_url, hf_error *err)
{
    HF_CLEANUP(hf__url_freep) struct hf__url *url = NULL;
    struct reader reader = {.at = text, .mask = mask, .err = err};
    int rc;

    url = hf__calloc(1, sizeof(*url));
    if (!url)
        return no_memory(err);
    reader.url = url;
    rc = parse(&reader);
    hf__buf_release(&reader.shown);
    if (rc != 0)
        return rc;

    *ret_url = HF_STEAL(url);
    return 0;
}

int hf__url_parse(const char *text, struct hf__url **ret_url, hf_error *err)
{
    return parse_masked(text, "***", ret_url, err);
}

/* ---- for people ---------------------------------------------------------- */

/* A URL, good or bad: of a bad one everything behind the scheme may belong to
 * a password. */
static void redact_url(struct hf__buf *shown, const char *text,
                       const char *mask)
{
    HF_CLEANUP(hf__url_freep) struct hf__url *url = NULL;
    const char *slashes = strstr(text, "://");

    if (parse_masked(text, mask, &url, NULL) == 0) {
        hf__buf_add(shown, url->redacted);
    } else if (slashes || strchr(text, '@')) {
        size_t len = slashes ? word_length(text) : 0;

        if (len > 0 && text + len == slashes)
            hf__buf_append(shown, text, len + 3);
        hf__buf_add(shown, mask ? mask : "");
    } else {
        redact_text(shown, text, strlen(text), mask);
    }
}

/* key=value with a key that is no beginning of a URL; the length of the key,
 * or 0. */
static size_t key_length(const char *text)
{
    size_t len = strcspn(text, "=:/@ ");

    return text[len] == '=' ? len : 0;
}

/* url=, --url=, HOLDFAST_URL=: the value is a URL even if it does not look like
 * one. */
static bool is_url(const char *key)
{
    size_t len = strlen(key);

    return len >= 3 && strcasecmp(key + len - 3, "url") == 0;
}

static void redact(struct hf__buf *shown, const char *text, const char *mask)
{
    size_t key = key_length(text);
    const char *value = text + key + 1;

    if (key == 0) {
        redact_url(shown, text, mask);
    } else if (!key_is(text, key, is_secret) &&
               (strstr(value, "://") || key_is(text, key, is_url))) {
        hf__buf_append(shown, text, key + 1);
        redact_url(shown, value, mask);
    } else {
        redact_text(shown, text, strlen(text), mask);
    }
}

size_t hf_redact(const char *text, const char *mask, char *to, size_t size)
{
    struct hf__buf shown = {0};
    size_t len = 0;

    if (text)
        redact(&shown, text, mask);
    if (!hf__buf_failed(&shown))
        len = shown.len;
    if (to && size > 0)
        hf__text_copy(to, size, len > 0 ? shown.text : "");
    hf__buf_release(&shown);
    return len;
}

bool hf__url_has_secret(const char *text)
{
    struct hf__buf with = {0};
    struct hf__buf without = {0};
    bool has;

    redact(&with, text, "***");
    redact(&without, text, /* mask= */ NULL);
    has = hf__buf_failed(&with) || hf__buf_failed(&without) ||
          strcmp(hf__buf_text(&with), hf__buf_text(&without)) != 0;
    hf__buf_release(&with);
    hf__buf_release(&without);
    return has;
}
