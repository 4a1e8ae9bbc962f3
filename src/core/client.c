/* SPDX-License-Identifier: MIT */
/*
 * client.c - the connection of a client, as the core sees it.
 *
 * A connection that goes down is the core's business, not the engine's: the
 * retry policy says when to try again and when to give up. While it is down,
 * tickets rest, holds count their time, withdrawals wait. When it is up again
 * all of them are asked about at once: a hold that the engine does not know any
 * more is LOST then, not later.
 */
#include "core/client.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/keeper.h"
#include "core/leaving.h"
#include "core/log.h"
#include "core/monitor.h"
#include "core/parked.h"
#include "core/query.h"
#include "core/retry.h"
#include "core/watch.h"

/* ---- the connection ------------------------------------------------------ */

static void connect_fire(struct hf__timer *timer)
{
    hf_client *client = HF_CONTAINER_OF(timer, hf_client, connect_timer);

    hf__client_connect(client);
}

void hf__client_connect(hf_client *client)
{
    hf_error err;

    if (client->connection >= HF__CONNECTION_CONNECTING || client->closed ||
        hf__timer_running(&client->connect_timer))
        return;
    if (client->connection == HF__CONNECTION_GIVEN_UP)
        client->connect_attempts = 0;
    if (client->connect_attempts == 0)
        client->connect_since_ns = client->now_ns;
    client->connection = HF__CONNECTION_CONNECTING;
    if (client->engine->ops->connect(client->engine, &err) != 0)
        hf__client_down(client, &err);
}

static void ask_again(struct hf__gate *gate)
{
    struct hf__ticket *place = gate->place;

    hf__gate_pin(gate);
    HF_LIST_EACH(&gate->seats, link) {
        hf__keeper_hurry(HF_CONTAINER_OF(link, struct hf__ticket, link));
    }
    if (place && place->state == HF__TICKET_QUEUED) {
        hf__keeper_stop(place);
        place->in_line = true;
        hf__ticket_move(place, HF__TICKET_RESTING);
    }
    if (place && place->state == HF__TICKET_RESTING)
        hf__ticket_ask(place);
    hf__parked_ask_again(gate);
    hf__gate_unpin(gate);
}

int hf__client_requires(const hf_client *client, hf_error *err)
{
    uint64_t missing = client->settings.require & ~client->engine->caps;

    if (missing == 0)
        return 0;
    return hf__fail(err, HF_EUNSUPPORTED,
                    "%s cannot promise '%s', which require= asks for",
                    client->engine->ops->name,
                    hf_capability_name(missing & (~missing + 1)));
}

/* What the program only prefers is given up, what somebody asked for not. */
static int allow_lock_delay(hf_client *client, hf_error *err)
{
    if (client->settings.lock_delay_ms == 0 ||
        client->engine->caps & HF_CAP_LOCK_DELAY)
        return 0;
    if (!hf__config_is_asked_for(client->config, "lock_delay")) {
        client->settings.lock_delay_ms = 0;
        return 0;
    }
    return hf__fail(err, HF_EUNSUPPORTED,
                    "%s cannot keep a lock closed after its holder vanished: "
                    "leave out lock_delay",
                    client->engine->ops->name);
}

int hf__client_fits(hf_client *client, hf_error *err)
{
    int rc = hf__client_requires(client, err);

    return rc != 0 ? rc : allow_lock_delay(client, err);
}

/* The first server that answers promises less than was asked for: the client
 * must not be used. */
static bool turned_out_unfit(hf_client *client)
{
    bool first = !client->was_up;

    client->was_up = true;
    atomic_store_explicit(&client->caps, client->engine->caps,
                          memory_order_relaxed);
    return first && hf__client_fits(client, &client->unfit) != 0;
}

static void fail_unfit(struct hf__gate *gate)
{
    hf__gate_fail_all(gate, &gate->client->unfit);
}

static void tell_openers(hf_client *client, int rc)
{
    HF_LIST_EACH(&client->openers, link) {
        hf__waiter_done(client, HF_CONTAINER_OF(link, struct hf__waiter, watch),
                        rc);
    }
}

void hf__client_connected(hf_client *client)
{
    client->connection = HF__CONNECTION_UP;
    client->connect_attempts = 0;
    client->metrics.engine_up = true;
    if (client->down_err.code != 0) {
        client->metrics.reconnects++;
        hf__monitor_log(client, HF_LOG_INFO, "%s: connected again",
                        client->url->redacted);
    }
    client->down_err.code = 0;
    if (turned_out_unfit(client)) {
        client->closing = true;
        hf__gate_each(client, fail_unfit);
        tell_openers(client, client->unfit.code);
        return;
    }
    hf__gate_each(client, ask_again);
    hf__leaving_hurry(client);
    hf__keeper_send(client);
    hf__watch_connected(client);
    tell_openers(client, 0);
}

static void alarm_seats(struct hf__gate *gate)
{
    HF_LIST_EACH(&gate->seats, link) {
        hf__keeper_alarm(HF_CONTAINER_OF(link, struct hf__ticket, link));
    }
}

static void fail_gate(struct hf__gate *gate)
{
    hf__gate_fail_all(gate, &gate->client->down_err);
}

static bool is_final(int code)
{
    return code == HF_EAUTH || code == HF_ECONFIG || code == HF_EUNSUPPORTED;
}

void hf__client_down(hf_client *client, const hf_error *err)
{
    if (hf__client_is_up(client))
        hf__monitor_log(client, HF_LOG_WARNING, "%s: connection lost: %s",
                        client->url->redacted, err->text);
    client->connection = HF__CONNECTION_DOWN;
    client->down_err = *err;
    client->metrics.engine_up = false;
    if (client->engine->ops->flags & HF__SESSION)
        hf__gate_each(client, alarm_seats);

    client->connect_attempts++;
    if (is_final(err->code) ||
        hf__retry_over(&client->settings, client->connect_attempts,
                       client->connect_since_ns, client->now_ns)) {
        client->connection = HF__CONNECTION_GIVEN_UP;
        hf__gate_each(client, fail_gate);
        tell_openers(client, err->code);
        return;
    }
    hf__monitor_timer(client, &client->connect_timer,
                      client->now_ns +
                          hf__retry_pause_ns(&client->settings,
                                             client->connect_attempts - 1));
}

/* ---- making and freeing ------------------------------------------------- */

hf_client *hf__client_new(void)
{
    hf_client *client = hf__calloc(1, sizeof(*client));

    if (!client)
        return NULL;
    (void)pthread_mutex_init(&client->monitor, NULL);
    hf__list_init(&client->waiters);
    hf__list_init(&client->leaving);
    hf__list_init(&client->openers);
    hf__list_init(&client->requests);
    hf__list_init(&client->queries);
    hf__list_init(&client->watches);
    hf__list_init(&client->spare_tickets);
    hf__list_init(&client->spare_holds);
    hf__list_init(&client->link);
    hf__callbacks_init(&client->callbacks);
    client->loop.epoll_fd = -1;
    client->loop.event_fd = -1;
    client->loop.timer_fd = -1;
    client->alarm.timer_fd = -1;
    client->alarm.event_fd = -1;
    client->log_last = &client->log_first;
    client->background_until_ns = HF_NEVER;
    client->connect_timer.fire = connect_fire;
    client->ticket_size = (sizeof(struct hf__ticket) + 15) / 16 * 16;
    return client;
}

void hf__client_free(hf_client *client)
{
    (void)pthread_mutex_destroy(&client->monitor);
    hf_config_free(client->config);
    hf__settings_release(&client->settings);
    hf__url_free(client->url);
    hf__free(client);
}

void hf__client_abandon(hf_client *client)
{
    hf__loop_abandon(&client->loop);
    hf__alarm_release(&client->alarm);
    hf__callbacks_release(&client->callbacks);
    if (client->engine)
        client->engine->ops->close(client->engine, /* forked= */ true);
}
