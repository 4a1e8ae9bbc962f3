/* SPDX-License-Identifier: MIT */
/* waiting.h - the words that a client watches while it sleeps. */
#ifndef HF_LOCAL_WAITING_H
#define HF_LOCAL_WAITING_H

#include <pthread.h>

#include "engines/local/futex.h"
#include "engines/local/store.h"

enum { HF__WATCH_MAX = 120 };

/* A set of words to sleep on: wake when one of them no longer has its value, or
 * at the instant. The first word is the inbox. */
struct hf__watch {
    pthread_mutex_t lock; /* held for moments; the monitor may be held too */
    uint32_t n;
    int64_t until_ns; /* our own CLOCK_BOOTTIME */
    struct {
        _Atomic uint32_t *word;
        uint32_t value;
        bool private;
    } at[HF__WATCH_MAX];
};

void hf__watch_init(struct hf__watch *watch);
void hf__watch_release(struct hf__watch *watch);
/* Around changes of the watch: other threads may sleep on it. */
void hf__watch_begin(struct hf__watch *watch);
void hf__watch_end(struct hf__watch *watch);
/* Begin anew: the inbox alone, which had @value before anything was read. */
void hf__watch_reset(struct hf__watch *watch, const struct hf__store *store,
                     uint32_t value);
/* The inbox had @value before anything was read. */
void hf__watch_inbox(struct hf__watch *watch, uint32_t value);
/* Wake when @client dies. False if it is dead already: then look again. */
bool hf__watch_add(struct hf__watch *watch, const struct hf__store *store,
                   uint64_t client);
/* Wake at @instant_ns of the table's time, if not before. */
void hf__watch_until(struct hf__watch *watch, const struct hf__store *store,
                     int64_t instant_ns);
/* The kernel wakes one sleeper per dead client's word: wake the others. True
 * if a watched client has died. */
bool hf__watch_pass_on(const struct hf__watch *watch);
/* Sleep on a copy of @watch, until @until_ns at most; not at all if *kicked,
 * which it clears. */
void hf__watch_sleep(struct hf__watch *watch, const struct hf__store *store,
                     _Atomic bool *kicked, int64_t until_ns);
/* The same on a watch that no other thread uses. */
void hf__watch_sleep_on(const struct hf__watch *watch, int64_t until_ns);
/* Find out whether the kernel has futex_waitv; the result. */
void hf__watch_ask_kernel(void);
bool hf__watch_kernel_can(void);
/* Tests: do as if it had not. */
void hf__watch_forbid(bool forbid);

#endif
