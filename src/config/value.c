/* SPDX-License-Identifier: MIT */
/*
 * value.c - the texts that a key may have, read and explained.
 *
 * Durations carry their unit, because a bare number is read as seconds by one
 * and as milliseconds by the next. Everything is read by hand, digit by digit:
 * strtod() obeys the host's locale.
 *
 * Failure: HF_ECONFIG with a sentence that says what would be right, as near
 * to what was written as we can guess. Nothing here allocates but a URL.
 */
#include "config/value.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/error.h"
#include "config/name.h"
#include "config/url.h"

/* Lower case without separators: connection-timeout is connectiontimeout. */
void hf__value_squeeze(const char *text, char to[HF__VALUE_WORD])
{
    size_t n = 0;

    for (; *text && n < HF__VALUE_WORD - 1; text++) {
        if (*text == '_' || *text == '-' || *text == '.')
            continue;
        to[n++] =
            *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;
    }
    to[n] = '\0';
}

/* Levenshtein's distance of two squeezed words, one row at a time. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[HF__VALUE_WORD];
    size_t len = strlen(b);

    for (size_t i = 0; i <= len; i++)
        row[i] = (unsigned)i;
    for (size_t i = 0; a[i]; i++) {
        unsigned corner = row[0]++;

        for (size_t j = 1; j <= len; j++) {
            unsigned change = corner + (a[i] != b[j - 1]);
            unsigned gap = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;

            corner = row[j];
            row[j] = change < gap ? change : gap;
        }
    }
    return row[len];
}

/* The nearest of @n words, if it is near enough to be what was meant. */
const char *hf__value_nearest(const char *word, hf__value_word_fn *at, size_t n)
{
    const char *best = NULL;
    unsigned best_distance = UINT32_MAX;
    char wanted[HF__VALUE_WORD];
    char known[HF__VALUE_WORD];

    hf__value_squeeze(word, wanted);
    for (size_t i = 0; i < n; i++) {
        unsigned d;

        hf__value_squeeze(at(i), known);
        d = distance(wanted, known);
        if (d < best_distance) {
            best = at(i);
            best_distance = d;
        }
    }
    return best_distance <= (strlen(wanted) < 6 ? 1 : strlen(wanted) / 4 + 1)
               ? best
               : NULL;
}

/* A stretch of text that is safe to show: no secret of a URL that stands in the
 * wrong place, no control character, not long. */
const char *hf__value_quote(const char *text, char to[HF__VALUE_WORD])
{
    (void)hf_redact(text, "***", to, HF__VALUE_WORD);
    for (char *at = to; *at; at++)
        *at = (unsigned char)*at < 0x20 || *at == 0x7f ? '?' : *at;
    return to;
}

struct unit {
    const char *name;
    int64_t ms;
    const char *word;
};

static const struct unit units[] = {
    {"ms", 1, "milliseconds"},    {"s", HF_SECONDS, "seconds"},
    {"m", HF_MINUTES, "minutes"}, {"h", HF_HOURS, "hours"},
    {"d", HF_DAYS, "days"},
};

/* "17 days", for a sentence. */
static void say_duration(int64_t ms, char *to, size_t size)
{
    size_t i = HF_COUNT_OF(units) - 1;

    while (i > 0 && ms < 2 * units[i].ms)
        i--;
    snprintf(to, size, "%" PRId64 " %s", ms / units[i].ms, units[i].word);
}

/* "30s", as it would be written. */
static void write_duration(int64_t ms, char *to, size_t size)
{
    size_t i = HF_COUNT_OF(units) - 1;

    while (i > 0 && ms % units[i].ms != 0)
        i--;
    if (ms == 0)
        i = 1;
    snprintf(to, size, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
}

static const struct unit *find_unit(const char *name)
{
    for (size_t i = 0; i < HF_COUNT_OF(units); i++) {
        if (strcmp(units[i].name, name) == 0)
            return &units[i];
    }
    return NULL;
}

/* Digits with at most one point: value × 10^9, or INT64_MAX for what is too
 * large, and what follows. */
static bool read_number(const char *text, int64_t *ret_nano,
                        const char **ret_end)
{
    int64_t nano = 0;
    int64_t scale = INT64_C(1000000000);
    bool any = false;

    for (; *text >= '0' && *text <= '9'; text++, any = true) {
        int64_t digit = (*text - '0') * scale;

        if (__builtin_mul_overflow(nano, 10, &nano) ||
            __builtin_add_overflow(nano, digit, &nano))
            nano = INT64_MAX;
    }
    if (*text == '.') {
        for (text++; *text >= '0' && *text <= '9'; text++, any = true) {
            scale /= 10;
            if (__builtin_add_overflow(nano, (*text - '0') * scale, &nano))
                nano = INT64_MAX;
        }
    }
    *ret_nano = nano;
    *ret_end = text;
    return any;
}

/* Whole numbers may be larger than read_number() takes. */
static bool read_whole(const char *text, int64_t *ret_value,
                       const char **ret_end)
{
    int64_t value = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, *at - '0', &value))
            return false;
    }
    *ret_value = value;
    *ret_end = at;
    return at != text;
}

/* "60 * 100": somebody's source code, pasted. */
static bool read_product(const char *text, int64_t *ret_value)
{
    int64_t product = 1;

    for (;;) {
        int64_t factor;
        const char *end;

        if (!read_whole(text, &factor, &end) ||
            __builtin_mul_overflow(product, factor, &product))
            return false;
        text = end + strspn(end, " ");
        if (*text == '\0')
            break;
        if (*text != '*')
            return false;
        text += 1 + strspn(text + 1, " ");
    }
    *ret_value = product;
    return true;
}

static int no_unit(const char *text, int64_t value, hf_error *err)
{
    char as_ms[32];
    char as_s[32];

    say_duration(value, as_ms, sizeof(as_ms));
    if (value > HF_DURATION_MAX / HF_SECONDS)
        return hf__fail(err, HF_ECONFIG,
                        "'%s' has no unit, and would be %s even in "
                        "milliseconds; write it like 250ms, 30s, 5m or 2h",
                        text, as_ms);
    say_duration(value * HF_SECONDS, as_s, sizeof(as_s));
    return hf__fail(err, HF_ECONFIG,
                    "'%s' has no unit: %sms would be %s, %ss %s; write it "
                    "like 250ms, 30s, 5m or 2h",
                    text, text, as_ms, text, as_s);
}

static int bad_duration(const char *text, hf_error *err)
{
    char shown[HF__VALUE_WORD];
    char plain[32];
    int64_t value;

    hf__value_quote(text, shown);
    if (strchr(text, '*') && read_product(text, &value) &&
        value <= HF_DURATION_MAX) {
        write_duration(value, plain, sizeof(plain));
        return hf__fail(err, HF_ECONFIG,
                        "'%s' is a calculation; write its result with a unit: "
                        "%s, if milliseconds are meant",
                        shown, plain);
    }
    if (text[0] == '-')
        return hf__fail(err, HF_ECONFIG,
                        "'%s' is negative; write a duration like 250ms or 30s",
                        shown);
    if (strchr(text, '#') || strchr(text, ';'))
        return hf__fail(err, HF_ECONFIG,
                        "'%s' is not a duration; a comment goes on a line of "
                        "its own",
                        shown);
    return hf__fail(err, HF_ECONFIG,
                    "'%s' is not a duration; write it like 250ms, 30s, 5m, 2h "
                    "or 1d",
                    shown);
}

static int too_long(const char *text, hf_error *err)
{
    char shown[HF__VALUE_WORD];

    return hf__fail(err, HF_ECONFIG, "'%s' is longer than a hundred years",
                    hf__value_quote(text, shown));
}

/* @whole or, where there is a fraction, @nano/10^9 of @unit. */
static int scale_duration(const char *text, bool is_whole, int64_t whole,
                          int64_t nano, const struct unit *unit,
                          int64_t *ret_ms, hf_error *err)
{
    int64_t ms;

    if (!is_whole)
        ms = (int64_t)((__int128)nano * unit->ms / 1000000000);
    else if (__builtin_mul_overflow(whole, unit->ms, &ms))
        return too_long(text, err);
    if (ms > HF_DURATION_MAX)
        return too_long(text, err);
    *ret_ms = ms;
    return 0;
}

int hf__value_duration(const char *text, int64_t bare_unit_ms, bool forever,
                       int64_t *ret_ms, hf_error *err)
{
    const struct unit bare = {"", bare_unit_ms, ""};
    const struct unit *unit;
    int64_t whole = 0;
    int64_t nano = 0;
    const char *end;
    bool is_whole;

    if (forever && strcmp(text, "forever") == 0) {
        *ret_ms = HF_FOREVER;
        return 0;
    }
    is_whole = read_whole(text, &whole, &end) && *end != '.';
    if (!is_whole && !read_number(text, &nano, &end))
        return bad_duration(text, err);
    if (nano == INT64_MAX)
        return too_long(text, err);

    unit = find_unit(end);
    if (!unit && *end == '\0' && bare_unit_ms > 0)
        unit = &bare;
    if (!unit && *end == '\0' && whole == 0 && nano == 0)
        unit = &units[0];
    if (!unit && *end == '\0')
        return no_unit(text, is_whole ? whole : nano / 1000000000, err);
    if (!unit)
        return bad_duration(text, err);
    return scale_duration(text, is_whole, whole, nano, unit, ret_ms, err);
}

static int parse_duration(const struct hf__key *key, const char *text,
                          union hf__value *ret, hf_error *err)
{
    char limit[32];
    int64_t ms;
    int rc;

    rc = hf__value_duration(text, 0, key->flags & HF__VALUE_FOREVER, &ms, err);
    if (rc != 0)
        return rc;
    if (ms != HF_FOREVER && ms < key->min) {
        write_duration(key->min, limit, sizeof(limit));
        return hf__fail(err, HF_ECONFIG, "%s is too short; the least is %s",
                        text, limit);
    }
    if (ms > key->max) {
        write_duration(key->max, limit, sizeof(limit));
        return hf__fail(err, HF_ECONFIG, "%s is too long; the most is %s", text,
                        limit);
    }
    ret->ms = ms;
    return 0;
}

static int parse_integer(const struct hf__key *key, const char *text,
                         union hf__value *ret, hf_error *err)
{
    char shown[HF__VALUE_WORD];
    int64_t value;
    const char *end;

    if ((key->flags & HF__VALUE_AUTO) && strcmp(text, "auto") == 0) {
        ret->number = -1;
        return 0;
    }
    if (!read_whole(text, &value, &end) || *end || value < key->min ||
        value > key->max)
        return hf__fail(err, HF_ECONFIG,
                        "'%s' is not a whole number from %" PRId64
                        " to %" PRId64 "%s",
                        hf__value_quote(text, shown), key->min, key->max,
                        key->flags & HF__VALUE_AUTO ? " or auto" : "");
    ret->number = (int32_t)value;
    return 0;
}

/* The range of the row is in hundredths. */
static int parse_share(const struct hf__key *key, const char *text,
                       union hf__value *ret, hf_error *err)
{
    char shown[HF__VALUE_WORD];
    int64_t nano;
    const char *end;

    if (!read_number(text, &nano, &end) || *end || nano > key->max * 10000000)
        return hf__fail(err, HF_ECONFIG,
                        "'%s' is not a number from 0 to %g, as in %s",
                        hf__value_quote(text, shown), (double)key->max / 100,
                        key->standard);
    ret->share = (double)nano / 1e9;
    return 0;
}

static int parse_boolean(const char *text, union hf__value *ret, hf_error *err)
{
    static const char *const words[] = {"off", "on",  "false", "true",
                                        "no",  "yes", "0",     "1"};
    char shown[HF__VALUE_WORD];

    for (size_t i = 0; i < HF_COUNT_OF(words); i++) {
        if (strcmp(text, words[i]) == 0) {
            ret->number = (int32_t)(i & 1);
            return 0;
        }
    }
    return hf__fail(err, HF_ECONFIG, "'%s' is neither on nor off",
                    hf__value_quote(text, shown));
}

static int parse_choice(const struct hf__key *key, const char *text,
                        union hf__value *ret, hf_error *err)
{
    const char *choice = key->choices;
    size_t wanted = strlen(text);
    char shown[HF__VALUE_WORD];

    for (int32_t i = 0;; i++) {
        size_t len = strcspn(choice, "|");

        if (len == wanted && strncmp(choice, text, len) == 0) {
            ret->number = i;
            return 0;
        }
        if (choice[len] == '\0')
            return hf__fail(err, HF_ECONFIG, "'%s' is none of %s",
                            hf__value_quote(text, shown), key->choices);
        choice += len + 1;
    }
}

static const char *const cap_names[] = {
    "fenced",
    "fifo",
    "shared",
    "slots",
    "push",
    "leased",
    "session_bound",
    "survives_restart",
    "survives_failover",
    "distributed",
    "downgrade",
    "versions",
    "list",
    "break",
    "check_token",
    "death_notice",
    "lock_delay",
    "told_before_regrant",
    "conditions",
};

const char *hf_capability_name(uint64_t capability)
{
    for (size_t i = 0; i < HF_COUNT_OF(cap_names); i++) {
        if (capability == UINT64_C(1) << i)
            return cap_names[i];
    }
    return NULL;
}

static const char *cap_name_at(size_t i)
{
    return cap_names[i];
}

static int parse_cap(const char *word, uint64_t *caps, hf_error *err)
{
    const char *similar =
        hf__value_nearest(word, cap_name_at, HF_COUNT_OF(cap_names));
    char shown[HF__VALUE_WORD];
    char a[HF__VALUE_WORD];
    char b[HF__VALUE_WORD];

    hf__value_squeeze(word, a);
    for (size_t i = 0; i < HF_COUNT_OF(cap_names); i++) {
        hf__value_squeeze(cap_names[i], b);
        if (strcmp(a, b) == 0) {
            *caps |= UINT64_C(1) << i;
            return 0;
        }
    }
    if (similar)
        return hf__fail(err, HF_ECONFIG,
                        "there is no capability '%s'; did you mean %s?",
                        hf__value_quote(word, shown), similar);
    return hf__fail(err, HF_ECONFIG,
                    "there is no capability '%s'; 'holdfast engines' lists "
                    "them",
                    hf__value_quote(word, shown));
}

static int parse_caps(const char *text, union hf__value *ret, hf_error *err)
{
    uint64_t caps = 0;
    char word[HF__VALUE_WORD];

    for (text += strspn(text, ", "); *text; text += strspn(text, ", ")) {
        size_t len = strcspn(text, ", ");
        int rc;

        snprintf(word, sizeof(word), "%.*s",
                 (int)(len < HF__VALUE_WORD ? len : HF__VALUE_WORD), text);
        rc = parse_cap(word, &caps, err);
        if (rc != 0)
            return rc;
        text += len;
    }
    ret->caps = caps;
    return 0;
}

static int parse_text(const struct hf__key *key, const char *text,
                      union hf__value *ret, hf_error *err)
{
    hf_error inner;

    ret->text = text;
    if (key->flags & HF__VALUE_URL) {
        HF_CLEANUP(hf__url_freep) struct hf__url *url = NULL;

        return hf__url_parse(text, &url, err);
    }
    if (key->flags & HF__VALUE_NAME) {
        int rc = hf__name_check_text("value", text, strlen(text), 0,
                                     (size_t)key->max, &inner);

        return rc == 0 ? 0 : hf__fail(err, HF_ECONFIG, "%s", inner.text);
    }
    if (strlen(text) > (size_t)key->max)
        return hf__fail(err, HF_ECONFIG, "longer than %" PRId64 " bytes",
                        key->max);
    return 0;
}

int hf__value_parse(const struct hf__key *key, const char *text,
                    union hf__value *ret, hf_error *err)
{
    switch ((enum hf__value_kind)key->kind) {
    case HF__VALUE_DURATION:
        return parse_duration(key, text, ret, err);
    case HF__VALUE_INTEGER:
        return parse_integer(key, text, ret, err);
    case HF__VALUE_NUMBER:
        return parse_share(key, text, ret, err);
    case HF__VALUE_BOOLEAN:
        return parse_boolean(text, ret, err);
    case HF__VALUE_CHOICE:
        return parse_choice(key, text, ret, err);
    case HF__VALUE_CAPS:
        return parse_caps(text, ret, err);
    case HF__VALUE_TEXT:
        return parse_text(key, text, ret, err);
    }
    return hf__fail(err, HF_EINTERNAL, "no such kind of key");
}
