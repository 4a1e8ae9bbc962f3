/* SPDX-License-Identifier: MIT */
/*
 * doctor_members.c - what each server of the URL says to "srvr", for the doctor.
 *
 * The one that has our session is asked all other questions; whether the others
 * could take over is only known when they are asked too. A four-letter word
 * needs no session: a connection of its own, the word, a text, and the server
 * hangs up. One server after the other, each with its share of the time.
 *
 * Failure: a server that does not answer, or does not want to, is a warning.
 */
#include <stdio.h>

#include "engines/zookeeper/zookeeper.h"

enum { MOST = 4096 }; /* bytes of an answer */

static struct hf__zk *zk_of(struct hf__stream *stream)
{
    return HF_CONTAINER_OF(stream, struct hf__zk, members.stream);
}

/* The plain word behind @label in @text. */
static void copy_word(const char *text, const char *label, char *to,
                      size_t size)
{
    const char *at = strstr(text, label);
    size_t len = 0;

    if (at) {
        at += strlen(label);
        len = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                         "0123456789./");
    }
    (void)snprintf(to, size, "%.*s", (int)len, at ? at : "");
}

static void warn(struct hf__zk *zk, const char *what, const char *fix)
{
    const struct hf__stream_peer *peer = &zk->members.stream.peer;

    zk->members.told = true;
    (void)hf__query_add_finding(zk->members.query, HF_FINDING_WARN, "member",
                                fix, "%s:%d: %s", peer->host, peer->port, what);
}

/* ZOOKEEPER-4712 is mended in 3.9.3, and what 3.9.3 loses (ZOOKEEPER-4925) in
 * 3.9.4; no 3.8 has either. */
bool hf__zk_doctor_members_may_differ(const char *version)
{
    static const unsigned mended[] = {3, 9, 4};

    for (size_t i = 0; i < HF_COUNT_OF(mended); i++) {
        unsigned part = 0;

        while (*version >= '0' && *version <= '9' && part < 10000)
            part = 10 * part + (unsigned)(*version++ - '0');
        if (part != mended[i])
            return part < mended[i];
        version += *version == '.';
    }
    return false;
}

static void look_at_copies(struct hf__zk *zk, const char *version)
{
    const struct hf__stream_peer *peer = &zk->members.stream.peer;

    if (hf__zk_doctor_members_may_differ(version))
        (void)hf__query_add_finding(
            zk->members.query, HF_FINDING_WARN, "copies",
            "upgrade to 3.9.4 or later",
            "%s:%d, version %s, may lose writes when its leader dies, and keep "
            "nodes that the others have deleted: its clients may wait in vain, "
            "or hold a lock that others hold",
            peer->host, peer->port, version);
}

static void read_answer(struct hf__zk *zk, const char *text)
{
    const struct hf__stream_peer *peer = &zk->members.stream.peer;
    char version[24];
    char latency[48];
    char mode[24];

    if (strstr(text, "whitelist")) {
        warn(zk, "does not tell", "4lw.commands.whitelist=srvr");
        return;
    }
    if (strstr(text, "not currently serving")) {
        warn(zk, "serves nobody", "start the missing servers");
        return;
    }
    if (!strstr(text, "\nMode: ") || !strstr(text, "\nNode count: "))
        return; /* there is more to come */
    zk->members.told = true;
    copy_word(text, "Zookeeper version: ", version, sizeof(version));
    copy_word(text, "\nLatency min/avg/max: ", latency, sizeof(latency));
    copy_word(text, "\nMode: ", mode, sizeof(mode));
    (void)hf__query_add_finding(
        zk->members.query, HF_FINDING_OK, "member", "",
        "%s:%d, %s, version %s; %s ms at least, on average, at most",
        peer->host, peer->port, mode, version, latency);
    if (strcmp(mode, "standalone") != 0)
        look_at_copies(zk, version);
}

/* ---- one server after the other ---------------------------------------- */

static int64_t patience_ns(const struct hf__zk *zk)
{
    const struct hf__engine_host *host = zk->base.host;

    return hf__ms_to_ns(host->settings->io_timeout_ms) /
           (int64_t)(2 * host->url->n_hosts);
}

static void ask_next(struct hf__zk *zk)
{
    const struct hf__engine_host *host = zk->base.host;
    struct hf__zk_members *members = &zk->members;
    struct hf__query *query;
    hf_error err;

    while (members->next < host->url->n_hosts) {
        hf__zk_connection_peer(zk, members->next++, &members->stream.peer);
        members->told = false;
        if (hf__stream_start(&members->stream, &err) == 0) {
            host->timer(host, &members->timer, hf__now() + patience_ns(zk));
            return;
        }
        warn(zk, err.text, "check that it is running");
    }
    query = HF_STEAL(members->query);
    zk->base.under_way--;
    hf__timer_stop(host->loop, &members->timer);
    hf__up_answer(&zk->base, query, 0, /* err= */ NULL);
}

static void stream_opened(struct hf__stream *stream)
{
    hf__buf_add(&stream->out, "srvr");
    hf__stream_flush(stream);
}

static void stream_received(struct hf__stream *stream)
{
    struct hf__zk *zk = zk_of(stream);
    size_t len = stream->in.len - stream->in_at;
    char text[MOST + 1];

    if (zk->members.told || len > MOST) {
        stream->in_at = stream->in.len; /* until it hangs up */
        return;
    }
    memcpy(text, stream->in.text + stream->in_at, len);
    text[len] = '\0';
    read_answer(zk, text);
}

static void stream_closed(struct hf__stream *stream, const hf_error *err)
{
    struct hf__zk *zk = zk_of(stream);

    if (!zk->members.told)
        warn(zk, err->text, "check that it is running");
    ask_next(zk);
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__zk *zk = HF_CONTAINER_OF(timer, struct hf__zk, members.timer);

    if (!zk->members.query)
        return;
    if (!zk->members.told)
        warn(zk, "does not answer", "check that it is running");
    hf__stream_stop(&zk->members.stream, /* forked= */ false);
    ask_next(zk);
}

void hf__zk_doctor_members_ask(struct hf__zk *zk, struct hf__query *query)
{
    struct hf__zk_members *members = &zk->members;

    members->stream.loop = zk->base.host->loop;
    members->stream.opened = stream_opened;
    members->stream.received = stream_received;
    members->stream.closed = stream_closed;
    members->timer.fire = timer_fire;
    members->query = query;
    members->next = 0;
    zk->base.under_way++;
    ask_next(zk);
}

void hf__zk_doctor_members_stop(struct hf__zk *zk, bool forked)
{
    if (!zk->members.query)
        return;
    hf__stream_stop(&zk->members.stream, forked);
    if (!forked)
        hf__timer_stop(zk->base.host->loop, &zk->members.timer);
    zk->members.query = NULL;
}
