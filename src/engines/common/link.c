/* SPDX-License-Identifier: MIT */
/* link.c - one timer, listening while locks are held, TLS, overdue answers. */
#include "engines/common/link.h"

#include "net/tls.h"

/* ---- the timer ----------------------------------------------------------- */

void hf__link_init(struct hf__link *link, struct hf__engine *engine,
                   void (*fire)(struct hf__timer *timer),
                   int64_t listen_after_ns)
{
    link->engine = engine;
    link->timer.fire = fire;
    link->listen_after_ns = listen_after_ns;
}

void hf__link_stop(struct hf__link *link)
{
    if (link->engine)
        hf__timer_stop(link->engine->host->loop, &link->timer);
}

void hf__link_wake(struct hf__link *link, int64_t due_ns)
{
    const struct hf__engine_host *host = link->engine->host;

    if (due_ns == HF_NEVER ||
        (hf__timer_running(&link->timer) && link->timer.due_ns <= due_ns))
        return;
    host->timer(host, &link->timer, due_ns);
}

/* ---- listening ----------------------------------------------------------- */

void hf__link_hold(struct hf__link *link, bool held)
{
    link->held += held ? 1 : -1;
    if (link->held == 1 && held) {
        link->listen_ns = hf__now() + link->listen_after_ns;
        hf__link_wake(link, link->listen_ns);
    } else if (link->held == 0 && link->listening) {
        link->listening = false;
        link->engine->under_way--;
    }
}

int64_t hf__link_listen_due(struct hf__link *link, int64_t now_ns)
{
    if (link->held == 0 || link->listening)
        return HF_NEVER;
    if (now_ns < link->listen_ns)
        return link->listen_ns;
    link->listening = true;
    link->engine->under_way++;
    return HF_NEVER;
}

/* ---- the connection ------------------------------------------------------ */

void hf__link_overdue(struct hf__stream *stream, const char *peer,
                      const char *what, int64_t ms)
{
    hf_error err;

    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: %s within %lld ms", peer, what,
                   (long long)ms);
    hf__stream_fail(stream, &err);
}

int64_t hf__link_due(struct hf__stream *stream, const char *peer,
                     const char *what, int64_t since_ns, int64_t ms)
{
    int64_t due_ns = since_ns + hf__ms_to_ns(ms);

    if (hf__now() < due_ns)
        return due_ns;
    hf__link_overdue(stream, peer, what, ms);
    return HF_NEVER;
}

int hf__link_tls(const struct hf__engine *engine, const char *protocol,
                 struct hf__tls_context **ret_tls, hf_error *err)
{
    const struct hf__settings *settings = engine->host->settings;
    const struct hf__tls_options options = {
        .ca = settings->tls_ca,
        .cert = settings->tls_cert,
        .key = settings->tls_key,
        .key_password = settings->tls_key_password,
        .verify = settings->tls_verify != 0,
        .protocol = protocol,
    };

    return hf__tls_context_new(&options, ret_tls, err);
}
