/* SPDX-License-Identifier: MIT */
/*
 * core_fixture.h - the real core, one client, no threads, a clock that stands
 * still, and an engine that does what the test says.
 *
 * The engine ("test:") only writes down what it was asked; the test reports
 * the outcome. With core_auto() it grants and frees at once.
 */
#ifndef HF_TESTS_CORE_FIXTURE_H
#define HF_TESTS_CORE_FIXTURE_H

#include "core/client.h"
#include "test.h"

enum core_op {
    CORE_CONNECT,
    CORE_ACQUIRE,
    CORE_WITHDRAW,
    CORE_RELEASE,
    CORE_RENEW,
    CORE_DOWNGRADE,
    CORE_QUERY,
    CORE_FINISH,
    CORE_FLUSH,
    CORE_WATCH,
    CORE_UNWATCH,
    CORE_OPS
};

/* One caller's asynchronous request and what became of it. */
struct core_ask {
    hf_request *request;
    int outcomes;
    int rc;
    hf_hold *hold;
    hf_error err;
};

/* Open a client with this query ("" for none). Closed after the test. */
hf_client *core_open(const char *query);
/* The same behind other engines, "trace+" or "fault+trace+". */
hf_client *core_open_behind(const char *wrappers, const char *query);
/* Close it before the test is over. */
void core_close(void);
struct hf__engine *core_engine(void);
/* What the core calls, for a test that replaces more of it. */
struct hf__world *core_world(void);
/* How often the engine was asked since core_open(), and the ticket of the
 * last time; NULL if that is gone. */
int core_count(enum core_op op);
struct hf__ticket *core_last(enum core_op op);
/* The next @op comes after so many ms, not before. */
void core_comes_after_ms(enum core_op op, int64_t ms);
struct hf__query *core_query(void);
/* From now on acquires are granted and releases confirmed at once. */
void core_auto(void);
/* From now on the engine refuses each call of @op with @code; 0: as before. */
void core_refuse(enum core_op op, int code);
/* From now on connect() says nothing until core_connected(). */
void core_hold_connection(bool held);
/* What the ops table says beside its calls; before core_open(). */
void core_traits(uint64_t caps, uint32_t flags);
/* From now on the engine says by itself what changed: core_changed(). */
void core_push(bool push);

/* Let time pass, in steps no longer than the next timer, dispatching. */
void core_advance_ms(int64_t ms);
/* What the other threads do when one lets them run; NULL: nothing. */
void core_others(void (*run)(void));
/* Let time pass without anybody noticing, as SIGSTOP does. */
void core_stop_ms(int64_t ms);
int64_t core_now_ns(void);

/* Report, as the engine would. */
void core_granted(struct hf__ticket *ticket, uint64_t token, uint32_t tokens);
void core_queued(struct hf__ticket *ticket);
void core_busy(struct hf__ticket *ticket, int64_t again_ns, const char *holder);
void core_failed(struct hf__ticket *ticket, int code);
void core_unknown(struct hf__ticket *ticket);
void core_renewed(struct hf__ticket *ticket);
void core_lost(struct hf__ticket *ticket);
void core_left(struct hf__ticket *ticket, int rc);
/* The answer to the last query; what it asked for is gone afterwards. */
void core_answer(int rc);
void core_down(int code);
void core_changed(const char *name);
void core_connected(void);

/* hf_acquire_start() whose outcome is written into @ask. @wait_ms as in
 * hf_opts; @owner may be NULL. */
void core_ask(struct core_ask *ask, const char *name, int64_t wait_ms,
              const char *owner);
void core_ask_with(struct core_ask *ask, const char *name, const hf_opts *opts);
/* The same, granted with @token: the hold. */
hf_hold *core_take(struct core_ask *ask, const char *name, uint64_t token,
                   uint32_t tokens);
/* core_open() by @query, and ask for "jobs" without end: its ticket. */
struct hf__ticket *core_open_asking(struct core_ask *ask, const char *query);
/* Free the request; the hold, if any, is released. */
void core_end(struct core_ask *ask);

#endif
