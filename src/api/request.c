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

#include "api/inspect.h"

#include "config/name.h"
#include "core/client.h"
#include "core/monitor.h"
#include "core/parked.h"
#include "core/query.h"

#define TTL_MIN_MS 10

/* ---- checking ------------------------------------------------------------ */

/* The first header's hf_opts ended with ctx: its programs go on working. */
#define OPTS_V1 offsetof(hf_opts, owner_id)

/* A caller built with a later header may have more fields, which must be unset:
 * we would not do what they ask. */
static int check_surplus(const hf_opts *given, hf_error *err)
{
    for (size_t i = sizeof(*given); i < given->size; i++) {
        if (((const unsigned char *)given)[i] != 0)
            return hf__fail(err, HF_EUNSUPPORTED,
                            "hf_opts has a field that this library is too old "
                            "for");
    }
    return 0;
}

static inline void take_old_opts(const hf_opts *given, hf_opts *opts)
{
    memcpy(opts, given, OPTS_V1);
    memset((char *)opts + OPTS_V1, 0, sizeof(*opts) - OPTS_V1);
    opts->size = (uint32_t)sizeof(*opts);
}

/* Of another size than ours or the first one's. */
static int take_other_opts(const hf_opts *given, hf_opts *opts, hf_error *err)
{
    int rc;

    if (given->size < OPTS_V1)
        return hf__fail(err, HF_EINVAL,
                        "hf_opts.size is %u: begin with HF_OPTS_INIT",
                        given->size);
    rc = check_surplus(given, err);
    if (rc != 0)
        return rc;
    memset(opts, 0, sizeof(*opts));
    memcpy(opts, given,
           given->size < sizeof(*opts) ? given->size : sizeof(*opts));
    opts->size = (uint32_t)sizeof(*opts);
    return 0;
}

static inline int take_opts(const hf_opts *given, hf_opts *opts, hf_error *err)
{
    static const hf_opts standard = HF_OPTS_INIT;

    if (!given)
        *opts = standard;
    else if (HF_LIKELY(given->size == sizeof(*opts)))
        *opts = *given;
    else if (given->size == OPTS_V1)
        take_old_opts(given, opts);
    else
        return take_other_opts(given, opts, err);
    return 0;
}

int hf__request_opts(const hf_opts *given, hf_opts *opts, hf_error *err)
{
    return take_opts(given, opts, err);
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

/* What the first header did not have. */
static int check_later(const hf_client *client, const hf_opts *opts,
                       hf_error *err)
{
    if ((opts->flags & HF_NEW_OWNER) != 0 && opts->owner_id != 0)
        return hf__fail(err, HF_EINVAL,
                        "HF_NEW_OWNER and an owner_id: which of the two?");
    if (opts->reserved != 0)
        return hf__fail(err, HF_EINVAL, "hf_opts.reserved is not 0");
    if (opts->priority != 0)
        return hf__fail(err, HF_EUNSUPPORTED,
                        "priority %d: %s serves all in the order they came; "
                        "leave hf_opts.priority 0",
                        opts->priority, client->engine->ops->name);
    return 0;
}

static int check_opts(const hf_client *client, const hf_opts *opts,
                      hf_error *err)
{
    static const uint32_t known = HF_NON_REENTRANT | HF_NO_RENEW | HF_NEW_OWNER;
    int rc;

    if (opts->flags & ~known)
        return hf__fail(err, HF_EINVAL, "unknown flags 0x%x", opts->flags);
    rc = check_mode(client, opts, err);
    if (rc == 0)
        rc = check_duration("wait_ms", opts->wait_ms, HF_CONFIGURED, err);
    if (rc == 0 && opts->ttl_ms != 0)
        rc = check_duration("ttl_ms", opts->ttl_ms, TTL_MIN_MS, err);
    if (rc == 0)
        rc = check_duration("max_hold_ms", opts->max_hold_ms, HF_FOREVER, err);
    if (rc == 0 && opts->owner)
        rc = hf__name_check_text("owner", opts->owner, strlen(opts->owner), 1,
                                 HF_OWNER_MAX, err);
    if (rc == 0)
        rc = check_later(client, opts, err);
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
    if (opts->max_hold_ms == HF_FOREVER)
        opts->max_hold_ms = 0;
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

/* Whose it will be; 0: the owner of opts->owner, or nobody named one. */
static uint64_t named_owner(const hf_opts *opts)
{
    return opts->flags & HF_NEW_OWNER ? hf__world_serial() : opts->owner_id;
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
    request->owner_serial = named_owner(opts);
    request->note = opts->note ? opts->note : "";
    request->asked_ns = client->now_ns;
    request->until_ns = hf__instant_add(
        client->now_ns,
        hf__ms_to_ns(request->nowait ? client->settings.io_timeout_ms
                                     : opts->wait_ms));
}

/* With the monitor: everything about @request, but an owner that the caller
 * left open. */
static int prepare(struct hf_request *request, hf_client *client,
                   const char *name, size_t name_len, const hf_opts *given,
                   hf_error *err)
{
    hf_opts opts;
    int rc;

    rc = take_opts(given, &opts, err);
    if (rc == 0 && given) /* the standard ones are right everywhere */
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
    if (opts.wait_ms == HF_CONFIGURED)
        opts.wait_ms = hf__request_configured_wait(client, name);
    fill(request, client, &opts);
    request->hold = hf__hold_new(client, name, name_len);
    if (!request->hold)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    request->hold->on_event = opts.on_event;
    request->hold->ctx = opts.ctx;
    return 0;
}

/* ---- who keeps it ---------------------------------------------------------- */

/* The wait was in vain, and the engine did not say whose fault it is: a look
 * finds out, if it takes no longer than this. The request stays in line. */
#define LOOK_NS (200 * HF_MS)

/* Ask who holds the lock of @request, and have @waiter told. False if that
 * cannot be asked; else it may be answered when this returns. */
static bool look_begin(struct hf_request *request, struct hf__waiter *waiter)
{
    struct hf__query *query = hf__query_new(/* err= */ NULL);
    hf_client *client = request->client;

    if (!query)
        return false;
    request->query = query; /* the answer may be there at once */
    if (hf__query_name(query, request->gate->name, /* err= */ NULL) == 0 &&
        hf__query_set(&query->prefix, "", /* err= */ NULL) == 0 &&
        hf__query_begin(client, client->engine->ops->list, query, waiter) == 0)
        return true;
    hf__query_free(HF_STEAL(request->query));
    return false;
}

/* Keep the answer, if it is there, and forget the question. */
static void look_end(struct hf_request *request,
                     const struct hf__waiter *waiter)
{
    struct hf__rows *rows;

    if (!waiter->done) {
        (void)hf__query_give_up(request->client, &request->query,
                                /* err= */ NULL);
        return;
    }
    rows = request->query->rows;
    for (size_t i = 0; i < rows->n && !request->finished; i++) {
        if (rows->at[i]->is.lock.role == HF_HOLDER) {
            hf__gate_name_holder(request->gate, &rows->at[i]->is.lock);
            break;
        }
    }
    hf__query_free(HF_STEAL(request->query));
}

/* The time of a blocked caller is over. It may be served after all. */
static void give_up(struct hf_request *request)
{
    hf_client *client = request->client;
    struct hf__waiter waiter;

    hf__waiter_init(&waiter);
    if (hf__gate_is_anonymous(request) && look_begin(request, &waiter)) {
        (void)hf__monitor_wait(client, &waiter,
                               hf__instant_add(client->now_ns, LOOK_NS));
        look_end(request, &waiter);
    }
    if (!request->finished)
        hf__gate_forget(request, HF_ETIMEOUT);
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
        give_up(request);
    return request->rc;
}

/* Granted on a client that is being closed: a hold that was released before
 * this thread came to run is not a success. */
static int take_closed(struct hf_request *request, hf_hold **ret_hold,
                       hf_error *err)
{
    hf_client *client = request->client;

    if (hf__hold_check(request->hold, client->now_ns) != HF_RELEASED) {
        *ret_hold = request->hold;
        return 0;
    }
    hf__callbacks_cancel(client, &request->hold->callback);
    hf__hold_free(request->hold);
    return hf__monitor_closed(client, err);
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
    if (!request.owner && request.owner_serial == 0)
        request.owner_serial = hf__world->self();
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
    if (HF_UNLIKELY(rc == 0 && client->closing))
        return take_closed(&request, ret_hold, err);
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

int hf_try(hf_client *client, const char *name, hf_hold **ret_hold,
           hf_error *err)
{
    hf_opts opts = HF_OPTS_INIT;

    opts.wait_ms = 0;
    return hf_acquire(client, name, &opts, ret_hold, err);
}

/* ---- asynchronous -------------------------------------------------------- */

static void tell_acquired(struct hf_request *request)
{
    hf_hold *hold = HF_STEAL(request->hold);
    hf_error err = request->error;

    /* The callback may free the request. */
    request->done(request->rc, hold, hold ? NULL : &err, request->ctx);
}

/* An outcome that nobody took. */
static void drop_acquired(struct hf_request *request)
{
    if (!request->hold)
        return;
    hf__callbacks_cancel(request->client, &request->hold->callback);
    hf__request_let_go(request->hold);
    hf__hold_free(request->hold);
}

/* The same for a started request, whose timer comes once more. */
static void forget_acquire(struct hf_request *request, int rc)
{
    hf_client *client = request->client;
    struct hf__waiter *answer = &request->answers[0];

    if (rc == HF_ETIMEOUT && !request->query &&
        hf__gate_is_anonymous(request)) {
        request->open = 1;
        if (look_begin(request, answer)) {
            if (!request->finished)
                hf__monitor_timer(client, &request->timer,
                                  hf__instant_add(client->now_ns, LOOK_NS));
            return;
        }
    }
    if (request->query)
        look_end(request, answer);
    hf__gate_forget(request, rc);
}

static void conclude_acquire(struct hf_request *request, int rc)
{
    (void)rc; /* with or without a name, the time is over */
    look_end(request, &request->answers[0]);
    hf__gate_forget(request, HF_ETIMEOUT);
}

static const struct hf__request_kind acquiring = {
    .forget = forget_acquire,
    .conclude = conclude_acquire,
    .tell = tell_acquired,
    .drop = drop_acquired,
    .at_the_gate = true,
};

/* Owner and note are copied behind the request. */
static struct hf_request *request_new(hf_client *client, const hf_opts *opts)
{
    size_t owner_len = opts->owner ? strlen(opts->owner) + 1 : 0;
    size_t note_len = opts->note ? strlen(opts->note) + 1 : 0;

    return hf__request_new(client, /* answers_n= */ 1, owner_len + note_len);
}

/* The caller's texts; the configuration's live as long as the client. */
static void keep_texts(struct hf_request *request, const hf_opts *opts)
{
    char *to = (char *)&request->answers[request->answers_n];

    if (request->owner) {
        memcpy(to, request->owner, strlen(request->owner) + 1);
        request->owner = to;
        to += strlen(to) + 1;
    }
    if (opts->note) {
        memcpy(to, opts->note, strlen(opts->note) + 1);
        request->note = to;
    }
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
    rc = hf__request_reserve(client, done, err);
    if (rc == 0) {
        keep_texts(request, opts);
        if (!request->owner && request->owner_serial == 0)
            request->owner_serial = hf__world_serial();
        hf__request_start(request, &acquiring, done, ctx);
        rc = hf__gate_ask(client, name, name_len, request, err);
        if (rc == 0)
            return 0;
        hf__request_undo(request);
    }
    hf__hold_free(request->hold);
    return rc;
}

int hf_acquire_start(hf_client *client, const char *name, const hf_opts *opts,
                     hf_done_cb *done, void *ctx, hf_request **ret_request,
                     hf_error *err)
{
    struct hf_request *request;
    hf_opts own;
    int rc;

    if (!client || !name || !ret_request)
        return hf__fail(err, HF_EINVAL, "client, name or ret_request is NULL");
    rc = hf__request_opts(opts, &own, err);
    if (rc != 0)
        return rc;
    request = request_new(client, &own);
    if (!request)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    rc = hf__monitor_enter(client, err);
    if (rc == 0) {
        rc = start_in(client, name, &own, done, ctx, request, err);
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
    if (request->rc < 0)
        return hf__fail_pass(err, &request->error);
    if (request->kind != &acquiring)
        return request->rc;
    if (!ret_hold)
        return hf__fail(err, HF_EINVAL, "ret_hold is NULL");
    if (!request->hold)
        return hf__fail(err, HF_EINVAL, "the hold was taken already");
    *ret_hold = HF_STEAL(request->hold);
    return 0;
}

/* With the monitor: wait until @request is finished, or @wait_ms. */
static int await(struct hf_request *request, int64_t wait_ms, hf_error *err)
{
    hf_client *client = request->client;
    struct hf__waiter waiter;

    if (request->finished)
        return 0;
    if (request->waiter)
        return hf__fail(err, HF_EINVAL, "another thread waits for it");
    hf__waiter_init(&waiter);
    request->waiter = &waiter;
    (void)hf__monitor_wait(
        client, &waiter,
        hf__instant_add(client->now_ns, hf__ms_to_ns(wait_ms)));
    request->waiter = NULL;
    return request->finished
               ? 0
               : hf__fail(err, HF_ETIMEOUT, "the request goes on");
}

int hf_request_wait(hf_request *request, int64_t wait_ms, hf_hold **ret_hold,
                    hf_error *err)
{
    struct hf__query *query = NULL;
    hf_client *client;
    int rc;

    if (!request || wait_ms < HF_FOREVER)
        return hf__fail(err, HF_EINVAL, "request is NULL, or a negative wait");
    if (request->done)
        return hf__fail(err, HF_EINVAL, "the outcome goes to the callback");
    client = request->client;
    rc = hf__monitor_enter_any(client, err);
    if (rc != 0)
        return rc;
    rc = await(request, wait_ms, err);
    if (rc == 0) {
        rc = take_outcome(request, ret_hold, err);
        if (request->each)
            query = HF_STEAL(request->query); /* a list's, with its rows */
    }
    hf__monitor_leave(client);
    if (query) {
        rc = hf__inspect_rows(query, request->each, request->ctx);
        hf__query_free(query);
    }
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
        request->kind->forget(request, HF_ECANCELED);
    }
    if (request->kind->drop)
        request->kind->drop(request);
    hf__monitor_timer_user_gone(client);
    hf__monitor_handle_gone(client);
}

int hf__request_take(struct hf_request *request, hf_error *err)
{
    int rc = await(request, HF_FOREVER, err);

    if (rc == 0)
        rc = take_outcome(request, /* ret_hold= */ NULL, err);
    end_request(request);
    return rc;
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

    if (hold->wait)
        hf__parked_forget(hold->wait, HF_ECANCELED);
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
