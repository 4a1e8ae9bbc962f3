/* SPDX-License-Identifier: MIT */
/* error.h - making and passing on hf_error. */
#ifndef HF_ERROR_H
#define HF_ERROR_H

#include "base/base.h"

/* Write @err (may be NULL) and return @code: return hf__fail(err, HF_EINVAL,
 * "…"). The text is cut at a UTF-8 boundary. */
int hf__fail(hf_error *err, int code, const char *format, ...) HF_PRINTF(3, 4);
/* The same with the engine's own code, e.g. errno. */
int hf__fail_engine(hf_error *err, int code, int engine_code,
                    const char *format, ...) HF_PRINTF(4, 5);
/* Put "context: " before the text; returns err->code, or @code if NULL. */
int hf__fail_in(hf_error *err, int code, const char *format, ...)
    HF_PRINTF(3, 4);
#ifdef __clang_analyzer__
/* What the analyzer cannot see: a failure never returns 0. */
#define hf__fail(err, code, ...) ((void)hf__fail(err, code, __VA_ARGS__), code)
#define hf__fail_engine(err, code, ...)                                        \
    ((void)hf__fail_engine(err, code, __VA_ARGS__), code)
#endif
/* Copy @from to @to (may be NULL); returns from->code. */
int hf__fail_pass(hf_error *to, const hf_error *from);

#endif
