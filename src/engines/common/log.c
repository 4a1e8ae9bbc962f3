/* SPDX-License-Identifier: MIT */
/*
 * log.c - what engines tell an administrator.
 *
 * Apart from registry.c, which knows all engines: a test of one engine needs only
 * that one.
 */
#include "base/buf.h"
#include "engines/engine.h"

void hf__engine_log(const struct hf__engine *engine, int level,
                    const char *format, ...)
{
    const struct hf__engine_host *host = engine->host;
    struct hf__buf text = {0};
    va_list args;

    if (!host->log)
        return;
    va_start(args, format);
    hf__buf_vprintf(&text, format, args);
    va_end(args);
    host->log(host->log_owner, level, hf__buf_text(&text));
    hf__buf_release(&text);
}
