/* SPDX-License-Identifier: MIT */
/* event.c - waiting in a test for something that another thread does. */
#include "event.h"

#include <poll.h>
#include <time.h>

#include "test.h"

int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void event_breathe(void)
{
    (void)poll(NULL, 0, 1);
}

void event_tell(struct event *event, int value)
{
    (void)pthread_mutex_lock(&event->mutex);
    if (event->count < (int)(sizeof(event->values) / sizeof(int)))
        event->values[event->count] = value;
    event->count++;
    event->at_ms = clock_ms();
    (void)pthread_cond_broadcast(&event->happened);
    (void)pthread_mutex_unlock(&event->mutex);
}

static bool await(struct event *event, int count, int64_t wait_ms)
{
    struct timespec until;
    bool happened;
    int rc = 0;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += wait_ms / 1000;
    until.tv_nsec += wait_ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    (void)pthread_mutex_lock(&event->mutex);
    while (event->count < count && rc == 0)
        rc = pthread_cond_timedwait(&event->happened, &event->mutex, &until);
    happened = event->count >= count;
    (void)pthread_mutex_unlock(&event->mutex);
    return happened;
}

void event_await(struct event *event, int count, int64_t wait_ms)
{
    if (!await(event, count, wait_ms))
        FAIL("it happened %d times, not %d, within %lld ms", event_count(event),
             count, (long long)wait_ms);
}

int event_count(struct event *event)
{
    int count;

    (void)pthread_mutex_lock(&event->mutex);
    count = event->count;
    (void)pthread_mutex_unlock(&event->mutex);
    return count;
}

bool event_is_silent(struct event *event, int count, int64_t wait_ms)
{
    return !await(event, count, wait_ms);
}
