/* SPDX-License-Identifier: MIT */
/*
 * watch.c - tell an application what happens to locks.
 *
 * An engine only says "something about this name may have changed". A watch
 * then looks: it lists again, compares with the list before (diff.c), and tells
 * the difference. So a hint may come twice, late or never, and what an engine
 * has to promise is little. Without hints a watch looks in turns, more often
 * while something happens.
 *
 *   hint, or time ──▶ look: one list, or up to 64 names ──▶ events ──▶ each()
 *                       ▲                                     │ more than 1,024
 *                       └──── RESYNC, and the rows as they are ◀──── dropped
 *
 * A look is a request like that of hf_list_start(), so that somebody reads its
 * answer and it ends in time. Its rows stay here, shared with the events that
 * show them; a callback may still read a row when its watch is gone.
 *
 * Failure: a look that fails is made again, with growing pauses. Without memory
 * events are dropped, as if there were too many.
 *
 * With the monitor held, but for the telling.
 */
#include "core/watch.h"

#include <stdlib.h>

#include "config/name.h"
#include "core/client.h"
#include "core/diff.h"

/* Between two looks, and between looks without a hint. */
#define GAP_NS (50 * HF_MS)
#define PACE_MIN_NS (250 * HF_MS)
#define PACE_NS HF_SECOND
#define PACE_MAX_NS (2 * HF_SECOND)
/* With hints: in case that one was lost, or a lease has ended. */
#define CALM_NS (10 * HF_SECOND)

struct hf__watch_event {
    struct hf__list link;
    int kind;
    struct hf__row *row; /* with a reference; NULL: RESYNC */
    uint64_t missed;
    bool change; /* it counts against HF__WATCH_EVENTS */
};

static void plan(struct hf_watch *watch);

/* ---- events ---------------------------------------------------------------- */

static void event_free(struct hf__watch_event *event)
{
    if (event->row)
        hf__query_row_unref(event->row);
    hf__free(event);
}

/* How many there were. */
static uint64_t drop_events(struct hf_watch *watch)
{
    struct hf__list *link;
    uint64_t n = 0;

    while ((link = hf__list_first(&watch->events)) != NULL) {
        hf__list_remove(link);
        event_free(HF_CONTAINER_OF(link, struct hf__watch_event, link));
        n++;
    }
    watch->changes = 0;
    hf__callbacks_unlist(&watch->callback);
    return n;
}

static void fall_behind(struct hf_watch *watch)
{
    watch->missed += drop_events(watch) + 1;
    watch->in_step = false;
}

static void push(struct hf_watch *watch, int kind, struct hf__row *row,
                 bool change)
{
    struct hf__watch_event *event = NULL;

    watch->changed |= change;
    if (!watch->in_step) {
        watch->missed++;
        return;
    }
    if (!change || watch->changes < HF__WATCH_EVENTS)
        event = hf__calloc(1, sizeof(*event));
    if (!event) {
        fall_behind(watch);
        return;
    }
    event->kind = kind;
    event->row = row;
    event->change = change;
    if (row) {
        atomic_fetch_add_explicit(&row->refs, 1, memory_order_relaxed);
    } else {
        event->missed = watch->missed;
        watch->missed = 0;
    }
    watch->changes += change;
    hf__list_append(&watch->events, &event->link);
    hf__callbacks_add(watch->client, &watch->callback);
}

static void prepare_event(struct hf__callback *callback)
{
    struct hf_watch *watch =
        HF_CONTAINER_OF(callback, struct hf_watch, callback);
    struct hf__watch_event *event = HF_CONTAINER_OF(
        hf__list_first(&watch->events), struct hf__watch_event, link);

    hf__list_remove(&event->link);
    watch->changes -= event->change;
    watch->telling = event;
    if (!hf__list_empty(&watch->events))
        hf__callbacks_add(watch->client, callback);
}

/* Without the monitor. The watch may be gone afterwards. */
static void tell_event(struct hf__callback *callback)
{
    struct hf_watch *watch =
        HF_CONTAINER_OF(callback, struct hf_watch, callback);
    struct hf__watch_event *event = HF_STEAL(watch->telling);
    hf_watch_event told = {
        .size = (uint32_t)sizeof(told),
        .kind = event->kind,
        .row = event->row ? &event->row->is.lock : NULL,
        .missed = event->missed,
    };

    watch->each(&told, watch->ctx);
    event_free(event);
}

/* ---- what an answer tells -------------------------------------------------- */

static void on_change(void *ctx, enum hf__change change, struct hf__row *row)
{
    struct hf_watch *watch = ctx;
    int kind = HF_EV_LEFT;

    if (change == HF__CHANGE_ENDED)
        kind = hf__diff_ending(row, watch->client->now_ns);
    else if (change == HF__CHANGE_GRANTED)
        kind = HF_EV_GRANTED;
    else if (change == HF__CHANGE_QUEUED)
        kind = HF_EV_QUEUED;
    push(watch, kind, row, /* change= */ true);
}

/* RESYNC, and the rows as they are. */
static void tell_rows(struct hf_watch *watch)
{
    watch->in_step = true;
    push(watch, HF_EV_RESYNC, NULL, /* change= */ false);
    for (size_t i = 0; i < watch->seen.n && watch->in_step; i++) {
        struct hf__row *row = watch->seen.at[i];

        if (hf__diff_counts(row))
            push(watch,
                 row->is.lock.role == HF_HOLDER ? HF_EV_GRANTED : HF_EV_QUEUED,
                 row, /* change= */ false);
    }
}

/* The first row of @rows whose name does not come before @name. */
static size_t find_name(const struct hf__rows *rows, const char *name)
{
    size_t low = 0;
    size_t high = rows->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(rows->at[middle]->is.lock.name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* @rows in place of the rows @from to @to. HF_ENOMEM: nothing has changed. */
static int replace(struct hf_watch *watch, size_t from, size_t to,
                   struct hf__rows *rows)
{
    struct hf__rows *seen = &watch->seen;
    size_t n = seen->n - (to - from) + rows->n;
    struct hf__row **at = hf__malloc((n + 1) * sizeof(struct hf__row *));

    if (!at)
        return HF_ENOMEM;
    if (from > 0)
        memcpy(at, seen->at, from * sizeof(struct hf__row *));
    if (rows->n > 0)
        memcpy(at + from, rows->at, rows->n * sizeof(struct hf__row *));
    if (seen->n > to)
        memcpy(at + from + rows->n, seen->at + to,
               (seen->n - to) * sizeof(struct hf__row *));
    for (size_t i = from; i < to; i++)
        hf__query_row_unref(seen->at[i]);
    hf__free(seen->at);
    seen->at = at;
    seen->n = n;
    rows->n = 0; /* their references are ours now */
    return 0;
}

/* An engine that was asked for one name must not slip us another. */
static void keep_name(struct hf__rows *rows, const char *name)
{
    size_t n = 0;

    for (size_t i = 0; i < rows->n; i++) {
        if (strcmp(rows->at[i]->is.lock.name, name) == 0)
            rows->at[n++] = rows->at[i];
        else
            hf__query_row_unref(rows->at[i]);
    }
    rows->n = n;
}

static void take_answer(struct hf_watch *watch, struct hf__query *query)
{
    struct hf__rows *rows = query->rows;
    const char *asked = watch->asked;
    size_t from = 0;
    size_t to = watch->seen.n;
    int rc = 0;

    hf__query_sort(query);
    if (asked) {
        keep_name(rows, asked);
        from = find_name(&watch->seen, asked);
        for (to = from; to < watch->seen.n &&
                        strcmp(watch->seen.at[to]->is.lock.name, asked) == 0;)
            to++;
    }
    for (size_t i = 0; i < rows->n; i++)
        rows->at[i]->seen_ns = watch->asked_ns;
    if (watch->in_step)
        rc = hf__diff_rows(
            (struct hf__diff_list){watch->seen.at + from, to - from},
            (struct hf__diff_list){rows->at, rows->n}, on_change, watch);
    if (rc == 0)
        rc = replace(watch, from, to, rows);
    if (rc != 0)
        fall_behind(watch);
    else if (!watch->in_step && !asked)
        tell_rows(watch);
}

/* ---- names ----------------------------------------------------------------- */

static void names_clear(struct hf__watch_names *names)
{
    while (names->n > 0)
        hf__free(names->at[--names->n]);
    names->all = false;
}

static bool names_empty(const struct hf__watch_names *names)
{
    return names->n == 0 && !names->all;
}

static void names_add(struct hf__watch_names *names, const char *name)
{
    char *copy = NULL;

    for (uint32_t i = 0; i < names->n && name; i++) {
        if (strcmp(names->at[i], name) == 0)
            return;
    }
    if (name && names->n < HF__WATCH_NAMES && !names->all &&
        hf_name_check(name, strlen(name), /* err= */ NULL) == 0)
        copy = hf__strdup(name);
    if (!copy) {
        names_clear(names);
        names->all = true;
        return;
    }
    names->at[names->n++] = copy;
}

/* ---- looking --------------------------------------------------------------- */

static void answered(struct hf_watch *watch, int rc)
{
    hf_client *client = watch->client;

    watch->looking = false;
    if (hf__list_empty(&watch->link))
        return; /* it ends */
    if (rc != 0 && !watch->failed)
        hf__monitor_log(client, HF_LOG_WARNING, "watch '%s': cannot look: %s",
                        watch->text, watch->look->error.text);
    watch->failed = rc != 0;
    if (watch->failed)
        watch->hinted.all = true;
    if (watch->failed || !watch->in_step)
        names_clear(&watch->todo);
    if (watch->todo.n == 0) {
        int64_t pace_ns = 2 * watch->pace_ns;

        watch->pace_ns = pace_ns < PACE_MAX_NS ? pace_ns : PACE_MAX_NS;
        if (watch->changed)
            watch->pace_ns = PACE_MIN_NS;
        watch->looked_ns = client->now_ns;
    }
    plan(watch);
}

static struct hf_watch *watch_of(struct hf_request *request)
{
    return request->ctx;
}

static void finish_look(struct hf_request *request, int rc)
{
    struct hf_watch *watch = watch_of(request);

    hf__query_free(HF_STEAL(request->query));
    hf__request_finish(request, rc);
    hf__monitor_handle_gone(request->client);
    hf__free(HF_STEAL(watch->asked));
    answered(watch, rc);
}

static void forget_look(struct hf_request *request, int rc)
{
    (void)hf__query_give_up(request->client, &request->query, &request->error);
    hf__request_unwatch(request);
    finish_look(request, rc);
}

static void conclude_look(struct hf_request *request, int rc)
{
    if (rc == 0)
        take_answer(watch_of(request), request->query);
    else if (request->query)
        request->error = request->query->err;
    finish_look(request, rc);
}

static const struct hf__request_kind looking = {
    .forget = forget_look,
    .conclude = conclude_look,
};

/* Ask for all names, or for the next one. */
static void ask(struct hf_watch *watch)
{
    hf_client *client = watch->client;
    struct hf_request *look = watch->look;
    struct hf__waiter *answer = &look->answers[0];
    bool exact = watch->feed.name != NULL;
    const char *text = watch->text;
    int rc;

    if (!watch->todo.all) {
        watch->asked = watch->todo.at[--watch->todo.n];
        exact = true;
        text = watch->asked;
    }
    watch->todo.all = false;
    watch->looking = true;
    watch->asked_ns = client->now_ns;
    look->finished = false;
    look->rc = 0;
    look->until_ns = hf__instant_add(
        client->now_ns, hf__ms_to_ns(client->settings.io_timeout_ms));
    hf__waiter_init(answer);
    answer->request = look;
    hf__request_start(look, &looking, /* done= */ NULL, watch);
    rc = hf__query_new_list(text, exact, &look->query, &look->error);
    if (rc == 0)
        rc = hf__query_begin(client, client->engine->ops->list, look->query,
                             answer);
    if (rc != 0)
        hf__waiter_done(client, answer, rc);
}

static void ask_for_hints(struct hf_watch *watch)
{
    struct hf__engine *engine = watch->client->engine;

    watch->asked_for_hints_ns = watch->client->now_ns;
    if (engine->ops->watch)
        engine->ops->watch(engine, &watch->feed);
}

/* Hints have ended, and may come again. */
static bool may_ask_for_hints(const struct hf_watch *watch)
{
    return !watch->feed.live && !watch->feed.refused &&
           watch->client->now_ns - watch->asked_for_hints_ns >= CALM_NS;
}

/* Everything, unless hints have named a few. */
static void begin(struct hf_watch *watch)
{
    bool all = watch->feed.name || !watch->in_step || watch->hinted.n == 0;

    names_clear(&watch->todo);
    watch->todo = watch->hinted;
    memset(&watch->hinted, 0, sizeof(watch->hinted));
    if (all || watch->todo.all) {
        names_clear(&watch->todo);
        watch->todo.all = true;
    }
    watch->changed = false;
    if (may_ask_for_hints(watch))
        ask_for_hints(watch);
    ask(watch);
}

static void look_fire(struct hf__timer *timer)
{
    struct hf_watch *watch = HF_CONTAINER_OF(timer, struct hf_watch, timer);

    if (!hf__client_is_up(watch->client)) {
        hf__client_connect(watch->client);
        watch->looked_ns = watch->client->now_ns;
        watch->failed = true;
        plan(watch);
    } else if (watch->todo.n > 0) {
        ask(watch);
    } else {
        begin(watch);
    }
}

/* How long nothing has to be looked at while hints come: a holder whose lease
 * has not been renewed by then is lost, and not released. */
static int64_t calm_until(const struct hf_watch *watch)
{
    int64_t until_ns = watch->looked_ns + CALM_NS;
    int64_t least_ns = watch->looked_ns + PACE_MIN_NS;

    for (size_t i = 0; i < watch->seen.n; i++) {
        const struct hf__row *row = watch->seen.at[i];
        int64_t lease_ms = row->is.lock.lease_ms;

        if (row->is.lock.role == HF_HOLDER && lease_ms >= 0 &&
            lease_ms < CALM_NS / HF_MS &&
            row->seen_ns + lease_ms * HF_MS < until_ns)
            until_ns = row->seen_ns + lease_ms * HF_MS;
    }
    return until_ns > least_ns ? until_ns : least_ns;
}

static int64_t next_look(const struct hf_watch *watch)
{
    if (watch->todo.n > 0)
        return watch->client->now_ns; /* the same look goes on */
    if (watch->failed)
        return watch->looked_ns + watch->pace_ns;
    if (!watch->in_step || !names_empty(&watch->hinted))
        return watch->looked_ns + GAP_NS;
    return watch->feed.live ? calm_until(watch)
                            : watch->looked_ns + watch->pace_ns;
}

static void plan(struct hf_watch *watch)
{
    int64_t due_ns;

    if (watch->looking || hf__list_empty(&watch->link))
        return;
    due_ns = next_look(watch);
    if (!hf__timer_running(&watch->timer) || watch->timer.due_ns != due_ns)
        hf__monitor_timer(watch->client, &watch->timer, due_ns);
}

/* ---- hints ----------------------------------------------------------------- */

static bool is_about(const struct hf_watch *watch, const char *name)
{
    if (!name)
        return true;
    return watch->feed.name
               ? strcmp(watch->feed.name, name) == 0
               : strncmp(watch->feed.prefix, name, strlen(watch->text)) == 0;
}

void hf__watch_hint(hf_client *client, const char *name)
{
    HF_LIST_EACH(&client->watches, link) {
        struct hf_watch *watch = HF_CONTAINER_OF(link, struct hf_watch, link);

        if (is_about(watch, name)) {
            names_add(&watch->hinted, name);
            plan(watch);
        }
    }
}

static void mark_broken(struct hf_watch *watch, const struct hf__query *query)
{
    struct hf__rows *seen = &watch->seen;

    for (size_t i = find_name(seen, query->name); i < seen->n; i++) {
        const hf_lock_info *lock = &seen->at[i]->is.lock;

        if (strcmp(lock->name, query->name) != 0)
            break;
        if (lock->role == HF_HOLDER &&
            (query->token != 0 ? lock->token == query->token
                               : strcmp(lock->owner, query->owner) == 0))
            seen->at[i]->broken = true;
    }
}

void hf__watch_broke(hf_client *client, const struct hf__query *query)
{
    HF_LIST_EACH(&client->watches, link) {
        mark_broken(HF_CONTAINER_OF(link, struct hf_watch, link), query);
    }
    hf__watch_hint(client, query->name);
}

/* ---- the connection -------------------------------------------------------- */

static void connected(struct hf_watch *watch)
{
    watch->failed = false;
    watch->feed.refused = false;
    ask_for_hints(watch);
    plan(watch);
}

void hf__watch_connected(hf_client *client)
{
    HF_LIST_EACH(&client->watches, link) {
        struct hf_watch *watch = HF_CONTAINER_OF(link, struct hf_watch, link);

        watch->missed += drop_events(watch);
        watch->in_step = false;
        connected(watch);
    }
}

/* ---- making and ending ----------------------------------------------------- */

struct hf_watch *hf__watch_new(hf_client *client, const char *text, bool exact)
{
    struct hf_watch *watch = hf__calloc(1, sizeof(*watch));

    if (!watch)
        return NULL;
    hf__list_init(&watch->link);
    hf__list_init(&watch->feed.link);
    hf__list_init(&watch->events);
    watch->client = client;
    watch->text = hf__strdup(text ? text : "");
    watch->look = hf__request_new(client, /* answers_n= */ 1, /* room= */ 0);
    watch->feed.name = exact ? watch->text : NULL;
    watch->feed.prefix = exact ? NULL : watch->text;
    watch->pace_ns = PACE_NS / 2; /* the first look doubles it */
    watch->timer.fire = look_fire;
    watch->callback.prepare = prepare_event;
    watch->callback.tell = tell_event;
    if (!watch->text || !watch->look) {
        hf__watch_free(watch);
        return NULL;
    }
    return watch;
}

int hf__watch_reserve(struct hf_watch *watch, hf_error *err)
{
    hf_client *client = watch->client;
    int rc;

    rc = hf__monitor_need_background(client, err);
    if (rc == 0)
        rc = hf__callbacks_need(client, err);
    if (rc == 0 && hf__monitor_timer_user(client) != 0)
        return hf__fail(err, HF_ENOMEM, "out of memory");
    if (rc == 0 && hf__monitor_timer_user(client) != 0) {
        hf__monitor_timer_user_gone(client);
        return hf__fail(err, HF_ENOMEM, "out of memory");
    }
    return rc;
}

void hf__watch_start(struct hf_watch *watch)
{
    hf_client *client = watch->client;

    client->handles++;
    hf__list_append(&client->watches, &watch->link);
    watch->looked_ns = client->now_ns - GAP_NS; /* look at once */
    if (hf__client_is_up(client))
        connected(watch);
    else
        plan(watch);
}

/* Nothing comes any more from the engine or the clock. */
static void quiet(struct hf_watch *watch)
{
    hf_client *client = watch->client;

    if (hf__list_empty(&watch->link))
        return;
    hf__list_remove(&watch->link); /* nothing is planned any more */
    if (watch->looking)
        forget_look(watch->look, HF_ECANCELED);
    hf__timer_stop(&client->loop, &watch->timer);
    if (client->engine->ops->unwatch)
        client->engine->ops->unwatch(client->engine, &watch->feed);
    (void)drop_events(watch);
}

void hf__watch_stop(struct hf_watch *watch)
{
    quiet(watch);
    hf__callbacks_cancel(watch->client, &watch->callback);
    hf__monitor_timer_user_gone(watch->client);
    hf__monitor_timer_user_gone(watch->client);
    hf__monitor_handle_gone(watch->client);
}

void hf__watch_close(hf_client *client)
{
    HF_LIST_EACH(&client->watches, link) {
        quiet(HF_CONTAINER_OF(link, struct hf_watch, link));
    }
}

void hf__watch_free(struct hf_watch *watch)
{
    names_clear(&watch->hinted);
    names_clear(&watch->todo);
    hf__query_rows_release(&watch->seen);
    hf__free(watch->look);
    hf__free(watch->text);
    hf__free(watch);
}
