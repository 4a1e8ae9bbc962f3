/* SPDX-License-Identifier: MIT */
/*
 * open.c - hf_open() and hf_close().
 *
 * Opening takes the configuration and the URL apart, makes the engine and its
 * wrappers, and waits for the first connection; the caller drives it as it
 * would drive any other wait. Threads are made when they are first needed.
 *
 * Closing refuses new calls, ends every wait, releases what is held, waits
 * until the engine has confirmed, and until no other thread is inside. The
 * memory of the client stays until the last hold or request handle is given
 * back.
 */
#include <stdlib.h>
#include <unistd.h>

#include "api/start.h"
#include "core/client.h"
#include "core/detector.h"
#include "core/fork.h"
#include "core/leaving.h"
#include "core/monitor.h"
#include "core/query.h"
#include "core/watch.h"

/* ---- opening ------------------------------------------------------------- */

static const char *choose_url(const char *url, const hf_config *config)
{
    if (!url)
        url = secure_getenv("HOLDFAST_URL");
    if (!url)
        url = hf__config_url(config);
    return url ? url : "local:";
}

/* What the query of the URL says; some of it may be the engine's alone. */
static int configure_by_url(hf_client *client, hf_error *err)
{
    const struct hf__url_pair *pair = client->url->query;
    int rc = 0;

    for (; pair && rc == 0; pair = pair->next) {
        if (!hf__engine_takes(client->url->scheme, pair->key))
            rc = hf__config_set_layer(client->config, HF__LAYER_URL, pair->key,
                                      pair->value, err);
    }
    return rc;
}

/* All layers of the configuration, with what the URL says. */
static int configure(hf_client *client, const char *url,
                     const hf_config *config, hf_error *err)
{
    int rc;

    client->config = config ? hf__config_copy(config) : hf_config_new();
    if (!client->config)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    client->log = hf__config_log(client->config);
    rc = hf__url_parse(choose_url(url, client->config), &client->url, err);
    if (rc == 0)
        rc = hf__config_load_environment(client->config, err);
    if (rc == 0)
        rc = configure_by_url(client, err);
    if (rc == 0)
        rc = hf__config_resolve(client->config, &client->settings, err);
    if (rc == 0)
        hf__config_yield(client->config);
    return rc;
}

static void host_timer(const struct hf__engine_host *host,
                       struct hf__timer *timer, int64_t due_ns)
{
    /* The host is part of its client, which is nobody's constant. */
    hf__monitor_timer(HF_CONTAINER_OF((uintptr_t)host, hf_client, host), timer,
                      due_ns);
}

static void host_log(void *client, int level, const char *text)
{
    hf__monitor_log(client, level, "%s", text);
}

static void introduce(hf_client *client)
{
    static const char hex[] = "0123456789abcdef";
    struct hf__engine_host *host = &client->host;

    for (size_t i = 0; i < sizeof(host->identity); i++) {
        client->identity_hex[2 * i] = hex[host->identity[i] >> 4];
        client->identity_hex[2 * i + 1] = hex[host->identity[i] & 15];
    }
    if (gethostname(client->host_name, sizeof(client->host_name) - 1) != 0)
        hf__text_copy(client->host_name, sizeof(client->host_name), "?");
    host->loop = &client->loop;
    host->settings = &client->settings;
    host->url = client->url;
    host->identity_hex = client->identity_hex;
    host->host = client->host_name;
    host->pid = getpid();
    host->timer = host_timer;
    host->log = host_log;
    host->log_owner = client;
}

static int64_t connect_until(const hf_client *client)
{
    return hf__instant_add(client->now_ns,
                           hf__ms_to_ns(client->settings.connect_timeout_ms));
}

static int first_outcome(const hf_client *client, hf_error *err)
{
    if (client->unfit.code != 0)
        return hf__fail_pass(err, &client->unfit);
    if (hf__client_is_up(client))
        return 0;
    if (client->down_err.code != 0)
        return hf__fail_pass(err, &client->down_err);
    return hf__fail(err, HF_EUNAVAILABLE, "%s does not answer within %lld ms",
                    client->url->redacted,
                    (long long)client->settings.connect_timeout_ms);
}

static int first_connection(hf_client *client, hf_error *err)
{
    struct hf__waiter opener;
    int rc = 0;

    hf__waiter_init(&opener);
    hf__list_append(&client->openers, &opener.watch);
    hf__client_connect(client);
    /* Somebody has to try again when the pause is over. */
    if (!hf__client_is_up(client))
        rc = hf__monitor_need_background(client, err);
    if (rc == 0 && client->settings.connect == HF__CONNECT_WAIT)
        (void)hf__monitor_wait(client, &opener, connect_until(client));
    hf__list_remove(&opener.watch);
    if (rc != 0)
        return rc;
    if (!hf__client_is_up(client) &&
        client->settings.connect == HF__CONNECT_LAZY)
        return hf__client_fits(client, err);
    return first_outcome(client, err);
}

/* "local:" does not say where the store is; the engine does. */
static int show_place(hf_client *client, hf_error *err)
{
    const struct hf__engine *engine = client->engine;
    struct hf__url *url = client->url;
    struct hf__buf shown = {0};
    const char *rest = strchr(url->redacted, ':');

    while (engine->inner)
        engine = engine->inner;
    if (!engine->place || !rest || url->path[0] != '\0')
        return 0;
    rest += strncmp(rest, "://", 3) == 0 ? 3 : 1;
    hf__buf_printf(&shown, "%.*s://%s%s", (int)strcspn(url->redacted, ":"),
                   url->redacted, engine->place, rest);
    hf__free(url->redacted);
    url->redacted = hf__buf_steal(&shown);
    return url->redacted ? 0 : hf__fail(err, HF_ENOMEM, "out of memory");
}

/* For the timers of engines that have several. */
static int make_room(hf_client *client, hf_error *err)
{
    const struct hf__engine *engine = client->engine;

    for (; engine; engine = engine->inner) {
        for (uint32_t i = 1; i < engine->ops->timers; i++) {
            if (hf__monitor_timer_user(client) != 0)
                return hf__fail(err, HF_ENOMEM, "out of memory");
        }
    }
    return 0;
}

static int client_init(hf_client *client, const char *url,
                       const hf_config *config, hf_error *err)
{
    int rc;

    rc = configure(client, url, config, err);
    if (rc != 0)
        return rc;
    if (!client->settings.spin || hf__world->processors() == 1) {
        client->spin.from_ns = HF_NEVER; /* spinning never pays */
        atomic_init(&client->dear, true);
    }
    if (hf__loop_init(&client->loop) != 0)
        return hf__fail(err, HF_ENOMEM,
                        "no descriptors left: raise the limit (ulimit -n)");
    if (client->settings.drive == HF__DRIVE_APP &&
        hf__loop_timer_fd(&client->loop) != 0)
        return hf__fail(err, HF_ENOMEM,
                        "no descriptors left: raise the limit (ulimit -n)");
    /* Two timers that are always there: the core's for connecting, and the
     * engine's. */
    if (hf__gate_init(client) != 0 || hf__monitor_timer_user(client) != 0 ||
        hf__monitor_timer_user(client) != 0 || hf__fork_watch(client) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__world->random(client->gate_key, sizeof(client->gate_key));
    if (rc == 0)
        rc = hf__world->random(client->host.identity,
                               sizeof(client->host.identity));
    if (rc != 0)
        return hf__fail(err, rc, "the kernel gives no random numbers");
    introduce(client);
    rc = hf__engine_new(&client->host, &hf__ticket_reports, client,
                        &client->ticket_size, &client->engine, err);
    if (rc == 0)
        rc = show_place(client, err);
    if (rc == 0)
        rc = make_room(client, err);
    if (rc != 0)
        return rc;
    atomic_init(&client->caps, client->engine->caps);
    client->engine_name = client->engine->ops->name;
    return hf__client_requires(client, err); /* what it can never promise */
}

static void tear_down(hf_client *client);

/* A client that is not connected yet, and that nobody else knows. */
static int client_make(const char *url, const hf_config *config,
                       hf_client **ret_client, hf_error *err)
{
    hf_client *client = hf__client_new();
    int rc;

    if (!client)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = client_init(client, url, config, err);
    if (rc != 0) {
        tear_down(client);
        hf__client_free(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

static void enter_first(hf_client *client)
{
    (void)hf__monitor_enter(client, /* err= */ NULL); /* it is not closed */
    if (!client->settings.tls_verify)
        hf__monitor_log(client, HF_LOG_WARNING,
                        "%s: tls.verify=off: anybody on the way can pose as "
                        "the server",
                        client->url->redacted);
}

int hf_open(const char *url, const hf_config *config, hf_client **ret_client,
            hf_error *err)
{
    hf_client *client;
    int rc;

    if (!ret_client)
        return hf__fail(err, HF_EINVAL, "ret_client is NULL");
    rc = client_make(url, config, &client, err);
    if (rc != 0)
        return rc;
    enter_first(client);
    rc = first_connection(client, err);
    hf__monitor_leave(client);
    if (rc != 0) {
        hf_close(client);
        return rc;
    }
    *ret_client = client;
    return 0;
}

static void forget_open(struct hf_request *request, int rc)
{
    hf__request_unwatch(request);
    if (rc == HF_ETIMEOUT)
        rc = first_outcome(request->client, &request->error);
    else
        (void)hf__fail(&request->error, rc, "open %s: %s",
                       request->client->url->redacted, hf_strerror(rc));
    hf__request_finish(request, rc);
}

static void conclude_open(struct hf_request *request, int rc)
{
    (void)rc; /* the client knows it, with its text */
    hf__request_finish(request,
                       first_outcome(request->client, &request->error));
}

static const struct hf__request_kind opening = {
    .forget = forget_open,
    .conclude = conclude_open,
    .tell = hf__start_tell,
};

int hf_open_start(const char *url, const hf_config *config, hf_done_cb *done,
                  void *ctx, hf_client **ret_client, hf_request **ret_request,
                  hf_error *err)
{
    struct hf_request *request;
    hf_client *client;
    int rc;

    if (!ret_client || !ret_request)
        return hf__fail(err, HF_EINVAL, "ret_client or ret_request is NULL");
    rc = client_make(url, config, &client, err);
    if (rc != 0)
        return rc;
    enter_first(client);
    request = hf__request_new(client, /* answers_n= */ 1, /* room= */ 0);
    rc = request ? hf__request_reserve(client, done, err)
                 : hf__fail(err, HF_ENOMEM, "out of memory");
    if (rc == 0) {
        request->until_ns = connect_until(client);
        hf__request_start(request, &opening, done, ctx);
        *ret_client = client; /* before the callback can ask for them */
        *ret_request = request;
        hf__list_append(&client->openers, &request->answers[0].watch);
        hf__client_connect(client);
    }
    hf__monitor_leave(client);
    if (rc != 0) {
        hf__free(request);
        hf_close(client);
    }
    return rc;
}

/* ---- closing ------------------------------------------------------------- */

static void cancel_gate(struct hf__gate *gate)
{
    hf_error err;

    (void)hf__fail(&err, HF_ECLOSED, "the client was closed while waiting");
    hf__timer_stop(&gate->client->loop, &gate->timer); /* no idle place */
    hf__gate_fail_all(gate, &err);
}

static void release_seats(struct hf__gate *gate)
{
    hf__gate_pin(gate);
    HF_LIST_EACH(&gate->seats, link) {
        struct hf__ticket *seat =
            HF_CONTAINER_OF(link, struct hf__ticket, link);

        HF_LIST_EACH(&seat->holds, held) {
            hf_hold *hold = HF_CONTAINER_OF(held, hf_hold, link);

            /* What hf_check() has said is told as well. */
            hf__hold_part(hold,
                          hf__hold_seen_lost(hold) ? HF_LOST : HF_RELEASED);
        }
        /* Who was woken and has not released it has not used its wake-up up:
         * a withdrawal passes it on. */
        hf__leaving_take(seat, /* releasing= */ !seat->cond);
    }
    hf__gate_unpin(gate);
}

/* One that can be gone by @until_ns. A lost ticket whose lock_delay is longer
 * ends with its lease. */
static struct hf__ticket *first_leaving(const hf_client *client,
                                        int64_t until_ns)
{
    HF_LIST_EACH(&client->leaving, link) {
        struct hf__ticket *ticket =
            HF_CONTAINER_OF(link, struct hf__ticket, link);

        if (ticket->closed_until_ns < until_ns)
            return ticket;
    }
    return NULL;
}

/* Everything that was asked has to be confirmed gone. */
static bool await_leaving(hf_client *client, int64_t until_ns)
{
    while (client->owed > 0 && client->now_ns < until_ns) {
        struct hf__waiter waiter;
        struct hf__ticket *ticket = first_leaving(client, until_ns);

        if (!ticket)
            break; /* a renewal under way is nobody's leftover */
        hf__waiter_init(&waiter);
        hf__list_append(&ticket->waiters, &waiter.watch);
        (void)hf__monitor_wait(client, &waiter, until_ns);
    }
    return hf__list_empty(&client->leaving);
}

static int shut(hf_client *client, int64_t wait_ms, hf_error *err)
{
    int64_t until_ns = hf__instant_add(client->now_ns, hf__ms_to_ns(wait_ms));

    bool all_left;

    client->closing = true;
    hf__watch_close(client);
    hf__gate_each(client, cancel_gate);
    hf__request_close(client, /* late= */ false);
    hf__gate_each(client, release_seats);
    all_left = await_leaving(client, until_ns);
    hf__request_close(client, /* late= */ true);
    if (all_left)
        return 0;
    return hf__fail(err, HF_ETIMEOUT,
                    "the engine has not confirmed every release; what is left "
                    "ends with its lease");
}

int hf_shutdown(hf_client *client, int64_t wait_ms, hf_error *err)
{
    int rc;

    if (!client || wait_ms < HF_FOREVER)
        return hf__fail(err, HF_EINVAL, "no client, or a negative wait");
    rc = hf__monitor_enter_any(client, err);
    if (rc != 0)
        return rc;
    rc = shut(client, wait_ms, err);
    hf__monitor_leave(client);
    return rc;
}

/* A lost lock whose lock_delay is not over must outlive the client. */
static void keep_lost_closed(const hf_client *client)
{
    struct hf__engine *engine = client->engine;
    bool any = false;

    HF_LIST_EACH(&client->leaving, link) {
        any |= HF_CONTAINER_OF(link, struct hf__ticket, link)->closed_until_ns >
               client->now_ns;
    }
    for (; engine; engine = engine->inner)
        engine->keeps_lost_closed = any;
}

/* Nobody else is inside: give back what the threads and the engine need. */
static void tear_down(hf_client *client)
{
    struct hf__list *link;

    hf__fork_unwatch(client);
    hf__detector_free(client);
    keep_lost_closed(client);
    hf__engine_free(client->engine, /* forked= */ false);
    client->engine = NULL;
    while ((link = hf__list_first(&client->leaving)) != NULL) {
        struct hf__ticket *ticket =
            HF_CONTAINER_OF(link, struct hf__ticket, link);

        hf__list_remove(link);
        hf__free(ticket->texts);
        hf__free(ticket->reason);
        hf__free((char *)(uintptr_t)ticket->cond);
        hf__free(ticket);
    }
    hf__query_abandon(client);
    hf__gate_release_all(client);
    while ((link = hf__list_first(&client->spare_tickets)) != NULL) {
        hf__list_remove(link);
        hf__free(HF_CONTAINER_OF(link, struct hf__ticket, link));
    }
    while ((link = hf__list_first(&client->spare_holds)) != NULL) {
        hf__list_remove(link);
        hf__free(HF_CONTAINER_OF(link, hf_hold, link));
    }
    hf__callbacks_release(&client->callbacks);
    hf__loop_release(&client->loop);
}

static void await_users(hf_client *client)
{
    struct hf__waiter closer;

    if (client->users == 1)
        return;
    hf__waiter_init(&closer);
    client->closer = &closer;
    /* They may wait for what only the engine can answer: drive. */
    (void)hf__monitor_wait(client, &closer, HF_NEVER);
    client->closer = NULL;
}

void hf_close(hf_client *client)
{
    int rc;

    if (!client)
        return;
    hf__detector_stop(client);
    if (hf__monitor_enter_any(client, /* err= */ NULL) != 0)
        return; /* the descriptors are closed; the rest is the parent's */
    rc = shut(client, client->settings.io_timeout_ms, /* err= */ NULL);
    await_users(client);
    if (rc == 0) /* who does not answer is not waited for once more */
        hf__query_finish(client);
    hf__monitor_unlock(client);

    hf__monitor_stop_background(client);
    hf__callbacks_stop(client);
    hf__fork_await_keepers(client);

    (void)pthread_mutex_lock(&client->monitor);
    tear_down(client);
    client->closed = true;
    hf__monitor_leave(client);
}

/* ---- questions about a client --------------------------------------------- */

uint64_t hf_capabilities(const hf_client *client)
{
    return client ? atomic_load_explicit(&client->caps, memory_order_relaxed)
                  : 0;
}

const char *hf_engine_name(const hf_client *client)
{
    return client ? client->engine_name : "";
}

const char *hf_client_url(const hf_client *client)
{
    return client ? client->url->redacted : "";
}

const char *hf_client_id(const hf_client *client)
{
    return client ? client->identity_hex : "";
}
