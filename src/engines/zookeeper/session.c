/* SPDX-License-Identifier: MIT */
/*
 * session.c - the session: greeting, timeouts, what an answer proves, its end.
 *
 * A session outlives its connections. After a lost one the next connection, to
 * the next server of the URL, asks for the same session, and its ephemeral
 * nodes are still there. Only the ensemble ends a session, when it has not
 * heard of it for the session's timeout; the next greeting says so.
 *
 * WHAT A SESSION IS GOOD FOR. A server that has lost its leader still answers
 * reads for a while, as a leader that was replaced answers a sync; and the leader,
 * which counts the session's time, hears of us only with the server's next
 * report, every half tick. So only answers to writes, which need a majority,
 * prove anything, and they prove what was heard before that report (lease.c).
 * lock_delay makes the session longer than its leases: when a holder dies, its
 * node stays for that much more.
 */
#include "engines/zookeeper/zookeeper.h"

/* ---- timeouts ------------------------------------------------------------ */

int64_t hf__zk_session_ns(const struct hf__zk *zk)
{
    return hf__ms_to_ns(zk->session_ms);
}

int64_t hf__zk_session_lease_ms(const struct hf__zk *zk)
{
    return (int64_t)zk->session_ms * HF__ZK_LEASE / HF__ZK_PARTS -
           zk->base.host->settings->lock_delay_ms;
}

int64_t hf__zk_session_silence_ns(const struct hf__zk *zk)
{
    return hf__zk_session_ns(zk) * HF__ZK_BEAT / HF__ZK_PARTS;
}

/* A silent server must be left early enough to find another one. */
int64_t hf__zk_session_patience_ns(const struct hf__zk *zk)
{
    int64_t io_ns = hf__ms_to_ns(zk->base.host->settings->io_timeout_ms);
    int64_t early_ns = hf__ms_to_ns(hf__zk_session_lease_ms(zk)) * 3 / 8;

    return zk->base.host->url->n_hosts > 1 && early_ns < io_ns ? early_ns
                                                               : io_ns;
}

/* The session that is good for a lease of so long. */
static int64_t session_for(int64_t lease_ms)
{
    return (lease_ms * HF__ZK_PARTS + HF__ZK_LEASE - 1) / HF__ZK_LEASE;
}

int32_t hf__zk_session_wanted_ms(const struct hf__zk *zk)
{
    const struct hf__settings *settings = zk->base.host->settings;
    int64_t ms = settings->session_timeout_ms > 0
                     ? settings->session_timeout_ms
                     : session_for(settings->ttl_ms);

    ms += session_for(settings->lock_delay_ms);
    return ms > INT32_MAX ? INT32_MAX : (int32_t)ms;
}

/* What an answer proves of the session. */
void hf__zk_session_prove(struct hf__zk *zk, const struct hf__zk_call *call,
                          int32_t error)
{
    int64_t since_ns;

    if (error == HF__ZK_SESSION_MOVED)
        return; /* this server does not report for us any more */
    hf__zk_lease_heard(&zk->lease, hf__zk_session_ns(zk), call->sent_ns,
                       hf__now());
    if (!hf__zk_calls_writes(call) || call->type == HF__ZK_SYNC)
        return; /* no majority had to agree to it */
    since_ns = hf__zk_lease_since(&zk->lease, hf__zk_session_ns(zk),
                                  call->sent_ns, call->known_ns);
    if (since_ns > zk->proven_ns)
        zk->proven_ns = since_ns;
}

/* ---- its end ------------------------------------------------------------- */

/* The session has deleted its nodes. */
static void forget_nodes(struct hf__ticket *ticket, void *ctx)
{
    struct hf__zk *zk = ctx;
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    hf__zk_nodes_lose(mine, HF__ZK_NODE_NONE);
    mine->czxid = 0;
    mine->watched = 0;
    mine->record = HF__ZK_RECORD_NONE;
    hf__zk_curator_semaphore_passed(mine);
    if (zk->dialect->semaphore)
        hf__zk_curator_semaphore_line(mine, HF__ZK_LINE_MUTEX);
}

/* Held, or one that the core will not ask for again. */
static bool is_over(struct hf__ticket_entry *entry, const void *what)
{
    const struct hf__zk_ticket *mine =
        HF_CONTAINER_OF(entry, struct hf__zk_ticket, entry);

    (void)what;
    return mine->state == HF__ZK_HELD ||
           (entry->ticket->cond && mine->state != HF__ZK_YIELDING &&
            !hf__zk_tickets_leaves(mine));
}

/* Nothing of ours is left on the server. */
static void lose_all(struct hf__zk *zk)
{
    struct hf__ticket *ticket;
    size_t bucket = 0;

    hf__ticket_table_each(&zk->tickets, forget_nodes, zk);
    while ((ticket = hf__ticket_table_next(&zk->tickets, &bucket, is_over,
                                           /* what= */ NULL)) != NULL)
        hf__zk_tickets_gone(zk, ticket, HF__LOST_SESSION);
}

void hf__zk_session_expired(struct hf__zk *zk)
{
    hf_error err;

    zk->connection = HF__ZK_DOWN;
    zk->session = 0;
    memset(zk->password, 0, sizeof(zk->password));
    lose_all(zk);
    (void)hf__fail(&err, HF_EUNAVAILABLE, "%s: the session has expired",
                   zk->peer);
    hf__zk_connection_fail(zk, &err);
}

void hf__zk_session_close(struct hf__zk *zk)
{
    size_t mark;

    if (!hf__zk_connection_is_up(zk))
        return;
    mark = hf__zk_calls_begin(zk, HF__ZK_CLOSE);
    hf__zk_calls_close_frame(zk, mark);
    hf__stream_flush(&zk->stream);
}

/* ---- greeting ------------------------------------------------------------ */

static void connected(struct hf__zk *zk)
{
    zk->connection = HF__ZK_UP;
    hf__link_wake(&zk->link, hf__now() + hf__zk_session_silence_ns(zk));
    hf__up_connected(&zk->base);
}

/* The password has been sent; it need not stay in this buffer. */
static void send_auth(struct hf__zk *zk)
{
    struct hf__buf *out = &zk->stream.out;
    size_t mark = out->len;

    hf__zk_wire_put_int(out, 0);
    hf__zk_wire_put_int(out, HF__ZK_XID_AUTH);
    hf__zk_wire_put_int(out, HF__ZK_AUTH);
    hf__zk_wire_put_int(out, 0); /* always */
    hf__zk_wire_put_text(out, "digest", 6);
    hf__zk_wire_put_text(out, zk->credentials, strlen(zk->credentials));
    hf__zk_calls_close_frame(zk, mark);
    zk->sent_ns = hf__now();
}

void hf__zk_session_on_auth(struct hf__zk *zk, int32_t error)
{
    hf_error err;

    if (error == HF__ZK_OK) {
        connected(zk);
        return;
    }
    (void)hf__zk_errors_read(zk, HF__ZK_AUTH_FAILED, &err);
    hf__zk_connection_fail(zk, &err);
}

/* The servers may grant less time than lock_delay alone needs. */
static bool is_too_short(struct hf__zk *zk)
{
    hf_error err;

    if (hf__zk_session_lease_ms(zk) > 0)
        return false;
    (void)hf__fail(&err, HF_ECONFIG,
                   "%s: a session of %d ms is granted, too short for "
                   "lock_delay: raise maxSessionTimeout of the servers, or "
                   "ask for less",
                   zk->peer, (int)zk->session_ms);
    hf__zk_connection_fail(zk, &err);
    return true;
}

void hf__zk_session_on_greeting(struct hf__zk *zk, struct hf__zk_wire *in)
{
    struct hf__zk_wire_text password;
    int32_t timeout_ms;
    int64_t session;

    (void)hf__zk_wire_int(in); /* version of the protocol */
    timeout_ms = hf__zk_wire_int(in);
    session = hf__zk_wire_long(in);
    password = hf__zk_wire_text(in);
    if (in->bad || password.len != sizeof(zk->password)) {
        hf__zk_connection_garbled(zk, "a malformed greeting");
        return;
    }
    if (timeout_ms <= 0 || session == 0) {
        hf__zk_session_expired(zk);
        return;
    }
    zk->session_ms = timeout_ms;
    zk->session = session;
    memcpy(zk->password, password.text, sizeof(zk->password));
    zk->proven_ns = zk->sent_ns;
    hf__zk_lease_begin(&zk->lease, zk->sent_ns);
    zk->connection = HF__ZK_GREETED;
    zk->refusals = 0;
    if (is_too_short(zk))
        return;
    if (zk->credentials)
        send_auth(zk);
    else
        connected(zk);
}

void hf__zk_session_greet(struct hf__zk *zk)
{
    struct hf__buf *out = &zk->stream.out;
    size_t mark = out->len;

    hf__zk_wire_put_int(out, 0);
    hf__zk_wire_put_int(out, 0); /* version of the protocol */
    hf__zk_wire_put_long(out, zk->session != 0 ? zk->zxid : 0);
    hf__zk_wire_put_int(out, hf__zk_session_wanted_ms(zk));
    hf__zk_wire_put_long(out, zk->session);
    hf__zk_wire_put_text(out, zk->password, sizeof(zk->password));
    hf__zk_wire_put_bool(out, false); /* read only */
    hf__zk_calls_close_frame(zk, mark);
    zk->sent_ns = hf__now();
}
