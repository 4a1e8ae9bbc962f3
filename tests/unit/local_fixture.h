/* SPDX-License-Identifier: MIT */
/*
 * local_fixture.h - the embedded engine without the core: the test asks, and
 * the fixture remembers what was reported.
 */
#ifndef HF_TESTS_LOCAL_FIXTURE_H
#define HF_TESTS_LOCAL_FIXTURE_H

#include "engines/local/local.h"

enum report {
    NOTHING,
    GRANTED,
    QUEUED,
    PARKED,
    BUSY,
    FAILED,
    UNKNOWN,
    RENEWED,
    LOST,
    LEFT
};

struct ask {
    enum report report; /* the last one */
    uint32_t grants;    /* how many were reported */
    struct hf__grant grant;
    hf_error err;
    int rc;           /* of LEFT */
    int reason;       /* of LOST */
    char holder[256]; /* of BUSY */
    struct hf__ticket *ticket;
};

struct ticket;

struct side {
    struct hf__engine *engine;
    struct hf__local *local;
    struct hf__engine_host host;
    struct hf__settings settings;
    struct hf__url *url;
    struct hf__loop loop;
    uint64_t next_id;
    struct ticket *tickets;
    bool up;
    int downs;
    hf_error down_err;
    int answer_rc;
    hf_error answer_err;
};

/* A client of the store in @directory, connected; gone with the test. */
struct side *side_new(const char *directory);
/* The same, up to open(); @query is appended to the URL. */
struct side *side_prepare(const char *url);
int side_connect(struct side *side, hf_error *err);
void side_free(void *side);

/* Ask for @name; the ticket lives as long as its side. */
struct ask *side_ask(struct side *side, const char *name, int mode, int slots);
/* The same with a lease, a range, and whether to wait. */
struct ask *side_ask_with(struct side *side, const char *name, int mode,
                          int slots, int64_t ttl_ms, uint32_t reserve,
                          bool nowait);
struct ask *side_take(struct side *side, const char *name);
enum report side_release(struct side *side, struct ask *ask);
enum report side_withdraw(struct side *side, struct ask *ask);
enum report side_renew(struct side *side, struct ask *ask);
enum report side_downgrade(struct side *side, struct ask *ask);
/* Wait at most @wait_ms for something, and look. */
void side_wait(struct side *side, int64_t wait_ms);
/* Wait until @ask has @report; false after @wait_ms. */
bool side_wait_for(struct side *side, const struct ask *ask, enum report report,
                   int64_t wait_ms);

/* How many rows hf_list() would show for @name, and the last of them. */
struct rows {
    uint32_t holders;
    uint32_t waiters;
    hf_lock_info last;
    char owner[128];
    char note[256];
    char host[128];
    uint32_t findings;
    char found[16][640]; /* "0 directory: /tmp/x, …" */
};
int side_doctor(struct side *side, struct rows *rows);
int side_list(struct side *side, const char *name, struct rows *rows);
int side_query(struct side *side, hf__engine_query_fn *ask, const char *name,
               uint64_t token, const char *owner, uint64_t *version);

/* DIR/NAME, and local://DIR; gone with the test. */
const char *side_path(const char *dir, const char *name);
const char *side_url(const char *dir);
/* The world, to be changed until the end of the test. */
struct hf__world *side_world(void);

#endif
