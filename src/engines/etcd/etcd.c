/* SPDX-License-Identifier: MIT */
/*
 * etcd.c - the engine for etcd: etcd://, etcds://
 *
 * The table of the engine, the URL taken apart, and one timer, for calls without
 * an answer, waiters without a stream and leases that are to be watched.
 */
#include "engines/etcd/etcd.h"

#include <stdio.h>

#include "net/tls.h"

static struct hf__etcd *etcd_of(struct hf__engine *engine)
{
    return (struct hf__etcd *)engine;
}

/* ---- the timer --------------------------------------------------------- */

static void timer_fire(struct hf__timer *timer)
{
    struct hf__etcd *etcd = etcd_of(hf__link_of(timer)->engine);
    int64_t now_ns = hf__now();
    int64_t due_ns[] = {hf__etcd_lease_due(etcd, now_ns),
                        hf__etcd_wait_due(etcd, now_ns),
                        hf__etcd_connection_due(etcd, now_ns)};

    for (size_t i = 0; i < HF_COUNT_OF(due_ns); i++)
        hf__link_wake(&etcd->link, due_ns[i]);
}

/* ---- opening ----------------------------------------------------------- */

static int read_hosts(struct hf__etcd *etcd, hf_error *err)
{
    static char loopback[] = "127.0.0.1";
    const struct hf__url_host here = {.host = loopback};
    const struct hf__url *url = etcd->base.host->url;
    const struct hf__url_host *hosts = url->n_hosts > 0 ? url->hosts : &here;

    etcd->n_endpoints = url->n_hosts > 0 ? url->n_hosts : 1;
    etcd->endpoints = hf__calloc(etcd->n_endpoints, sizeof(etcd->endpoints[0]));
    if (!etcd->endpoints)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    for (size_t i = 0; i < etcd->n_endpoints; i++) {
        struct hf__etcd_member *member = &etcd->endpoints[i];
        const char *host = hosts[i].host;
        bool colons = strchr(host, ':') != NULL;

        if (strcspn(host, "/?#@\\ ") != strlen(host) || strlen(host) > 255)
            return hf__fail(err, HF_ECONFIG, "'%.40s' is not a host", host);
        member->host = host;
        member->port = hosts[i].port != 0 ? hosts[i].port : 2379;
        (void)snprintf(member->name, sizeof(member->name), "%s%s%s:%d",
                       colons ? "[" : "", host, colons ? "]" : "",
                       member->port);
    }
    return 0;
}

static int read_tls(struct hf__etcd *etcd, hf_error *err)
{
    if (strcmp(etcd->base.host->url->scheme, "etcds") != 0)
        return 0;
    return hf__link_tls(&etcd->base, "h2", &etcd->tls, err);
}

static int etcd_open(struct hf__engine *engine, hf_error *err)
{
    struct hf__etcd *etcd = etcd_of(engine);
    int rc = read_hosts(etcd, err);

    hf__link_init(&etcd->link, engine, timer_fire, /* listen_after_ns= */ 0);
    hf__ticket_table_init(&etcd->tickets);
    hf__list_init(&etcd->conditions);
    if (rc == 0)
        rc = hf__grpc_load(err);
    if (rc == 0)
        rc = read_tls(etcd, err);
    if (rc != 0)
        return rc;
    hf__etcd_connection_init(etcd);
    /* One of many clients begins with one of several members. */
    etcd->endpoint = hf__random_below(etcd->n_endpoints);
    if (hf__etcd_queue_init(etcd) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    return 0;
}

static bool is_open(const struct hf__etcd *etcd)
{
    return etcd->grpc.owner != NULL;
}

static void etcd_close(struct hf__engine *engine, bool forked)
{
    struct hf__etcd *etcd = etcd_of(engine);

    if (!forked)
        hf__etcd_condition_forget_all(etcd);
    if (is_open(etcd))
        hf__etcd_connection_release(etcd, forked);
    if (forked)
        return;
    engine->under_way = 0;
    hf__link_stop(&etcd->link);
    hf__ticket_table_release(&etcd->tickets);
    hf__free(HF_STEAL(etcd->endpoints));
    hf__free(HF_STEAL(etcd->prefix));
    hf__buf_release(&etcd->key);
}

static void etcd_flush(struct hf__engine *engine)
{
    if (is_open(etcd_of(engine)))
        hf__etcd_connection_flush(etcd_of(engine));
}

const struct hf__engine_ops hf__engine_etcd = {
    .name = "etcd",
    .schemes = "etcd etcds",
    .dialects = "native",
    .caps = HF_CAP_FENCED | HF_CAP_FIFO | HF_CAP_SHARED | HF_CAP_SLOTS |
            HF_CAP_PUSH | HF_CAP_LEASED | HF_CAP_SESSION_BOUND |
            HF_CAP_SURVIVES_RESTART | HF_CAP_SURVIVES_FAILOVER |
            HF_CAP_DISTRIBUTED | HF_CAP_DOWNGRADE | HF_CAP_VERSIONS |
            HF_CAP_LIST | HF_CAP_BREAK | HF_CAP_CHECK_TOKEN |
            HF_CAP_LOCK_DELAY | HF_CAP_TOLD_BEFORE_REGRANT | HF_CAP_CONDITIONS,
    .flags = HF__BEATS_WAITERS | HF__SESSION | HF__JOINS_CALLS,
    .size = sizeof(struct hf__etcd),
    .ticket_size = sizeof(struct hf__etcd_ticket),
    .open = etcd_open,
    .connect = hf__etcd_connection_start,
    .close = etcd_close,
    .finish = hf__etcd_lease_finish,
    .acquire = hf__etcd_acquire,
    .withdraw = hf__etcd_release_withdraw,
    .release = hf__etcd_release,
    .renew = hf__etcd_renew,
    .downgrade = hf__etcd_renew_downgrade,
    .park = hf__etcd_park,
    .unpark = hf__etcd_unpark,
    .signal = hf__etcd_signal,
    .list = hf__etcd_inspect_list,
    .check_token = hf__etcd_inspect_check,
    .break_lock = hf__etcd_inspect_break,
    .version_read = hf__etcd_versions_read,
    .version_commit = hf__etcd_versions_commit,
    .doctor = hf__etcd_doctor,
    .watch = hf__etcd_watch,
    .unwatch = hf__etcd_watch_stop,
    .board_post = hf__etcd_board_post,
    .board_read = hf__etcd_board_read,
    .flush = etcd_flush,
};
