/* SPDX-License-Identifier: MIT */
/*
 * request.c - what a caller asks for: checked, completed, and waited for.
 *
 * A blocking acquire and an asynchronous one are the same request. The first
 * lives on the caller's stack and is waited for at once; the second is
 * allocated, has a timer for its deadline, and ends in a callback or in
 * hf_request_wait(). There is no second path.
 *
 * CANCEL. hf_cancel() may be called from a signal handler: it pushes the
 * request on a list without a lock and rings. The next thread inside takes the
 * list and finishes what is not finished. When it meets the grant, whichever
 * was first inside the monitor wins, and the other finds the request finished.
 */
#include "api/request.h"

#include "config/name.h"
#include "core/client.h"
#include "core/monitor.h"

#define TTL_MIN_MS 10

/* ---- checking ------------------------------------------------------------ */

/* A caller built with a later header may have more fields, which must be unset:
 * we would not do what they ask. */
static int take_opts(const hf_opts *given, hf_opts *opts, hf_error *err)
{
    static const hf_opts standard = HF_OPTS_INIT;

    *opts = standard;
    if (!given)
        return 0;
    if (given->size < sizeof(*opts))
        return hf__fail(err, HF_EINVAL,
                        "hf_opts.size is %u: begin with HF_OPTS_INIT",
                        given->size);
    for (size_t i = sizeof(*opts); i < given->size; i++) {
        if (((const unsigned char *)given)[i] != 0)
            return hf__fail(err, HF_EUNSUPPORTED,
                            "hf_opts has a field that this library is too old "
                            "for");
    }
    *opts = *given;
    return 0;
}

static int check_duration(const char *what, int64_t ms, int64_t least,
                          hf_error *err)
{
    if (ms >= least && ms <= HF_DURATION_MAX)
        return 0;
    return hf__fail(err, HF_EINVAL, "%s of %lld ms: %s", what, (long long)ms,
                    ms < least ? "too small" : "more than a hundred years");
}

static int check_mode(const hf_client *client, const hf_opts *opts,
                      hf_error *err)
{
    switch (opts->mode) {
    case HF_EXCLUSIVE:
        return 0;
    case HF_SHARED:
        if (client->engine->caps & HF_CAP_SHARED)
            return 0;
        break;
    case HF_SLOT:
        if (opts->slots < 1 || opts->slots > HF_SLOTS_MAX)
            return hf__fail(err, HF_EINVAL, "slots must be 1 to %d, not %d",
                            HF_SLOTS_MAX, opts->slots);
        if (client->engine->caps & HF_CAP_SLOTS)
            return 0;
        break;
    default:
        return hf__fail(err, HF_EINVAL, "no mode %d", opts->mode);
    }
    return hf__fail(err, HF_EUNSUPPORTED, "%s has no %s mode",
                    client->engine->ops->name,
                    opts->mode == HF_SHARED ? "shared" : "slot");
}

static int check_opts(const hf_client *client, const hf_opts *opts,
                      hf_error *err)
{
    int rc;

    if (opts->flags & ~(uint32_t)(HF_NON_REENTRANT | HF_NO_RENEW))
        return hf__fail(err, HF_EINVAL, "unknown flags 0x%x", opts->flags);
    rc = check_mode(client, opts, err);
    if (rc == 0)
        rc = check_duration("wait_ms", opts->wait_ms, HF_CONFIGURED, err);
    if (rc == 0 && opts->ttl_ms != 0)
        rc = check_duration("ttl_ms", opts->ttl_ms, TTL_MIN_MS, err);
    if (rc == 0)
        rc = check_duration("max_hold_ms", opts->max_hold_ms, 0, err);
    if (rc == 0 && opts->owner)
        rc = hf__name_check_text("owner", opts->owner, strlen(opts->owner), 1,
                                 HF_OWNER_MAX, err);
    if (rc == 0 && opts->note)
        rc = hf__name_check_text("note", opts->note, strlen(opts->note), 0,
                                 HF_NOTE_MAX, err);
    return rc;
}

/* What the caller left open: the file's section for the name, the client. */
static void complete(const hf_client *client, const char *name, hf_opts *opts)
{
    const struct hf__settings *settings = &client->settings;
    const struct hf__override *special =
        hf__config_override(client->config, name);

    if (opts->ttl_ms == 0 && special)
        opts->ttl_ms = special->ttl_ms;
    if (opts->ttl_ms == 0)
        opts->ttl_ms = settings->ttl_ms;
    if (opts->max_hold_ms == 0 && special)
        opts->max_hold_ms = special->max_hold_ms;
    if (opts->max_hold_ms == 0)
        opts->max_hold_ms = settings->max_hold_ms;
    if (!opts->note && special)
        opts->note = special->note;
    if (!opts->note)
        opts->note = settings->note;
    if (opts->mode != HF_SLOT)
        opts->slots = 0;
}

int64_t hf__request_configured_wait(const hf_client *client, const char *name)
{
    const struct hf__override *special =
        hf__config_override(client->config, name);

    return special && special->wait_ms != INT64_MIN ? special->wait_ms
                                                    : client->settings.wait_ms;
}

static void fill(struct hf_request *request, hf_client *client,
                 const hf_opts *opts)
{
    request->client = client;
    request->mode = opts->mode;
    request->slots = opts->slots;
    request->flags = opts->flags;
    request->nowait = opts->wait_ms == 0;
    request->ttl_ms = opts->ttl_ms;
    request->max_hold_ms = opts->max_hold_ms;
    request->owner = opts->owner;
    request->note = opts->note ? opts->note : "";
    request->asked_ns = client->now_ns;
    request->until_ns = hf__instant_add(
        client->now_ns,
        hf__ms_to_ns(request->nowait ? client->settings.io_timeout_ms
                                     : opts->wait_ms));
}

/* With the monitor: everything about @request but its owner's serial. */
static int prepare(struct hf_request *request, hf_client *client,
                   const char *name, size_t name_len, const hf_opts *given,
                   hf_error *err)
{
    hf_opts opts;
    int rc;

    rc = take_opts(given, &opts, err);
    if (rc == 0)
        rc = check_opts(client, &opts, err);
    if (rc == 0)
        rc = hf__name_check_text("name", name, name_len, 1, HF_NAME_MAX, err);
    if (rc == 0)
        rc = hf__monitor_need_background(client, err);
    if (rc == 0 && opts.on_event)
        rc = hf__callbacks_need(client, err);
    if (rc != 0)
        return rc;

    complete(client, name, &opts);
    if (!given || opts.wait_ms == HF_CONFIGURED)
        opts.wait_ms = hf__request_configured_wait(client, name);
    fill(request, client, &opts);
    request->hold = hf__hold_new(client, name, name_len);
    if (!request->hold)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    request->hold->on_event = opts.on_event;
    request->hold->ctx = opts.ctx;
    return 0;
}

/* ---- blocking ------------------------------------------------------------ */

static int ask_and_wait(struct hf_request *request, const char *name,
                        size_t name_len, hf_error *err)
{
    hf_client *client = request->client;
    struct hf__waiter waiter;
    int rc;

    hf__waiter_init(&waiter);
    request->waiter = &waiter;
    request->finished = false;
    rc = hf__gate_ask(client, name, name_len, request, err);
    if (rc != 0) {
        hf__hold_free(request->hold);
        return rc;
    }
    if (!request->finished &&
        !hf__monitor_wait(client, &waiter, request->until_ns))
        hf__gate_forget(request, HF_ETIMEOUT);
    return request->rc;
}

int hf__request_acquire(hf_client *client, const char *name,
                        const hf_opts *opts, hf_hold **ret_hold, hf_error *err)
{
    struct hf_request request;
    size_t name_len = strlen(name);
    int rc;

    memset(&request, 0, offsetof(struct hf_request, started));
    request.started = false;
    rc = prepare(&request, client, name, name_len, opts, err);
    if (rc != 0)
        return rc;
    request.owner_serial = request.owner ? 0 : hf__world->self();
    request.err = err;
    rc = ask_and_wait(&request, name, name_len, err);
    /* Granted, and lost again before this thread came to run: not a success.
     * The hold is as good as new. */
    while (HF_UNLIKELY(
        rc == 0 && hf__hold_check(request.hold, client->now_ns) == HF_LOST)) {
        hf__callbacks_cancel(client, &request.hold->callback);
        if (request.hold->ticket)
            hf__ticket_lose(request.hold->ticket, HF__LOST_EXPIRED,
                            /* certain= */ false);
        rc = ask_and_wait(&request, name, name_len, err);
    }
    if (rc == 0)
        *ret_hold = request.hold;
    return rc;
}

int hf_acquire(hf_client *client, const char *name, const hf_opts *opts,
               hf_hold **ret_hold, hf_error *err)
{
    int rc;

    if (!client || !name || !ret_hold)
        return hf__fail(err, HF_EINVAL, "client, name or ret_hold is NULL");
    rc = hf__monitor_enter(client, err);
    if (rc != 0)
        return rc;
    rc = hf__request_acquire(client, name, opts, ret_hold, err);
    hf__monitor_leave(client);
    return rc;
}

/* ---- asynchronous -------------------------------------------------------- */

static void deadline_fire(struct hf__timer *timer)
{
    hf__gate_forget(HF_CONTAINER_OF(timer, struct hf_request, timer),
                    HF_ETIMEOUT);
}

static void prepare_outcome(struct hf__callback *callback)
{
    (void)callback; /* a finished request does not change */
}

static void run_outcome(struct hf__callback *callback)
{
    struct hf_request *request =
        HF_CONTAINER_OF(callback, struct hf_request, callback);
    hf_hold *hold = HF_STEAL(request->hold);
    hf_error err = request->error;

    /* The callback may free the request. */
    request->done(request->rc, hold, hold ? NULL : &err, request->ctx);
}

/* Owner and note are copied behind the request. */
static struct hf_request *request_new(const hf_opts *opts)
{
    size_t owner_len = opts && opts->owner ? strlen(opts->owner) + 1 : 0;
    size_t note_len = opts && opts->note ? strlen(opts->note) + 1 : 0;

    return hf__calloc(1, sizeof(struct hf_request) + owner_len + note_len);
}

/* The caller's texts; the configuration's live as long as the client. */
static void keep_texts(struct hf_request *request, const hf_opts *opts)
{
    char *to = (char *)(request + 1);

    if (request->owner) {
        memcpy(to, request->owner, strlen(request->owner) + 1);
        request->owner = to;
        to += strlen(to) + 1;
    }
    if (opts && opts->note) {
        memcpy(to, opts->note, strlen(opts->note) + 1);
        request->note = to;
    }
}

static void start(struct hf_request *request, hf_done_cb *done, void *ctx)
{
    hf_client *client = request->client;

    request->started = true;
    request->done = done;
    request->ctx = ctx;
    request->err = &request->error;
    request->timer.fire = deadline_fire;
    request->callback.prepare = prepare_outcome;
    request->callback.tell = run_outcome;
    request->owner_serial = request->owner ? 0 : hf__world_serial();
    hf__list_append(&client->requests, &request->all);
    client->handles++;
    if (request->until_ns != HF_NEVER)
        hf__monitor_timer(client, &request->timer, request->until_ns);
}

static int start_in(hf_client *client, const char *name, const hf_opts *opts,
                    hf_done_cb *done, void *ctx, struct hf_request *request,
                    hf_error *err)
{
    size_t name_len = strlen(name);
    int rc;

    rc = prepare(request, client, name, name_len, opts, err);
    if (rc != 0)
        return rc;
    if (done)
        rc = hf__callbacks_need(client, err);
    if (rc == 0 && hf__monitor_timer_user(client) != 0)
        rc = hf__fail(err, HF_ENOMEM, "out of memory");
    if (rc == 0) {
        keep_texts(request, opts);
        start(request, done, ctx);
        rc = hf__gate_ask(client, name, name_len, request, err);
        if (rc == 0)
            return 0;
        hf__list_remove(&request->all);
        hf__timer_stop(&client->loop, &request->timer);
        hf__monitor_timer_user_gone(client);
        hf__monitor_handle_gone(client);
    }
    hf__hold_free(request->hold);
    return rc;
}

int hf_acquire_start(hf_client *client, const char *name, const hf_opts *opts,
                     hf_done_cb *done, void *ctx, hf_request **ret_request,
                     hf_error *err)
{
    struct hf_request *request;
    int rc;

    if (!client || !name || !ret_request)
        return hf__fail(err, HF_EINVAL, "client, name or ret_request is NULL");
    request = request_new(opts);
    if (!request)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__monitor_enter(client, err);
    if (rc == 0) {
        rc = start_in(client, name, opts, done, ctx, request, err);
        if (rc == 0)
            *ret_request = request; /* before the callback can ask for it */
        hf__monitor_leave(client);
    }
    if (rc != 0)
        hf__free(request);
    return rc;
}

static int take_outcome(struct hf_request *request, hf_hold **ret_hold,
                        hf_error *err)
{
    if (request->rc != 0)
        return hf__fail_pass(err, &request->error);
    if (!request->hold)
        return hf__fail(err, HF_EINVAL, "the hold was taken already");
    *ret_hold = HF_STEAL(request->hold);
    return 0;
}

int hf_request_wait(hf_request *request, int64_t wait_ms, hf_hold **ret_hold,
                    hf_error *err)
{
    struct hf__waiter waiter;
    hf_client *client;
    int rc;

    if (!request || !ret_hold || wait_ms < HF_FOREVER)
        return hf__fail(err, HF_EINVAL,
                        "request or ret_hold is NULL, or a negative wait");
    if (request->done)
        return hf__fail(err, HF_EINVAL, "the outcome goes to the callback");
    client = request->client;
    rc = hf__monitor_enter_any(client, err);
    if (rc != 0)
        return rc;
    if (!request->finished && request->waiter) {
        rc = hf__fail(err, HF_EINVAL, "another thread waits for it");
    } else if (!request->finished) {
        hf__waiter_init(&waiter);
        request->waiter = &waiter;
        (void)hf__monitor_wait(
            client, &waiter,
            hf__instant_add(client->now_ns, hf__ms_to_ns(wait_ms)));
        request->waiter = NULL;
    }
    if (rc == 0 && !request->finished)
        rc = hf__fail(err, HF_ETIMEOUT, "the request goes on");
    else if (rc == 0)
        rc = take_outcome(request, ret_hold, err);
    hf__monitor_leave(client);
    return rc;
}

int hf_request_pending(const hf_request *request)
{
    hf_client *client = request ? request->client : NULL;
    int pending;

    if (!client || hf__monitor_enter_any(client, /* err= */ NULL) != 0)
        return 0;
    pending = !request->finished;
    hf__monitor_leave(client);
    return pending;
}

void hf_cancel(hf_request *request)
{
    hf_client *client = request ? request->client : NULL;
    struct hf_request *head;

    if (!client || hf__forked(client->fork_generation) ||
        atomic_exchange(&request->canceled, 1) != 0)
        return;
    head = atomic_load(&client->cancels);
    do {
        request->cancel_next = head;
    } while (!atomic_compare_exchange_weak(&client->cancels, &head, request));
    if (client->settings.drive == HF__DRIVE_APP)
        hf__loop_kick(&client->loop);
    else
        hf__world->ring(&client->alarm);
}

static void end_request(struct hf_request *request)
{
    hf_client *client = request->client;

    hf__callbacks_cancel(client, &request->callback);
    if (!request->finished) {
        request->done = NULL;
        hf__gate_forget(request, HF_ECANCELED);
    }
    if (request->hold) {
        hf__callbacks_cancel(client, &request->hold->callback);
        hf__request_let_go(request->hold);
        hf__hold_free(request->hold);
    }
    hf__monitor_timer_user_gone(client);
    hf__monitor_handle_gone(client);
}

void hf_request_free(hf_request *request)
{
    hf_client *client;

    if (!request)
        return;
    client = request->client;
    if (hf__monitor_enter_any(client, /* err= */ NULL) == 0) {
        end_request(request);
        hf__monitor_leave(client);
    }
    hf__free(request);
}

/* With the monitor: release what nobody will, without waiting. */
void hf__request_let_go(hf_hold *hold)
{
    struct hf__ticket *ticket = hold->ticket;

    if (!ticket)
        return;
    hf__hold_part(hold, HF_RELEASED);
    if (hf__list_empty(&ticket->holds))
        (void)hf__gate_release(ticket, /* waiter= */ NULL);
}

/* ---- the host's event loop ------------------------------------------------ */

int hf_event_fd(hf_client *client)
{
    int fd;

    if (!client)
        return HF_EINVAL;
    fd = hf__monitor_enter(client, /* err= */ NULL);
    if (fd != 0)
        return fd;
    if (client->settings.drive == HF__DRIVE_APP)
        fd = client->loop.epoll_fd;
    else
        fd = hf__callbacks_dispatch_fd(client, /* err= */ NULL);
    hf__monitor_leave(client);
    return fd;
}

int hf_dispatch(hf_client *client)
{
    int rc;

    if (!client)
        return HF_EINVAL;
    rc = hf__monitor_enter_any(client, /* err= */ NULL);
    if (rc != 0)
        return rc;
    rc = hf__callbacks_dispatch(client);
    hf__monitor_leave(client);
    return rc;
}
