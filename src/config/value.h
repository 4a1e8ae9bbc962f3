/* SPDX-License-Identifier: MIT */
/*
 * value.h - the texts that a key may have, read and explained.
 *
 * keys.c has the table of keys; a row of it is what is declared here.
 */
#ifndef HF_VALUE_H
#define HF_VALUE_H

#include "config/config.h"

enum hf__value_kind {
    HF__VALUE_DURATION, /* int64_t, ms */
    HF__VALUE_INTEGER,  /* int32_t */
    HF__VALUE_NUMBER,   /* double */
    HF__VALUE_BOOLEAN,  /* int32_t */
    HF__VALUE_CHOICE,   /* int32_t: place in .choices */
    HF__VALUE_CAPS,     /* uint64_t */
    HF__VALUE_TEXT      /* char * */
};

enum {
    HF__VALUE_FOREVER = 1, /* duration: "forever" is HF_FOREVER */
    HF__VALUE_AUTO = 2,    /* integer: "auto" is -1 */
    HF__VALUE_SECRET = 4,  /* shown as *** */
    HF__VALUE_NAME = 8,    /* text: UTF-8 without control characters */
    HF__VALUE_URL = 16     /* text: a URL, from code or file only */
};

/* One row of the table. */
struct hf__key {
    const char *name;
    const char *standard; /* the default as text */
    const char *choices;  /* of a choice: "a|b|c" */
    const char *help;
    size_t offset; /* in struct hf__settings */
    int64_t min;
    int64_t max; /* of a number in hundredths, of a text in bytes */
    uint8_t kind;
    uint8_t flags;
};

/* One value of each kind; a text is borrowed from what was read. */
union hf__value {
    int64_t ms;
    int32_t number;
    double share;
    uint64_t caps;
    const char *text;
};

#define HF_SECONDS INT64_C(1000)
#define HF_MINUTES (60 * HF_SECONDS)
#define HF_HOURS (60 * HF_MINUTES)
#define HF_DAYS (24 * HF_HOURS)

/* HF_ECONFIG says what @key takes, without naming it. */
int hf__value_parse(const struct hf__key *key, const char *text,
                    union hf__value *ret_value, hf_error *err);

/* For hints: words are compared in lower case and without separators. */
enum { HF__VALUE_WORD = 48 };
void hf__value_squeeze(const char *text, char to[HF__VALUE_WORD]);
typedef const char *hf__value_word_fn(size_t i);
/* The nearest of @n words, if it is near enough to be what was meant. */
const char *hf__value_nearest(const char *word, hf__value_word_fn *at,
                              size_t n);
/* A copy that is safe to show: no control character, and not long. */
const char *hf__value_quote(const char *text, char to[HF__VALUE_WORD]);

/* "30s" → 30000. A unit is required unless @bare_unit_ms gives the one of a
 * bare number (0: required). "forever" is HF_FOREVER where @forever. */
int hf__value_duration(const char *text, int64_t bare_unit_ms, bool forever,
                       int64_t *ret_ms, hf_error *err);

#endif
