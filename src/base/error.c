/* SPDX-License-Identifier: MIT */
/*
 * error.c - codes with their fixed texts, and the making of hf_error.
 *
 * A code is for programs, a sentence for people. The layer that knows what
 * went wrong writes the sentence (hf__fail); each layer above may put its
 * context in front (hf__fail_in): "acquire 'jobs': table: no space".
 *
 * Failure: a text too long is cut between two characters, never inside one.
 * Nobody has to pass an hf_error; the code alone always gets through.
 */
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>

/* The analyzer's versions are for callers. */
#undef hf__fail
#undef hf__fail_engine

/* Longer than any text that fits, so that only hf__text_copy() cuts. */
enum { SCRATCH = 512 };

/* The name of @code, or its text; NULL: there is no such code. */
static const char *find(int code, bool name_wanted)
{
    switch (code) {
    case HF_OK:
        return name_wanted ? "HF_OK" : "success";
#define HF_X(name, value, text)                                                \
    case HF_##name:                                                            \
        return name_wanted ? "HF_" #name : text;
        HF_ERROR_MAP(HF_X)
#undef HF_X
    default:
        return NULL;
    }
}

const char *hf_strerror(int code)
{
    const char *text = find(code, /* name_wanted= */ false);

    return text ? text : "unknown error code";
}

const char *hf_errname(int code)
{
    const char *name = find(code, /* name_wanted= */ true);

    return name ? name : "HF_E?";
}

int hf_is_retriable(int code)
{
    switch (code) {
    case HF_EBUSY:
    case HF_ETIMEOUT:
    case HF_EUNKNOWN:
    case HF_EUNAVAILABLE:
    case HF_ENOMEM:
    case HF_ENOSPACE:
        return 1;
    default:
        return 0;
    }
}

int hf_is_fatal(int code)
{
    return code == HF_ECLOSED || code == HF_EFORK || code == HF_EAUTH;
}

const char *hf_library_version(void)
{
    return HF_VERSION_TEXT;
}

static void fill(hf_error *err, int code, int engine_code, const char *format,
                 va_list args) HF_PRINTF(4, 0);

static void fill(hf_error *err, int code, int engine_code, const char *format,
                 va_list args)
{
    char text[SCRATCH];

    vsnprintf(text, sizeof(text), format, args);
    err->code = code;
    err->engine_code = engine_code;
    hf__text_copy(err->text, sizeof(err->text), text);
}

int hf__fail(hf_error *err, int code, const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    va_start(args, format);
    fill(err, code, /* engine_code= */ 0, format, args);
    va_end(args);
    return code;
}

int hf__fail_engine(hf_error *err, int code, int engine_code,
                    const char *format, ...)
{
    va_list args;

    if (!err)
        return code;
    va_start(args, format);
    fill(err, code, engine_code, format, args);
    va_end(args);
    return code;
}

int hf__fail_in(hf_error *err, int code, const char *format, ...)
{
    char text[SCRATCH];
    va_list args;
    int len;

    if (!err)
        return code;
    va_start(args, format);
    len = vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (len >= 0 && (size_t)len < sizeof(text))
        snprintf(text + len, sizeof(text) - (size_t)len, ": %s", err->text);
    hf__text_copy(err->text, sizeof(err->text), text);
    return err->code;
}

int hf__fail_pass(hf_error *to, const hf_error *from)
{
    if (to && to != from)
        *to = *from;
    return from->code;
}
