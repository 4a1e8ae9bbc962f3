/* SPDX-License-Identifier: MIT */
/* event.h - waiting in a test for something that another thread does. */
#ifndef HF_TESTS_EVENT_H
#define HF_TESTS_EVENT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Only a test that fails waits so long; a machine can be very busy. */
enum { EVENT_PATIENCE_MS = 60000 };

/* Something that happens a number of times, with a value each. */
struct event {
    pthread_mutex_t mutex;
    pthread_cond_t happened;
    int count;
    int values[64]; /* of the first ones */
    int64_t at_ms;  /* when it happened last */
};

#define EVENT_INIT                                                             \
    {                                                                          \
        .mutex = PTHREAD_MUTEX_INITIALIZER,                                    \
        .happened = PTHREAD_COND_INITIALIZER                                   \
    }

void event_tell(struct event *event, int value);
/* Wait until it has happened @count times; fails the test after @wait_ms. */
void event_await(struct event *event, int count, int64_t wait_ms);
int event_count(struct event *event);
/* True if it did not happen a @count-th time within @wait_ms. */
bool event_is_silent(struct event *event, int count, int64_t wait_ms);

/* CLOCK_BOOTTIME in milliseconds. */
int64_t clock_ms(void);

/* Look again and again until @condition holds; fails the test if it does not
 * in time. For what gives no sign when it happens. */
#define EVENTUALLY(condition)                                                  \
    do {                                                                       \
        int64_t event_until = clock_ms() + EVENT_PATIENCE_MS;                  \
        while (!(condition)) {                                                 \
            if (clock_ms() > event_until)                                      \
                FAIL("%s did not come true", #condition);                      \
            event_breathe();                                                   \
        }                                                                      \
    } while (0)
void event_breathe(void);

#endif
