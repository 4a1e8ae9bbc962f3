/* SPDX-License-Identifier: MIT */
/*
 * condition.c - the conditions that this client has something to do with.
 *
 * A condition is the node ROOT/~cond/NAME/COND, a container. Its children are
 * the records of those who are parked or bear a wake-up: ephemeral, numbered by
 * the server. Its data is the list of stamps. Who is called is computed from
 * both (engines/common/condition.c), so the two are read together: if their
 * Stats do not agree, something has happened in between, and we look again.
 *
 * WATCHING. For each condition we watch what can change the lot of our first
 * waiter: its own record, which a signal touches, and the record before it. The
 * first of all waiters that are not called (the guard) watches the whole
 * condition: when a bearer dies its wake-up passes to the guard. A record is
 * touched once it is called, by the signal or, where a wake-up has passed to it,
 * by its owner: so the one behind it becomes the guard. A signal wakes two,
 * however many are parked, and every renewal looks, too.
 *
 * Failure: a look whose answer is lost has no outcome. When the connection is
 * back, the core renews every ticket, and that looks again.
 */
#include "engines/zookeeper/condition.h"

#include "config/name.h"
#include "engines/zookeeper/zookeeper.h"

/* Looks in a row without any news: more of them go in circles. */
enum { STEPS = 100 };

static const char marker[] = "park-";

/* ---- the conditions ------------------------------------------------------ */

/* ROOT/~cond/NAME/COND */
static struct hf__zk_wire_text spell_dir(struct hf__zk *zk, const char *name,
                                         size_t name_len, const char *cond)
{
    char encoded[3 * HF_COND_MAX + 1];

    (void)hf__zk_nodes_path(zk, "/~cond", name, name_len);
    hf__buf_add_char(&zk->scratch, '/');
    hf__buf_append(
        &zk->scratch, encoded,
        hf__name_encode(cond, strlen(cond), encoded, sizeof(encoded)));
    return hf__zk_nodes_spelled(zk);
}

struct hf__zk_condition *hf__zk_condition_get(struct hf__zk *zk,
                                              const char *name, size_t name_len,
                                              const char *cond)
{
    struct hf__zk_wire_text dir = spell_dir(zk, name, name_len, cond);
    struct hf__zk_condition *condition;

    if (!dir.text)
        return NULL;
    HF_LIST_EACH(&zk->conditions, link) {
        condition = HF_CONTAINER_OF(link, struct hf__zk_condition, link);
        if (condition->dir_len == dir.len &&
            memcmp(condition->dir, dir.text, dir.len) == 0)
            return condition;
    }
    condition = hf__calloc(1, sizeof(*condition) + dir.len);
    if (!condition)
        return NULL;
    condition->id = ++zk->condition_ids;
    hf__list_init(&condition->link);
    hf__list_init(&condition->tickets);
    hf__list_init(&condition->signals);
    condition->dir_len = (uint32_t)dir.len;
    memcpy(condition->dir, dir.text, dir.len);
    hf__list_append(&zk->conditions, &condition->link);
    return condition;
}

struct hf__zk_condition *hf__zk_condition_find(const struct hf__zk *zk,
                                               uint64_t id)
{
    HF_LIST_EACH(&zk->conditions, link) {
        struct hf__zk_condition *condition =
            HF_CONTAINER_OF(link, struct hf__zk_condition, link);

        if (condition->id == id)
            return condition;
    }
    return NULL;
}

static void view_release(struct hf__zk_view *view)
{
    hf__zk_queue_release(&view->line);
    hf__condition_release(&view->wakes);
    hf__free(view->made);
    hf__free(view->children);
    memset(view, 0, sizeof(*view));
}

static void condition_free(struct hf__zk_condition *condition)
{
    hf__signals_drop_all(&condition->signals);
    hf__list_remove(&condition->link);
    view_release(&condition->view);
    hf__free(condition);
}

void hf__zk_condition_tidy(struct hf__zk_condition *condition)
{
    if (hf__list_empty(&condition->tickets) &&
        hf__list_empty(&condition->signals))
        condition_free(condition);
}

void hf__zk_condition_forget_all(struct hf__zk *zk)
{
    struct hf__list *link;

    if (!zk->conditions.next)
        return; /* never opened */
    while ((link = hf__list_first(&zk->conditions)) != NULL)
        condition_free(HF_CONTAINER_OF(link, struct hf__zk_condition, link));
}

void hf__zk_condition_join(struct hf__zk *zk, struct hf__ticket *ticket,
                           struct hf__zk_condition *condition)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    mine->condition = condition;
    hf__list_init(&mine->parked_link);
    hf__list_append(&condition->tickets, &mine->parked_link);
}

void hf__zk_condition_leave(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (!mine->condition)
        return;
    hf__list_remove(&mine->parked_link);
    hf__zk_condition_tidy(HF_STEAL(mine->condition));
}

/* ---- records ------------------------------------------------------------- */

struct hf__zk_wire_text hf__zk_condition_dir(
    const struct hf__zk_condition *condition)
{
    return (struct hf__zk_wire_text){condition->dir, condition->dir_len};
}

struct hf__zk_wire_text hf__zk_condition_base(struct hf__zk *zk,
                                              struct hf__ticket *ticket)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    (void)hf__zk_nodes_below(zk, hf__zk_condition_dir(mine->condition),
                             hf__zk_nodes_id(mine));
    hf__buf_add(&zk->scratch, marker);
    return hf__zk_nodes_spelled(zk);
}

struct hf__zk_wire_text hf__zk_condition_path(struct hf__zk *zk,
                                              struct hf__ticket *ticket)
{
    (void)hf__zk_condition_base(zk, ticket);
    hf__buf_printf(&zk->scratch, "%010d",
                   (int)hf__zk_ticket(zk, ticket)->record_number);
    return hf__zk_nodes_spelled(zk);
}

uint32_t hf__zk_condition_place(struct hf__zk *zk, struct hf__ticket *ticket,
                                const struct hf__zk_queue *line)
{
    struct hf__zk_wire_text path = hf__zk_condition_base(zk, ticket);
    size_t dir_len = hf__zk_ticket(zk, ticket)->condition->dir_len + 1;

    return path.text ? hf__zk_queue_find(line, path.text + dir_len,
                                         path.len - dir_len)
                     : line->n;
}

/* The path of a record of the condition. */
static struct hf__zk_wire_text path_of(struct hf__zk *zk,
                                       const struct hf__zk_condition *condition,
                                       const struct hf__zk_contender *record)
{
    return hf__zk_nodes_below(zk, hf__zk_condition_dir(condition),
                              record->name);
}

/* call->number: why it is lost. */
static int on_record_deleted(struct hf__zk *zk, struct hf__ticket *ticket,
                             const struct hf__zk_call *call,
                             struct hf__zk_reply *reply, hf_error *err)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (reply->error != HF__ZK_OK && reply->error != HF__ZK_NO_NODE)
        return hf__zk_errors_read(zk, reply->error, err);
    mine->record = HF__ZK_RECORD_NONE;
    if (hf__zk_tickets_leaves(mine))
        return hf__zk_release_begin(zk, ticket, err);
    hf__zk_tickets_gone(zk, ticket, call->number);
    return 0;
}

int hf__zk_condition_delete(struct hf__zk *zk, struct hf__ticket *ticket,
                            int reason, hf_error *err)
{
    struct hf__zk_call call = hf__zk_tickets_step(ticket, on_record_deleted);

    call.number = reason;
    return hf__zk_calls_delete(zk, hf__zk_condition_path(zk, ticket), &call,
                               err);
}

/* If the record cannot be deleted now, the next renewal comes here again. */
void hf__zk_condition_lose(struct hf__zk *zk, struct hf__ticket *ticket,
                           int reason)
{
    const struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);

    if (mine->record == HF__ZK_RECORD_NONE)
        hf__zk_tickets_gone(zk, ticket, reason);
    else if (!mine->under_way)
        (void)hf__zk_condition_delete(zk, ticket, reason, /* err= */ NULL);
}

/* ---- stamps -------------------------------------------------------------- */

/* Numbers wrap after 2^32. Those of one moment are near each other, so each has
 * a place beside the first one's, which is the middle. */
uint64_t hf__zk_condition_number(int32_t sequence, int32_t first)
{
    int32_t apart = (int32_t)((uint32_t)sequence - (uint32_t)first);

    return (uint64_t)((INT64_C(1) << 32) + apart);
}

int hf__zk_condition_read(struct hf__condition *wakes,
                          struct hf__zk_wire_text data, int32_t first)
{
    int rc = hf__condition_read(wakes, data.text, data.len);

    for (size_t i = 0; i < wakes->n && rc == 0; i++) {
        uint64_t at = wakes->stamps[i].at;

        if (at > UINT32_MAX)
            rc = HF_EINTERNAL;
        wakes->stamps[i].at =
            hf__zk_condition_number((int32_t)(uint32_t)at, first);
    }
    return rc;
}

void hf__zk_condition_write(struct hf__condition *wakes, int32_t first,
                            struct hf__buf *to)
{
    for (size_t i = 0; i < wakes->n; i++)
        wakes->stamps[i].at = (uint32_t)wakes->stamps[i].at + (uint32_t)first;
    hf__condition_write(wakes, to);
}

/* ---- looking ------------------------------------------------------------- */

static void conclude(struct hf__zk *zk, struct hf__zk_condition *condition);

/* Copy the children and read them. */
static int read_line(struct hf__zk_view *view, struct hf__zk_reply *reply)
{
    size_t len = (size_t)(reply->in.end - reply->in.at);
    struct hf__zk_wire_stat stat;
    struct hf__zk_wire in;
    int rc;

    view->children = hf__malloc(len);
    if (!view->children)
        return HF_ENOMEM;
    memcpy(view->children, reply->in.at, len);
    in = (struct hf__zk_wire){view->children, view->children + len, false};
    rc = hf__zk_queue_read(&view->line, &in);
    hf__zk_wire_stat(&in, &stat);
    if (view->seen == HF__ZK_SEEN_NONE)
        view->seen = HF__ZK_SEEN_THERE;
    view->version = stat.version;
    view->children_version = stat.children_version;
    return rc;
}

static int read_wakes(struct hf__zk_view *view, struct hf__zk_reply *reply)
{
    int32_t first = view->line.n > 0 ? view->line.all[0].sequence : 0;
    struct hf__zk_wire_text data = hf__zk_wire_text(&reply->in);
    struct hf__zk_wire_stat stat;
    int rc = hf__zk_condition_read(&view->wakes, data, first);

    hf__zk_wire_stat(&reply->in, &stat);
    if (view->seen == HF__ZK_SEEN_NONE ||
        (view->seen == HF__ZK_SEEN_THERE &&
         (stat.version != view->version ||
          stat.children_version != view->children_version)))
        view->seen = HF__ZK_SEEN_CHANGED;
    view->made = hf__malloc((view->line.n + (size_t)1) * sizeof(view->made[0]));
    if (rc != 0 || !view->made)
        return rc != 0 ? rc : HF_ENOMEM;
    for (uint32_t i = 0; i < view->line.n; i++)
        view->made[i] =
            hf__zk_condition_number(view->line.all[i].sequence, first);
    view->called =
        (uint32_t)hf__condition_called(&view->wakes, view->made, view->line.n);
    return 0;
}

static void on_part(struct hf__zk *zk, const struct hf__zk_call *call,
                    struct hf__zk_reply *reply,
                    int (*read)(struct hf__zk_view *, struct hf__zk_reply *))
{
    struct hf__zk_condition *condition =
        hf__zk_condition_find(zk, call->condition);
    struct hf__zk_view *view;

    if (!condition)
        return;
    view = &condition->view;
    if (!reply || (reply->error != HF__ZK_NO_NODE &&
                   (reply->error != HF__ZK_OK || read(view, reply) != 0)))
        view->seen = HF__ZK_SEEN_FAILED;
    else if (reply->error == HF__ZK_NO_NODE && view->seen == HF__ZK_SEEN_THERE)
        view->seen = HF__ZK_SEEN_CHANGED;
    if (--condition->left == 0)
        conclude(zk, condition);
}

static void on_children(struct hf__zk *zk, const struct hf__zk_call *call,
                        struct hf__zk_reply *reply)
{
    on_part(zk, call, reply, read_line);
}

static void on_wakes(struct hf__zk *zk, const struct hf__zk_call *call,
                     struct hf__zk_reply *reply)
{
    on_part(zk, call, reply, read_wakes);
}

static int ask(struct hf__zk *zk, struct hf__zk_condition *condition,
               int32_t type, hf__zk_reply_fn *done)
{
    struct hf__zk_call call = {.done = done, .condition = condition->id};
    int rc = hf__zk_calls_ask(zk, type, hf__zk_condition_dir(condition),
                              condition->guards, &call, /* err= */ NULL);

    condition->left += rc == 0;
    return rc;
}

void hf__zk_condition_look(struct hf__zk *zk,
                           struct hf__zk_condition *condition)
{
    if (condition->left > 0) {
        condition->look = HF__ZK_LOOK_STALE;
        return;
    }
    view_release(&condition->view);
    condition->look = HF__ZK_LOOKING;
    if (ask(zk, condition, HF__ZK_GET_CHILDREN2, on_children) == 0 &&
        ask(zk, condition, HF__ZK_GET_DATA, on_wakes) == 0)
        return;
    condition->view.seen = HF__ZK_SEEN_FAILED;
    if (condition->left == 0)
        conclude(zk, condition);
}

/* ---- watching ------------------------------------------------------------ */

/* A record that we watch now: has it changed before? call->number tells which
 * it is. */
static void on_watching(struct hf__zk *zk, const struct hf__zk_call *call,
                        struct hf__zk_reply *reply)
{
    struct hf__zk_condition *condition =
        hf__zk_condition_find(zk, call->condition);
    struct hf__zk_wire_stat stat = {0};

    if (!condition || !reply)
        return;
    if (reply->error == HF__ZK_OK) {
        (void)hf__zk_wire_text(&reply->in);
        hf__zk_wire_stat(&reply->in, &stat);
        if (stat.version == 0)
            return;
        if (call->number == (int32_t)condition->watched_own)
            condition->touched = condition->watched_own;
    }
    if (!condition->guards)
        hf__zk_condition_look(zk, condition);
}

static void watch_record(struct hf__zk *zk, struct hf__zk_condition *condition,
                         const struct hf__zk_contender *record, bool own)
{
    struct hf__zk_call call = {.done = on_watching, .condition = condition->id};
    uint64_t *watched =
        own ? &condition->watched_own : &condition->watched_before;
    struct hf__zk_wire_text path = path_of(zk, condition, record);
    uint64_t hash = hf__zk_nodes_hash(zk, path);

    call.number = (int32_t)hash;
    if (*watched != hash &&
        hf__zk_calls_ask(zk, HF__ZK_GET_DATA, path, /* watch= */ true, &call,
                         /* err= */ NULL) == 0)
        *watched = hash;
}

/* The place of our first waiter that is not called; line.n: there is none. */
static uint32_t first_of_ours(struct hf__zk *zk,
                              struct hf__zk_condition *condition,
                              const struct hf__zk_view *view)
{
    uint32_t first = view->line.n;

    HF_LIST_EACH(&condition->tickets, link) {
        struct hf__zk_ticket *mine =
            HF_CONTAINER_OF(link, struct hf__zk_ticket, parked_link);
        uint32_t place;

        if (mine->state != HF__ZK_PARKED)
            continue;
        place = hf__zk_condition_place(zk, mine->entry.ticket, &view->line);
        if (place < first)
            first = place;
    }
    return first;
}

static void watch_on(struct hf__zk *zk, struct hf__zk_condition *condition,
                     const struct hf__zk_view *view)
{
    uint32_t first = first_of_ours(zk, condition, view);
    bool watched = condition->guards;

    condition->guards = first < view->line.n && first == view->called;
    if (first == view->line.n)
        return;
    watch_record(zk, condition, &view->line.all[first], /* own= */ true);
    if (!condition->guards)
        watch_record(zk, condition, &view->line.all[first - 1],
                     /* own= */ false);
    else if (!watched)
        hf__zk_condition_look(zk, condition);
}

/* A look may end a condition: so they are found one after the other. */
static struct hf__zk_condition *next_news(struct hf__zk *zk)
{
    HF_LIST_EACH(&zk->conditions, link) {
        struct hf__zk_condition *condition =
            HF_CONTAINER_OF(link, struct hf__zk_condition, link);

        if (condition->look == HF__ZK_LOOK_DUE)
            return condition;
    }
    return NULL;
}

/* Look with the next look at news. */
static void plan_look(struct hf__zk_condition *condition)
{
    condition->look = condition->left > 0 ? HF__ZK_LOOK_STALE : HF__ZK_LOOK_DUE;
}

/* Is @hash of something that this condition watches? Then not any more. */
static bool take_event(struct hf__zk *zk, struct hf__zk_condition *condition,
                       uint64_t hash)
{
    bool own = hash == condition->watched_own;
    bool before = hash == condition->watched_before;

    if (own) {
        condition->watched_own = 0;
        condition->touched = hash;
    }
    if (before)
        condition->watched_before = 0;
    return own || before ||
           hash == hf__zk_nodes_hash(zk, hf__zk_condition_dir(condition));
}

void hf__zk_condition_event(struct hf__zk *zk, uint64_t hash)
{
    struct hf__zk_condition *condition;

    HF_LIST_EACH(&zk->conditions, link) {
        condition = HF_CONTAINER_OF(link, struct hf__zk_condition, link);
        if (take_event(zk, condition, hash))
            plan_look(condition);
    }
    hf__zk_condition_look_at_news(zk);
}

void hf__zk_condition_look_at_news(struct hf__zk *zk)
{
    struct hf__zk_condition *condition;

    while ((condition = next_news(zk)) != NULL)
        hf__zk_condition_look(zk, condition);
}

void hf__zk_condition_beat(struct hf__zk *zk, struct hf__ticket *ticket)
{
    plan_look(hf__zk_ticket(zk, ticket)->condition);
}

void hf__zk_condition_unwatch_all(struct hf__zk *zk)
{
    HF_LIST_EACH(&zk->conditions, link) {
        struct hf__zk_condition *condition =
            HF_CONTAINER_OF(link, struct hf__zk_condition, link);

        condition->guards = false;
        condition->watched_own = 0;
        condition->watched_before = 0;
    }
}

/* ---- acting on what was seen --------------------------------------------- */

/* A wake-up has passed to this record: tell the one behind it, who watches it
 * and is the guard now. */
static void touch(struct hf__zk *zk, struct hf__ticket *ticket)
{
    struct hf__zk_call call = {.done = hf__zk_calls_ignore};

    (void)hf__zk_calls_set(zk, hf__zk_condition_path(zk, ticket),
                           hf__zk_wire_text_of(""), HF__ZK_ANY_VERSION, &call,
                           /* err= */ NULL);
}

static void call_it(struct hf__zk *zk, struct hf__ticket *ticket,
                    const struct hf__zk_view *view, uint32_t place)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    bool touched = mine->condition->touched ==
                   hf__zk_nodes_hash(zk, path_of(zk, mine->condition,
                                                 &view->line.all[place]));

    mine->record = HF__ZK_RECORD_CALLED;
    if (!touched && place + 1 < view->line.n)
        touch(zk, ticket);
    hf__zk_acquire_called(zk, ticket);
}

/* One of our tickets, at @place of the line; line.n: its record is gone. */
static void act(struct hf__zk *zk, struct hf__ticket *ticket,
                const struct hf__zk_view *view, uint32_t place)
{
    struct hf__zk_ticket *mine = hf__zk_ticket(zk, ticket);
    bool there = place < view->line.n;
    bool unparks = mine->state == HF__ZK_UNPARKING;
    struct hf__grant grant;

    if (mine->under_way || (mine->state != HF__ZK_PARKED && !unparks))
        return;
    if (there) {
        mine->record = HF__ZK_RECORD_KNOWN;
        mine->record_number = view->line.all[place].sequence;
    } else {
        mine->record = HF__ZK_RECORD_NONE;
    }
    if (there && place < view->called) {
        call_it(zk, ticket, view, place);
    } else if (unparks) {
        hf__zk_park_end(zk, ticket, view->version);
    } else if (!there) {
        hf__zk_tickets_gone(zk, ticket, HF__LOST_BROKEN);
    } else {
        grant = hf__zk_acquire_grant(zk, ticket, /* token= */ 0);
        hf__up_renewed(&zk->base, ticket, &grant);
    }
}

/* The next ticket that has not been looked at in this round. */
static struct hf__zk_ticket *next_ticket(struct hf__zk_condition *condition)
{
    HF_LIST_EACH(&condition->tickets, link) {
        struct hf__zk_ticket *mine =
            HF_CONTAINER_OF(link, struct hf__zk_ticket, parked_link);

        if (mine->round != condition->round) {
            mine->round = condition->round;
            return mine;
        }
    }
    return NULL;
}

/* Reports may end tickets, and with the last one the condition: NULL then. */
static struct hf__zk_condition *act_on_all(struct hf__zk *zk, uint64_t id,
                                           const struct hf__zk_view *view)
{
    struct hf__zk_condition *condition = hf__zk_condition_find(zk, id);
    struct hf__zk_ticket *mine;

    if (condition)
        condition->round++;
    while (condition && (mine = next_ticket(condition)) != NULL) {
        act(zk, mine->entry.ticket, view,
            hf__zk_condition_place(zk, mine->entry.ticket, &view->line));
        condition = hf__zk_condition_find(zk, id);
    }
    return condition;
}

/* Nothing is known: an unpark() that waits for it has no outcome. */
static void give_up(struct hf__zk *zk, uint64_t id)
{
    struct hf__zk_condition *condition = hf__zk_condition_find(zk, id);
    struct hf__zk_ticket *mine;

    condition->round++;
    while (condition && (mine = next_ticket(condition)) != NULL) {
        if (mine->state == HF__ZK_UNPARKING && !mine->under_way)
            hf__zk_tickets_answer_lost(zk, mine->entry.ticket);
        condition = hf__zk_condition_find(zk, id);
    }
    if (condition)
        hf__zk_signal_failed(zk, condition);
}

/* Both answers are there. */
static void conclude(struct hf__zk *zk, struct hf__zk_condition *condition)
{
    uint64_t id = condition->id;
    struct hf__zk_view view = condition->view;
    bool stale = condition->look == HF__ZK_LOOK_STALE ||
                 view.seen == HF__ZK_SEEN_CHANGED;

    memset(&condition->view, 0, sizeof(condition->view));
    condition->look = HF__ZK_NO_LOOK;
    if (view.seen == HF__ZK_SEEN_FAILED ||
        (stale && ++condition->steps > STEPS)) {
        give_up(zk, id);
    } else if (stale) {
        hf__zk_condition_look(zk, condition);
    } else {
        condition->steps = 0;
        hf__zk_signal_send(zk, condition, &view);
        condition = act_on_all(zk, id, &view);
        if (condition)
            watch_on(zk, condition, &view);
    }
    view_release(&view);
}
