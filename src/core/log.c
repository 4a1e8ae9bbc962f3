/* SPDX-License-Identifier: MIT */
/*
 * log.c - lines for the host's log hook.
 *
 * The library itself never prints. A host that wants to hear sets a hook
 * before the first client is opened; until then the level is "nothing", and a
 * line costs one relaxed load.
 *
 * Failure: a line too long is cut between two characters. Newlines and other
 * control characters inside (a server's message) become spaces, so one call is
 * one line in whatever log the host keeps.
 */
#include "core/log.h"

#include <stdatomic.h>

enum { SILENT = -1, LINE = 512 };

static _Atomic int log_level = SILENT;
static hf_log_cb *_Atomic log_hook;
static void *_Atomic log_ctx;

void hf_set_log(hf_log_cb *log, int level, void *ctx)
{
    atomic_store_explicit(&log_level, SILENT, memory_order_relaxed);
    atomic_store_explicit(&log_ctx, ctx, memory_order_release);
    atomic_store_explicit(&log_hook, log, memory_order_release);
    atomic_store_explicit(&log_level, log ? level : SILENT,
                          memory_order_release);
}

bool hf__log_on(int level)
{
    return level <= atomic_load_explicit(&log_level, memory_order_relaxed);
}

static void make_one_line(char *text)
{
    for (char *c = text; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f)
            *c = ' ';
    }
}

bool hf__log_wanted(const struct hf__log_hook *own, int level)
{
    return own->log ? level <= own->level : hf__log_on(level);
}

void hf__log_line(const struct hf__log_hook *own, int level, const char *text)
{
    hf_log_cb *hook = own->log;
    void *ctx = own->ctx;
    char line[LINE];

    if (!hook) {
        hook = atomic_load_explicit(&log_hook, memory_order_acquire);
        ctx = atomic_load_explicit(&log_ctx, memory_order_acquire);
    }
    if (!hook || !hf__log_wanted(own, level))
        return;
    hf__text_copy(line, sizeof(line), text);
    make_one_line(line);
    hook(level, line, ctx);
}
