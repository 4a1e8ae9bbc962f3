/* SPDX-License-Identifier: MIT */
/* watch.h - tell an application what happens to locks. */
#ifndef HF_WATCH_H
#define HF_WATCH_H

#include "core/callbacks.h"
#include "core/query.h"
#include "core/request.h"

enum {
    HF__WATCH_EVENTS = 1024, /* undelivered ones, before all are dropped */
    HF__WATCH_NAMES = 64     /* that one look asks for singly */
};

/* Names that hints were about; none and not all: nothing. */
struct hf__watch_names {
    char *at[HF__WATCH_NAMES];
    uint32_t n;
    bool all; /* more than that, or a hint without a name */
};

struct hf_watch {
    struct hf__list link; /* client->watches */
    hf_client *client;
    struct hf__feed feed; /* name or prefix; what the engine knows of us */
    char *text;           /* what feed points to */
    hf_watch_cb *each;
    void *ctx;

    /* Looking. */
    struct hf__timer timer;        /* the next look */
    struct hf_request *look;       /* made once, used for every question */
    bool looking;                  /* its answer is awaited */
    char *asked;                   /* the one name it is about; NULL: all */
    struct hf__watch_names hinted; /* since the look began */
    struct hf__watch_names todo;   /* names left for this look */
    int64_t looked_ns;             /* when the last look was over */
    int64_t asked_ns;              /* when the last question was sent */
    int64_t pace_ns;               /* between looks without hints */
    bool failed;                   /* the last question got no answer */
    int64_t asked_for_hints_ns;    /* of the engine, the last time */

    /* Telling. */
    struct hf__rows seen;   /* sorted; what @each knows, or will */
    bool in_step;           /* false: RESYNC has to come first */
    struct hf__list events; /* undelivered */
    uint32_t changes;       /* of them, without the rows after a RESYNC */
    bool changed;           /* by the last answer */
    uint64_t missed;        /* dropped since the last RESYNC */
    struct hf__callback callback;
    struct hf__watch_event *telling; /* prepared */
};

/* All with the monitor. */
struct hf_watch *hf__watch_new(hf_client *client, const char *text, bool exact);
/* Threads and room for what it needs. */
int hf__watch_reserve(struct hf_watch *watch, hf_error *err);
/* From now on events come. */
void hf__watch_start(struct hf_watch *watch);
/* No event begins any more; waits for one that is being told. */
void hf__watch_stop(struct hf_watch *watch);
void hf__watch_free(struct hf_watch *watch);

/* The engine says that something about @name, or anything, may have changed. */
void hf__watch_hint(hf_client *client, const char *name);
/* This client has broken a lock. */
void hf__watch_broke(hf_client *client, const struct hf__query *query);
void hf__watch_connected(hf_client *client);
/* The client closes: nothing is told any more. */
void hf__watch_close(hf_client *client);

#endif
