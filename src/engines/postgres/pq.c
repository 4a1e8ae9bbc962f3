/* SPDX-License-Identifier: MIT */
/*
 * pq.c - libpq, loaded when the first client of PostgreSQL is opened.
 *
 * Linked, it would cost every program that locks a file six milliseconds
 * before main().
 */
#include "engines/postgres/pq.h"

#include <pthread.h>

#include "base/error.h"

HF__DYNLIB_NOTE(pq, "postgresql", "suggested", "\"" HF__PQ_FILE "\"");

struct hf__pq_library hf__pq;

static const char *const names[] = {HF__PQ_FUNCTIONS(HF__DYNLIB_NAME)};
static bool loaded;

static void load(void)
{
    loaded = hf__dynlib_load(HF__PQ_FILE, names, HF_COUNT_OF(names), &hf__pq);
}

int hf__pq_load(hf_error *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, load);
    if (loaded)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    HF__PQ_FILE " of PostgreSQL 14 or later is not to be had: "
                                "apt install libpq5");
}

int hf__pq_begin(void)
{
    int cancel_state = PTHREAD_CANCEL_DISABLE;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
    return cancel_state;
}

void hf__pq_end(int cancel_state)
{
    (void)pthread_setcancelstate(cancel_state, NULL);
}
