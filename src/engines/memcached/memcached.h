/* SPDX-License-Identifier: MIT */
/*
 * memcached.h - the parts of the Memcached engine to each other.
 *
 *   memcached.c   the ops table, open, connect, close, the timer
 *   connection.c  one connection: greeting, calls and their answers in order
 *   wire.c        the protocol's answers (pure)
 *   tickets.c     the moves of a ticket, outcomes of any call
 *   items.c       the key and the value of a lock's item
 *   acquire.c  release.c  renew.c  doctor.c
 */
#ifndef HF_MEMCACHED_MEMCACHED_H
#define HF_MEMCACHED_MEMCACHED_H

#include "engines/common/calls.h"
#include "engines/common/link.h"
#include "engines/engine.h"
#include "engines/memcached/items.h"
#include "engines/memcached/tickets.h"
#include "net/stream.h"

struct hf__memcached {
    struct hf__engine base;
    bool tooz; /* dialect=tooz */
    struct hf__stream stream;
    struct hf__tls_context *tls;
    struct hf__calls calls; /* struct hf__memcached_call */
    bool up;
    uint32_t epoch; /* of connections, from 1 */
    int64_t connect_ns;
    struct hf__link link; /* its timer: an answer is overdue */
    char version[24];
    char origin[280]; /* of each value: host and process */
    char peer[280];   /* for people: "memcached db1:11211" */
};

static inline struct hf__memcached_ticket *hf__memcached_ticket(
    const struct hf__memcached *memcached, struct hf__ticket *ticket)
{
    return hf__engine_ticket(&memcached->base, ticket);
}

/* ---- connection.c ------------------------------------------------------ */

int hf__memcached_connection_start(struct hf__memcached *memcached,
                                   hf_error *err);
void hf__memcached_connection_stop(struct hf__memcached *memcached,
                                   bool forked);
/* The connection cannot be trusted any more: report what was under way. */
void hf__memcached_connection_fail(struct hf__memcached *memcached,
                                   const hf_error *err);
/* What was written to stream.out since @mark is a command, answered to @call.
 * HF_ENOMEM takes it back. */
int hf__memcached_connection_sent(struct hf__memcached *memcached, size_t mark,
                                  const struct hf__memcached_call *call,
                                  hf_error *err);
/* The oldest call under way; there is one. */
static inline struct hf__memcached_call *hf__memcached_connection_oldest(
    const struct hf__memcached *memcached)
{
    return hf__calls_at(&memcached->calls, 0);
}
/* @ticket is told nothing any more. */
void hf__memcached_connection_forget(struct hf__memcached *memcached,
                                     const struct hf__ticket *ticket);
void hf__memcached_connection_explain_lost(
    const struct hf__memcached *memcached, hf_error *err);

int hf__memcached_connection_not_up(const struct hf__memcached *memcached,
                                    hf_error *err);

/* ---- acquire.c --------------------------------------------------------- */

hf__engine_acquire_fn hf__memcached_acquire;
int hf__memcached_acquire_look(struct hf__memcached *memcached,
                               struct hf__ticket *ticket, hf_error *err);
/* Store our value, and look what is there then: add it, or replace the item
 * with the number @cas. */
int hf__memcached_acquire_store(struct hf__memcached *memcached,
                                struct hf__ticket *ticket, uint64_t cas,
                                hf_error *err);

/* ---- release.c --------------------------------------------------------- */

hf__engine_withdraw_fn hf__memcached_release_withdraw;
hf__engine_release_fn hf__memcached_release;
int hf__memcached_release_delete(struct hf__memcached *memcached,
                                 struct hf__ticket *ticket, uint64_t cas,
                                 hf_error *err);
/* Certain: it is not there. @was_ours: until now. */
void hf__memcached_release_left(struct hf__memcached *memcached,
                                struct hf__ticket *ticket, bool was_ours);

/* ---- renew.c, doctor.c ------------------------------------------------- */

hf__engine_renew_fn hf__memcached_renew;
hf__engine_query_fn hf__memcached_doctor;

#endif
