/* SPDX-License-Identifier: MIT */
/*
 * link.h - what an engine has around the connection to its server: one timer,
 * listening while locks are held, TLS by the settings, answers that are overdue.
 *
 *   open()   hf__link_init(); hf__link_tls() for a scheme with TLS
 *   fire()   does what is due, and calls hf__link_wake() for what is next
 *   close()  hf__link_stop()
 *
 * Each part of an engine calls hf__link_wake() for its own next instant; fire()
 * runs at the earliest and finds out what it was for. A connection that has to
 * end while it is being read ends by hf__stream_fail() (net/stream.h).
 *
 * LISTENING. The core reads from a connection only while an answer is to come
 * (engine->under_way). But a connection that ends, or a message that the server
 * sends by itself, is news for a holder. So when locks have been held for a
 * moment, the link counts one answer as still to come. Not at once: that would
 * wake another thread for every lock, however short. hf__link_hold() reports
 * each ticket that becomes held, or is held no longer; fire() asks
 * hf__link_listen_due().
 */
#ifndef HF_ENGINES_LINK_H
#define HF_ENGINES_LINK_H

#include "engines/engine.h"
#include "net/stream.h"

struct hf__link {
    struct hf__engine *engine;
    struct hf__timer timer;
    int64_t listen_after_ns;
    int64_t listen_ns; /* listen from then on */
    uint32_t held;     /* tickets */
    bool listening;    /* counted in engine->under_way */
};

void hf__link_init(struct hf__link *link, struct hf__engine *engine,
                   void (*fire)(struct hf__timer *timer),
                   int64_t listen_after_ns);
void hf__link_stop(struct hf__link *link);
static inline struct hf__link *hf__link_of(struct hf__timer *timer)
{
    return HF_CONTAINER_OF(timer, struct hf__link, timer);
}
/* Run the timer no later than @due_ns; HF_NEVER changes nothing. */
void hf__link_wake(struct hf__link *link, int64_t due_ns);

/* One ticket more is held, or one less. */
void hf__link_hold(struct hf__link *link, bool held);
/* Listen if it is time; returns when it will be, or HF_NEVER. */
int64_t hf__link_listen_due(struct hf__link *link, int64_t now_ns);

/* End @stream: "@peer: @what within … ms". */
void hf__link_overdue(struct hf__stream *stream, const char *peer,
                      const char *what, int64_t ms);
/* The same if so much time has passed since @since_ns; otherwise, when it will
 * have. HF_NEVER: it has ended. */
int64_t hf__link_due(struct hf__stream *stream, const char *peer,
                     const char *what, int64_t since_ns, int64_t ms);
/* A context by the keys tls.*; @protocol as in net/tls.h, or NULL. */
int hf__link_tls(const struct hf__engine *engine, const char *protocol,
                 struct hf__tls_context **ret_tls, hf_error *err);

#endif
