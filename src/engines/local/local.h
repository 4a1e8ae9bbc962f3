/* SPDX-License-Identifier: MIT */
/* local.h - the embedded engine's own state. */
#ifndef HF_LOCAL_LOCAL_H
#define HF_LOCAL_LOCAL_H

#include "engines/engine.h"
#include "engines/local/change.h"
#include "engines/local/directory.h"
#include "engines/local/life.h"
#include "engines/local/waiting.h"

enum { HF__LOCAL_OLD_TABLES = 4, HF__LOCAL_LISTS = 256 };

struct hf__local {
    struct hf__engine base;
    struct hf__place place;
    struct hf__store store;
    struct hf__watch watch;
    struct hf__life life;
    /* Waiting tickets (struct hf__local_ticket), by bucket. */
    struct hf__list waiting[HF__LOCAL_LISTS];
    uint32_t waiting_n;
    uint32_t hints; /* of the slot, so many are read */
    struct hf__list held;
    bool connected;
    bool sentry;
    uint32_t alarm;     /* of the slot, as last seen */
    int64_t checked_ns; /* when the file was last found in its place */
    /* What kick() adds to: the inbox of the slot, or nobody's word. */
    _Atomic(_Atomic uint32_t *) bell;
    _Atomic uint32_t nobody;
    _Atomic uint32_t nobody_seen;
    _Atomic bool kicked;
    /* Mappings of stores that were deleted. A thread may still sleep on one,
     * so they stay until the end; only a few are kept. */
    struct hf__table old_tables[HF__LOCAL_OLD_TABLES];
    uint32_t old_tables_n;
    /* watch.c */
    struct hf__list feeds;
    struct hf__timer watch_timer;
    uint32_t changes; /* of the table, as last seen */
    bool resting;     /* nobody listens for more of them, for a moment */
    size_t prefix_len;
    char name[HF__KEY_MAX]; /* of the key in use, if there is a prefix */
};

/* From OUT to one of the others, and back: enlist(), delist(). */
enum hf__local_state {
    HF__LOCAL_OUT, /* in no list */
    HF__LOCAL_IN_LINE,
    HF__LOCAL_PARKED, /* on a condition, not in line */
    HF__LOCAL_HELD
};

/* The engine's bytes in a ticket: few, for there may be many tickets. */
struct hf__local_ticket {
    struct hf__list link;
    struct hf__ticket *ticket; /* NULL: OUT */
    uint64_t word;             /* of the bucket, when we last saw it */
    union {
        uint64_t target; /* waiting: the client we watch; 0: several */
        uint64_t token;  /* held */
    };
    int64_t check_ns; /* waiting: look again then; the table's time */
    uint32_t tokens;  /* held */
    uint32_t bucket : 28;
    uint32_t state : 2; /* enum hf__local_state */
    uint32_t woken : 1; /* held: it bears a wake-up */
    uint32_t alone : 1; /* held: we installed @word, with this one only */
};

static inline bool hf__local_waits(const struct hf__local_ticket *mine)
{
    return mine->state == HF__LOCAL_IN_LINE || mine->state == HF__LOCAL_PARKED;
}

/* Where @name lives. The key is good until the next call. */
void hf__local_key(struct hf__local *local, const char *name, size_t len,
                   struct hf__key *key);

int hf__local_not_open(hf_error *err);
/* @key: of query->name, where it has one. */
typedef int hf__local_answer_fn(struct hf__local *local,
                                struct hf__query *query,
                                const struct hf__key *key, hf_error *err);
/* A question that @find_out answers at once. */
int hf__local_answer(struct hf__engine *engine, struct hf__query *query,
                     hf__local_answer_fn *find_out, hf_error *err);

/* condition.c */
hf__engine_park_fn hf__local_park;
hf__engine_unpark_fn hf__local_unpark;
hf__engine_query_fn hf__local_signal;

/* inspect.c */
hf__engine_query_fn hf__local_list;
hf__engine_query_fn hf__local_check_token;
hf__engine_query_fn hf__local_break;
hf__engine_query_fn hf__local_version_read;
hf__engine_query_fn hf__local_version_commit;
hf__engine_query_fn hf__local_doctor;
/* "db1:4211, \"vacuum\"": the holder of @key in store->draft. */
void hf__local_holder(const struct hf__local *local, const struct hf__key *key,
                      char *to, size_t size);

/* watch.c */
hf__engine_watch_fn hf__local_watch;
hf__engine_watch_fn hf__local_watch_stop;
/* There are feeds: has anything changed? */
void hf__local_watch_attend(struct hf__local *local);

/* board.c */
hf__engine_query_fn hf__local_board_post;
hf__engine_query_fn hf__local_board_read;

/* attend.c */
hf__engine_wait_fn hf__local_wait;
hf__engine_attend_fn hf__local_attend;
hf__engine_kick_fn hf__local_kick;
hf__engine_sentry_fn hf__local_sentry;
/* A ticket waits, as store->draft has it: watch for it. */
void hf__local_observe(struct hf__local *local, struct hf__local_ticket *mine,
                       const struct hf__key *key, int64_t now_ns);
/* Ask for a ticket, @why being HF__ASK_*, or park it in place of @old (else
 * NULL), and note what came
 * of it; reports nothing. Returns as hf__change_ask(). */
int hf__local_ask(struct hf__local *local, struct hf__ticket *ticket,
                  int64_t sent_ns, uint32_t why, struct hf__ticket *old,
                  hf_error *err);
/* No thread sleeps on the new watch yet: the driver, which sleeps on the old
 * one, or the sentry has to take it. */
void hf__local_tell_watchers(struct hf__local *local);
/* Tell the core what became of a ticket that was parked: @answer, or an error. */
void hf__local_condition_report(struct hf__local *local,
                                struct hf__ticket *ticket, int answer,
                                int64_t sent_ns);
void hf__local_report_grant(struct hf__local *local, struct hf__ticket *ticket,
                            int64_t sent_ns);
/* The engine forgets @mine. */
void hf__local_forget(struct hf__local *local, struct hf__local_ticket *mine);
/* Once a second: does the file still exist? If not, leave the store, report
 * that, and return false. */
bool hf__local_check_store(struct hf__local *local, int64_t now_ns);
/* The store was deleted: leave it, and report that. */
void hf__local_lose_store(struct hf__local *local);

#endif
