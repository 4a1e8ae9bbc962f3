/* SPDX-License-Identifier: MIT */
/*
 * zookeeper.c - the engine for ZooKeeper: zk://, zks://
 *
 * The table of the engine, and what all its parts share: the URL taken apart,
 * and one timer. The timer is due when the oldest call is overdue, when
 * connecting has taken too long, or when the session should hear from us; it is
 * started for the earliest and finds out what it was for.
 */
#include <stdio.h>

#include "engines/zookeeper/zookeeper.h"
#include "net/tls.h"

static struct hf__zk *zk_of(struct hf__engine *engine)
{
    return (struct hf__zk *)engine;
}

/* ---- the timer --------------------------------------------------------- */

/* How long a lock is held before somebody listens for its sake. */
#define LISTEN_AFTER_NS (300 * HF_MS)

static void overdue(struct hf__zk *zk, const char *what, int64_t ns)
{
    hf__link_overdue(&zk->stream, zk->peer, what, ns / HF_MS);
}

/* One server of several must not use up the time that there is for all, nor
 * the lease of what is held. */
static int64_t connect_patience_ns(const struct hf__zk *zk)
{
    const struct hf__engine_host *host = zk->base.host;
    int64_t ns = hf__ms_to_ns(host->settings->connect_timeout_ms) /
                 (int64_t)host->url->n_hosts;
    int64_t lease_ns = hf__ms_to_ns(hf__zk_session_lease_ms(zk)) / 4;

    if (host->url->n_hosts > 1 && zk->session != 0 && lease_ns < ns)
        return lease_ns;
    return ns;
}

/* Send a request after a long silence: that the server has heard from us is
 * enough. Returns when the next one is due. While
 * an answer is to come hf__zk_calls_nudge() sends pings instead: a request would
 * have to wait for that answer. */
static int64_t break_silence(struct hf__zk *zk, int64_t now_ns)
{
    struct hf__zk_call call = {.done = hf__zk_calls_ignore};
    int64_t due_ns = zk->sent_ns + hf__zk_session_silence_ns(zk);

    if (now_ns < due_ns)
        return due_ns;
    if (zk->calls.n == 0)
        (void)hf__zk_calls_ask(zk, HF__ZK_EXISTS, hf__zk_wire_text_of(zk->top),
                               /* watch= */ false, &call, /* err= */ NULL);
    return now_ns + hf__zk_session_silence_ns(zk);
}

static void timer_fire(struct hf__timer *timer)
{
    struct hf__zk *zk = zk_of(hf__link_of(timer)->engine);
    int64_t now_ns = hf__now();
    int64_t listen_ns;
    int64_t due_ns;

    if (zk->stream.state == HF__STREAM_IDLE)
        return;
    if (!hf__zk_connection_is_up(zk)) {
        due_ns = zk->connect_ns + connect_patience_ns(zk);
        if (now_ns >= due_ns)
            overdue(zk, "no connection", connect_patience_ns(zk));
        else
            hf__link_wake(&zk->link, due_ns);
        return;
    }
    due_ns = break_silence(zk, now_ns);
    listen_ns = hf__link_listen_due(&zk->link, now_ns);
    due_ns = listen_ns < due_ns ? listen_ns : due_ns;
    if (zk->calls.n > 0) {
        int64_t answer_ns = hf__zk_calls_oldest(zk)->sent_ns +
                            hf__zk_session_patience_ns(zk) *
                                (HF__PLANTED("timer_starves_timers") ? 6 : 1);

        if (now_ns >= answer_ns) {
            overdue(zk, "no answer", hf__zk_session_patience_ns(zk));
            return;
        }
        due_ns = answer_ns < due_ns ? answer_ns : due_ns;
        answer_ns = hf__zk_calls_nudge(zk, now_ns);
        due_ns = answer_ns < due_ns ? answer_ns : due_ns;
        if (HF__PLANTED("timer_starves_timers") &&
            now_ns > hf__zk_calls_oldest(zk)->sent_ns + 100 * HF_MS)
            due_ns = now_ns;
    }
    hf__link_wake(&zk->link, due_ns);
}

/* ---- opening ----------------------------------------------------------- */

static int choose_dialect(struct hf__zk *zk, hf_error *err)
{
    const char *wanted = zk->base.host->settings->dialect;
    const struct hf__zk_dialect *dialect = hf__zk_nodes_dialects;

    while (wanted[0] && dialect->name && strcmp(dialect->name, wanted) != 0)
        dialect++;
    if (!dialect->name)
        return hf__fail(err, HF_ECONFIG, "dialect=%s: zookeeper has %s", wanted,
                        zk->base.ops->dialects);
    zk->dialect = dialect;
    if (!dialect->marker[HF__ZK_READ])
        zk->base.caps &= ~(HF_CAP_SHARED | HF_CAP_DOWNGRADE);
    if (!dialect->marker[HF__ZK_SLOT])
        zk->base.caps &= ~HF_CAP_SLOTS;
    if (!dialect->conditions)
        zk->base.caps &= ~HF_CAP_CONDITIONS;
    if (dialect->semaphore)
        zk->base.caps &=
            ~HF_CAP_LIST; /* it does not see waiters for the mutex */
    return 0;
}

/* The path of the URL; a lock's node is its child. The root of the tree has to
 * be meant: it is the path "//". */
static int read_root(struct hf__zk *zk, hf_error *err)
{
    const char *path = zk->base.host->url->path;
    size_t len = strlen(path);

    bool is_top = strcmp(path, "//") == 0;

    while (len > 0 && path[len - 1] == '/')
        len--;
    if (len == 0 && !is_top) {
        path = "/holdfast";
        len = strlen(path);
    }
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)path[i];
        size_t dots = strspn(path + i + 1, ".");

        if (c < 0x20 || c == 0x7f ||
            (c == '/' && (i + 1 + dots == len || path[i + 1 + dots] == '/') &&
             dots <= 2))
            return hf__fail(err, HF_ECONFIG,
                            "the path of a zk:// URL is where the locks are, "
                            "as in zk://host/locks");
    }
    zk->root = hf__strndup(path, len);
    zk->root_len = len;
    zk->top = is_top ? "/" : zk->root;
    return zk->root ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

static int read_credentials(struct hf__zk *zk, hf_error *err)
{
    const struct hf__engine_host *host = zk->base.host;
    const char *user = host->url->user ? host->url->user : host->settings->user;
    const char *password =
        host->url->password ? host->url->password : host->settings->password;
    struct hf__buf text = {0};

    if (user[0] == '\0' && password[0] == '\0')
        return 0;
    hf__buf_printf(&text, "%s:%s", user, password);
    zk->credentials = hf__buf_steal(&text);
    return zk->credentials ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

static int read_tls(struct hf__zk *zk, hf_error *err)
{
    if (strcmp(zk->base.host->url->scheme, "zks") != 0)
        return 0;
    return hf__link_tls(&zk->base, /* protocol= */ NULL, &zk->tls, err);
}

static int zk_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__zk *zk = zk_of(engine);
    int rc;

    hf__link_init(&zk->link, engine, timer_fire, LISTEN_AFTER_NS);
    zk->stream.loop = engine->host->loop;
    zk->stream.io.fd = -1;
    zk->members.stream.io.fd = -1;
    zk->pending_last = &zk->pending;
    hf__list_init(&zk->conditions);
    hf__calls_init(&zk->calls, sizeof(struct hf__zk_call));
    hf__ticket_table_init(&zk->tickets);
    hf__list_init(&zk->feeds);
    if (engine->host->url->n_hosts == 0)
        return hf__fail(err, HF_ECONFIG,
                        "zk:// needs a host, as in zk://h1,h2,h3/locks");
    zk->server = hf__random_below(engine->host->url->n_hosts);
    rc = choose_dialect(zk, err);
    if (rc == 0)
        rc = read_root(zk, err);
    if (rc == 0)
        rc = read_credentials(zk, err);
    if (rc == 0)
        rc = hf__zk_acl_read(zk, engine->host->settings->acl, err);
    if (rc == 0)
        rc = read_tls(zk, err);
    if (rc == 0 && hf__zk_nodes_init(zk) != 0)
        rc = hf__fail(err, HF_EINTERNAL, "the kernel gives no random numbers");
    return rc;
}

static void zk_close(struct hf__engine *engine, bool forked)
{
    struct hf__zk *zk = zk_of(engine);

    if (!forked && !engine->keeps_lost_closed)
        hf__zk_session_close(zk);
    hf__zk_connection_stop(zk, forked);
    hf__zk_doctor_members_stop(zk, forked);
    if (forked)
        return;
    hf__link_stop(&zk->link);
    hf__zk_tickets_forget_all(zk);
    hf__zk_condition_forget_all(zk);
    hf__zk_calls_drop(zk);
    hf__zk_acl_release(zk);
    hf__tls_context_free(zk->tls);
    zk->tls = NULL;
    if (zk->credentials)
        explicit_bzero(zk->credentials, strlen(zk->credentials));
    hf__free(zk->credentials);
    zk->credentials = NULL;
    hf__free(zk->root);
    zk->root = NULL;
    hf__buf_release(&zk->scratch);
}

const struct hf__engine_ops hf__engine_zookeeper = {
    .name = "zookeeper",
    .schemes = "zk zks",
    .dialects = "curator curator-rw curator-latch curator-semaphore kazoo "
                "medallion medallion-rw",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_SESSION_BOUND |
            HF_CAP_SURVIVES_RESTART | HF_CAP_SURVIVES_FAILOVER |
            HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS |
            HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_CHECK_TOKEN |
            HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT | HF_CAP_CONDITIONS,
    .flags = HF__BEATS_WAITERS | HF__SESSION | HF__JOINS_CALLS,
    .size = sizeof(struct hf__zk),
    .ticket_size = sizeof(struct hf__zk_ticket),
    .open = zk_open,
    .connect = hf__zk_connection_start,
    .close = zk_close,
    .acquire = hf__zk_acquire,
    .withdraw = hf__zk_release_withdraw,
    .release = hf__zk_release,
    .renew = hf__zk_renew,
    .downgrade = hf__zk_renew_downgrade,
    .park = hf__zk_park,
    .unpark = hf__zk_unpark,
    .signal = hf__zk_signal,
    .list = hf__zk_inspect_list,
    .check_token = hf__zk_inspect_check,
    .break_lock = hf__zk_inspect_break,
    .version_read = hf__zk_versions_read,
    .version_commit = hf__zk_versions_commit,
    .doctor = hf__zk_doctor,
    .watch = hf__zk_watch,
    .unwatch = hf__zk_watch_stop,
    .board_post = hf__zk_board_post,
    .board_read = hf__zk_board_read,
    .flush = hf__zk_calls_flush,
};
